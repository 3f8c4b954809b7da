"""The store in dicts, for the simulator: the same contract, and it can lose power.

`write` reaches the volatile state, `sync` makes it durable, `commit` is both. Effects are shared
and never copied: they are immutable, and a branch record belongs to the store once it is given.
An image is a length of the log of batches, so taking one costs nothing.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, assert_never

import msgspec

from quipu.ledger.canonical import encode
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
from quipu.ledger.event import EventMeta, SignedEvent
from quipu.ledger.history import BranchRecord, Held, Saved, SignerRecord
from quipu.ledger.holes import hole_of, is_hole, leaf_of
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
from quipu.ledger.log.state import SavedLog
from quipu.ledger.log.suffix import decode_base
from quipu.ledger.log.words import NO_INDEX, Index, Life
from quipu.ledger.messages import bytes_of
from quipu.ledger.words import BranchKey, EpochNo, EventId, InvNumber, Journal, NodeNo, Seq, Slot
from quipu.storage import keyed, keys
from quipu.storage.letting_go import NOBODY
from quipu.storage.records import signer_record
from quipu.storage.store import Kept, Owner, SlotTaken, StoreClosed, StoreFull, StoreStats

_bodies = msgspec.msgpack.Decoder(list[bytes])
_ABSENT: Any = object()

Undo = list[tuple[dict[Any, Any], Any, Any]]  # table, key, what it held before


class Image(NamedTuple):
    """What a disk holds at one moment: to roll a node back to it, or to start a clone from it."""

    owner: Owner
    recovering: bool
    batches: list[Sequence[Kept]]  # shared; only the first `length` belong to the image
    length: int


@dataclass(slots=True)
class _Tables:
    """What LMDB has as tables. Every change is noted in `undo` so that it can be taken back."""

    events: dict[EventId, StoreEvent] = field(default_factory=dict)
    prefixes: dict[bytes, tuple[EventId, ...]] = field(default_factory=dict)
    slots: dict[Slot, EventId] = field(default_factory=dict)
    above: dict[EventId, tuple[Slot, ...]] = field(default_factory=dict)  # by prev
    edges: dict[EventId, tuple[Slot, ...]] = field(default_factory=dict)  # by parent
    feed: dict[int, EventId] = field(default_factory=dict)
    branches: dict[BranchKey, BranchRecord] = field(default_factory=dict)
    invs: dict[tuple[NodeNo, InvNumber], bytes] = field(default_factory=dict)
    signers: dict[NodeNo, SignerRecord] = field(default_factory=dict)
    proofs: dict[bytes, bytes] = field(default_factory=dict)
    epochs: dict[EpochNo, tuple[bytes, tuple[bytes, ...]]] = field(default_factory=dict)
    own: dict[str, PutOwnState] = field(default_factory=dict)
    scopes: dict[bytes, tuple[keyed.KeyedPlace, ...]] = field(default_factory=dict)
    gone: dict[EventId, bool] = field(default_factory=dict)
    inv_numbers: dict[NodeNo, list[InvNumber]] = field(default_factory=dict)  # sorted

    log: dict[Index, bytes] = field(default_factory=dict)
    confirmed: dict[Index, tuple[bytes, ...]] = field(default_factory=dict)
    lies: dict[NodeNo, bytes] = field(default_factory=dict)
    votes: dict[str, Any] = field(default_factory=dict)  # by the kind of what was put

    def apply(self, effect: Kept, undo: Undo) -> None:
        match effect:
            case StoreEvent():
                self._store_event(effect, undo)
            case PutBranch():
                _put(self.branches, effect.record.key, effect.record, undo)
            case AppendFeed():
                last = max(self.feed, default=0)
                for number, identity in enumerate(effect.ids, start=last + 1):
                    _put(self.feed, number, identity, undo)
            case StoreInv():
                self._store_inv(effect, undo)
            case StoreProof():
                conviction = effect.conviction
                key = keys.proof_key(conviction.culprit, conviction.as_signer)
                _put(self.proofs, key, conviction.data, undo)
            case StoreEpoch():
                _put(self.epochs, effect.number, (effect.document, effect.seals), undo)
            case PutOwnState():
                _put(self.own, "own", effect, undo)
            case DropEvents() | DropFeed() | DropInvs() | EraseEntry():
                self._let_go(effect, undo)
            case PutVote() | PutChosen() | PutBase() | PutOverruling() | ForgetLog():
                self._put_vote(effect, undo)
            case StoreLogEntry(index, data):
                _put(self.log, index, data, undo)
            case DropLogFrom(index):
                _drop(self.log, [at for at in self.log if at >= index], undo)
            case PutConfirmed(index, certificate):
                _put(self.confirmed, index, certificate, undo)
            case PutLie(culprit, proof):
                _put(self.lies, culprit, proof, undo)
            case _:
                assert_never(effect)

    def _put_vote(
        self, effect: PutVote | PutChosen | PutBase | PutOverruling | ForgetLog, undo: Undo
    ) -> None:
        _put(self.votes, type(effect).__name__, effect, undo)
        if isinstance(effect, PutBase):
            base = decode_base(effect.record).index
            _drop(self.log, [at for at in self.log if at <= base], undo)
            _drop(self.confirmed, [at for at in self.confirmed if at <= base], undo)
        if isinstance(effect, ForgetLog):
            _drop(self.log, list(self.log), undo)
            _drop(self.confirmed, list(self.confirmed), undo)
            kinds = ("PutVote", "PutChosen", "PutBase")
            _drop(self.votes, [kind for kind in kinds if kind in self.votes], undo)

    def _store_event(self, effect: StoreEvent, undo: Undo) -> None:
        meta = effect.meta
        identity, slot = meta.id, meta.slot
        held = self.events.get(identity)
        if held is not None:
            if held.meta.slot != slot:
                raise SlotTaken(f"{identity.hex()} is stored at {keys.describe(held.meta.slot)}")
            if held.event.signature != effect.event.signature:
                event = held.event._replace(signature=effect.event.signature)  # holes stay
                _put(self.events, identity, StoreEvent(event, held.meta), undo)
            return
        if slot in self.slots:
            raise SlotTaken(f"{keys.describe(slot)} holds another event than {identity.hex()}")
        prefix = keys.prefix_of(identity)
        _put(self.events, identity, effect, undo)
        _put(self.slots, slot, identity, undo)
        _put(self.prefixes, prefix, (*self.prefixes.get(prefix, ()), identity), undo)
        _put(self.above, meta.prev, (*self.above.get(meta.prev, ()), slot), undo)
        for parent in meta.parents:
            if parent in self.events:
                _put(self.edges, parent, (*self.edges.get(parent, ()), slot), undo)
        for index, scope in keyed.scopes_of(_bodies.decode(effect.event.body)):
            place = keyed.KeyedPlace(slot, index)
            _put(self.scopes, scope, (*self.scopes.get(scope, ()), place), undo)

    def _let_go(self, effect: DropEvents | DropFeed | DropInvs | EraseEntry, undo: Undo) -> None:
        match effect:
            case EraseEntry():
                self._erase(effect, undo)
            case DropEvents():
                self._drop_events(effect, undo)
            case DropFeed(upto):
                last = max(self.feed, default=0)
                _drop(self.feed, [no for no in self.feed if no <= upto and no < last], undo)
                if last and upto >= last:
                    _put(self.feed, last, NOBODY, undo)
            case DropInvs(signer_no, below):
                numbers = self.inv_numbers.get(signer_no, [])
                gone = numbers[: bisect_left(numbers, below)]
                del numbers[: len(gone)]
                _drop(self.invs, [(signer_no, number) for number in gone], undo)

    def _drop_events(self, effect: DropEvents, undo: Undo) -> None:
        for seq in range(effect.first, effect.last + 1):
            slot = Slot(*effect.key.cord, Seq(seq), effect.key.number)
            identity = self.slots.get(slot)
            if identity is None:
                continue
            stored = self.events[identity]
            prefix = keys.prefix_of(identity)
            _take_out(self.prefixes, prefix, identity, undo)
            _take_out(self.above, stored.meta.prev, slot, undo)
            for parent in stored.meta.parents:
                _take_out(self.edges, parent, slot, undo)
            _drop(self.edges, [identity] if identity in self.edges else [], undo)
            _drop(self.above, [identity] if identity in self.above else [], undo)
            for index, scope in keyed.scopes_of(_bodies.decode(stored.event.body)):
                _take_out(self.scopes, scope, keyed.KeyedPlace(slot, index), undo)
            _drop(self.slots, [slot], undo)
            _drop(self.events, [identity], undo)
            _put(self.gone, identity, True, undo)

    def _erase(self, effect: EraseEntry, undo: Undo) -> None:
        identity = self.slots.get(effect.slot)
        if identity is None:
            return
        stored = self.events[identity]
        entries = _bodies.decode(stored.event.body)
        entry = entries[effect.index]
        if is_hole(entry):
            return
        entries[effect.index] = hole_of(leaf_of(entry))
        event = stored.event._replace(body=encode(entries))
        for _, scope in keyed.scopes_of([entry]):
            _take_out(self.scopes, scope, keyed.KeyedPlace(effect.slot, effect.index), undo)
        meta = stored.meta._replace(size=event.size)
        _put(self.events, identity, StoreEvent(event, meta), undo)

    def _store_inv(self, effect: StoreInv, undo: Undo) -> None:
        inv, signer_no = effect.inv, effect.signer_no
        place = (signer_no, inv.number)
        if place not in self.invs:
            insort(self.inv_numbers.setdefault(signer_no, []), inv.number)
        _put(self.invs, place, inv.data, undo)
        if effect.newest:
            _put(self.signers, signer_no, signer_record(signer_no, inv), undo)

    def take_back(self, undo: Undo) -> None:
        for table, key, old in reversed(undo):
            if old is not _ABSENT:
                if table is self.invs and key not in table:
                    insort(self.inv_numbers[key[0]], key[1])
                table[key] = old
                continue
            del table[key]
            if table is self.invs:
                signer_no, number = key
                numbers = self.inv_numbers[signer_no]
                del numbers[bisect_left(numbers, number)]


def _put(table: dict[Any, Any], key: object, value: object, undo: Undo) -> None:
    undo.append((table, key, table.get(key, _ABSENT)))
    table[key] = value


def _take_out(table: dict[Any, Any], key: object, item: object, undo: Undo) -> None:
    """One of the tuple that stands there."""
    left = tuple(one for one in table.get(key, ()) if one != item)
    if left:
        _put(table, key, left, undo)
    elif key in table:
        _drop(table, [key], undo)


def _overruling(held: PutOverruling | None) -> tuple[bytes, tuple[bytes, ...]] | None:
    return (held.document, held.seals) if held is not None and held.document else None


def _drop(table: dict[Any, Any], keys_gone: Sequence[object], undo: Undo) -> None:
    for key in keys_gone:
        undo.append((table, key, table.pop(key)))


class MemoryStore:
    """Invariant: the tables show the durable batches, then the unsynced ones; undoing the latter
    in reverse gives what a loss of power leaves."""

    def __init__(self, owner: Owner, *, recovering: bool = False) -> None:
        self.owner = owner
        self.full = False  # the disk takes nothing more
        self._recovering = recovering
        self._batches: list[Sequence[Kept]] = []
        self._unsynced: list[tuple[Sequence[Kept], Undo]] = []
        self._tables: _Tables | None = _Tables()

    def _open(self) -> _Tables:
        if self._tables is None:
            raise StoreClosed("memory")
        return self._tables

    # --- writing ----------------------------------------------------------------------------
    def commit(self, durable: Sequence[Kept]) -> None:
        self.write(durable)
        self.sync()

    def write(self, durable: Sequence[Kept]) -> None:
        """All of these in this order, or none; a crash before `sync` takes them back."""
        tables = self._open()
        if not durable:
            return
        if self.full:
            raise StoreFull("memory")
        undo: Undo = []
        try:
            for effect in durable:
                tables.apply(effect, undo)
        except BaseException:
            tables.take_back(undo)
            raise
        self._unsynced.append((tuple(durable), undo))

    def sync(self) -> None:
        self._open()
        self._batches.extend([batch for batch, _ in self._unsynced])
        self._unsynced.clear()

    def crash(self) -> "MemoryStore":
        """Power is lost: what the disk holds, as a new store. This one is closed."""
        tables = self._open()
        for _, undo in reversed(self._unsynced):
            tables.take_back(undo)
        survivor = MemoryStore(self.owner, recovering=self._recovering)
        survivor._batches, survivor._tables = self._batches, tables
        self.close()
        return survivor

    def image(self) -> Image:
        """What is durable now."""
        return Image(self.owner, self._recovering, self._batches, len(self._batches))

    @classmethod
    def from_image(cls, image: Image) -> "MemoryStore":
        store = cls(image.owner, recovering=image.recovering)
        for batch in image.batches[: image.length]:
            store.commit(batch)
        return store

    # --- the past -----------------------------------------------------------------------------
    def saved(self) -> Saved:
        tables = self._open()
        own = tables.own.get("own", PutOwnState(Journal(0), self._recovering))
        branches, signers = tables.branches, tables.signers
        return Saved(
            [branches[key].copy() for key in sorted(branches)],
            [_copy_of(signers[key]) for key in sorted(signers)],
            [tables.epochs[key] for key in sorted(tables.epochs)],
            [tables.proofs[key] for key in sorted(tables.proofs)],
            own.newest_journal,
            own.recovering,
            own.pruned_to,
            _overruling(tables.votes.get("PutOverruling")),
        )

    def saved_log(self) -> SavedLog:
        tables = self._open()
        vote, base = tables.votes.get("PutVote"), tables.votes.get("PutBase")
        chosen = tables.votes.get("PutChosen", PutChosen(NO_INDEX, ()))
        return SavedLog(
            Life(1),
            (self._recovering or "ForgetLog" in tables.votes) and vote is None,
            None if vote is None else vote.record,
            None if base is None else base.record,
            b"" if base is None else base.state,
            [tables.log[index] for index in sorted(tables.log)],
            chosen.index,
            chosen.certificate,
            dict(sorted(tables.confirmed.items())),
            dict(sorted(tables.lies.items())),
        )

    def meta(self, identity: EventId) -> EventMeta | None:
        stored = self._open().events.get(identity)
        return None if stored is None else stored.meta

    def meta_by_prefix(self, prefix: bytes) -> EventMeta | None:
        tables = self._open()
        ids = tables.prefixes.get(prefix)
        return None if ids is None else tables.events[ids[0]].meta

    def ids_between(self, first: bytes, last: bytes, limit: int) -> list[EventId]:
        prefixes = self._open().prefixes
        within = sorted(prefix for prefix in prefixes if first <= prefix <= last)
        return [identity for prefix in within for identity in sorted(prefixes[prefix])][:limit]

    def id_at(self, slot: Slot) -> EventId | None:
        return self._open().slots.get(slot)

    def event(self, identity: EventId) -> SignedEvent | None:
        stored = self._open().events.get(identity)
        return None if stored is None else stored.event

    def run(self, first: Slot, last: Seq, bytes_max: int) -> list[Held]:
        tables = self._open()
        found: list[Held] = []
        for number in range(first.seq, last + 1):
            identity = tables.slots.get(first._replace(seq=Seq(number)))
            if identity is None or bytes_max < 0:
                break
            event, meta = tables.events[identity].event, tables.events[identity].meta
            size = event.size
            found.append(Held(meta.branch, meta.seq, identity, meta.hlc, size, bytes_of(event)))
            bytes_max -= size
        return found

    def metas_from(self, first: Slot, last: Seq, count_max: int) -> list[EventMeta]:
        tables = self._open()
        found: list[EventMeta] = []
        for number in range(first.seq, min(last, first.seq + count_max - 1) + 1):
            identity = tables.slots.get(first._replace(seq=Seq(number)))
            if identity is None:
                break
            found.append(tables.events[identity].meta)
        return found

    def entry(self, identity: EventId, index: int) -> bytes | None:
        stored = self._open().events.get(identity)
        if stored is None:
            return None
        entries = _bodies.decode(stored.event.body)
        return entries[index] if 0 <= index < len(entries) else None

    def entries(
        self, identity: EventId, first: int, count: int
    ) -> tuple[EventMeta, list[bytes]] | None:
        stored = self._open().events.get(identity)
        if stored is None:
            return None
        return stored.meta, _bodies.decode(stored.event.body)[first : first + count]

    def find_key(self, submitter: str | None, stream: str, key: str) -> list[tuple[EventId, int]]:
        tables = self._open()
        places = tables.scopes.get(keyed.scope_hash(submitter, stream, key), ())
        return [(tables.slots[slot], index) for slot, index in sorted(places)]

    def children(self, identity: EventId) -> list[EventId]:
        tables = self._open()
        stored = tables.events.get(identity)
        if stored is None:
            return []
        author_no, journal, seq, _ = stored.meta.slot
        slots = [
            slot
            for slot in tables.above.get(identity, ())
            if slot[:3] == (author_no, journal, seq + 1)
        ]
        slots.extend(tables.edges.get(identity, ()))
        return [tables.slots[slot] for slot in sorted(slots)]

    def inv(self, signer_no: NodeNo, number: InvNumber) -> bytes | None:
        return self._open().invs.get((signer_no, number))

    def epoch_document(self, number: EpochNo) -> tuple[bytes, tuple[bytes, ...]] | None:
        return self._open().epochs.get(number)

    def invs_from(self, signer_no: NodeNo, number: InvNumber) -> Iterator[bytes]:
        tables = self._open()
        numbers = tables.inv_numbers.get(signer_no, [])
        return iter([tables.invs[signer_no, n] for n in numbers[bisect_left(numbers, number) :]])

    def feed(self, after: int, limit: int) -> list[tuple[int, EventId]]:
        feed = self._open().feed
        first = max(after + 1, min(feed, default=1), 1)
        last = min(max(feed, default=0), first + limit - 1)
        found = [(number, feed[number]) for number in range(first, last + 1)]
        return [row for row in found if row[1] != NOBODY]

    def was_pruned(self, identity: EventId) -> bool:
        return identity in self._open().gone

    def stats(self) -> StoreStats:
        tables = self._open()
        feed_end = max(tables.feed, default=0) + 1
        size = sum(stored.event.size for stored in tables.events.values())
        return StoreStats(
            len(tables.events),
            max(tables.feed, default=0),
            len(tables.invs),
            len(tables.branches),
            len(tables.proofs),
            len(tables.epochs),
            len(tables.log),
            size,
            size,
            size,
            min((no for no, one in tables.feed.items() if one != NOBODY), default=feed_end),
            len(tables.gone),
            size,
        )

    def forget_dead_readers(self) -> None:
        pass

    def close(self) -> None:
        self._tables = None
        self._unsynced = []


def _copy_of(record: SignerRecord) -> SignerRecord:
    return SignerRecord(record.signer_no, record.number, record.inv_id, record.epoch, record.sealed)
