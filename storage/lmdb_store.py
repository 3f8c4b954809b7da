"""The store in LMDB: one environment, one writer, one transaction and one fsync a turn.

One thread may commit while another reads; a read never waits for a disk that is being synced.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import IO

import lmdb

from quipu.ledger import signing
from quipu.ledger.event import EventMeta, SignedEvent
from quipu.ledger.history import Held, Saved
from quipu.ledger.log.state import SavedLog
from quipu.ledger.words import EpochNo, EventId, InvNumber, NodeNo, Seq, Slot
from quipu.storage import (
    counting,
    environment,
    keyed,
    keys,
    letting_go,
    limits,
    log_tables,
    ownership,
    records,
)
from quipu.storage.ahead import Ahead
from quipu.storage.batch import Batch
from quipu.storage.environment import (
    ReadTxn,
    Snapshot,
    StoreDamaged,
    Tables,
    records_from,
)
from quipu.storage.event_blob import StoredEvent, held_of, meta_of_blob, open_blob
from quipu.storage.letting_go import NOBODY
from quipu.storage.ownership import OVERRULING, OWN_STATE
from quipu.storage.scrub import Scrub, ScrubProgress
from quipu.storage.store import (
    Kept,
    OutcomeUnknown,
    Owner,
    StoreClosed,
    StoreCorrupt,
    StoreFull,
    StoreStats,
)


def open_store(
    path: Path,
    owner: Owner,
    *,
    recovering: bool = False,
    notes_crashes: bool = False,
    map_bytes: int = limits.MAP_BYTES_FIRST,
) -> "LmdbStore":
    """Opens the store of this node, or makes one. `recovering` is for one that is made new for a
    node key that existed before: nobody knows what that key has signed. `notes_crashes` is for the
    process whose life is this store: a fatal signal leaves a note beside the data, and the next
    start looks at every page before it trusts them."""
    fresh = not path.exists()
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = environment.lock_owner(path)
    crash_log: IO[bytes] | None = None
    try:
        environment.refuse_after_crash(path)
        crash_log = environment.note_crashes(path) if notes_crashes else None
        env = environment.open_environment(path, map_bytes)
    except BaseException:
        environment.end_notes(crash_log)
        os.close(lock)
        raise
    try:
        tables = environment.open_tables(env, path, create=True)
        try:
            created = ownership.claim(env, path, tables, owner, recovering)
            tables = ownership.upgraded(env, path, tables)
        except StoreCorrupt as corrupt:
            raise StoreDamaged(f"{path}: {corrupt}") from corrupt
        environment.sync_directory(path)
        if fresh:
            environment.sync_directory(path.parent)
        store = LmdbStore(path, owner, env, tables, lock)
        store.created = created
        store.crash_log = crash_log
        return store
    except BaseException:
        environment.end_notes(crash_log)
        env.close()
        os.close(lock)
        raise


class LmdbStore:
    """Invariant: every read shows the last commit that has returned, whole."""

    created = False  # it was made new by this start
    crash_log: IO[bytes] | None = None

    def __init__(
        self, path: Path, owner: Owner, env: lmdb.Environment, tables: Tables, lock: int
    ) -> None:
        self.path = path
        self.owner = owner
        self._env = env
        self._tables = tables
        self._owner_lock = lock
        self._snapshot = Snapshot(env, path)
        self._writing = Lock()
        self._closed = False
        self._lost: OutcomeUnknown | None = None
        self._page_bytes: int = env.stat()["psize"]
        self._ahead = Ahead(path / environment.DATA_FILE)

    # --- writing ----------------------------------------------------------------------------
    def commit(self, durable: Sequence[Kept]) -> None:
        with self._writing:
            if self._closed:
                raise StoreClosed(str(self.path))
            if not durable:
                return
            if self._lost is not None:
                raise self._lost
            for _ in range(limits.MAP_GROWTHS_PER_COMMIT_MAX):
                try:
                    self._write(durable)
                    return
                except lmdb.MapFullError:
                    self._grow()
        raise StoreFull(f"{self.path}: one batch does not fit")

    def _write(self, durable: Sequence[Kept]) -> None:
        written = 0
        self._ahead.make((self._env.info()["last_pgno"] + 1) * self._page_bytes)
        try:
            with self._env.begin(write=True) as txn:
                batch = Batch(txn, self._tables)
                try:
                    batch.write(durable)
                finally:
                    written = batch.bytes_written
        except lmdb.MapFullError:
            raise
        except lmdb.Error as error:
            try:
                environment.raise_uncommitted(error, self.path, limits.MIB + 2 * written)
            except OutcomeUnknown as unknown:
                self._lost = unknown
                raise
        self._snapshot.renew()

    def _grow(self) -> None:
        size = self._env.info()["map_size"]
        step = min(max(size, limits.MAP_GROWTH_BYTES_MIN), limits.MAP_GROWTH_BYTES_MAX)
        try:
            self._env.reader_check()
            self._snapshot.grow(size + step)
        except lmdb.Error as error:
            environment.raise_named(error, self.path)

    # --- the past -----------------------------------------------------------------------------
    def saved(self) -> Saved:
        """`StoreCorrupt` here is as bad as `StoreDamaged`: there is nothing sure to go on from."""
        with self._snapshot as txn:
            tables = self._tables
            state = txn.get(OWN_STATE, db=tables.meta)
            if state is None:
                raise StoreCorrupt("meta", OWN_STATE.decode(), "is missing")
            own = records.decode_own_state(OWN_STATE, state)
            kept = txn.get(OVERRULING, db=tables.meta)
            forced = None if kept is None else records.decode_epoch(OVERRULING, kept)
            return Saved(
                [records.decode_branch(*pair) for pair in records_from(txn, tables.branches)],
                [records.decode_signer(*pair) for pair in records_from(txn, tables.signers)],
                [records.decode_epoch(*pair) for pair in records_from(txn, tables.epochs)],
                [records.unguarded("proofs", *pair) for pair in records_from(txn, tables.proofs)],
                own.newest_journal,
                own.recovering,
                own.pruned_to,
                forced if forced and forced[0] else None,
            )

    def saved_log(self) -> SavedLog:
        with self._snapshot as txn:
            return log_tables.read_log(txn, self._tables)

    def meta(self, identity: EventId) -> EventMeta | None:
        with self._snapshot as txn:
            stored = self._stored(txn, identity)
            return None if stored is None else stored.meta()

    def meta_by_prefix(self, prefix: bytes) -> EventMeta | None:
        with self._snapshot as txn:
            rows = self._rows(txn, prefix)
            return self._at(txn, *rows[0]).meta() if rows else None

    def ids_between(self, first: bytes, last: bytes, limit: int) -> list[EventId]:
        found: list[EventId] = []
        with self._snapshot as txn:
            for prefix, value in records_from(txn, self._tables.ids, first):
                if bytes(prefix) > last or len(found) >= limit:
                    break
                found += sorted(identity for identity, _ in records.index_rows(prefix, value))
        return found[:limit]

    def id_at(self, slot: Slot) -> EventId | None:
        with self._snapshot as txn:
            if not keys.fits(slot):
                return None
            blob = txn.get(keys.slot_key(slot), db=self._tables.events)
            return None if blob is None else open_blob(slot, blob).id

    def event(self, identity: EventId) -> SignedEvent | None:
        with self._snapshot as txn:
            stored = self._stored(txn, identity)
            return None if stored is None else stored.event()

    def run(self, first: Slot, last: Seq, bytes_max: int) -> list[Held]:
        found: list[Held] = []
        if first.seq > last or not keys.fits(first):
            return found
        branch = first.branch
        with self._snapshot as txn:
            for seq, blob in self._blobs(txn, first, last):
                found.append(held_of(branch, seq, blob))
                bytes_max -= len(blob)
                if bytes_max < 0:
                    break
        return found

    def metas_from(self, first: Slot, last: Seq, count_max: int) -> list[EventMeta]:
        found: list[EventMeta] = []
        if first.seq > last or not keys.fits(first):
            return found
        with self._snapshot as txn:
            for seq, blob in self._blobs(txn, first, last):
                slot = Slot(first.author_no, first.journal, seq, first.number)
                found.append(meta_of_blob(slot, blob))
                if len(found) == count_max:
                    break
        return found

    def _blobs(self, txn: ReadTxn, first: Slot, last: Seq) -> Iterator[tuple[Seq, memoryview]]:
        """What one branch has of its own, in order."""
        cord, number = first[:2], first.number
        for key, blob in records_from(txn, self._tables.events, keys.slot_key(first)):
            author_no, journal, seq, branch = keys.numbers_of_slot(key)
            if seq > last or (author_no, journal) != cord:
                break
            if branch == number:
                yield seq, blob

    def entry(self, identity: EventId, index: int) -> bytes | None:
        with self._snapshot as txn:
            stored = self._stored(txn, identity)
            return None if stored is None else stored.entry(index)

    def entries(
        self, identity: EventId, first: int, count: int
    ) -> tuple[EventMeta, list[bytes]] | None:
        with self._snapshot as txn:
            stored = self._stored(txn, identity)
            return None if stored is None else (stored.meta(), stored.entries(first, count))

    def find_key(self, submitter: str | None, stream: str, key: str) -> list[tuple[EventId, int]]:
        scope = keyed.scope_hash(submitter, stream, key)
        found: list[tuple[EventId, int]] = []
        with self._snapshot as txn:
            for row, _ in records_from(txn, self._tables.keyed, scope):
                if row[: len(scope)] != scope:
                    break
                slot, index = keyed.place_of(row)
                found.append((self._held(txn, slot).id, index))
        return found

    def children(self, identity: EventId) -> list[EventId]:
        with self._snapshot as txn:
            stored = self._stored(txn, identity)
            if stored is None:
                return []
            start, end = keys.slot_keys_above(stored.slot)
            found = {}
            for key, blob in records_from(txn, self._tables.events, start):
                place = bytes(key)
                if place > end:
                    break
                above = open_blob(keys.slot_of(place), blob)
                if above.header.prev == identity:
                    found[place] = above.id
            place = keys.slot_key(stored.slot)
            for key, _ in records_from(txn, self._tables.edges, place):
                if key[: keys.SLOT_BYTES] != place:
                    break
                child = keys.slot_of(key[keys.SLOT_BYTES :])
                found[bytes(key[keys.SLOT_BYTES :])] = self._held(txn, child).id
            return [found[key] for key in sorted(found)]

    def inv(self, signer_no: NodeNo, number: InvNumber) -> bytes | None:
        if not keys.fits((signer_no, number)):
            return None
        key = keys.inv_key(signer_no, number)
        with self._snapshot as txn:
            value = txn.get(key, db=self._tables.invs)
            return None if value is None else records.unguarded("invs", key, value)

    def epoch_document(self, number: EpochNo) -> tuple[bytes, tuple[bytes, ...]] | None:
        if not keys.fits((number,)):
            return None
        key = keys.epoch_key(number)
        with self._snapshot as txn:
            value = txn.get(key, db=self._tables.epochs)
            return None if value is None else records.decode_epoch(key, value)

    def invs_from(self, signer_no: NodeNo, number: InvNumber) -> Iterator[bytes]:
        start = keys.inv_key(signer_no, number) if keys.fits((signer_no, number)) else b""
        while start:
            found, start = self._some_invs(signer_no, start)
            yield from found

    def _some_invs(self, signer_no: NodeNo, start: bytes) -> tuple[list[bytes], bytes]:
        """A few, and the key to go on from: nobody holds the snapshot while they are used."""
        found: list[bytes] = []
        with self._snapshot as txn:
            for key, value in records_from(txn, self._tables.invs, start):
                if keys.inv_of(key)[0] != signer_no:
                    break
                if len(found) == limits.INVS_PER_READ:
                    return found, bytes(key)
                found.append(records.unguarded("invs", key, value))
        return found, b""

    def feed(self, after: int, limit: int) -> list[tuple[int, EventId]]:
        found: list[tuple[int, EventId]] = []
        if limit <= 0:
            return found
        start = keys.feed_key(max(after, 0) + 1)
        with self._snapshot as txn:
            for key, value in records_from(txn, self._tables.feed, start):
                identity = EventId(records.unguarded("feed", key, value))
                if identity == NOBODY:
                    continue
                found.append((keys.feed_of(key), identity))
                if len(found) == limit:
                    break
        return found

    def was_pruned(self, identity: EventId) -> bool:
        with self._snapshot as txn:
            return letting_go.was_pruned(txn, self._tables, identity)

    def stats(self) -> StoreStats:
        with self._snapshot as txn:
            return counting.count(self._env, txn, self._tables, self.path)

    # --- care -------------------------------------------------------------------------------------
    def scrub(self, verify: signing.Verifier | None = None) -> Iterator[ScrubProgress]:
        """Checks everything; each step is a slice of a few milliseconds. With a verifier also every
        signature, which costs far more than all the rest."""
        return Scrub(self._snapshot, self._tables, self.owner.cluster_id, verify).slices()

    def forget_dead_readers(self) -> None:
        with self._writing:
            if not self._closed:
                self._env.reader_check()

    def close(self) -> None:
        with self._writing:
            if self._closed:
                return
            self._closed = True
            environment.end_notes(self.crash_log)
            self._ahead.close()
            self._snapshot.close()
            self._env.close()
            os.close(self._owner_lock)

    # --- within a snapshot ----------------------------------------------------------------------
    def _rows(self, txn: ReadTxn, prefix: bytes) -> list[tuple[EventId, Slot]]:
        if len(prefix) != keys.PREFIX_BYTES:
            return []
        value = txn.get(prefix, db=self._tables.ids)
        return [] if value is None else records.index_rows(prefix, value)

    def _stored(self, txn: ReadTxn, identity: EventId) -> StoredEvent | None:
        prefix = keys.prefix_of(identity)
        if len(prefix) != keys.PREFIX_BYTES:
            return None
        value = txn.get(prefix, db=self._tables.ids)
        if value is None:
            return None
        only = records.only_slot(identity, value)
        if only is not None:
            return self._at(txn, identity, only)
        for other, slot in records.index_rows(prefix, value):
            if other == identity:
                return self._at(txn, identity, slot)
        return None

    def _at(self, txn: ReadTxn, identity: EventId, slot: Slot) -> StoredEvent:
        stored = self._held(txn, slot)
        if stored.id != identity:
            raise stored.corrupt(f"holds {stored.id.hex()}, the index says {identity.hex()}")
        return stored

    def _held(self, txn: ReadTxn, slot: Slot) -> StoredEvent:
        blob = txn.get(keys.slot_key(slot), db=self._tables.events)
        if blob is None:
            raise StoreCorrupt("events", keys.describe(slot), "indexed, but not there")
        return open_blob(slot, blob)
