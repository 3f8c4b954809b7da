"""What every store does with the log, held on both against the plain dicts of the simulation."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from quipu.ledger.canonical import encode
from quipu.ledger.effects import PutOverruling
from quipu.ledger.log.effects import (
    DropLogFrom,
    ForgetLog,
    LogDurable,
    PutBase,
    PutChosen,
    PutConfirmed,
    PutLie,
    PutVote,
    StoreLogEntry,
)
from quipu.ledger.log.entry import encode_log_entry
from quipu.ledger.log.evidence import prove
from quipu.ledger.log.state import SavedLog
from quipu.ledger.log.statements import sign_accepted
from quipu.ledger.log.suffix import Base
from quipu.ledger.log.words import Index, Life, Place, Regime
from quipu.ledger.words import EpochNo, NodeNo
from quipu.storage.lmdb_store import open_store
from quipu.storage.memory_store import MemoryStore
from quipu.storage.store import SlotTaken, Store
from tests.made_events import MadeCluster, entry_of
from tests.simulation.keys import key_pair
from tests.simulation.log.disk import LogDisk

Restart = Callable[[], Store]
STEPS = 150


def entry_at(index: int, text: bytes = b"item") -> StoreLogEntry:
    data = encode_log_entry(Place(Regime(1), Index(index)), NodeNo(1), [text])
    return StoreLogEntry(Index(index), data)


def proven_lie() -> PutLie:
    """Two digests for one place, both signed by n3."""
    place, key = Place(Regime(1), Index(1)), key_pair("n3")
    first, second = (
        sign_accepted(key, bytes(32), EpochNo(1), NodeNo(3), (place, digest * 32))
        for digest in (b"a", b"b")
    )
    return PutLie(NodeNo(3), prove(first, second))


LIE = proven_lie()


def base_at(index: int) -> bytes:
    return encode(Base(index, bytes(32), 1, [1, 2, 3], None, None, []))


@pytest.fixture(params=["lmdb", "memory"])
def restart(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Restart]:
    """A store of one kind; called again, the same one after a loss of power."""
    owner = MadeCluster().owner()
    held: list[Store] = []

    def started() -> Store:
        before = held.pop() if held else MemoryStore(owner)
        if isinstance(before, MemoryStore) and request.param == "memory":
            held.append(before.crash())
        else:
            before.close()
            held.append(open_store(tmp_path / "store", owner))
        return held[0]

    yield started
    held[0].close()


def test_a_log_that_is_forgotten_is_that_of_a_lost_disk(restart: Restart) -> None:
    store = restart()
    store.commit([entry_at(1), entry_at(2), PutVote(b"vote"), PutChosen(Index(1), (b"proof",))])
    store.commit([PutConfirmed(Index(1), (b"both",)), PutBase(base_at(1), b"state")])
    store.commit([LIE])
    store.commit([ForgetLog()])
    for saved in (store.saved_log(), restart().saved_log()):
        assert saved.recovering
        assert (saved.vote, saved.base, saved.state) == (None, None, b"")
        assert (saved.entries, saved.chosen, saved.confirmed) == ([], 0, {})
        assert saved.lies == {LIE.culprit: LIE.proof}  # what was proven stays so
    store = restart()
    store.commit([PutVote(b"another")])
    assert not restart().saved_log().recovering


def test_a_forced_epoch_that_left_the_node_out_is_kept(restart: Restart) -> None:
    store = restart()
    assert store.saved().overruling is None
    store.commit([PutOverruling(b"document", (b"seal",))])
    assert restart().saved().overruling == (b"document", (b"seal",))
    store = restart()
    store.commit([PutOverruling(b"", ())])
    assert restart().saved().overruling is None


class Author:
    """Writes a log as the machine does, at random, and keeps what a disk must give back."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.disk = LogDisk(Life(1), recovering=False)
        self.last = self.chosen = self.base = 0

    def batch(self) -> list[LogDurable]:
        made = [self.random.choice(self._possible())() for _ in range(self.random.randint(1, 4))]
        effects = [effect for some in made for effect in some]
        self.disk.write(effects)
        self.disk.sync()
        return effects

    def _possible(self) -> list[Callable[[], list[LogDurable]]]:
        return [self._append, self._append, self._drop, self._choose, self._vote, self._compact]

    def _append(self) -> list[LogDurable]:
        self.last += 1
        return [entry_at(self.last, self.random.randbytes(self.random.choice((3, 5_000))))]

    def _drop(self) -> list[LogDurable]:
        first = self.random.randint(self.chosen + 1, self.last + 1)
        self.last = first - 1
        return [DropLogFrom(Index(first))]

    def _choose(self) -> list[LogDurable]:
        self.chosen = self.random.randint(self.chosen, self.last)
        proof = (self.random.randbytes(8), b"two")
        found: list[LogDurable] = [PutChosen(Index(self.chosen), proof)]
        if self.chosen > self.base and self.random.random() < 0.3:
            found.append(PutConfirmed(Index(self.chosen), proof))
            found.append(LIE)
        return found

    def _vote(self) -> list[LogDurable]:
        return [PutVote(self.random.randbytes(60))]

    def _compact(self) -> list[LogDurable]:
        self.base = self.random.randint(self.base, self.chosen)
        state = self.random.randbytes(self.random.choice((0, 10, 9_000)))
        return [PutBase(base_at(self.base), state)]


@pytest.mark.parametrize("seed", range(4))
def test_log_comes_back_as_it_was_ordered(restart: Restart, seed: int) -> None:
    author, store = Author(seed), restart()
    for step in range(STEPS):
        store.commit(author.batch())
        assert store.saved_log() == author.disk.saved()
        assert store.stats().log == author.last - author.base
        if step % 20 == 0:
            store = restart()
            assert store.saved_log() == author.disk.saved()


def test_new_store_has_an_empty_log(restart: Restart) -> None:
    assert restart().saved_log() == SavedLog(Life(1))


def test_log_and_ledger_are_one_transaction(restart: Restart) -> None:
    store, cluster = restart(), MadeCluster()
    written = cluster.write(1)
    store.commit([written, entry_at(1), PutVote(b"vote")])
    store = restart()
    assert store.event(written.event.id) == written.event
    assert store.saved_log().entries == [entry_at(1).data]
    other = MadeCluster().write(1, (), [entry_of("other")])  # in a slot that is taken
    with pytest.raises(SlotTaken):
        store.commit([entry_at(2), DropLogFrom(Index(1)), PutVote(b"b"), other])
    assert store.saved_log().entries == [entry_at(1).data]
    assert store.saved_log().vote == b"vote"
