"""POST /v1/entries:batch: many entries in one request, with a result for each.

A JSON array (also msgpack, and CloudEvents in batch mode) is read whole; NDJSON is read line by
line while the receipts go out. `atomic=true` makes one event of all, or stores nothing.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import NamedTuple, TypeAlias

import msgspec
from aiohttp import web

from quipu.api import limits
from quipu.api.bodies import (
    CLOUDEVENT,
    CLOUDEVENTS,
    JSON,
    MSGPACK,
    NDJSON,
    Defaults,
    Shaped,
    StreamName,
    read_array,
    read_entry,
)
from quipu.api.calls import Call, Reply, Response, refuse_encoded, too_large
from quipu.api.codes import Code
from quipu.api.idempotency import Outcome
from quipu.api.models import BatchAnswer, BatchResult, State
from quipu.api.plain import plain_array, plain_lines
from quipu.api.problems import FieldError, Problem, at, problem
from quipu.api.refusals import FAULTS, as_problem
from quipu.api.shaping import has_reached
from quipu.api.writing import check_stream, defaults_of, reached_state, waited_ms, waited_state
from quipu.ledger import limits as ledger_limits
from quipu.node.service import Stored

ITEM_TYPES = {JSON: JSON, MSGPACK: MSGPACK, CLOUDEVENTS: CLOUDEVENT, NDJSON: JSON}


class BatchQuery(msgspec.Struct, kw_only=True):
    wait: str = "stored"
    timeout: str = "30s"
    stream: StreamName | None = None
    atomic: bool = False


class _Terms(NamedTuple):
    """What holds for each item."""

    item_type: str
    defaults: Defaults
    wanted: State
    timeout_ms: int

    @property
    def takes_plain(self) -> bool:
        return self.item_type == JSON


async def submit_batch(call: Call) -> Response:
    if call.body_type == NDJSON:
        query, terms = _asked(call)
        if query.atomic:
            raise at(
                Code.INVALID_PARAMETER, "atomic", "is for arrays: lines are stored as they come"
            )
        return await _streamed(call, terms)
    return (await array_reply(call)).response()


async def array_reply(call: Call) -> Reply:
    """To a batch that is read whole."""
    query, terms = _asked(call)
    bytes_max = call.face.settings.batch_bytes_max
    with call.face.admitted(call, bytes_max):
        body = await call.read_body(bytes_max)
        with call.face.pressure.working():
            outcomes = await _store_array(call, body, terms, query.atomic)
    results = await _results(call, outcomes, terms, 0)
    return _reply(call, results, isinstance(outcomes, _Together))


def _asked(call: Call) -> tuple[BatchQuery, _Terms]:
    query = call.query(BatchQuery)
    kind = call.body_type
    if kind not in ITEM_TYPES:
        read = ", ".join(ITEM_TYPES)
        problem(Code.UNSUPPORTED_MEDIA_TYPE, f"{kind or 'no type'} is not read here; {read} are")
    defaults = defaults_of(call, query.stream)
    if defaults.idempotency_key is not None:
        detail = "one key is for one entry: give each item its own idempotency_key"
        raise at(Code.INVALID_HEADER, "Idempotency-Key", detail)
    wanted, timeout_ms = waited_state(query.wait), waited_ms(query.timeout, "timeout")
    return query, _Terms(ITEM_TYPES[kind], defaults, wanted, timeout_ms)


class _Together(NamedTuple):
    """What was plain and became part of one event: nothing has to be said of each."""

    stored: Stored
    entries: int


_Outcomes: TypeAlias = list[Outcome | Problem] | _Together


async def _store_array(call: Call, body: bytes, terms: _Terms, atomic: bool) -> _Outcomes:
    if terms.takes_plain:
        plain = plain_array(body, terms.defaults, call.principal)
        if plain and _fits_event(plain):
            try:
                return _Together(await call.ledger.submit(plain), len(plain))
            except FAULTS as error:
                if atomic:
                    raise
                return _all_refused(error, len(plain))
    items = read_array(body, call.body_type)
    if not 1 <= len(items) <= limits.BATCH_ITEMS_MAX:
        detail = f"{len(items)} items; a batch has 1 to {limits.BATCH_ITEMS_MAX}"
        problem(Code.TOO_LARGE if items else Code.INVALID_FIELD, detail, FieldError("", detail))
    store = _store_together if atomic else _store_each
    return await store(call, items, terms)


def _fits_event(entries: list[bytes]) -> bool:
    size = sum(map(len, entries)) + 8 * len(entries)
    return len(entries) <= limits.BATCH_ITEMS_MAX and size <= ledger_limits.EVENT_BYTES_MAX - 64


def _all_refused(error: Exception, count: int) -> list[Outcome | Problem]:
    found = as_problem(error)
    if found is None:
        raise error
    return [found] * count


# --- arrays ---------------------------------------------------------------------------------------
def _shaped(call: Call, item: bytes, terms: _Terms, index: int) -> Shaped:
    shaped = read_entry(item, terms.item_type, terms.defaults, f"/{index}")
    check_stream(call, shaped.entry.stream)
    return shaped


async def _store_together(call: Call, items: list[bytes], terms: _Terms) -> list[Outcome | Problem]:
    """One event or nothing: the first thing that is wrong is the answer."""
    shaped = [_shaped(call, item, terms, index) for index, item in enumerate(items)]
    size = sum(len(one.canonical) for one in shaped)
    if size > ledger_limits.EVENT_BYTES_MAX:
        detail = f"{size} bytes of entries; an atomic batch takes {ledger_limits.EVENT_BYTES_MAX}"
        problem(Code.TOO_LARGE, detail)
    known = [index for index, one in enumerate(shaped) if call.face.keys.first(one) is not None]
    if known and len(known) < len(shaped):
        detail = "is stored already, and others of this atomic batch are not"
        raise at(Code.KEY_REUSED, f"/{known[0]}", detail)
    outcomes = await call.face.keys.submit(shaped)
    for outcome in outcomes:
        if isinstance(outcome, Problem):
            raise outcome
    return outcomes


async def _store_each(call: Call, items: list[bytes], terms: _Terms) -> list[Outcome | Problem]:
    """What is sound is stored, in as few events as it fits."""
    outcomes: dict[int, Outcome | Problem] = {}
    part: dict[int, Shaped] = {}
    size = 0
    for index, item in enumerate(items):
        try:
            shaped = _shaped(call, item, terms, index)
        except Problem as found:
            outcomes[index] = found
            continue
        if size + len(shaped.canonical) + 8 * len(part) > ledger_limits.EVENT_BYTES_MAX - 64:
            outcomes.update(await _store_part(call, part))
            part, size = {}, 0
        part[index] = shaped
        size += len(shaped.canonical)
    outcomes.update(await _store_part(call, part))
    return [outcomes[index] for index in range(len(items))]


async def _store_part(call: Call, part: dict[int, Shaped]) -> dict[int, Outcome | Problem]:
    if not part:
        return {}
    try:
        stored = await call.face.keys.submit(list(part.values()))
    except FAULTS as error:
        found = as_problem(error)
        if found is None:
            raise
        return dict.fromkeys(part, found)
    return dict(zip(part, stored, strict=True))


# --- results --------------------------------------------------------------------------------------
async def _results(call: Call, outcomes: _Outcomes, terms: _Terms, first: int) -> list[BatchResult]:
    if isinstance(outcomes, _Together):
        event, at = outcomes.stored.event_id, outcomes.stored.index
        status = 201
        state: State = "stored"
        if terms.wanted != "stored":
            state = await reached_state(call, event, terms.timeout_ms, terms.wanted)
            status = 201 if has_reached(state, terms.wanted) else 202
        name = event.hex()
        return [
            BatchResult(first + i, status, f"{name}:{at + i}", state, False)
            for i in range(outcomes.entries)
        ]
    reached: dict[bytes, State] = {}
    if terms.wanted != "stored":
        events = list(dict.fromkeys(o.id.event for o in outcomes if isinstance(o, Outcome)))
        states = await asyncio.gather(
            *(reached_state(call, event, terms.timeout_ms, terms.wanted) for event in events)
        )
        reached = dict(zip(events, states, strict=True))
    return [
        _result(call, outcome, terms, reached, index)
        for index, outcome in enumerate(outcomes, first)
    ]


def _result(
    call: Call,
    outcome: Outcome | Problem,
    terms: _Terms,
    reached: dict[bytes, State],
    index: int,
) -> BatchResult:
    if isinstance(outcome, Problem):
        body = outcome.body(call.request_id)
        return BatchResult(index, body.status, problem=body)
    state_now = reached.get(outcome.id.event, "stored")
    is_short = terms.wanted != "stored" and not has_reached(state_now, terms.wanted)
    status = 202 if is_short else 200 if outcome.duplicate else 201
    return BatchResult(index, status, str(outcome.id), state_now, outcome.duplicate)


def _reply(call: Call, results: list[BatchResult], is_alike: bool) -> Reply:
    if is_alike:
        return call.reply(BatchAnswer(len(results), 0, 0, results), results[0].status)
    stored = sum(r.duplicate is False for r in results)
    duplicates = sum(r.duplicate is True for r in results)
    refused = len(results) - stored - duplicates
    alike = {result.status for result in results}
    status = alike.pop() if len(alike) == 1 and not refused else 207
    return call.reply(BatchAnswer(stored, duplicates, refused, results), status)


# --- NDJSON ---------------------------------------------------------------------------------------
async def _streamed(call: Call, terms: _Terms) -> Response:
    """Lines in, receipts out. A node that has no room stops reading; the results say the rest."""
    refuse_encoded(call.request)
    with call.face.admitted(call, call.face.settings.body_bytes_max):
        pass  # a node that takes nothing says so with a status of its own
    await call.go_on()
    response = web.StreamResponse(headers={"Content-Type": NDJSON, "Cache-Control": "no-store"})
    response.headers["X-Request-Id"] = call.request_id
    await response.prepare(call.request)
    index = 0
    try:
        async for lines in _lines(call):
            items = [line for line in lines if line.strip()]
            if items:
                results = await _take_lines(call, items, terms, index)
                index += len(items)
                await response.write(b"".join(msgspec.json.encode(r) + b"\n" for r in results))
    except Problem as found:  # the rest of the body is not read
        body = found.body(call.request_id)
        await response.write(
            msgspec.json.encode(BatchResult(index, body.status, problem=body)) + b"\n"
        )
        response.force_close()
    return response


async def _take_lines(
    call: Call, items: list[bytes], terms: _Terms, first: int
) -> list[BatchResult]:
    size = sum(map(len, items))
    try:
        with call.face.room(call, size):
            outcomes = await _store_lines(call, items, terms)
    except FAULTS as error:
        outcomes = _all_refused(error, len(items))
    return await _results(call, outcomes, terms, first)


async def _store_lines(call: Call, items: list[bytes], terms: _Terms) -> _Outcomes:
    if terms.takes_plain:
        plain = plain_lines(items, terms.defaults, call.principal)
        if plain and _fits_event(plain):
            return _Together(await call.ledger.submit(plain), len(plain))
    return await _store_each(call, items, terms)


async def _lines(call: Call) -> AsyncIterator[list[bytes]]:
    """The lines that have come, in parts of a bounded number; each must come within a deadline."""
    waiting = b""
    content = call.request.content
    while True:
        try:
            async with asyncio.timeout(call.face.settings.body_s):
                piece = await content.readany()
        except TimeoutError as error:
            raise Problem(Code.BODY_TIMEOUT, "no line came for that long") from error
        except web.RequestPayloadError as error:
            raise Problem(Code.BAD_REQUEST, f"the body is cut short: {error}") from error
        if not piece:
            break
        *lines, waiting = (waiting + piece).split(b"\n")
        for start in range(0, len(lines), limits.BATCH_CHUNK_ITEMS):
            yield lines[start : start + limits.BATCH_CHUNK_ITEMS]
        if len(waiting) > call.face.settings.body_bytes_max:
            raise too_large(len(waiting), call.face.settings.body_bytes_max)
    if waiting:
        yield [waiting]
