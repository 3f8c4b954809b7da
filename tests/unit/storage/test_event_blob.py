"""The value that an event is on disk: what is refused although its checksum is right."""

from collections.abc import Callable
from zlib import crc32

import pytest

from quipu.ledger.event import event_id
from quipu.ledger.history import Held
from quipu.ledger.messages import bytes_of
from quipu.ledger.words import Seq
from quipu.storage.event_blob import encode_blob, held_of, open_blob
from quipu.storage.store import StoreCorrupt
from tests.made_events import MadeCluster, entry_of, slot

FIXED_BYTES = 107  # version, sizes, id, signature
HEADER_AT = FIXED_BYTES + 4


def made_blob() -> bytes:
    return encode_blob(MadeCluster().write(1, (), [entry_of("a"), entry_of("b")]).event)


def resealed(fixed: bytes, rest: bytes) -> bytes:
    assert len(fixed) == FIXED_BYTES
    return fixed + crc32(fixed).to_bytes(4, "big") + rest


def other_version(blob: bytes) -> bytes:
    return resealed(b"\x09" + blob[1:FIXED_BYTES], blob[HEADER_AT:])


def other_length(blob: bytes) -> bytes:
    return blob + b"more"


def header_that_is_none(blob: bytes) -> bytes:
    """Its id is right, as only somebody who means it can make it."""
    size = int.from_bytes(blob[1:3], "big")
    header = b"\xc1" * size
    fixed = blob[:11] + event_id(header) + blob[43:FIXED_BYTES]
    return resealed(fixed, header + blob[HEADER_AT + size :])


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (other_version, "version 9"),
        (other_length, "bytes, not"),
        (header_that_is_none, "does not decode"),
        (lambda blob: blob[: HEADER_AT - 1], "cut short"),
        (lambda blob: b"", "cut short"),
    ],
)
def test_blob_is_refused(change: Callable[[bytes], bytes], what: str) -> None:
    with pytest.raises(StoreCorrupt, match=what):
        open_blob(slot(1, 1), memoryview(change(made_blob())))


def test_blob_of_another_slot_is_refused() -> None:
    with pytest.raises(StoreCorrupt, match="another slot"):
        open_blob(slot(1, 2), memoryview(made_blob()))
    with pytest.raises(StoreCorrupt, match="another slot"):
        open_blob(slot(1, 1, journal=2), memoryview(made_blob()))


def test_wrong_leaf_hashes_from_outside_never_become_wrong_entries() -> None:
    event = MadeCluster().write(1, (), [entry_of("a"), entry_of("b")]).event
    wrong = event._replace(leaves=(bytes(32), bytes(32)))
    stored = open_blob(slot(1, 1), memoryview(encode_blob(wrong)))
    assert stored.event() == event
    with pytest.raises(StoreCorrupt, match="entry 1"):
        stored.entry(1)


@pytest.mark.parametrize(
    "texts",
    [
        *(["x" * length] for length in (0, *range(200, 240), *range(65_490, 65_520))),
        ["a", "b"],
        ["x" * 300] * 20,
    ],
    ids=lambda texts: f"{len(texts)}-{len(texts[0])}",
)
def test_what_is_sent_is_what_was_stored(texts: list[str]) -> None:
    """At the lengths too where a bin gets a longer head."""
    made = MadeCluster().write(1, (), [entry_of(text) for text in texts])
    meta, event = made.meta, made.event
    held = held_of(meta.branch, meta.seq, memoryview(encode_blob(event)))
    assert held == Held(meta.branch, meta.seq, event.id, meta.hlc, event.size, bytes_of(event))


@pytest.mark.parametrize("texts", [["alone"], ["a", "b"]])
def test_no_byte_is_sent_that_is_not_what_was_stored(texts: list[str]) -> None:
    made = MadeCluster().write(1, (), [entry_of(text) for text in texts])
    blob = encode_blob(made.event)
    table_at = HEADER_AT + len(made.event.header_bytes)
    body_at = len(blob) - len(made.event.body)
    for place in (*range(table_at), *range(body_at, len(blob))):
        changed = bytearray(blob)
        changed[place] ^= 1
        with pytest.raises(StoreCorrupt):
            held_of(made.meta.branch, made.meta.seq, memoryview(bytes(changed)))
    with pytest.raises(StoreCorrupt, match="another slot"):
        held_of(made.meta.branch, Seq(2), memoryview(blob))
