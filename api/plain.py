"""Entries that are JSON data in a stream and nothing else: most of those that come by the thousand.

Their canonical bytes are the bytes of `data` in a frame that is the same for all of a stream, so no
entry is built for them: 1.6 us in place of 9. Whatever has another field, or anything wrong, is
left to `bodies`, which says what it is.
"""

from collections.abc import Iterable
from functools import lru_cache

import msgspec
from msgspec import UNSET, Raw, UnsetType

from quipu.api.bodies import Defaults
from quipu.api.tokens import ENTRIES_WRITE, Principal
from quipu.ledger import limits as ledger_limits
from quipu.ledger.canonical import encode
from quipu.ledger.entry import (
    DEFAULT_STREAM,
    ContentType,
    data_entry,
    encode_entry,
    is_stream_name,
)

_EMPTY_BYTES = len(encode(b""))


class _Plain(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    data: Raw
    stream: str | UnsetType = UNSET


_one = msgspec.json.Decoder(_Plain)
_many = msgspec.json.Decoder(list[_Plain])


def plain_entry(body: bytes, defaults: Defaults, principal: Principal) -> bytes | None:
    """Its canonical bytes; None: it is not that plain, or the caller may not write it."""
    try:
        body.decode()  # a Raw is not looked into
        found = _framed((_one.decode(body),), defaults, principal)
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError):
        return None
    return found[0] if found else None


def plain_array(body: bytes, defaults: Defaults, principal: Principal) -> list[bytes] | None:
    """The same for all items of a JSON array."""
    try:
        body.decode()
        return _framed(_many.decode(body), defaults, principal)
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError):
        return None


def plain_lines(lines: list[bytes], defaults: Defaults, principal: Principal) -> list[bytes] | None:
    """The same for all of some lines."""
    try:
        b"\n".join(lines).decode()
        return _framed(map(_one.decode, lines), defaults, principal)
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError):
        return None


def _framed(
    items: Iterable[_Plain], defaults: Defaults, principal: Principal
) -> list[bytes] | None:
    if defaults.idempotency_key is not None:
        return None
    frames: dict[str | UnsetType, tuple[bytes, bytes]] = {}
    entries: list[bytes] = []
    for item in items:
        frame = frames.get(item.stream)
        if frame is None:
            stream = _stream_of(item.stream, defaults, principal)
            if stream is None:
                return None
            frame = frames[item.stream] = _frame(stream, defaults.submitter)
        entry = frame[0] + encode(bytes(item.data)) + frame[1]
        if len(entry) > ledger_limits.ENTRY_BYTES_MAX:
            return None
        entries.append(entry)
    return entries


def _stream_of(given: str | UnsetType, defaults: Defaults, principal: Principal) -> str | None:
    """Where it goes; None: somebody else must say why not."""
    asked = defaults.stream
    if asked is not None and given is not UNSET and given != asked:
        return None
    stream = asked or DEFAULT_STREAM if given is UNSET else given
    if not is_stream_name(stream) or stream in defaults.streams_erasable:
        return None
    return stream if principal.may(ENTRIES_WRITE, stream) else None


@lru_cache(maxsize=ledger_limits.METAS_RECENT_MAX)
def _frame(stream: str, submitter: str | None) -> tuple[bytes, bytes]:
    """What stands before and behind the data of such an entry."""
    marked = encode_entry(
        data_entry(b"", stream=stream, content_type=ContentType.JSON, submitter=submitter)
    )
    behind = encode(0) + encode(None)  # no signature
    at = len(marked) - len(behind)
    return marked[: at - _EMPTY_BYTES], marked[at:]
