"""The core with its store, its view, the log and the epochs: what a failed commit discards."""

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby

from quipu.ledger.core import Core, CoreConfig
from quipu.ledger.epochs import cluster_id_of, decode_genesis
from quipu.ledger.limits import SERIALIZERS_MAX
from quipu.ledger.signing import KeyPair, Verifier, verify
from quipu.ledger.words import NOT_A_MEMBER, BranchKey, EventId, NodeNo, Now, Seq, Slot
from quipu.node.committed_model import CommittedModel
from quipu.node.ordering import Ordering, OrderingSettings
from quipu.node.rostering import Rostering
from quipu.node.service import Mark
from quipu.node.view import View
from quipu.storage.store import Owner, Store

OpenStore = Callable[[Owner], Store]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the machine takes from outside; tests give their own."""

    key: KeyPair
    genesis: bytes
    open_store: OpenStore
    clock: Callable[[], Now]
    entropy: Callable[[], int]  # fresh random bits, for each core its own
    verify: Verifier = verify

    @property
    def owner(self) -> Owner:
        return Owner(cluster_id_of(self.genesis), self.key.node_id)


@dataclass(slots=True)
class Machine:
    """Invariant: between two turns core, view and log rest on the same commit."""

    surroundings: Surroundings
    store: Store
    core: Core
    view: View
    ordering: Ordering

    @classmethod
    def open(cls, surroundings: Surroundings) -> "Machine":
        """Raises StoreError."""
        store = surroundings.open_store(surroundings.owner)
        try:
            return cls(surroundings, store, *_built(surroundings, store))
        except BaseException:
            store.close()
            raise

    def rebuild(self, reopen: bool) -> None:
        """After a commit that failed: on from what is durable, in a new journal. With `reopen`
        nobody knows what that is before the store is opened anew. Raises StoreError."""
        if reopen:
            self.store.close()
            self.store = self.surroundings.open_store(self.surroundings.owner)
        times, is_awaited = self.view.times, self.ordering.is_awaited
        parts = _built(self.surroundings, self.store)
        self.core, self.view, self.ordering = parts
        self.view.times, self.ordering.is_awaited = times, is_awaited

    def roster_changed(self) -> None:
        """Of the newest epoch: who had no number may have one, and then a log."""
        surroundings, ordering = self.surroundings, self.ordering
        number = self.view.epochs.node_numbers.get(surroundings.key.node_id, NOT_A_MEMBER)
        if number == ordering.own_no and not ordering.is_forgotten:
            return
        model, now = CommittedModel(self.store, self.view), surroundings.clock()
        self.ordering = _ordering(surroundings, model, self.core, now)
        self.ordering.is_awaited = ordering.is_awaited
        self.ordering.core_recovers = ordering.core_recovers

    @property
    def cluster_name(self) -> str:
        return decode_genesis(self.surroundings.genesis).name

    def unread(self, limit: int, after: Mark | None = None) -> list[EventId]:
        """Held and not Read, by cord, seq and id: branches of one cord are merged."""
        found: list[EventId] = []
        for cord, keys in groupby(sorted(self.view.unread), lambda key: key.cord):
            if after is not None and cord < after.cord:
                continue
            first = after.seq if after is not None and cord == after.cord else Seq(0)
            for mark in heapq.merge(*(self._unread_of(key, first) for key in keys)):
                if len(found) >= limit:
                    return found
                if after is None or mark > after:
                    found.append(mark.id)
        return found

    def _unread_of(self, key: BranchKey, first: Seq) -> Iterator[Mark]:
        record = self.view.branches[key]
        lowest = max(record.read_seq + 1, record.base_seq + 1, first)
        for number in range(lowest, record.held_seq + 1):
            seq = Seq(number)
            identity = self.store.id_at(Slot(*key.cord, seq, key.number))
            assert identity is not None
            yield Mark(key.cord, seq, identity)

    def leaves(self) -> list[EventId]:
        """Of the Model, oldest first."""
        metas = (self.store.meta(identity) for identity in self.view.leaves.values())
        known = [(meta.hlc, meta.id) for meta in metas if meta is not None]
        return [identity for _, identity in sorted(known)]

    def close(self) -> None:
        self.store.close()


def _built(surroundings: Surroundings, store: Store) -> tuple[Core, View, Ordering]:
    now, saved = surroundings.clock(), store.saved()
    stats = store.stats()
    view = View.of(surroundings.genesis, saved, stats.feed, stats.feed_first)
    config = CoreConfig(
        surroundings.key,
        surroundings.genesis,
        surroundings.entropy(),
        verify=surroundings.verify,
    )
    core = Core(config, saved, store, now)
    ordering = _ordering(surroundings, CommittedModel(store, view), core, now)
    ordering.core_recovers = saved.recovering
    return core, view, ordering


def _ordering(surroundings: Surroundings, model: CommittedModel, core: Core, now: Now) -> Ordering:
    founders = len(decode_genesis(surroundings.genesis).members)
    settings = OrderingSettings(
        surroundings.owner.cluster_id,
        surroundings.key,
        tuple(map(NodeNo, range(1, min(founders, SERIALIZERS_MAX) + 1))),
        surroundings.verify,
        surroundings.entropy,
    )
    return Ordering.of(settings, model, Rostering.of(core), now)
