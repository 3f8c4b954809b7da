"""The entry that asks for the erasure of another one, and which entries may be erased.

It is an entry of a member like any other (ADR 26): it becomes Read, reaches observers and whoever
comes later, and names the one that goes. All of them have one key, so a store finds them. It is
void on every node alike where it names what may not be erased.
"""

from typing import NamedTuple

import msgspec

from quipu.ledger import limits
from quipu.ledger.canonical import Canonical, encode
from quipu.ledger.entry import ContentType, Entry, EntryKind, data_entry, encode_entry
from quipu.ledger.event import U64, Bytes32
from quipu.ledger.refusals import Refused
from quipu.ledger.words import EventId

ERASURES_STREAM = "quipu.erasures"
ERASURE_KEY = "erase"
ERASED = data_entry(b"", stream="", content_type="")  # what is known of one that is gone


class _Erasure(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    event: Bytes32
    index: U64


class Erasure(NamedTuple):
    """Which entry goes."""

    event: EventId
    position: int


_codec = Canonical(_Erasure, limits.ENTRY_BYTES_MAX)


def erasure_entry(wanted: Erasure) -> bytes:
    plain = data_entry(
        encode(_Erasure(*wanted)),
        stream=ERASURES_STREAM,
        content_type=ContentType.MSGPACK,
        idempotency_key=ERASURE_KEY,
    )
    return encode_entry(msgspec.structs.replace(plain, kind=EntryKind.CONFIG))


def read_erasure(entry: Entry) -> Erasure | None:
    """None for every other entry: apps may write in that stream, too."""
    if entry.kind is not EntryKind.CONFIG or entry.stream != ERASURES_STREAM:
        return None
    try:
        found = _codec.decode(entry.data)
    except Refused:
        return None
    return Erasure(EventId(found.event), found.index)


def is_erasable(entry: Entry) -> bool:
    """Without a salt its hash could be matched with a guess. What a client has signed, executors
    may still have to read."""
    return entry.salt is not None and entry.client_id is None and entry.kind is EntryKind.DATA
