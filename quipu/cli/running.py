"""`quipu run`: the node with its HTTP faces, and what a person needs to begin."""

import gc
import json
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import uvloop

from quipu.cli.faces import HttpFaces, check_faces, start_faces
from quipu.ledger.epochs import cluster_id_of
from quipu.node import clock, failpoints, limits, open_files, program
from quipu.node.exits import CannotStart, Exit
from quipu.node.logs import Threshold, bridge, open_log
from quipu.node.program import Faces, Node
from quipu.node.service import Ledger
from quipu.node.settings import Settings
from quipu.p2p.addresses import uri_of


def run_node(settings: Settings, as_json: bool, again: Callable[[], Settings]) -> Exit:
    """`again` reads the configuration anew, for a reload. Raises `CannotStart`."""
    check_faces(settings)
    failpoints.arm(os.environ.get(failpoints.VARIABLE, ""))
    clock.set_wrong(os.environ.get(clock.VARIABLE, ""))
    sys.setswitchinterval(limits.GIL_SWITCH_S)
    threshold = Threshold(settings.log.level)
    log = open_log(settings.log, threshold=threshold)
    allowed = open_files.raise_to(open_files.needed(settings))
    if allowed < open_files.needed(settings):
        log.warning("few files may be open: see `ulimit -Hn`", allowed=allowed)
    bridge(log, settings.log)
    if failpoints.is_armed():
        log.warning("failpoints are armed: this node will fail on purpose")
    if clock.is_wrong():
        log.warning("the clock of this node is wrong on purpose", by=clock.VARIABLE)

    async def start(node: Node) -> Faces:
        faces = await start_faces(node.ledger, settings, node.administration)
        node.administration.threshold = threshold
        node.administration.reload = partial(_reload, node, faces, threshold, again)
        _say_ready(node.ledger, settings, faces.urls, as_json)
        log.info("running", node=node.ledger.node_id.hex()[:16], **faces.urls)
        return faces

    # What is loaded by now stays: looking through it again and again cost the p99 of a flood 25 ms.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*limits.GC_THRESHOLDS)
    return uvloop.run(program.run(settings, log, start))


def _reload(
    node: Node, faces: HttpFaces, threshold: Threshold, again: Callable[[], Settings]
) -> list[str]:
    """What can be changed without a start; the rest of the configuration waits for one."""
    faults, log = [*faces.reload(), *node.read_secrets()], node.log
    try:
        threshold.move(again().log.level)
    except CannotStart as error:
        faults.append(f"configuration: {error.what}")
    for fault in faults:
        log.error("not read again", what=fault)
    log.info("read again: tokens, certificate, secrets, log level", level=threshold.level)
    return faults


def _uri(ledger: Ledger) -> str:
    return uri_of(ledger.node_id, ledger.endpoint) if ledger.endpoint is not None else ""


def _say_ready(ledger: Ledger, settings: Settings, urls: dict[str, str], as_json: bool) -> None:
    data_dir = settings.node.data_dir.absolute()
    if as_json:
        facts: dict[str, Any] = {
            "node_id": ledger.node_id.hex(),
            "cluster_id": cluster_id_of(ledger.genesis).hex(),
            "p2p": _uri(ledger),
            **urls,
            "admin_socket": str(settings.admin_socket),
            "pid": os.getpid(),
            "data_dir": str(data_dir),
        }
        print(json.dumps(facts), flush=True)
        return
    print(
        f"""
  quipu {ledger.name} of cluster {ledger.cluster_name} is running ({ledger.feed_number} events Read)

    Page  {urls["api"]}/ui/
    API   {urls["api"]}
    OPS   {urls["ops"]}/readyz  /metrics
    P2P   {_uri(ledger)}
    data  {data_dir}

  Try it:

    curl -sS '{urls["api"]}/v1/entries?wait=read' -H 'content-type: application/json' \\
         -d '{{"stream": "orders", "data": {{"order": 7}}}}'

  Ctrl-C stops it; the next start has the data.
""",
        file=sys.stderr,
        flush=True,
    )
