"""The directories of a new devnet: keys, one genesis that names all members, an invitation."""

import secrets
import time
from collections.abc import Sequence
from pathlib import Path

from quipu.devnet.plan import DATA_FOLDER, NodePlan, Plan
from quipu.devnet.ports import HOST
from quipu.ledger.words import NodeId
from quipu.node.data_directory import make_identity, open_directory
from quipu.node.founding import RANDOM_BYTES, FirstStart, Founding, Joining, OtherFounder
from quipu.node.invitation import Invitation
from quipu.p2p.words import Endpoint

INVITATION_FILE = "invitation"
CLUSTER_NAME = "devnet"
PLAN_VERSION = 1
MS_PER_S = 1_000
PORTS_PER_NODE = 3


def found(
    folder: Path, members: int, observers: int, ports: list[int], settings: Sequence[str] = ()
) -> Plan:
    """`settings` are for each node; what the genesis has to say is taken from them. Raises
    `CannotStart`."""
    nodes = []
    for number in range(1, members + observers + 1):
        name = f"n{number}"
        data = folder / name / DATA_FOLDER
        node_id = make_identity(data, secrets.token_bytes(RANDOM_BYTES)[:32]).node_id
        api, p2p, ops = ports[(number - 1) * PORTS_PER_NODE : number * PORTS_PER_NODE]
        nodes.append(NodePlan(name, node_id.hex(), number <= members, api, p2p, ops))
    first, *others = nodes
    founding = Founding(
        first.name,
        CLUSTER_NAME,
        int(time.time() * MS_PER_S),
        secrets.token_bytes(RANDOM_BYTES),
        _streams_erasable(settings),
        others=tuple(OtherFounder(n.name, *_where(n)) for n in others if n.is_member),
    )
    genesis, secret = _make(folder, first, founding)
    seeds = tuple(_where(node) for node in nodes if node.is_member)
    invitation = Invitation(genesis, seeds, secret)
    invitation.write(folder / INVITATION_FILE)
    for node in others:
        _make(folder, node, Joining(invitation, secrets.token_bytes(RANDOM_BYTES)))
    return Plan(PLAN_VERSION, invitation.cluster_id.hex(), nodes, list(settings))


def _streams_erasable(settings: Sequence[str]) -> tuple[str, ...]:
    named = dict(setting.partition("=")[::2] for setting in settings)
    return tuple(filter(None, named.get("node.streams_erasable", "").split(",")))


def _where(node: NodePlan) -> tuple[NodeId, Endpoint]:
    return NodeId(bytes.fromhex(node.node_id)), Endpoint(HOST, node.p2p_port)


def _make(folder: Path, node: NodePlan, first: FirstStart) -> tuple[bytes, bytes]:
    directory = open_directory(folder / node.name / DATA_FOLDER, first)
    try:
        return directory.genesis, directory.cluster_secret
    finally:
        directory.close()
