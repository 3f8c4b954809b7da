"""One turn's durable effects, written into one LMDB transaction in their order."""

from collections.abc import Sequence
from typing import assert_never

from quipu.ledger.effects import (
    AppendFeed,
    DropEvents,
    DropFeed,
    DropInvs,
    EraseEntry,
    PutBranch,
    PutOverruling,
    PutOwnState,
    StoreEpoch,
    StoreEvent,
    StoreInv,
    StoreProof,
)
from quipu.ledger.event import SignedEvent
from quipu.ledger.holes import has_holes
from quipu.ledger.log.effects import (
    DropLogFrom,
    ForgetLog,
    PutBase,
    PutChosen,
    PutConfirmed,
    PutLie,
    PutVote,
    StoreLogEntry,
)
from quipu.ledger.words import EventId, Slot
from quipu.storage import keyed, keys, records
from quipu.storage.environment import Tables, WriteTxn
from quipu.storage.event_blob import encode_blob, entries_of, open_blob
from quipu.storage.letting_go import LettingGo
from quipu.storage.log_tables import LogWriter
from quipu.storage.ownership import OVERRULING, OWN_STATE
from quipu.storage.store import Kept, SlotTaken, StoreCorrupt


class Batch:
    """Invariant: what it counts is true only once its transaction has been committed."""

    def __init__(self, txn: WriteTxn, tables: Tables) -> None:
        self._txn = txn
        self._tables = tables
        self._log = LogWriter(txn, tables)
        self._going = LettingGo(txn, tables)
        self.bytes_written = 0

    def write(self, durable: Sequence[Kept]) -> None:
        for effect in durable:
            match effect:
                case StoreEvent():
                    self._store_event(effect)
                case PutBranch():
                    key = keys.branch_key(effect.record.key)
                    self._txn.put(
                        key, records.encode_branch(key, effect.record), db=self._tables.branches
                    )
                case AppendFeed():
                    self._append_feed(effect.ids)
                case StoreInv():
                    self._store_inv(effect)
                case StoreProof():
                    conviction = effect.conviction
                    key = keys.proof_key(conviction.culprit, conviction.as_signer)
                    value = records.guarded(key, conviction.data)
                    self._txn.put(key, value, db=self._tables.proofs)
                case StoreEpoch():
                    key = keys.epoch_key(effect.number)
                    value = records.encode_epoch(key, effect.document, effect.seals)
                    self._txn.put(key, value, db=self._tables.epochs)
                case PutOwnState():
                    value = records.encode_own_state(OWN_STATE, effect)
                    self._txn.put(OWN_STATE, value, db=self._tables.meta)
                case DropEvents() | DropFeed() | DropInvs() | EraseEntry():
                    self._going.write(effect)
                case StoreLogEntry():
                    self.bytes_written += len(effect.data)
                    self._log.write(effect)
                case DropLogFrom() | PutVote() | PutChosen() | PutConfirmed() | PutBase():
                    self._log.write(effect)
                case PutLie() | ForgetLog():
                    self._log.write(effect)
                case PutOverruling():
                    value = records.encode_epoch(OVERRULING, effect.document, effect.seals)
                    self._txn.put(OVERRULING, value, db=self._tables.meta)
                case _:
                    assert_never(effect)

    def _store_event(self, effect: StoreEvent) -> None:
        """An event that is held already is written again only where it was damaged."""
        event, slot = effect.event, effect.meta.slot
        place = keys.slot_key(slot)
        self._index(event.id, place)
        entries = entries_of(event)
        blob = encode_blob(event, entries)
        self.bytes_written += len(blob)
        if not self._txn.put(place, blob, overwrite=False, db=self._tables.events):
            entries = self._heal(event, slot, blob)
        for parent in effect.meta.parents:
            # A parent that is not held has no slot, and so no edge: the core stores parents first.
            parent_place = self._place_of(parent)
            if parent_place is not None:
                self._txn.put(parent_place + place, b"", db=self._tables.edges)
        for index, scope in keyed.scopes_of(entries):
            self._txn.put(keyed.row_key(scope, place, index), b"", db=self._tables.keyed)

    def _heal(self, event: SignedEvent, slot: Slot, blob: bytes) -> list[bytes]:
        """The entries that stand there from now on: what is erased stays so."""
        place = keys.slot_key(slot)
        held = self._txn.get(place, b"", db=self._tables.events)
        left = event
        if held == blob:
            return entries_of(left)
        try:
            stored = open_blob(slot, memoryview(held))
            if stored.id != event.id:
                raise SlotTaken(f"{keys.describe(slot)} holds another event than {event.id.hex()}")
            found = stored.event()
            if has_holes(found.body, entries_of(found)):
                left = event._replace(body=found.body, leaves=found.leaves)
                blob = encode_blob(left)
        except StoreCorrupt:
            pass  # what stood there is lost in any case
        self._txn.put(place, blob, db=self._tables.events)
        return entries_of(left)

    def _index(self, identity: EventId, place: bytes) -> None:
        prefix, ids = keys.prefix_of(identity), self._tables.ids
        row = records.index_record(identity, place)
        if self._txn.put(prefix, row, overwrite=False, db=ids):
            return
        value = self._txn.get(prefix, b"", db=ids)
        for other, slot in records.index_rows(prefix, value):
            if other == identity:
                if keys.slot_key(slot) != place:
                    raise SlotTaken(f"{identity.hex()} is stored at {keys.describe(slot)}")
                return
        self._txn.put(prefix, value + row, db=ids)

    def _place_of(self, identity: EventId) -> bytes | None:
        prefix = keys.prefix_of(identity)
        value = self._txn.get(prefix, db=self._tables.ids)
        if value is not None:
            if value[keys.SLOT_BYTES :] == identity[keys.PREFIX_BYTES :]:  # the only one, as ever
                return value[: keys.SLOT_BYTES]
            for other, slot in records.index_rows(prefix, value):
                if other == identity:
                    return keys.slot_key(slot)
        return None

    def _append_feed(self, ids: Sequence[EventId]) -> None:
        with self._txn.cursor(self._tables.feed) as cursor:
            last = keys.feed_of(cursor.key()) if cursor.last() else 0
            for number, identity in enumerate(ids, start=last + 1):
                key = keys.feed_key(number)
                cursor.put(key, records.guarded(key, identity), append=True)

    def _store_inv(self, effect: StoreInv) -> None:
        inv = effect.inv
        key = keys.inv_key(effect.signer_no, inv.number)
        self.bytes_written += len(inv.data)
        self._txn.put(key, records.guarded(key, inv.data), db=self._tables.invs)
        if effect.newest:
            key = keys.signer_key(effect.signer_no)
            value = records.encode_signer(key, records.signer_record(effect.signer_no, inv))
            self._txn.put(key, value, db=self._tables.signers)
