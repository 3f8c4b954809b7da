"""A member alone makes its own checkpoints, so that every journal gets receipts."""

import dataclasses

from quipu.ledger import limits
from quipu.ledger.bundle import check_bundle
from quipu.ledger.bundle_build import Lineage, build_bundle
from quipu.ledger.checkpoint import Checkpoint, Standing
from quipu.ledger.core import Core, CoreConfig
from quipu.ledger.effects import Effects, EventsRead, StoreEpoch
from quipu.ledger.epochs import cluster_id_of, decode_document
from quipu.ledger.inputs import EntriesSubmitted, EpochClosed, EpochOpened, Input
from quipu.ledger.signing import verify
from quipu.ledger.words import Now, Ticket
from quipu.storage.memory_store import MemoryStore
from quipu.storage.store import Owner
from tests.small_ledger import START_MS, SmallLedger, entry_bytes, key_of


class Alone:
    """A node of a roster of one, turn by turn; `restart` loses all that is not in its store."""

    def __init__(self) -> None:
        self.genesis = SmallLedger(1).genesis
        self.key = key_of("n1")
        self.store = MemoryStore(Owner(cluster_id_of(self.genesis), self.key.node_id))
        self.now = Now(START_MS, 1_000)
        self.starts = 0
        self.restart()

    def restart(self) -> None:
        self.starts += 1
        saved = self.store.saved()
        config = CoreConfig(self.key, self.genesis, entropy=self.starts)
        self.core = Core(config, saved, self.store, self.now)
        documents = [document for document, _ in saved.epochs]
        standing = Standing.of(self.genesis, documents)
        self.checkpoint = Checkpoint(self.key.node_id, standing, self.store)
        self.checkpoint.resume(saved, self.now)

    def turn(self, *given: Input) -> Effects:
        self.now = Now(self.now.wall_ms + 10, self.now.monotonic_ms + 10)
        proposed = self.checkpoint.propose(self.now)
        effects = self.core.step([*given, *([proposed] if proposed else [])], self.now)
        self.store.commit(effects.durable)
        self.checkpoint.committed(effects.durable, self.now)
        return effects

    def write(self, text: str) -> None:
        self.turn(EntriesSubmitted(Ticket(0), (entry_bytes(text),)))

    def wait_ms(self, ms: int) -> None:
        self.now = Now(self.now.wall_ms + ms, self.now.monotonic_ms + ms)

    def settle(self) -> None:
        for _ in range(10):
            self.turn()

    @property
    def unread(self) -> int:
        return sum(record.held_seq - record.read_seq for record in self.store.saved().branches)

    @property
    def epochs(self) -> int:
        return 1 + len(self.store.saved().epochs)


def test_a_hundred_starts_with_writes_all_become_read() -> None:
    n1 = Alone()
    for number in range(100):
        n1.write(f"{number}")
        n1.settle()
        n1.restart()
    n1.settle()
    assert n1.unread == 0
    assert len(n1.store.feed(0, 1_000)) == 100
    assert n1.epochs > 100 // limits.JOURNALS_SIGNED_MAX


def test_a_hundred_starts_that_crash_after_one_turn_all_become_read() -> None:
    n1 = Alone()
    for number in range(100):
        n1.write(f"{number}")
        n1.restart()
    n1.settle()
    assert n1.unread == 0


def test_every_proof_holds_whatever_epoch_it_is_of() -> None:
    n1 = Alone()
    for number in range(20):
        n1.write(f"{number}")
        n1.settle()
        n1.restart()
    lineage = Lineage.of(n1.genesis, n1.store.saved().epochs)
    for _, identity in n1.store.feed(0, 100):
        finality = check_bundle(build_bundle(n1.store, lineage, identity, 0), verify)
        assert finality.event == identity


def test_nothing_new_is_no_reason_for_a_checkpoint() -> None:
    n1 = Alone()
    n1.write("one")
    n1.settle()
    assert n1.epochs == 1
    n1.wait_ms(limits.CHECKPOINT_INTERVAL_MS)
    n1.settle()
    assert n1.epochs == 2
    n1.wait_ms(limits.CHECKPOINT_INTERVAL_MS)
    n1.settle()
    assert n1.epochs == 2
    assert n1.checkpoint.next_deadline() is None


def test_one_is_due_after_so_many_events() -> None:
    n1 = Alone()
    n1.write("one")
    n1.checkpoint.events = limits.CHECKPOINT_EVENTS
    n1.settle()
    assert n1.epochs == 2
    assert n1.checkpoint.events == 0


def test_it_waits_for_the_interval_alone() -> None:
    n1 = Alone()
    n1.write("one")
    deadline_ms = n1.checkpoint.next_deadline()
    assert deadline_ms is not None
    assert deadline_ms - n1.now.monotonic_ms == limits.CHECKPOINT_INTERVAL_MS
    assert n1.checkpoint.propose(Now(0, deadline_ms - 1)) is None
    assert isinstance(n1.checkpoint.propose(Now(0, deadline_ms)), EpochClosed)
    assert n1.checkpoint.propose(Now(0, deadline_ms)) is None, "asked once, then given time"
    later = Now(0, deadline_ms + limits.CHECKPOINT_RETRY_MS)
    assert isinstance(n1.checkpoint.propose(later), EpochClosed)


def test_a_crash_between_seal_and_open_is_made_good_by_the_next_start() -> None:
    n1 = Alone()
    n1.write("one")
    n1.settle()
    n1.wait_ms(limits.CHECKPOINT_INTERVAL_MS)
    n1.turn()
    assert n1.checkpoint.seal is not None
    assert n1.epochs == 1
    n1.restart()
    assert n1.checkpoint.seal is not None
    assert isinstance(n1.checkpoint.propose(n1.now), EpochOpened)
    n1.restart()
    n1.write("two")
    n1.settle()
    assert (n1.epochs, n1.unread) == (2, 0)


def test_a_cut_lists_only_what_rose() -> None:
    n1 = Alone()
    n1.write("one")
    n1.wait_ms(limits.CHECKPOINT_INTERVAL_MS)
    n1.settle()
    n1.restart()
    n1.write("two")
    n1.wait_ms(limits.CHECKPOINT_INTERVAL_MS)
    n1.settle()
    documents = [decode_document(data) for data, _ in n1.store.saved().epochs]
    assert [len(document.cut) for document in documents] == [1, 1]
    assert documents[0].cut[0].journal < documents[1].cut[0].journal
    assert documents[0].cut_hlc < documents[1].cut_hlc


def test_a_roster_of_several_leaves_it_to_the_log() -> None:
    ledger = SmallLedger(3)
    standing = Standing.of(ledger.genesis, [])
    checkpoint = Checkpoint(key_of("n1").node_id, standing, ledger, events=10**6)
    assert checkpoint.propose(Now(START_MS, 0)) is None
    assert checkpoint.next_deadline() is None


def test_the_epoch_that_opens_takes_the_place_of_the_one_before() -> None:
    n1 = Alone()
    n1.write("one")
    n1.settle()
    n1.wait_ms(limits.CHECKPOINT_INTERVAL_MS)
    seen = [effect for _ in range(5) for effect in n1.turn().durable]
    (opened,) = [effect for effect in seen if isinstance(effect, StoreEpoch)]
    assert opened.number == n1.core.epochs.newest.number == n1.checkpoint.standing.number == 2
    assert dataclasses.asdict(n1.core.epochs.newest)["members"] == {1: n1.key.node_id}
    n1.write("two")
    read = [e for _ in range(5) for e in n1.turn().spoken if isinstance(e, EventsRead)]
    assert n1.unread == 0 or read
