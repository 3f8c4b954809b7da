"""The value that an event is on disk: what is refused although its checksum is right."""

from collections.abc import Callable
from zlib import crc32

import pytest

from quipu.ledger.event import event_id
from quipu.storage.event_blob import encode_blob, open_blob
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
