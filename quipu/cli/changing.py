"""A change of the roster, from an operator's word to its end, over the admin socket of a node."""

import sys
import time
from collections.abc import Sequence
from typing import Any, NoReturn

from quipu.cli.admin_socket import LOOK_INTERVAL_S, AdminSocket, running_node
from quipu.cli.remote import Output, Remote, fail
from quipu.node.exits import Exit
from quipu.node.settings import Settings

CONFIG = "/v1/cluster/roster"
DONE = "done"
ENROL_S = 60.0


def change(settings: Settings, asked: dict[str, str], timeout_s: float, as_json: bool) -> None:
    node = _running(settings)
    due_s = time.monotonic() + timeout_s
    begun = node.ask("POST", f"{CONFIG}:propose", asked)
    if begun["warning"]:
        _say(begun["warning"])
    found = _wait(node, begun["id"], due_s)
    ended = found["ended"]
    if ended is None or ended["id"] != begun["id"]:
        change = found["change"]
        if change is not None and change["id"] == begun["id"]:
            waits = ", ".join(_names(change["missing"])) or "the log"
            _say(f"not done after {timeout_s:g} s: {change['stage']}, waits for {waits}")
            _say("It goes on; `quipu members changes` tells how far it is.")
            _show(found, as_json)
            sys.exit(int(Exit.WAITED))
    elif ended["outcome"] != DONE:
        fail(f"the change has ended: {ended['outcome']}", Exit.CONFLICT)
    _show(found, as_json)


def enrol(settings: Settings, uris: Sequence[str]) -> None:
    """Makes those members that are none yet, one after the other."""
    node = _running(settings)
    _await_master(node)
    for uri in uris:
        present = {one["node_id"] for one in node.ask("GET", CONFIG)["members"]}
        if uri.rpartition("/")[2] in present:
            continue
        begun = node.ask("POST", f"{CONFIG}:propose", {"change": "add-member", "node": uri})
        found = _wait(node, begun["id"], time.monotonic() + ENROL_S)
        ended = found["ended"]
        if ended is None or (ended["id"], ended["outcome"]) != (begun["id"], DONE):
            fail(f"{uri} is no member yet: see `quipu members changes`", Exit.WAITED)


def _await_master(node: AdminSocket) -> None:
    due_s = time.monotonic() + ENROL_S
    while time.monotonic() < due_s:
        journal = node.ask("GET", "/v1/journal")
        if journal["master"] is not None and journal["state"] == "WRK":
            return
        time.sleep(LOOK_INTERVAL_S)
    fail("the cluster has no master", Exit.WAITED)


def recover(settings: Settings, force: bool, as_json: bool) -> None:
    node = _running(settings)
    if not force:
        fail(
            "nothing was done: --force says that the other members are lost for ever",
            Exit.USAGE,
        )
    done = node.ask("POST", f"{CONFIG}:recover", {"force": True})
    if done["followed"]:
        _say(f"this node follows: epoch {done['epoch']} was opened by force without it.")
        _say("It is an observer now; `quipu members add` at a member takes it in again.")
    else:
        _say(f"epoch {done['epoch']} is open, by force: this node is its only member.")
        _say("Whoever of the others comes back stands still. Add members: `quipu members add`.")
    _show(node.ask("GET", CONFIG), as_json)


def show(settings: Settings, as_json: bool) -> None:
    _show(_running(settings).ask("GET", CONFIG), as_json)


def _running(settings: Settings) -> AdminSocket:
    node = running_node(settings)
    if node is None:
        _not_running()
    return node


def _not_running() -> NoReturn:
    fail(
        "no node is running on this data directory: name the --data-dir of one that does",
        Exit.UNREACHABLE,
    )


def _wait(node: AdminSocket, identity: str, due_s: float) -> dict[str, Any]:
    """Until it is over, or for so long; says each step once."""
    told = ""
    while True:
        found = node.ask("GET", CONFIG)
        change = found["change"]
        if change is None or change["id"] != identity:
            return found
        waits = ", ".join(_names(change["missing"]))
        step = f"{change['stage']}{': waits for ' + waits if waits else ''}"
        if step != told:
            told = step
            _say(step)
        if time.monotonic() >= due_s:
            return found
        time.sleep(LOOK_INTERVAL_S)


def _names(nodes: list[dict[str, Any]]) -> list[str]:
    return [node["name"] or node["node_id"][:16] for node in nodes]


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _show(found: dict[str, Any], as_json: bool) -> None:
    if not as_json:
        found = dict(found)
        for name in ("members", "serializers", "next_serializers"):
            found[name] = ", ".join(_names(found[name] or [])) or None
        for name in ("change", "ended"):
            found[name] = _line(found[name])
        found["forced_epochs"] = ", ".join(found["forced_epochs"]) or None
    Remote((), None, None, Output.JSON if as_json else Output.TABLE).show(found)


def _line(one: dict[str, Any] | None) -> str | None:
    if one is None:
        return None
    if "outcome" in one:
        return f"{one['outcome']} ({one['id'][:16]})"
    wanted, missing = ", ".join(_names(one["members"])), ", ".join(_names(one["missing"]))
    who = "by itself" if one["id"] is None else one["id"][:16]
    return f"{one['stage']}: {wanted}; waits for {missing or 'the log'} ({who})"
