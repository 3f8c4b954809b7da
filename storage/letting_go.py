"""Taking out of the tables what has been pruned, within the transaction of a turn.

Of an event that goes nothing stays but eight bytes of its id: who asks for it is told that it was
here. They lie in `meta`, by the first two bytes of the id.
"""

from collections.abc import Iterator

from quipu.ledger.effects import DropEvents, DropFeed, DropInvs, EraseEntry
from quipu.ledger.words import EventId, Slot
from quipu.storage import keyed, keys, records
from quipu.storage.environment import ReadTxn, Tables, WriteTxn
from quipu.storage.event_blob import StoredEvent, entries_of, open_blob
from quipu.storage.ownership import FORMAT_ERASED, FORMAT_PRUNED, OWN_STATE, raise_format
from quipu.storage.store import StoreCorrupt

NOBODY = EventId(bytes(32))  # what the last number of the feed names when all of it has gone
_TRACE, _COUNT = b"gone", b"gone-count"
_BUCKET_BYTES, _TRACE_BYTES = 2, 6
_U64_BYTES = 8


class LettingGo:
    """Invariant: what it takes out leaves no row behind that names it, but the feed's."""

    def __init__(self, txn: WriteTxn, tables: Tables) -> None:
        self._txn = txn
        self._tables = tables

    def write(self, effect: DropEvents | DropFeed | DropInvs | EraseEntry) -> None:
        match effect:
            case EraseEntry():
                self._erase(effect)
            case DropEvents():
                self._drop_events(effect)
            case DropFeed():
                self._drop_feed(effect)
            case DropInvs():
                self._drop_invs(effect)

    def _drop_events(self, effect: DropEvents) -> None:
        raise_format(self._txn, self._tables, FORMAT_PRUNED)
        gone: list[EventId] = []
        for place, blob in self._found(effect):
            try:
                stored = open_blob(keys.slot_of(place), memoryview(blob))
                self._unlink(stored)
                gone.append(stored.id)
            except StoreCorrupt:
                pass  # nobody can say any more what led to it; the scrub knows of such rows
            self._unlink_children(place)
            self._txn.delete(place, db=self._tables.events)
        self._trace(gone)

    def _found(self, effect: DropEvents) -> list[tuple[bytes, bytes]]:
        first = keys.slot_key(Slot(*effect.key.cord, effect.first, effect.key.number))
        found: list[tuple[bytes, bytes]] = []
        with self._txn.cursor(self._tables.events) as cursor:
            if cursor.set_range(first):
                for place, blob in cursor.iternext():
                    slot = keys.slot_of(place)
                    if slot[:2] != effect.key[:2] or slot.seq > effect.last:
                        break
                    if slot.number == effect.key.number:
                        found.append((place, blob))
        return found

    def _unlink(self, stored: StoredEvent) -> None:
        place = keys.slot_key(stored.slot)
        for index, scope in keyed.scopes_of(entries_of(stored.unchecked())):
            self._txn.delete(keyed.row_key(scope, place, index), db=self._tables.keyed)
        for parent in stored.header.parents:
            for slot in self._places(EventId(parent)):
                self._txn.delete(keys.slot_key(slot) + place, db=self._tables.edges)
        prefix = keys.prefix_of(stored.id)
        value = self._txn.get(prefix, b"", db=self._tables.ids)
        left = b"".join(
            records.index_record(other, keys.slot_key(slot))
            for other, slot in (records.index_rows(prefix, value) if value else [])
            if other != stored.id
        )
        if left:
            self._txn.put(prefix, left, db=self._tables.ids)
        else:
            self._txn.delete(prefix, db=self._tables.ids)

    def _places(self, identity: EventId) -> Iterator[Slot]:
        prefix = keys.prefix_of(identity)
        value = self._txn.get(prefix, db=self._tables.ids)
        for other, slot in records.index_rows(prefix, value) if value else []:
            if other == identity:
                yield slot

    def _unlink_children(self, place: bytes) -> None:
        with self._txn.cursor(self._tables.edges) as cursor:
            while cursor.set_range(place) and cursor.key()[: keys.SLOT_BYTES] == place:
                cursor.delete()

    def _erase(self, effect: EraseEntry) -> None:
        """The entry, and its row in the index of keys. One that cannot be read any more is the
        scrub's to find: others give it without the entry."""
        place, events = keys.slot_key(effect.slot), self._tables.events
        blob = self._txn.get(place, db=events)
        try:
            stored = None if blob is None else open_blob(effect.slot, memoryview(blob))
            entry = None if stored is None else stored.entry(effect.index)
            left = None if stored is None or entry is None else stored.erased(effect.index)
        except StoreCorrupt:
            return
        if entry is None or left is None:
            return
        raise_format(self._txn, self._tables, FORMAT_ERASED)
        for _, scope in keyed.scopes_of([entry]):
            self._txn.delete(keyed.row_key(scope, place, effect.index), db=self._tables.keyed)
        self._txn.put(place, left, db=events)

    # --- that they were here --------------------------------------------------------------------
    def _trace(self, gone: list[EventId]) -> None:
        meta = self._tables.meta
        buckets: dict[bytes, bytes] = {}
        for identity in gone:
            bucket, trace = _split(identity)
            buckets[bucket] = buckets.get(bucket, b"") + trace
        for bucket, traces in buckets.items():
            held = self._txn.get(_TRACE + bucket, db=meta)
            before = records.unguarded("meta", _TRACE + bucket, held) if held else b""
            value = records.guarded(_TRACE + bucket, before + traces)
            self._txn.put(_TRACE + bucket, value, db=meta)
        held = self._txn.get(_COUNT, db=meta)
        count = _number(held) + len(gone)
        value = records.guarded(_COUNT, count.to_bytes(_U64_BYTES, "big"))
        self._txn.put(_COUNT, value, db=meta)

    # --- feed and receipts ----------------------------------------------------------------------
    def _drop_feed(self, effect: DropFeed) -> None:
        feed = self._tables.feed
        with self._txn.cursor(feed) as cursor:
            if not cursor.last():
                return
            last = keys.feed_of(cursor.key())
            while cursor.first() and keys.feed_of(cursor.key()) <= min(effect.upto, last - 1):
                cursor.delete()
        if effect.upto >= last:  # the numbers go on from it
            key = keys.feed_key(last)
            self._txn.put(key, records.guarded(key, NOBODY), db=feed)
        raise_format(self._txn, self._tables, FORMAT_PRUNED)

    def _drop_invs(self, effect: DropInvs) -> None:
        with self._txn.cursor(self._tables.invs) as cursor:
            start = keys.signer_key(effect.signer_no)
            while cursor.set_range(start):
                signer_no, number = keys.inv_of(cursor.key())
                if signer_no != effect.signer_no or number >= effect.below:
                    return
                cursor.delete()


