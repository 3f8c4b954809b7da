"""The log of a store as rows of the table `journal`."""

from quipu.dumps.tables import TABLES, as_long
from quipu.ledger.canonical import encode
from quipu.ledger.log.entry import encode_log_entry, first_digest, next_digest
from quipu.ledger.log.state import SavedLog
from quipu.ledger.log.words import Index, Life, Place, Regime
from quipu.ledger.order.items import EventReference, Lock, encode_item
from quipu.ledger.words import NodeNo
from quipu.storage.export_rows import journal_rows

CLUSTER_ID = bytes(32)
HIGH = 1 << 63  # of a journal: no LONG holds it
NAMES = [column.name for column in TABLES["journal"]]


def reference(number: int) -> bytes:
    return encode_item(EventReference(2, HIGH | 1, number, bytes([number]) * 32))


def log_of(*entries: list[bytes], chosen: int) -> SavedLog:
    data = [
        encode_log_entry(Place(Regime(3), Index(at)), NodeNo(1), items)
        for at, items in enumerate(entries, start=1)
    ]
    return SavedLog(Life(1), entries=data, chosen=Index(chosen), certificate=(b"signed",))


def rows_of(log: SavedLog, read: int) -> list[dict[str, object]]:
    found = journal_rows(log, CLUSTER_ID, 4, lambda place: place[2] <= read)
    return [dict(zip(NAMES, row, strict=True)) for row in found]


def test_each_item_has_a_row_and_an_empty_entry_one() -> None:
    lock = encode_item(Lock("orders", 1, 1, 0))
    log = log_of([], [reference(1), lock, reference(2)], chosen=2)
    rows = rows_of(log, read=2)
    assert [(row["index"], row["position"]) for row in rows] == [(1, 0), (2, 0), (2, 1), (2, 2)]
    assert [row["seq"] for row in rows] == [None, 1, None, 2]
    assert rows[1]["journal"] == as_long(HIGH | 1)
    assert rows[1]["event"] == bytes([1]) * 32
    assert {row["regime"] for row in rows} == {3}


def test_digests_are_those_of_the_log_and_the_newest_has_the_proof() -> None:
    log = log_of([], [reference(1), reference(2)], chosen=2)
    first = next_digest(first_digest(CLUSTER_ID), log.entries[0])
    second = next_digest(first, log.entries[1])
    rows = rows_of(log, read=2)
    assert [row["message_hash"] for row in rows] == [first, second, second]
    assert [row["prev_hash"] for row in rows] == [first_digest(CLUSTER_ID), first, second]
    assert [row["certificate"] is None for row in rows] == [True, False, False]
    assert [row["serializers"] for row in rows] == [None, *[encode([[1, 2, 3, 4]])] * 2]


def test_it_ends_before_what_is_not_chosen_or_not_read_here() -> None:
    entries = [reference(1)], [reference(2)], [reference(3)]
    assert len(rows_of(log_of(*entries, chosen=2), read=3)) == 2
    assert len(rows_of(log_of(*entries, chosen=3), read=1)) == 1
    assert rows_of(log_of(chosen=0), read=0) == []
