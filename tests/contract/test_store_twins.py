"""LMDB against its twin: whatever is committed, in whatever order, both show the same."""

import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from quipu.ledger.effects import AppendFeed, Durable, PutOwnState, StoreEpoch, StoreEvent
from quipu.ledger.event import EventMeta
from quipu.ledger.words import EpochNo, EventId, InvNumber, Journal, NodeNo, Seq
from quipu.storage import keys
from quipu.storage.lmdb_store import LmdbStore, open_store
from quipu.storage.memory_store import MemoryStore
from quipu.storage.store import SlotTaken, Store
from tests.made_events import MadeCluster, branch_of, entry_of, slot

AUTHORS = st.integers(1, 3)
JOURNALS = st.integers(1, 2)
BRANCHES = st.integers(0, 2)
NUMBERS = st.integers(1, 12)
PREFIX_BYTES = 1  # so that a few dozen events collide


class Twins(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        self.cluster = MadeCluster()
        self.path = Path(tempfile.mkdtemp(prefix="twins-"))
        self.lmdb: LmdbStore = open_store(
            self.path / "store", self.cluster.owner(), map_bytes=1 << 20
        )
        self.memory = MemoryStore(self.cluster.owner())
        self.batch: list[Durable] = []
        self.metas: list[EventMeta] = []
        self.stored: list[StoreEvent] = []

    def teardown(self) -> None:
        self.lmdb.close()
        shutil.rmtree(self.path)

    def _add(self, written: StoreEvent) -> None:
        self.batch.append(written)
        self.stored.append(written)
        self.metas.append(written.meta)

    @rule(author=AUTHORS, journal=JOURNALS, branch=BRANCHES, data=st.data())
    def write_event(self, author: int, journal: int, branch: int, data: st.DataObject) -> None:
        others = [meta for meta in self.metas if meta.slot[:2] != (author, journal)]
        parents = []
        if others:
            parents = data.draw(st.lists(st.sampled_from(others), max_size=3, unique=True))
        sizes = data.draw(st.lists(st.integers(0, 400), min_size=1, max_size=4))
        entries = [entry_of(f"{len(self.metas)}" + "x" * size) for size in sizes]
        self._add(self.cluster.write(author, parents, entries, journal=journal, branch=branch))

    @precondition(lambda self: self.stored)
    @rule(data=st.data(), branch=BRANCHES)
    def fork(self, data: st.DataObject, branch: int) -> None:
        """Sometimes onto a slot that is taken: then the whole batch is refused by both."""
        below = data.draw(st.sampled_from(self.stored)).meta
        head = self.cluster.head(below.slot.author_no, below.slot.journal, branch)
        forked = self.cluster.fork(below, below.slot.author_no, branch, f"fork {len(self.metas)}")
        self._add(forked)
        if head is not None and head.seq >= forked.meta.seq:
            self._commit_refused()

    def _commit_refused(self) -> None:
        outcomes = []
        for store in (self.lmdb, self.memory):
            try:
                store.commit(self.batch)
                outcomes.append("taken")
            except SlotTaken:
                outcomes.append("refused")
        assert outcomes[0] == outcomes[1]
        self.batch = []

    @precondition(lambda self: self.stored)
    @rule(data=st.data())
    def feed(self, data: st.DataObject) -> None:
        chosen = data.draw(st.lists(st.sampled_from(self.stored), max_size=5))
        self.batch.append(AppendFeed(tuple(written.event.id for written in chosen)))

    @precondition(lambda self: self.stored)
    @rule(data=st.data())
    def put_again_or_record(self, data: st.DataObject) -> None:
        chosen = data.draw(st.sampled_from(self.stored))
        effects: list[Durable] = [
            chosen,
            branch_of(chosen.meta, moved_ms=len(self.batch), leaf=True),
            branch_of(chosen.meta, receipts={NodeNo(3): (Seq(1), InvNumber(2))}),
        ]
        self.batch.append(data.draw(st.sampled_from(effects)))

    @precondition(lambda self: self.metas)
    @rule(signer=AUTHORS, number=NUMBERS, newest=st.booleans(), data=st.data())
    def store_inv(self, signer: int, number: int, newest: bool, data: st.DataObject) -> None:
        head = data.draw(st.sampled_from(self.metas))
        self.batch.append(self.cluster.inv(signer, number, [head], newest=newest))

    @rule(number=NUMBERS, recovering=st.booleans())
    def store_state(self, number: int, recovering: bool) -> None:
        self.batch.append(PutOwnState(Journal(number), recovering))
        self.batch.append(StoreEpoch(EpochNo(number), b"%d" % len(self.metas), (b"seal",)))

    @rule()
    def commit(self) -> None:
        self._commit_refused()

    @rule()
    def restart(self) -> None:
        self.batch = []
        self.lmdb.close()
        self.lmdb = open_store(self.path / "store", self.cluster.owner(), map_bytes=1 << 20)
        self.memory = self.memory.crash()

    @invariant()
    def shows_the_same(self) -> None:
        if hasattr(self, "memory"):
            assert self._shown(self.lmdb) == self._shown(self.memory)

    def _shown(self, store: Store) -> list[object]:
        shown: list[object] = [store.saved(), store.feed(0, 1000), store.stats()[:6]]
        for written in self.stored:
            identity = written.event.id
            shown += [store.meta(identity), store.event(identity), store.children(identity)]
            shown += [store.entry(identity, 0), store.entry(identity, 2)]
            shown.append(store.id_at(written.meta.slot))
        shown += [store.meta_by_prefix(bytes([first])) for first in range(256)]
        shown += [store.id_at(slot(1, seq, branch=2)) for seq in range(1, 6)]
        shown += [list(store.invs_from(NodeNo(no), InvNumber(4))) for no in (1, 2, 3)]
        shown.append(store.meta(EventId(bytes(32))))
        return shown


def test_twins_agree() -> None:
    width = keys.PREFIX_BYTES
    keys.PREFIX_BYTES = PREFIX_BYTES
    try:
        run_state_machine_as_test(
            Twins,
            settings=settings(
                max_examples=60,
                stateful_step_count=40,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
    finally:
        keys.PREFIX_BYTES = width
