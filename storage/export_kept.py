"""Dumps of a store that has pruned: where they begin, and what is Read and has no number any more.

The feed of such a store begins above 1, and of each cord the event with which a checkpoint ends it
stays, though its number has gone. A dump that goes on where the one before ended keeps what that
one has: so an archive is whole, whatever its node lets go once it is archived.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from quipu.dumps.buckets import bucket_digests
from quipu.dumps.limits import READ_ROWS
from quipu.dumps.manifest import Manifest
from quipu.ledger.history import BranchRecord
from quipu.ledger.words import BranchKey, Slot
from quipu.storage import keys, letting_go, limits
from quipu.storage.environment import ReadTxn, Tables, records_from
from quipu.storage.export_lookup import Lookup
from quipu.storage.export_notes import ExportRefused

READ = "read"


class Horizon(NamedTuple):
    """Where the history of a dump begins."""

    history_from: int = 0  # with this epoch's cut; 0: it has all
    feed_first: int = 1


def horizon_of(txn: ReadTxn, tables: Tables, before: Manifest | None, upto: int) -> Horizon:
    """Of the dump that goes on behind `before`, or, at `upto`, behind what an interrupted one has.
    Raises `ExportRefused`."""
    history_from = letting_go.pruned_to(txn, tables)
    if not history_from:
        return Horizon()
    feed_first, _ = letting_go.feed_ends(txn, tables)
    has_begun_anew = _begins_with_nobody(txn, tables) and upto < feed_first
    if upto and (upto + 1 < feed_first or has_begun_anew):
        raise ExportRefused(
            f"the dump ends at {upto}, and the history of the node begins at {feed_first} by now: "
            "what lies between was pruned. Write a new dump into another directory"
        )
    if before is not None:
        return Horizon(before.history_from, before.feed_first)
    return Horizon(history_from, feed_first)


def _begins_with_nobody(txn: ReadTxn, tables: Tables) -> bool:
    """All that was in the feed has gone at once: the node began again with a checkpoint."""
    return any(is_nobody(value) for _, value in islice(records_from(txn, tables.feed), 1))


def is_nobody(value: memoryview) -> bool:
    return bytes(value[-len(letting_go.NOBODY) :]) == letting_go.NOBODY


def unnumbered(
    txn: ReadTxn, tables: Tables, branches: Mapping[BranchKey, BranchRecord]
) -> Iterator[bytes]:
    """Where the Read events lie that no number of the feed names: of each branch those below the
    first one that has a number."""
    begins = _first_numbered(txn, tables)
    for key, record in sorted(branches.items()):
        upto = min(record.read_seq, begins.get(tuple(key), record.read_seq + 1) - 1)
        start, _ = keys.slot_keys_above(Slot(*key.cord, record.gone_upto, key.number))
        for place, _ in records_from(txn, tables.events, start):
            author_no, journal, seq, number = keys.numbers_of_slot(place)
            if (author_no, journal) != key.cord or seq > upto:
                break
            if number == key.number:
                yield bytes(place)


def _first_numbered(txn: ReadTxn, tables: Tables) -> dict[tuple[int, ...], int]:
    """Of each branch the lowest seq in the feed."""
    lookup, first = Lookup(txn, tables), dict[tuple[int, ...], int]()
    rows = numbered(records_from(txn, tables.feed))
    while some := list(islice(rows, limits.EXPORT_READ_TOGETHER)):
        _, places = lookup.fed(some)
        for author_no, journal, seq, number in keys.numbers_of_slots(places):
            first.setdefault((author_no, journal, number), seq)
    return first


def numbered(
    rows: Iterator[tuple[memoryview, memoryview]],
) -> Iterator[tuple[memoryview, memoryview]]:
    return (row for row in rows if not is_nobody(row[1]))


def digests_of_files(folder: Path, names: list[str]) -> tuple[int, bytes]:
    """How many Read events these files of `events` have, and the digests of their ids."""
    found: list[bytes] = []
    for name in names:
        with pq.ParquetFile(folder / name) as file:
            for batch in file.iter_batches(READ_ROWS, columns=["id", "state"]):
                is_read = pc.equal(batch.column("state"), pa.scalar(READ))
                found += batch.column("id").filter(is_read).to_pylist()
    return len(found), bucket_digests(sorted(found))
