"""Entries: one submission of an app each, as canonical bytes (seed 001: one client write request).

A wrong signature inside an entry makes that entry inert, not the event: it is not judged here.
"""

import re
from collections.abc import Iterable
from enum import IntEnum
from functools import lru_cache
from typing import Annotated

import msgspec

from quipu.ledger import limits
from quipu.ledger.canonical import Canonical, encode, fits_bytes
from quipu.ledger.refusals import Reason, refuse

SALT_BYTES = 16
DEFAULT_STREAM = "default"
_STREAM = re.compile(r"[a-z0-9][a-z0-9._-]{0,127}\Z")


class EntryKind(IntEnum):
    DATA = 0
    CONFIG = 1
    VOID = 2


class ContentType(IntEnum):
    """Common media types as one octet; any other is spelled out."""

    JSON = 0
    MSGPACK = 1
    OCTETS = 2
    TEXT = 3
    CLOUDEVENT = 4


U32 = Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]
U64 = Annotated[int, msgspec.Meta(ge=0)]  # msgpack itself ends at 2^64 - 1


class Entry(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    salt: Annotated[bytes, msgspec.Meta(min_length=SALT_BYTES, max_length=SALT_BYTES)] | None
    kind: EntryKind
    stream: str
    submitter: (
        Annotated[str, msgspec.Meta(min_length=1, max_length=limits.SUBMITTER_BYTES_MAX)] | None
    )
    client_id: U32 | None
    message_id: U64 | None
    idempotency_key: (
        Annotated[str, msgspec.Meta(min_length=1, max_length=limits.IDEMPOTENCY_KEY_BYTES_MAX)]
        | None
    )
    time: U64 | None  # milliseconds that the app gave; None: the event's hlc
    content_type: ContentType | str
    data: bytes
    sig_type: Annotated[int, msgspec.Meta(ge=0, le=255)]
    signature: Annotated[bytes, msgspec.Meta(max_length=limits.ENTRY_SIGNATURE_BYTES_MAX)] | None


_codec = Canonical(Entry, limits.ENTRY_BYTES_MAX)
_UNSIGNED = encode(0) + encode(None)  # what an entry ends with, behind its data
_judged: dict[int, bytes] = {}  # by length: how the last of the usual kind began, up to its data


@lru_cache(maxsize=limits.METAS_RECENT_MAX)
def is_stream_name(stream: str) -> bool:
    return _STREAM.match(stream) is not None


def data_entry(
    data: bytes,
    *,
    stream: str = DEFAULT_STREAM,
    content_type: ContentType | str = ContentType.OCTETS,
    submitter: str | None = None,
    idempotency_key: str | None = None,
    salt: bytes | None = None,
) -> Entry:
    return Entry(
        salt=salt,
        kind=EntryKind.DATA,
        stream=stream,
        submitter=submitter,
        client_id=None,
        message_id=None,
        idempotency_key=idempotency_key,
        time=None,
        content_type=content_type,
        data=data,
        sig_type=0,
        signature=None,
    )


def encode_entry(entry: Entry) -> bytes:
    return encode(entry)


def decode_entry(data: bytes) -> Entry:
    """Written flat: 0.8 us here, 1.3 us through calls."""
    entry = _codec.decode(data)
    if not is_stream_name(entry.stream):
        refuse(Reason.BAD_ENTRY, f"stream {entry.stream[:64]!r}")
    if type(entry.content_type) is str and not _is_media_type(entry.content_type):
        refuse(Reason.BAD_ENTRY, "content type")
    text = entry.submitter
    if text is not None and not fits_bytes(text, limits.SUBMITTER_BYTES_MAX):
        refuse(Reason.BAD_ENTRY, "submitter")
    text = entry.idempotency_key
    if text is not None and not fits_bytes(text, limits.IDEMPOTENCY_KEY_BYTES_MAX):
        refuse(Reason.BAD_ENTRY, "idempotency key")
    return entry


def check_entries(entries: Iterable[bytes]) -> None:
    """Refuses what `decode_entry` refuses. It runs for every entry at every node, and most differ
    in their data alone: what stands around the data was judged with the first one of that length,
    and the same bytes around data of the same length are as good (0.17 us in place of 0.65)."""
    for data in entries:
        before = _judged.get(len(data))
        if before is None or not (data.startswith(before) and data.endswith(_UNSIGNED)):
            _remember(decode_entry(data), data)


def _remember(entry: Entry, data: bytes) -> None:
    is_signed = entry.sig_type != 0 or entry.signature is not None
    if entry.salt is None and entry.idempotency_key is None and not is_signed:
        if len(_judged) >= limits.METAS_RECENT_MAX:
            _judged.clear()
        _judged[len(data)] = data[: -len(entry.data) - len(_UNSIGNED)]


def _is_media_type(text: str) -> bool:
    """Printable ASCII: it is given back as an HTTP header, where a line break would be another."""
    return 0 < len(text) <= limits.CONTENT_TYPE_BYTES_MAX and text.isascii() and text.isprintable()
