"""A piece beside the events that one reads one by one: the same, and the same is refused."""

from collections.abc import Callable

import pytest

from quipu.storage.event_blob import encode_blob, event_and_entries
from quipu.storage.event_piece import checked
from quipu.storage.keys import describe, slot_key, slot_of
from quipu.storage.store import StoreCorrupt
from tests.unit.storage.test_export_columns import made

SLOTS, EVENTS, ENTRIES = zip(*[made(number) for number in range(7)], strict=True)
KEYS = [slot_key(slot) for slot in SLOTS]
BLOBS = [encode_blob(event, entries) for event, entries in zip(EVENTS, ENTRIES, strict=True)]
HARMED = 3


def refusal(read: Callable[[], object]) -> str:
    try:
        read()
    except StoreCorrupt as error:
        return str(error)
    return ""


def test_it_is_what_one_reads_one_by_one() -> None:
    piece = checked(KEYS, BLOBS)
    assert piece.slots == [tuple(slot) for slot in SLOTS]
    for place, (key, blob) in enumerate(zip(KEYS, BLOBS, strict=True)):
        event, entries = event_and_entries(slot_of(key), memoryview(blob))
        assert piece.ids[place] == event.id
        assert piece.headers[place] == event.header
        assert piece.header_bytes[place] == event.header_bytes
        assert piece.signatures[place] == event.signature
        assert piece.entries[place] == entries
        assert piece.leaves[place] == event.leaves


def test_what_is_damaged_is_named_whatever_byte_it_is() -> None:
    slot, blob = SLOTS[HARMED], BLOBS[HARMED]
    refused = 0
    for at in range(len(blob)):
        harmed = blob[:at] + bytes([blob[at] ^ 0x55]) + blob[at + 1 :]
        alone = refusal(lambda one=harmed: event_and_entries(slot, memoryview(one)))  # type: ignore[misc]
        blobs = [*BLOBS[:HARMED], harmed, *BLOBS[HARMED + 1 :]]
        assert refusal(lambda all_of_them=blobs: checked(KEYS, all_of_them)) == alone  # type: ignore[misc]
        if alone:
            assert describe(slot) in alone
            refused += 1
    leaf_table = (32 + 4) * len(ENTRIES[HARMED])  # made here, and checked by the scrub
    assert refused == len(blob) - leaf_table


@pytest.mark.parametrize("left", [0, 3, 60, 200])
def test_one_that_is_cut_short_is_named(left: int) -> None:
    blobs = [*BLOBS[:HARMED], BLOBS[HARMED][:left], *BLOBS[HARMED + 1 :]]
    with pytest.raises(StoreCorrupt, match=r"cut short|bytes, not"):
        checked(KEYS, blobs)


def test_one_in_the_place_of_another_is_named() -> None:
    with pytest.raises(StoreCorrupt, match="names another slot"):
        checked(KEYS, [*BLOBS[1:], BLOBS[0]])