def _split(identity: EventId) -> tuple[bytes, bytes]:
    end = _BUCKET_BYTES + _TRACE_BYTES
    return identity[:_BUCKET_BYTES], identity[_BUCKET_BYTES:end]


def _number(value: bytes | memoryview | None) -> int:
    return int.from_bytes(records.unguarded("meta", _COUNT, value), "big") if value else 0


def was_pruned(txn: ReadTxn, tables: Tables, identity: EventId) -> bool:
    bucket, trace = _split(identity)
    held = txn.get(_TRACE + bucket, db=tables.meta)
    if held is None:
        return False
    traces = records.unguarded("meta", _TRACE + bucket, held)
    at = traces.find(trace)
    while at >= 0 and at % _TRACE_BYTES:
        at = traces.find(trace, at + 1)
    return at >= 0


def pruned_to(txn: ReadTxn, tables: Tables) -> int:
    """The epoch with whose cut history begins here; 0: all is there."""
    return records.decode_own_state(OWN_STATE, txn.get(OWN_STATE, b"", db=tables.meta)).pruned_to


def has_pruned(txn: ReadTxn, tables: Tables) -> bool:
    return pruned_to(txn, tables) > 0


def pruned_count(txn: ReadTxn, tables: Tables) -> int:
    return _number(txn.get(_COUNT, db=tables.meta))


def feed_ends(txn: ReadTxn, tables: Tables) -> tuple[int, int]:
    """The lowest number that names an event, and the last one."""
    with txn.cursor(tables.feed) as cursor:
        if not cursor.first():
            return 1, 0
        first = keys.feed_of(cursor.key())
        names = records.unguarded("feed", cursor.key(), cursor.value()) != NOBODY
        cursor.last()
        return first + (not names), keys.feed_of(cursor.key())
