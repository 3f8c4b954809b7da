"""A dump of a store in format `quipudump/1`: of one read transaction, beside a node or alone.

It begins where the dump before ended, or where one that was interrupted did. The last step, the
node's signature, is not made here: whoever holds the key makes it.
"""

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

import lmdb

from quipu.dumps import limits as dump_limits
from quipu.dumps.buckets import bucket_digests
from quipu.dumps.manifest import ENTRIES_CHOICES, UNSIGNED_FILE, DumpFile, Manifest, to_bytes
from quipu.dumps.segments import write_buckets, write_rows
from quipu.dumps.tables import OF_EXECUTORS, WITHOUT_SOURCE
from quipu.dumps.whole import write_whole
from quipu.ledger.epochs import cluster_id_of, decode_genesis
from quipu.ledger.history import BranchRecord
from quipu.ledger.signing import HASH_BYTES
from quipu.ledger.words import BranchKey, Slot
from quipu.storage import environment, export_rows, keys, letting_go, limits, ownership, records
from quipu.storage.environment import ReadTxn, StoreMissing, Tables, records_from
from quipu.storage.export_columns import NO_NUMBER, EventColumns
from quipu.storage.export_executed import executed_pieces, has_executed
from quipu.storage.export_kept import digests_of_files, horizon_of, numbered, unnumbered
from quipu.storage.export_lookup import Lookup
from quipu.storage.export_notes import ExportRefused, Notes, open_notes
from quipu.storage.export_rows import Row
from quipu.storage.export_segments import SegmentWriter
from quipu.storage.failpoints import passing
from quipu.storage.log_tables import read_log
from quipu.storage.scrub import ScrubProgress
from quipu.storage.store import Owner, StoreCorrupt
from quipu.storage.verification import Report

Marks = dict[int, tuple[int, int]]  # signer number -> its newest Inv in the dump, Invs up to it


@dataclass(frozen=True, slots=True)
class ExportOrder:
    source: Path  # a store
    target: Path
    genesis: bytes
    entries: str = ENTRIES_CHOICES[0]
    as_of_ms: int | None = None  # None: the store is in use, what it holds is of now
    executor: Path | None = None  # the folder of this node's executor


def export_store(order: ExportOrder, report: Report = lambda progress: None) -> dict[str, Any]:
    """All but the signature; `manifest.finish` makes that."""
    env = environment.open_readonly(order.source)
    try:
        tables = environment.open_tables(env, order.source, create=False)
        with env.begin(buffers=True) as txn:
            owner = ownership.read_owner(txn, tables, order.source)
            if owner is None:
                raise StoreMissing(f"{order.source} holds no store")
            if cluster_id_of(order.genesis) != owner.cluster_id:
                raise ExportRefused("the genesis is not that of the store")
            with _uncollected():
                return _Export(txn, tables, order, owner, report).run()
    except lmdb.Error as error:
        environment.raise_named(error, order.source)
    finally:
        env.close()


