"""The frames of stream ingest: msgpack arrays, one in each binary WebSocket message.

A producer sends entries under numbers of its own; the node says what became of each number, in
runs: consecutive numbers with the same answer are one row.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated

import msgspec

from quipu.api import limits
from quipu.api.codes import Code
from quipu.api.faults import refuse_undecodable
from quipu.api.idempotency import Outcome
from quipu.api.models import State
from quipu.api.problems import Problem, at
from quipu.ledger.entry import U64
from quipu.ledger.words import EventId

FRAMES_VERSION = 1
_NUMBER_MAX = (1 << 64) - 1


# --- of a producer --------------------------------------------------------------------------------
class Item(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True, gc=False):
    """One entry. What stands at the end and is not needed is left out; nil is the same."""

    data: bytes
    stream: str | None = None
    key: str | None = None  # idempotency key
    content_type: str | None = None
    time: U64 | None = None  # milliseconds since 1970


class Frame(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    """Entries with consecutive numbers."""

    first: U64
    entries: Annotated[
        list[Item], msgspec.Meta(min_length=1, max_length=limits.INGEST_FRAME_ENTRIES_MAX)
    ]


_frames = msgspec.msgpack.Decoder(Frame)


def read_frame(data: bytes) -> Frame:
    if len(data) > limits.INGEST_FRAME_BYTES_MAX:
        detail = f"the frame has {len(data)} bytes; {limits.INGEST_FRAME_BYTES_MAX} are taken"
        raise Problem(Code.TOO_LARGE, detail)
    try:
        frame = _frames.decode(data)
    except UnicodeDecodeError as error:
        raise Problem(Code.MALFORMED_BODY, "a text of the frame is not UTF-8") from error
    except (msgspec.DecodeError, RecursionError) as error:
        refuse_undecodable(error, "")
    if frame.first > _NUMBER_MAX - len(frame.entries) + 1:
        raise at(Code.INVALID_FIELD, "/0", "the numbers of a frame end at 2^64 - 1")
    return frame


# --- of the node ----------------------------------------------------------------------------------
class StoredRun(msgspec.Struct, array_like=True, gc=False):
    """`count` entries from the number `first` on lie in one event, from `index` on."""

    first: int
    count: int
    event: EventId
    index: int
    hlc: int
    state: State
    duplicate: bool


class RefusedRun(msgspec.Struct, array_like=True, gc=False):
    """`count` entries from the number `first` on are not taken, for this reason."""

    first: int
    count: int
    status: int  # as HTTP has it
    code: str
    retryable: bool
    detail: str
    entry_id: str


class Welcome(msgspec.Struct, array_like=True, tag=0, frozen=True):
    version: int
    window_entries: int
    window_bytes: int
    window_frames: int
    frame_entries_max: int
    frame_bytes_max: int
    entry_bytes_max: int
    heartbeat_ms: int


class Stored(msgspec.Struct, array_like=True, tag=1, frozen=True):
    runs: Sequence[StoredRun]


class Refused(msgspec.Struct, array_like=True, tag=2, frozen=True):
    runs: Sequence[RefusedRun]


class Goodbye(msgspec.Struct, array_like=True, tag=3, frozen=True):
    """The last frame: every entry that was not answered before it was not stored."""

    status: int
    code: str
    retryable: bool
    detail: str


Answer = Welcome | Stored | Refused | Goodbye
encode_answer = msgspec.msgpack.Encoder().encode


def stored_runs(
    first: int, outcomes: Sequence[Outcome | Problem], states: Mapping[EventId, State]
) -> list[StoredRun]:
    """The rows of what is stored; `states` are those of its events."""
    runs: list[StoredRun] = []
    last: StoredRun | None = None
    for number, outcome in enumerate(outcomes, first):
        if isinstance(outcome, Problem):
            continue
        (identity, hlc, duplicate), reached = outcome, states[outcome.id.event]
        if (
            last is not None
            and last.first + last.count == number
            and last.index + last.count == identity.index
            and last.event == identity.event
            and last.duplicate == duplicate
        ):
            last.count += 1
            continue
        last = StoredRun(number, 1, identity.event, identity.index, hlc, reached, duplicate)
        runs.append(last)
    return runs


def refused_runs(first: int, outcomes: Sequence[Outcome | Problem]) -> list[RefusedRun]:
    runs: list[RefusedRun] = []
    last: RefusedRun | None = None
    for number, outcome in enumerate(outcomes, first):
        if not isinstance(outcome, Problem):
            continue
        kind, code, entry_id = outcome.kind, str(outcome.code), outcome.entry_id
        detail = (outcome.detail or kind.meaning)[: limits.INGEST_DETAIL_CHARS_MAX]
        told = (code, detail, entry_id)
        if (
            last is not None
            and last.first + last.count == number
            and (last.code, last.detail, last.entry_id) == told
        ):
            last.count += 1
            continue
        last = RefusedRun(number, 1, kind.status, code, kind.retryable, detail, entry_id)
        runs.append(last)
    return runs
