"""GET /v1/journal/config and POST /v1/journal/config:propose: the config stream (seed 001)."""

from typing import Annotated

import msgspec

from quipu.api.bodies import JSON, decoded
from quipu.api.calls import Call, Response
from quipu.api.codes import Code
from quipu.api.events import FOR_NOW
from quipu.api.order_models import ChangeBody, ConfigBody, ConfigWord, NodeConfig
from quipu.api.problems import Problem, at, problem
from quipu.api.writing import waited_ms
from quipu.ledger import limits as ledger_limits
from quipu.ledger.order.config import ChangeState
from quipu.ledger.order.config_items import ConfigKind
from quipu.ledger.words import NodeNo

MS_PER_S = 1_000
KINDS = {kind.word: kind for kind in ConfigKind}
NodeName = Annotated[str, msgspec.Meta(min_length=1, max_length=128, examples=["n2"])]


class NewChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What shall change: one node, or all serializers that shall be, by name or number."""

    kind: ConfigWord
    nodes: Annotated[
        list[NodeName], msgspec.Meta(min_length=1, max_length=ledger_limits.SERIALIZERS_MAX)
    ]


class ChangeQuery(msgspec.Struct, kw_only=True):
    timeout: str = "30s"


_changes = msgspec.json.Decoder(NewChange)


async def config(call: Call) -> Response:
    order, shapes = call.ledger.order, call.face.shapes
    found, voters = order.config.state(), order.status().serializers
    nodes = [
        NodeConfig(shapes.member(row.node), list(row.roles), row.node in voters, row.blocked)  # type: ignore[arg-type]
        for row in found.nodes
    ]
    change = None if found.newest is None else _change(call, found.newest)
    return call.answer(ConfigBody(nodes, change), headers=FOR_NOW)


async def propose(call: Call) -> Response:
    if call.body_type != JSON:
        problem(Code.UNSUPPORTED_MEDIA_TYPE, f"the endpoint reads {JSON}")
    timeout_ms = waited_ms(call.query(ChangeQuery).timeout, "timeout")
    body = await call.read_body(call.face.settings.body_bytes_max)
    wanted = decoded(_changes, body)
    kind = KINDS[wanted.kind]
    nodes = tuple(sorted({_number(call, name) for name in wanted.nodes}))
    if len(nodes) != len(wanted.nodes):
        raise at(Code.INVALID_FIELD, "/nodes", "names a node twice")
    if len(nodes) > 1 and kind is not ConfigKind.SERIALIZERS:
        raise at(Code.INVALID_FIELD, "/nodes", f"{wanted.kind} is of one node")
    done = await call.ledger.order.config.propose(kind, nodes, timeout_ms / MS_PER_S)
    return call.answer(_change(call, done), 201 if done.ended else 202, FOR_NOW)


def _number(call: Call, name: str) -> NodeNo:
    for row in call.ledger.members():
        if name in (row.name, str(row.number)):
            return row.number
    raise Problem(Code.UNKNOWN_NODE, f"there is no member {name}")


def _change(call: Call, change: ChangeState) -> ChangeBody:
    return ChangeBody(
        change.kind.word,  # type: ignore[arg-type]  # the words of the kinds, which a test holds
        call.face.shapes.members(change.nodes),
        change.stage,  # type: ignore[arg-type]
        change.ended,
        None if change.refusal is None else str(change.refusal),
        str(change.index),
        str(change.moved),
    )
