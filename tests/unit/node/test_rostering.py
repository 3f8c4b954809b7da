"""A member alone makes its checkpoints over its log, so that every journal gets receipts."""

from quipu.ledger import limits
from quipu.ledger.bundle import check_bundle
from quipu.ledger.bundle_build import build_bundle
from quipu.ledger.effects import Effects
from quipu.ledger.inputs import EntriesSubmitted, Input
from quipu.ledger.signing import verify
from quipu.ledger.words import Now, Ticket
from quipu.node.machine import Machine, Surroundings
from quipu.storage.memory_store import MemoryStore
from quipu.storage.store import Owner
from tests.small_ledger import START_MS, SmallLedger, entry_bytes, key_of


class Alone:
    """A node of a roster of one, turn by turn; `restart` loses all that is not in its store."""

    def __init__(self) -> None:
        self.now = Now(START_MS, 1_000)
        self.starts = 0
        genesis = SmallLedger(1).genesis
        self.stores: dict[Owner, MemoryStore] = {}
        self.surroundings = Surroundings(
            key_of("n1"),
            genesis,
            lambda owner: self.stores.setdefault(owner, MemoryStore(owner)),
            lambda: self.now,
            lambda: self.starts,
        )
        self.restart()

    def restart(self) -> None:
        self.starts += 1
        self.machine = Machine.open(self.surroundings)

    def turn(self, *given: Input) -> Effects:
        self.now = Now(self.now.wall_ms + 10, self.now.monotonic_ms + 10)
        machine = self.machine
        told, logged = machine.ordering.look_at_epochs(self.now)
        effects = machine.core.step([*given, *told], self.now)
        log = machine.ordering.step(logged, effects.durable, self.now)
        machine.store.commit([*effects.durable, *log.durable])
        machine.view.committed(effects.durable, self.now.wall_ms)
        machine.ordering.committed(effects.durable, log)
        return effects

    def write(self, text: str) -> None:
        self.turn(EntriesSubmitted(Ticket(0), (entry_bytes(text),)))

    def wait_ms(self, ms: int) -> None:
        self.now = Now(self.now.wall_ms + ms, self.now.monotonic_ms + ms)

    def settle(self) -> None:
        """Turn after turn, as long as one is asked for soon."""
        for _ in range(20):
            self.turn()

    @property
    def unread(self) -> int:
        return self.machine.view.unread_count()

    @property
    def epoch(self) -> int:
        return self.machine.view.epoch.number


def test_many_starts_with_writes_all_become_read() -> None:
    n1 = Alone()
    for number in range(40):
        n1.write(f"{number}")
        n1.settle()
        n1.restart()
    n1.settle()
    assert n1.unread == 0
    assert len(n1.machine.store.feed(0, 1_000)) == 40
    assert n1.epoch > 40 // limits.JOURNALS_SIGNED_MAX


def test_many_starts_that_crash_after_one_turn_all_become_read() -> None:
    n1 = Alone()
    for number in range(40):
        n1.write(f"{number}")
        n1.restart()
    for _ in range(4):
        n1.settle()
        n1.wait_ms(limits.CHECKPOINT_GAP_MS)
    assert n1.unread == 0


def test_every_proof_holds_whatever_epoch_it_is_of() -> None:
    n1 = Alone()
    for number in range(20):
        n1.write(f"{number}")
        n1.settle()
        n1.restart()
    assert n1.epoch > 1
    for _, identity in n1.machine.store.feed(0, 100):
        data = build_bundle(n1.machine.store, n1.machine.view.lineage, identity, 0)
        assert check_bundle(data, verify).event == identity


def test_nothing_new_is_no_reason_for_a_checkpoint() -> None:
    n1 = Alone()
    n1.settle()
    for _ in range(3):
        n1.wait_ms(limits.CHECKPOINT_INTERVAL_MS)
        n1.settle()
    assert n1.epoch == 1


def test_what_is_new_is_in_a_checkpoint_after_ten_minutes_and_not_before() -> None:
    n1 = Alone()
    n1.write("one")
    n1.settle()
    n1.wait_ms(limits.CHECKPOINT_INTERVAL_MS // 2)
    n1.settle()
    assert n1.epoch == 1
    n1.wait_ms(limits.CHECKPOINT_INTERVAL_MS // 2)
    n1.settle()
    n1.settle()
    assert n1.epoch == 2
    n1.wait_ms(limits.CHECKPOINT_INTERVAL_MS)
    n1.settle()
    assert n1.epoch == 2, "nothing is new"


def test_what_goes_on_being_new_makes_one_checkpoint_in_ten_minutes() -> None:
    n1 = Alone()
    for number in range(100):
        n1.write(f"{number}")
        n1.settle()
        n1.wait_ms(limits.CHECKPOINT_INTERVAL_MS // 20)
    assert 5 <= n1.epoch <= 6


def test_who_asks_while_a_new_branch_is_committed_is_answered() -> None:
    n1 = Alone()
    ordering = n1.machine.ordering
    effects = n1.machine.core.step([EntriesSubmitted(Ticket(0), (entry_bytes("new"),))], n1.now)
    ordering.step([], effects.durable, n1.now)
    assert ordering.events_behind() == 1


def test_a_base_of_the_log_carries_the_roster() -> None:
    n1 = Alone()
    for number in range(20):
        n1.write(f"{number}")
        n1.settle()
        n1.restart()
    ordering = n1.machine.ordering
    record = ordering.rostering.record(ordering.journal.applied)
    before = ordering.rostering.book.state
    ordering.rostering.rebased(ordering.journal.applied, record)
    after = ordering.rostering.book.state
    assert (after.standing, after.numbers) == (before.standing, before.numbers)
    assert after.standing.number == n1.epoch > 1
