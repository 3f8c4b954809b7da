"""GET /v1/events and /v1/dag: the graph as it is held here, bounded."""

from typing import Annotated

import msgspec
from aiohttp import web

from quipu.api import limits
from quipu.api.calls import Call, Response
from quipu.api.codes import Code
from quipu.api.models import (
    EventList,
    ExplanationBody,
    Frontier,
    FrontierRowBody,
    LeafList,
    ObstacleBody,
)
from quipu.api.problems import Problem, at
from quipu.api.shaping import Shapes, read_event_id, state
from quipu.api.times import time_text
from quipu.ledger.event import EventMeta
from quipu.ledger.words import EventId
from quipu.node.service import Cause, Explanation, FrontierRow, Obstacle

FOR_NOW = {"Cache-Control": "no-store"}
MEANINGS = {
    Cause.OWN_RECEIPT: "the receipt of its author has not come yet",
    Cause.RECEIPTS: "receipts of more members are needed",
    Cause.PARENT: "an ancestor is not final itself",
    Cause.CLOCK: "it is stamped ahead of the cluster's time: receipts wait until then",
    Cause.JOURNALS: "its author has too many open journals: it waits for a checkpoint",
    Cause.SUSPENDED: "a proof of misbehaviour is held against its author",
    Cause.LEFT: "its author has left, and the event lies above the cut",
}


class AncestorsQuery(msgspec.Struct, kw_only=True):
    depth: Annotated[int, msgspec.Meta(ge=1, le=limits.ANCESTORS_DEPTH_MAX)] = (
        limits.ANCESTORS_DEFAULT
    )
    limit: Annotated[int, msgspec.Meta(ge=1, le=limits.EVENTS_ANSWERED_MAX)] = limits.PAGE_DEFAULT


class WindowQuery(msgspec.Struct, kw_only=True):
    center: str | None = None
    before: Annotated[int, msgspec.Meta(ge=0, le=limits.EVENTS_ANSWERED_MAX)] = 100
    after: Annotated[int, msgspec.Meta(ge=0, le=limits.EVENTS_ANSWERED_MAX)] = 100


def held_event(call: Call) -> EventMeta:
    return _meta(call, read_event_id(call.argument))


def _meta(call: Call, identity: EventId) -> EventMeta:
    meta = call.ledger.meta(identity)
    if meta is None and call.ledger.was_pruned(identity):
        raise Problem(Code.PRUNED, f"{identity.hex()} was held here")
    if meta is None:
        raise Problem(Code.EVENT_NOT_FOUND, f"{identity.hex()} is not held here")
    return meta


async def event(call: Call) -> Response:
    meta = held_event(call)
    held = call.ledger.event(meta.id)
    assert held is not None
    body = call.face.shapes.signed_event(meta, held.header_bytes, held.signature)
    return call.answer(body, headers=FOR_NOW)


class PrefixQuery(msgspec.Struct, kw_only=True):
    # `$` alone would take a line break behind it.
    prefix: Annotated[
        str, msgspec.Meta(pattern=f"^[0-9a-fA-F]{{{limits.PREFIX_DIGITS_MIN},64}}$(?!\\n)")
    ]


async def events(call: Call) -> Response:
    """Events whose id begins so. The index is over the first 16 bytes; the rest is compared."""
    if not call.request.rel_url.raw_query_string:
        raise at(Code.INVALID_PARAMETER, "prefix", "is needed")
    prefix = call.query(PrefixQuery).prefix.lower()
    first, last = (bytes.fromhex(prefix[:32].ljust(32, end)) for end in "0f")
    found = call.ledger.ids_between(first, last, limits.PREFIX_FOUND_MAX + 1)
    metas = [_meta(call, identity) for identity in found if identity.hex().startswith(prefix)]
    return _listed(call, metas, limits.PREFIX_FOUND_MAX)


def _listed(call: Call, metas: list[EventMeta], limit: int) -> web.Response:
    items = [call.face.shapes.event(meta) for meta in metas[:limit]]
    return call.answer(EventList(items, len(metas) > limit), headers=FOR_NOW)


async def parents(call: Call) -> Response:
    meta = held_event(call)
    below = ([] if meta.seq == 1 else [meta.prev]) + list(meta.parents)
    if not call.ledger.history_from:
        return _listed(call, [_meta(call, identity) for identity in below], len(below))
    held = [found for identity in below if (found := call.ledger.meta(identity)) is not None]
    return _listed(call, held, len(below))


