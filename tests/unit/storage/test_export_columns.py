"""The columns beside the rows that one reads off an event at a time."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from quipu.dumps import segments
from quipu.dumps.headers import edges_of
from quipu.dumps.tables import TABLES, as_long, eid_of
from quipu.ledger import merkle
from quipu.ledger.canonical import encode
from quipu.ledger.entry import data_entry, encode_entry
from quipu.ledger.event import Header, SignedEvent, event_id
from quipu.ledger.history import BranchRecord
from quipu.ledger.words import EventId, Hlc, InvNumber, Journal, NodeNo, Seq, Slot
from quipu.storage import limits
from quipu.storage.event_blob import encode_blob
from quipu.storage.export_columns import EventColumns
from quipu.storage.export_segments import SegmentWriter
from quipu.storage.keys import slot_key

LARGEST = 2**64 - 1
EVENTS = 23


def made(number: int) -> tuple[Slot, SignedEvent, list[bytes]]:
    """Of one to four entries and none to seven parents, with numbers as large as they can be."""
    big = LARGEST - number
    entries = [
        encode_entry(data_entry(bytes([number, at]), stream=f"s{at}", content_type="text/x"))
        for at in range(1 + number % 4)
    ]
    leaves, body = merkle.leaf_hashes(entries), encode(entries)
    parents = [bytes([number, at]) * 16 for at in range(number % 8)]
    seq = 1 if number % 6 == 0 else big
    header = Header(
        1, bytes(32), bytes([number]) * 32, 1, big, seq, bytes([255, number]) * 16, parents, big,
        big, 0, len(entries), len(body), merkle.root_of(leaves),
    )  # fmt: skip
    data = encode(header)
    event = SignedEvent(event_id(data), header, data, bytes([number]) * 64, body, leaves)
    return Slot(NodeNo(number % 3 + 1), Journal(big), Seq(seq), number % 2), event, entries


# Of two others' receipts one names this event, one what is above it; its author's does not count.
SIGNED_FOR = made(6)[0]
RECORD = BranchRecord(
    SIGNED_FOR.branch,
    Seq(0),
    0,
    Seq(LARGEST),
    EventId(bytes(32)),
    Hlc(1),
    receipts={
        NodeNo(signer): (Seq(seq), InvNumber(1))
        for signer, seq in {1: LARGEST, 2: LARGEST, 3: SIGNED_FOR.seq}.items()
    },
)


def obvious(slot: Slot, event: SignedEvent, entries: list[bytes]) -> dict[str, list[Any]]:
    header, identity = event.header, event.id
    eid, is_fed = eid_of(identity), slot.number == 0
    event_row = (
        identity, eid, header.author, slot.author_no, as_long(header.journal),
        as_long(header.seq), slot.number, as_long(header.epoch), header.prev, as_long(header.hlc),
        as_long(header.depth), 0, len(entries), len(event.body), header.entries_root,
        event.header_bytes, event.signature, "read" if is_fed else "unread",
        2 if slot == SIGNED_FOR else 0, 7 if is_fed else None, None, None,
    )  # fmt: skip
    edges = edges_of(header.prev, header.seq, header.parents)
    entry_rows = [
        (
            identity, eid, at, f"s{at}", None, None, header.hlc >> 16, "text/x", 2,
            event.leaves[at], bytes([event.signature[0], at]),
        )
        for at in range(len(entries))
    ]  # fmt: skip
    return {
        "events": [event_row],
        "edges": [(identity, below, eid, eid_of(below), at) for below, at in edges],
        "entries": entry_rows,
    }


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*[column.to_pylist() for column in table.columns], strict=True))


@pytest.mark.parametrize("piece", [1, 4, 1_000])
def test_they_say_what_one_reads_off_each_event(
    monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    monkeypatch.setattr(limits, "EXPORT_PIECE_EVENTS", piece)
    columns = EventColumns({RECORD.key: RECORD}, "with data")
    expected: dict[str, list[Any]] = {"events": [], "edges": [], "entries": []}
    for number in range(EVENTS):
        slot, event, entries = made(number)
        blob = encode_blob(event, entries)
        columns.add([slot_key(slot)], [blob], [7 if slot.number == 0 else None])
        for table, rows in obvious(slot, event, entries).items():
            expected[table] += rows
    assert columns.event_count == EVENTS
    if piece == 1:  # they are counted with their piece
        assert columns.entry_count == len(expected["entries"])
    taken = columns.taken()
    assert {table: rows_of(rows) for table, rows in taken.items()} == expected
    assert (columns.event_count, columns.bytes, columns.taken()) == (0, 0, {})
    for table, rows in taken.items():
        assert rows.column_names == [column.name for column in TABLES[table]]


def test_a_file_that_cannot_be_written_is_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("no room")

    monkeypatch.setattr(segments, "put_in_place", full)
    told: list[object] = []
    with SegmentWriter(tmp_path, EventColumns({}, "none")) as writer:
        slot, event, entries = made(3)
        writer.columns.add([slot_key(slot)], [encode_blob(event, entries)], [1])
        writer.begin("feed-1", told.append)
        with pytest.raises(OSError, match="no room"):
            writer.finish()
    assert told == []
