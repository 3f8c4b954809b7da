"""What goes over the WebSocket of stream ingest: msgpack arrays, as docs/ingest.md tells.

Fields that a newer node adds are passed over.
"""

from datetime import UTC, datetime

import msgspec

VERSION = 1
HLC_SHIFT = 16  # the lower bits of a time are a counter
YEAR_9999_MS = 253_402_300_799_999  # its end


class StoredRun(msgspec.Struct, array_like=True, gc=False):
    first: int
    count: int
    event: bytes
    index: int
    hlc: int
    state: str
    duplicate: bool


class RefusedRun(msgspec.Struct, array_like=True, gc=False):
    first: int
    count: int
    status: int
    code: str
    retryable: bool
    detail: str
    entry_id: str


class Welcome(msgspec.Struct, array_like=True, tag=0):
    version: int
    window_entries: int
    window_bytes: int
    window_frames: int
    frame_entries_max: int
    frame_bytes_max: int
    entry_bytes_max: int
    heartbeat_ms: int


class Stored(msgspec.Struct, array_like=True, tag=1):
    runs: list[StoredRun]


class Refused(msgspec.Struct, array_like=True, tag=2):
    runs: list[RefusedRun]


class Goodbye(msgspec.Struct, array_like=True, tag=3):
    status: int
    code: str
    retryable: bool
    detail: str


Answer = Welcome | Stored | Refused | Goodbye
_answers: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Answer)
_encoder = msgspec.msgpack.Encoder()

Item = tuple[bytes | str | int | None, ...]
FRAME_HEAD_BYTES = 16  # both arrays and the first number
ITEM_HEAD_BYTES = 24  # heads of an item's fields


def item_of(
    data: bytes, stream: str | None, key: str | None, content_type: str | None, time_ms: int | None
) -> Item:
    """Without what is not needed at its end."""
    if time_ms is not None:
        return (data, stream, key, content_type, time_ms)
    if content_type is not None:
        return (data, stream, key, content_type)
    if key is not None:
        return (data, stream, key)
    return (data,) if stream is None else (data, stream)


def encode_frame(first: int, items: list[Item]) -> bytes:
    return _encoder.encode((first, items))


def decode_answer(data: bytes) -> Answer:
    """Raises `msgspec.DecodeError`."""
    try:
        return _answers.decode(data)
    except (UnicodeDecodeError, RecursionError) as error:
        raise msgspec.DecodeError(str(error)) from error


def time_text(hlc: int) -> str:
    """What no calendar holds shows as its last moment."""
    seconds, ms = divmod(min(max(hlc >> HLC_SHIFT, 0), YEAR_9999_MS), 1_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{ms:03d}Z"