async def children(call: Call) -> Response:
    found = call.ledger.children(held_event(call).id)[: limits.EVENTS_ANSWERED_MAX + 1]
    return _listed(call, [_meta(call, i) for i in found], limits.EVENTS_ANSWERED_MAX)


async def ancestors(call: Call) -> Response:
    query = call.query(AncestorsQuery)
    found = call.ledger.ancestors(held_event(call).id, query.depth, query.limit + 1)
    return _listed(call, found, query.limit)


# --- why it is not final --------------------------------------------------------------------------
async def explain(call: Call) -> Response:
    meta = held_event(call)
    found = call.ledger.explain(meta.id)
    assert found is not None
    return call.answer(explanation(call.face.shapes, meta, found), headers=FOR_NOW)


def explanation(shapes: Shapes, meta: EventMeta, found: Explanation) -> ExplanationBody:
    status = found.status
    return ExplanationBody(
        id=meta.id.hex(),
        state=state(status),
        confirmations=status.read_confirms,
        required=status.required,
        confirmed_by=shapes.members(status.confirmed_by),
        sentence=_sentence(found),
        obstacles=[_obstacle(shapes, one) for one in found.obstacles],
    )


def _sentence(found: Explanation) -> str:
    status = found.status
    count = f"{status.read_confirms} of {status.required} needed confirmations"
    if not found.obstacles:
        return f"It is {state(status)}: {count} are held."
    reasons = "; ".join(MEANINGS[one.cause] for one in found.obstacles)
    return f"It is not final yet, with {count}: {reasons}."


def _obstacle(shapes: Shapes, one: Obstacle) -> ObstacleBody:
    return ObstacleBody(
        cause=one.cause.value,
        meaning=MEANINGS[one.cause],
        members=shapes.members(one.members),
        offline=shapes.members(one.offline),
        events=[identity.hex() for identity in one.events],
        wanted=one.wanted,
        until=None if one.until_ms is None else time_text(one.until_ms),
    )


# --- the picture ----------------------------------------------------------------------------------
async def leaves(call: Call) -> Response:
    found = call.ledger.leaves()[: limits.EVENTS_ANSWERED_MAX]
    items = [call.face.shapes.event(_meta(call, identity)) for identity in found]
    return call.answer(LeafList(items), headers=FOR_NOW)


async def window(call: Call) -> Response:
    """Events around one, in the order of this node's feed; what is not Read comes last."""
    query = call.query(WindowQuery)
    ledger = call.ledger
    place = ledger.feed_number
    if query.center is not None:
        place = _place(call, _meta(call, read_event_id(query.center)))
    first = max(ledger.feed_first - 1, place - query.before - 1)
    found = [identity for _, identity in ledger.feed(first, max(place - first, 0) + query.after)]
    room = query.before + 1 + query.after
    if len(found) < room and place + query.after >= ledger.feed_number:
        found += ledger.unread(room - len(found))
    metas = [_meta(call, identity) for identity in found]
    return _listed(call, metas, limits.EVENTS_ANSWERED_MAX)


def _place(call: Call, center: EventMeta) -> int:
    """Where in the feed it stands, or would stand: found by halving, as stamps rise along it but
    for the moments that gossip takes."""
    low, high = call.ledger.feed_first - 1, call.ledger.feed_number
    while low < high:
        middle = (low + high) // 2
        (_, identity), *_ = call.ledger.feed(middle, 1)
        if _meta(call, identity).hlc < center.hlc:
            low = middle + 1
        else:
            high = middle
    return min(low + 1, call.ledger.feed_number)


async def frontier(call: Call) -> Response:
    rows = sorted(
        (_frontier_row(call, row) for row in call.ledger.frontier()),
        key=lambda row: (row.author, int(row.journal), row.held_id),
    )
    return call.answer(Frontier(call.ledger.cluster_id.hex(), rows), headers=FOR_NOW)


def _frontier_row(call: Call, row: FrontierRow) -> FrontierRowBody:
    return FrontierRowBody(
        author=call.face.shapes.member(row.author_no).node_id,
        journal=str(row.journal),
        held_seq=str(row.held_seq),
        held_id=row.held_id.hex(),
        read_seq=str(row.read_seq),
        read_id=row.read_id.hex() if row.read_seq else None,
    )
