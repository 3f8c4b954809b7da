"""`quipu init` and `quipu invite`."""

import json
import sys
from pathlib import Path

from quipu.ledger.words import NodeId
from quipu.node import program
from quipu.node.data_directory import make_identity, read_directory
from quipu.node.exits import BadSetting, DirectoryTaken
from quipu.node.founding import GENESIS_FILE, read_seeds
from quipu.node.invitation import Invitation
from quipu.node.joining import addresses_met, check_advertised
from quipu.node.settings import Settings
from quipu.p2p.addresses import BadUri, parse_endpoint, uri_of
from quipu.p2p.words import Endpoint


def init_node(settings: Settings, key_only: bool, as_json: bool) -> None:
    path = settings.node.data_dir
    if (path / GENESIS_FILE).exists():
        raise DirectoryTaken(f"{path} holds a node already", "`quipu run` starts it.")
    if key_only:
        key = make_identity(path, program.first_start(settings).seed)
        endpoint = _where(settings, "")
        _say(
            {"node_id": key.node_id.hex(), "uri": uri_of(key.node_id, endpoint)},
            as_json,
            "Give this URI to the founder that makes the cluster.",
        )
        return
    directory = program.open_data(settings)
    try:
        program.open_store_of(directory).close()
        facts = {
            "node_id": directory.key.node_id.hex(),
            "cluster_id": directory.cluster_id.hex(),
            "data_dir": str(directory.path),
        }
    finally:
        directory.close()
    _say(facts, as_json, "Keep node.key safe and secret: it is who this node is.")


def invite(settings: Settings, out: Path, address: str, as_json: bool) -> None:
    """Works beside a running node too: nothing of its directory is changed."""
    directory = read_directory(settings.node.data_dir)
    own = (directory.key.node_id, _where(settings, address))
    seeds = [*read_seeds(directory.path), *addresses_met(directory), own]
    known: dict[NodeId, Endpoint] = dict(seeds)
    try:
        Invitation(directory.genesis, tuple(known.items()), directory.cluster_secret).write(out)
    except FileExistsError as error:
        raise DirectoryTaken(f"{out} is there already", "Name another file with --out.") from error
    except OSError as error:
        raise DirectoryTaken(
            f"cannot write {out}: {error.strerror}", "Name another file."
        ) from error
    facts = {"file": str(out), "cluster_id": directory.cluster_id.hex(), "members": str(len(known))}
    _say(facts, as_json, f"It holds the cluster's secret. There: quipu run --join {out.name}")


def _where(settings: Settings, address: str) -> Endpoint:
    """Where others reach this node, as far as it can be said while it does not run."""
    try:
        if address:
            return parse_endpoint(address)
    except BadUri as error:
        raise BadSetting(f"--address: {error}", "Write --address host:port.") from error
    check_advertised(settings)
    endpoint = Endpoint(*(settings.p2p.advertise or settings.p2p.listen))
    if not endpoint.port:
        raise BadSetting(
            f"nobody can dial {endpoint}: the port is chosen when the node runs",
            "Set p2p.listen to a port, or say --address host:port.",
        )
    return endpoint


def _say(facts: dict[str, str], as_json: bool, word: str) -> None:
    if as_json:
        print(json.dumps(facts))
        return
    for name, value in facts.items():
        print(f"{name:<11} {value}")
    print(word, file=sys.stderr)
