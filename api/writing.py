"""POST /v1/entries and /v1/entries:validate."""

import asyncio
from contextlib import suppress

import msgspec

from quipu.api import limits
from quipu.api.bodies import JSON, Defaults, Shaped, StreamName, read_entry
from quipu.api.calls import Call, Reply, Response
from quipu.api.codes import Code
from quipu.api.idempotency import Outcome, outcome_of
from quipu.api.models import Receipt, State, Verdict
from quipu.api.plain import plain_entry
from quipu.api.problems import Problem, at
from quipu.api.refusals import FAULTS
from quipu.api.shaping import has_reached, media_type, state
from quipu.api.times import NotADuration, duration_ms, duration_text, hlc_text
from quipu.api.tokens import ENTRIES_WRITE
from quipu.ledger import limits as ledger_limits
from quipu.ledger.words import EventId
from quipu.node.service import Stored

WAIT = "30s"  # for more than stored, where a caller does not say how long
_KEY = "Idempotency-Key"


class SubmitQuery(msgspec.Struct, kw_only=True):
    wait: str = "stored"
    timeout: str = WAIT
    stream: StreamName | None = None


class ValidateQuery(msgspec.Struct, kw_only=True):
    stream: StreamName | None = None


def waited_state(text: str) -> State:
    if text == "stored":
        return "stored"
    if text == "read":
        return "read"
    if text == "ordered":
        return "ordered"
    raise at(Code.INVALID_PARAMETER, "wait", "this node waits for stored, read or ordered")


def waited_ms(text: str, name: str) -> int:
    try:
        ms = duration_ms(text)
    except NotADuration as error:
        raise at(Code.INVALID_PARAMETER, name, str(error)) from error
    if ms > limits.WAIT_MS_MAX:
        raise at(Code.INVALID_PARAMETER, name, f"at most {duration_text(limits.WAIT_MS_MAX)}")
    return ms


def defaults_of(call: Call, stream: str | None) -> Defaults:
    key = call.request.headers.get(_KEY)
    if key is not None:
        key = key.strip()
        if not 1 <= len(key.encode("utf-8", "replace")) <= ledger_limits.IDEMPOTENCY_KEY_BYTES_MAX:
            size = ledger_limits.IDEMPOTENCY_KEY_BYTES_MAX
            raise at(Code.INVALID_HEADER, _KEY, f"takes 1 to {size} bytes")
        if not key.isprintable() or not key.isascii():
            raise at(Code.INVALID_HEADER, _KEY, "takes printable ASCII")
    return Defaults(call.principal.name, stream, key, call.ledger.epoch.streams_erasable)


def check_stream(call: Call, stream: str) -> None:
    if not call.principal.may(ENTRIES_WRITE, stream):
        raise Problem(Code.FORBIDDEN, f"the scope {ENTRIES_WRITE}:{stream} is needed")


async def submit(call: Call) -> Response:
    query = call.query(SubmitQuery)
    wanted, timeout_ms = waited_state(query.wait), waited_ms(query.timeout, "timeout")
    defaults = defaults_of(call, query.stream)
    bytes_max = call.face.settings.body_bytes_max
    with call.face.admitted(call, bytes_max):
        body = await call.read_body(bytes_max)
        with call.face.pressure.working():
            outcome = outcome_of(await begin(call, body, defaults))
    if wanted != "stored":
        reached = await reached_state(call, outcome.id.event, timeout_ms, wanted)
        return waited_receipt(call, outcome, reached, wanted).response()
    return stored_receipt(call, outcome).response()


def begin(
    call: Call, body: bytes, defaults: Defaults
) -> "asyncio.Future[Stored] | asyncio.Future[Outcome]":
    """One entry on its way to the disk."""
    if call.body_type == JSON:
        plain = plain_entry(body, defaults, call.principal)
        if plain is not None:
            return asyncio.ensure_future(call.ledger.submit((plain,)))
    shaped = read_entry(body, call.body_type, defaults)
    check_stream(call, shaped.entry.stream)
    return call.face.keys.begin(shaped)


def stored_receipt(call: Call, outcome: Outcome) -> Reply:
    """For a caller who waits for no more than that."""
    reached: State = state_now(call, outcome.id.event) if outcome.duplicate else "stored"
    return _receipt(call, outcome, 201, reached)


def waited_receipt(call: Call, outcome: Outcome, reached: State, wanted: State = "read") -> Reply:
    """For a caller who waited for it to come that far."""
    return _receipt(call, outcome, 201 if has_reached(reached, wanted) else 202, reached)


async def reached_state(
    call: Call, event: EventId, timeout_ms: int, wanted: State = "read"
) -> State:
    """How far it has come when it is there, or when the time is over. Where too many wait already
    it is stored all the same."""
    face, seconds = call.face, timeout_ms / 1_000
    with suppress(*FAULTS):
        if wanted == "ordered":
            if await face.ordered_within(event, seconds):
                return "ordered"
        elif await face.read_within(event, seconds):
            return "read"
    return state_now(call, event)


def state_now(call: Call, event: EventId) -> State:
    """Where the disk fails under a read, it is stored all the same."""
    with suppress(*FAULTS):
        status = call.ledger.status(event)
        return "stored" if status is None else state(status)
    return "stored"


def _receipt(call: Call, outcome: Outcome, status: int, reached: State) -> Reply:
    identity = str(outcome.id)
    status = 200 if status == 201 and outcome.duplicate else status
    receipt = Receipt(identity, reached, outcome.duplicate, hlc_text(outcome.hlc))
    return call.reply(receipt, status, {"Location": f"/v1/entries/{identity}"})


async def validate(call: Call) -> Response:
    query = call.query(ValidateQuery)
    body = await call.read_body(call.face.settings.body_bytes_max)
    shaped = read_entry(body, call.body_type, defaults_of(call, query.stream))
    check_stream(call, shaped.entry.stream)
    first = call.face.keys.first(shaped)
    if first is None:
        call.ledger.check([shaped.canonical])
    return call.answer(_verdict(shaped, first))


def _verdict(shaped: Shaped, first: Outcome | None) -> Verdict:
    return Verdict(
        valid=True,
        stream=shaped.entry.stream,
        content_type=media_type(shaped.entry),
        data_bytes=len(shaped.entry.data),
        entry_bytes=len(shaped.canonical),
        duplicate_of=None if first is None else str(first.id),
    )