@contextmanager
def _uncollected() -> Iterator[None]:
    """Rows refer to nothing that refers to them: looking for rings among them took a fifth of the
    time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class _Export:
    def __init__(
        self, txn: ReadTxn, tables: Tables, order: ExportOrder, owner: Owner, report: Report
    ) -> None:
        self._txn = txn
        self._tables = tables
        self._order = order
        self._owner = owner
        self._report = report
        self._notes: Notes = open_notes(order.target, owner, order.entries)
        self._progress = ScrubProgress()
        self._lookup = Lookup(txn, tables)
        self._branches: dict[BranchKey, BranchRecord] = {
            record.key: record
            for record in (
                records.decode_branch(*pair) for pair in records_from(txn, tables.branches)
            )
        }
        self._documents = [records.decode_epoch(*pair) for pair in records_from(txn, tables.epochs)]
        self._segments = SegmentWriter(order.target, EventColumns(self._branches, order.entries))
        before = self._notes.before
        self._number = before.number + 1 if before else 1
        self._stem = f"dump-{self._number:06d}"
        self._files: list[DumpFile] = []
        self._absent: tuple[str, ...] = WITHOUT_SOURCE
        self._is_pruned = letting_go.has_pruned(txn, tables)
        self._horizon = horizon_of(txn, tables, before, self._notes.upto)

    def run(self) -> dict[str, Any]:
        began = time.monotonic()
        before = self._notes.before
        with self._segments:
            feed_upto = self._export_feed()
            kept = self._export_kept()
            unread = self._export_unread()
        marks = self._export_receipts(before)
        self._export_whole_tables()
        self._export_executed()
        read, digests = self._digests()
        self._files.append(write_buckets(self._order.target, self._stem, digests))
        if before:
            kept = before.read - (before.feed_upto + 1 - before.feed_first)
        expected = feed_upto + 1 - self._horizon.feed_first + kept
        if read != expected:
            raise StoreCorrupt("feed", "its end", f"{expected} expected, {read} events are Read")
        manifest = self._manifest(feed_upto, (read, unread), marks)
        passing("export.tables")
        write_whole(self._order.target / UNSIGNED_FILE, to_bytes(manifest))
        passing("export.unsigned")
        return {
            "target": str(self._order.target),
            "dump": self._number,
            "events": manifest.events,
            "read": read,
            "feed_upto": feed_upto,
            "added": feed_upto + 1 - manifest.feed_from,
            "files": len(manifest.files),
            "bytes": sum(file.bytes for file in manifest.files),
            "seconds": round(time.monotonic() - began, 3),
        }

    def _manifest(self, feed_upto: int, counts: tuple[int, int], marks: Marks) -> Manifest:
        before, (read, unread) = self._notes.before, counts
        now_ms = time.time_ns() // 1_000_000
        as_of_ms = now_ms if self._order.as_of_ms is None else self._order.as_of_ms
        return Manifest(
            cluster_id=self._owner.cluster_id.hex(),
            node_id=self._owner.node_id.hex(),
            genesis_sha256=sha256(self._order.genesis).hexdigest(),
            number=self._number,
            previous=before.hash.hex() if before else "",
            taken_ms=now_ms,
            as_of_ms=min(as_of_ms, now_ms),
            feed_from=before.feed_upto + 1 if before else self._horizon.feed_first,
            feed_upto=feed_upto,
            events=read + unread,
            read=read,
            entries=self._order.entries,
            absent=self._absent,
            receipt_marks=tuple((no, *mark) for no, mark in sorted(marks.items())),
            files=tuple(self._all_files()),
            history_from=self._horizon.history_from,
            feed_first=self._horizon.feed_first,
        )

    def _all_files(self) -> list[DumpFile]:
        """Those that stay of the dump before, and what this one has written."""
        before = self._notes.before
        kept = [f for f in before.files if f.table in self._kept_tables] if before else []
        return [f for f in kept if "/unread-" not in f.name] + self._files

    # --- events ---------------------------------------------------------------------------------
    def _export_feed(self) -> int:
        feed = self._tables.feed
        total = self._txn.stat(feed)["entries"]
        self._progress.phase, self._progress.total = "events", total
        first = max(self._notes.upto + 1, self._horizon.feed_first)
        upto = first - 1
        fed = records_from(self._txn, feed, keys.feed_key(first))
        if self._is_pruned:
            fed = numbered(fed)
        while rows := list(islice(fed, self._segments.room)):
            numbers, slot_keys = self._lookup.fed(rows)
            self._segments.columns.add(slot_keys, self._lookup.blobs(slot_keys), numbers)
            upto = numbers[-1]
            if self._segments.is_full:
                self._end_feed_segment(first, upto)
                first = upto + 1
            self._said(upto, len(rows))
        self._end_feed_segment(first, upto)
        self._segments.finish()
        self._files = [file for _, files in self._notes.segments for file in files]
        return upto

    def _end_feed_segment(self, first: int, upto: int) -> None:
        self._segments.begin(f"feed-{first:012d}-{upto:012d}", partial(self._notes.add, upto))

    def _export_kept(self) -> int:
        """What is Read and has no number any more: the first dump of a pruned store has it."""
        if not self._is_pruned or self._notes.before is not None:
            return 0
        count, kept = 0, unnumbered(self._txn, self._tables, self._branches)
        while slot_keys := list(islice(kept, self._segments.room)):
            blobs = self._lookup.blobs(slot_keys)
            self._segments.columns.add(slot_keys, blobs, [NO_NUMBER] * len(blobs))
            count += len(blobs)
            if self._segments.is_full:
                self._end_kept_segment(count)
        self._end_kept_segment(count)
        self._segments.finish()
        return count

    def _end_kept_segment(self, count: int) -> None:
        self._segments.begin(f"kept-{self._number:06d}-{count:09d}", self._files.extend)

    def _export_unread(self) -> int:
        """Above what is Read on each branch; written anew by every dump."""
        count = 0
        self._progress.phase, self._progress.total = "unread", 0
        unread = self._unread_slot_keys()
        while slot_keys := list(islice(unread, self._segments.room)):
            blobs = self._lookup.blobs(slot_keys)
            self._segments.columns.add(slot_keys, blobs, [None] * len(blobs))
            count += len(blobs)
            if self._segments.is_full:
                self._end_unread_segment(count)
            self._said(count, len(blobs))
        self._end_unread_segment(count)
        self._segments.finish()
        return count

    def _end_unread_segment(self, count: int) -> None:
        self._segments.begin(f"unread-{self._number:06d}-{count:09d}", self._files.extend)

    def _unread_slot_keys(self) -> Iterator[bytes]:
        for key, record in sorted(self._branches.items()):
            first = Slot(*key[:2], max(record.read_seq, record.base_seq), key.number)
            start, _ = keys.slot_keys_above(first)
            for place, _ in records_from(self._txn, self._tables.events, start):
                slot = keys.slot_of(place)
                if slot.branch.cord != key.cord:
                    break
                if slot.number == key.number:
                    yield bytes(place)

    # --- receipts -------------------------------------------------------------------------------
    def _export_receipts(self, before: Manifest | None) -> Marks:
        """Those above what the dump before has of each signer. A receipt with a lower number that
        came since makes this dump write all of them anew."""
        self._progress.phase = "receipts"
        self._progress.total = self._txn.stat(self._tables.invs)["entries"]
        counted, marks = self._counted(before)
        known = (
            {no: (number, count) for no, number, count in before.receipt_marks} if before else {}
        )
        is_added_to = counted == {no: count for no, (_, count) in known.items()}
        if self._is_pruned and before:  # some have gone here that the dump before has
            is_added_to = True
        self._kept_tables = {"events", "edges", "entries"}
        if is_added_to:
            self._kept_tables |= {"invs", "receipts"}
        invs: list[Row] = []
        receipts: list[Row] = []
        for done, (key, value) in enumerate(records_from(self._txn, self._tables.invs), start=1):
            signer_no, number = keys.inv_of(key)
            if not is_added_to or number > known.get(signer_no, (0, 0))[0]:
                row, named = export_rows.inv_rows(signer_no, records.unguarded("invs", key, value))
                invs.append(row)
                receipts += named
                if len(receipts) >= dump_limits.SEGMENT_RECEIPT_ROWS_MAX:
                    self._flush_receipts(invs, receipts, done)
            self._said(done)
        self._flush_receipts(invs, receipts, self._progress.total)
        return marks

    def _counted(self, before: Manifest | None) -> tuple[dict[int, int], Marks]:
        """Of each signer in the dump before: how many there are now up to its newest there."""
        limits = {no: number for no, number, _ in before.receipt_marks} if before else {}
        counted = dict.fromkeys(limits, 0)
        marks: Marks = {}
        for key, _ in records_from(self._txn, self._tables.invs):
            signer_no, number = keys.inv_of(key)
            if number <= limits.get(signer_no, 0):
                counted[signer_no] += 1
            marks[signer_no] = (number, marks.get(signer_no, (0, 0))[1] + 1)
        return counted, marks

    def _flush_receipts(self, invs: list[Row], receipts: list[Row], done: int) -> None:
        stem = f"{self._stem}-{done:09d}"
        if invs:
            self._files.append(write_rows(self._order.target, "invs", stem, invs))
        if receipts:
            self._files.append(write_rows(self._order.target, "receipts", stem, receipts))
        invs.clear()
        receipts.clear()

    # --- the rest -------------------------------------------------------------------------------
    def _export_whole_tables(self) -> None:
        genesis, documents = self._order.genesis, self._documents
        proofs: list[Row] = [
            (bytes(key[1:]), key[0] == 1, records.unguarded("proofs", key, value))
            for key, value in records_from(self._txn, self._tables.proofs)
        ]
        for table, rows in (
            ("config", export_rows.config_rows(genesis, documents)),
            ("members", export_rows.member_rows(genesis, documents)),
            ("cuts", list(export_rows.cut_rows(documents))),
            ("frontier", export_rows.frontier_rows(self._branches)),
            ("evidence", proofs),
            ("journal", list(self._journal_rows())),
        ):
            self._files.append(write_rows(self._order.target, table, self._stem, rows))

    def _export_executed(self) -> None:
        """As of a later moment than the log: an executor does what is durable in it."""
        folder = self._order.executor
        if folder is None or not has_executed(folder):
            self._absent = tuple(sorted((*WITHOUT_SOURCE, *OF_EXECUTORS)))
            return
        for table, number, rows in executed_pieces(folder, self._owner.cluster_id):
            stem = f"{self._stem}-{number:06d}"
            self._files.append(write_rows(self._order.target, table, stem, rows))

    def _journal_rows(self) -> Iterator[Row]:
        """None of a store of the first format, which had no log."""
        if self._tables.log is None:
            return iter(())
        read: dict[tuple[int, int], int] = {}
        for key, record in self._branches.items():
            cord = key.author_no, key.journal
            read[cord] = max(record.read_seq, read.get(cord, 0))
        return export_rows.journal_rows(
            read_log(self._txn, self._tables),
            self._owner.cluster_id,
            len(decode_genesis(self._order.genesis).members),
            lambda place: place[2] <= read.get(place[:2], 0),
        )

    def _digests(self) -> tuple[int, bytes]:
        if not self._is_pruned:
            return self._read_ids()
        names = [file.name for file in self._all_files() if file.table == "events"]
        return digests_of_files(self._order.target, names)

    def _read_ids(self) -> tuple[int, bytes]:
        """How many events are Read, and the digests of their ids: the index has them in order."""
        count = 0
        upto = {tuple(key): record.read_seq for key, record in self._branches.items()}
        whole = keys.SLOT_BYTES + HASH_BYTES - keys.PREFIX_BYTES  # a row alone, as nearly always

        def ids() -> Iterator[bytes]:
            nonlocal count
            indexed = records_from(self._txn, self._tables.ids)
            while rows := [
                (bytes(k), bytes(v)) for k, v in islice(indexed, limits.EXPORT_PIECE_EVENTS)
            ]:
                lone = [
                    (
                        prefix + value[keys.SLOT_BYTES :],
                        keys.numbers_of_slot(value[: keys.SLOT_BYTES]),
                    )
                    for prefix, value in rows
                    if len(value) == whole
                ]
                if len(lone) < len(rows):
                    lone = [
                        row
                        for prefix, value in rows
                        for row in sorted(records.index_rows(prefix, value))
                    ]
                read = [
                    identity
                    for identity, (author_no, journal, seq, number) in lone
                    if seq <= upto.get((author_no, journal, number), 0)
                ]
                count += len(read)
                yield from read

        digests = bucket_digests(ids())
        return count, digests

    def _said(self, done: int, more: int = 1) -> None:
        self._progress.done = done
        if done % dump_limits.REPORT_EVERY < more:
            self._report(self._progress)
