"""What the twin in memory can do beside the contract: lose power, be rolled back, be cloned."""

import pytest

from quipu.ledger.effects import AppendFeed, PutOwnState, StoreEpoch
from quipu.ledger.words import EpochNo, InvNumber, Journal, NodeNo, Seq
from quipu.storage.memory_store import MemoryStore
from quipu.storage.store import SlotTaken, StoreClosed, StoreFull
from tests.made_events import MadeCluster, branch_of, lived_through


@pytest.fixture
def cluster() -> MadeCluster:
    return MadeCluster()


@pytest.fixture
def store(cluster: MadeCluster) -> MemoryStore:
    return MemoryStore(cluster.owner())


def everything(store: MemoryStore, cluster: MadeCluster) -> list[object]:
    shown: list[object] = [store.saved(), store.feed(0, 10_000), store.stats()]
    for identity in cluster.metas:
        shown += [store.event(identity), store.meta_by_prefix(identity[:16])]
        shown.append(store.children(identity))
    shown += [list(store.invs_from(NodeNo(no), InvNumber(0))) for no in (1, 2, 3)]
    return shown


def test_unsynced_writes_are_seen_and_lost_with_the_power(
    store: MemoryStore, cluster: MadeCluster
) -> None:
    first, second, third = cluster.write(1), cluster.write(2), cluster.write(1)
    store.commit([first, branch_of(first.meta), cluster.inv(1, 5, [first.meta])])
    before = everything(store, cluster)
    store.write(
        [
            second,
            AppendFeed((first.event.id, second.event.id)),
            branch_of(first.meta, read_seq=Seq(1)),
            branch_of(second.meta),
            cluster.inv(1, 3, [first.meta], newest=False),
            cluster.inv(1, 6, [first.meta]),
            cluster.inv(1, 5, [second.meta]),
            StoreEpoch(EpochNo(2), b"document", ()),
            PutOwnState(Journal(9), True),
        ]
    )
    store.write([third, AppendFeed((third.event.id,))])
    assert store.event(second.event.id) == second.event
    assert len(store.feed(0, 10)) == 3
    survivor = store.crash()
    assert everything(survivor, cluster) == before


def test_synced_writes_survive(store: MemoryStore, cluster: MadeCluster) -> None:
    first, second, third = cluster.write(1), cluster.write(2), cluster.write(1)
    store.write([first])
    store.write([second])
    store.sync()
    store.write([third])
    survivor = store.crash()
    assert [survivor.event(one.event.id) for one in (first, second, third)] == [
        first.event,
        second.event,
        None,
    ]
    survivor.commit([third])
    assert survivor.crash().event(third.event.id) == third.event


def test_crashed_store_is_gone(store: MemoryStore, cluster: MadeCluster) -> None:
    first = cluster.write(1)
    store.commit([first])
    survivor = store.crash()
    for call in (lambda: store.commit([]), store.sync, store.crash, store.saved):
        with pytest.raises(StoreClosed):
            call()
    assert survivor.event(first.event.id) == first.event


def test_refused_batch_leaves_nothing_to_sync(store: MemoryStore, cluster: MadeCluster) -> None:
    first = cluster.write(1)
    rival = cluster.fork(None, 1, 0, "rival")
    store.commit([first])
    before = everything(store, cluster)
    with pytest.raises(SlotTaken):
        store.write([AppendFeed((first.event.id,)), cluster.inv(2, 2, [first.meta]), rival])
    assert everything(store, cluster) == before
    store.sync()
    assert everything(store.crash(), cluster) == before


def test_rolled_back_copy_and_clone(store: MemoryStore, cluster: MadeCluster) -> None:
    batches = lived_through(cluster, 30)
    for batch in batches[:10]:
        store.commit(batch)
    then = everything(store, cluster)
    image = store.image()
    for batch in batches[10:20]:
        store.commit(batch)
    store.write(batches[20])
    now = store.image()
    assert everything(MemoryStore.from_image(image), cluster) == then
    clone, other = MemoryStore.from_image(now), MemoryStore.from_image(now)
    assert clone.stats().events == 20
    clone.commit(batches[20])
    assert other.stats().events == 20
    assert store.stats().events == 21
    assert everything(MemoryStore.from_image(image), cluster) == then
    # A clone goes on by itself: its images, crashes and commits are its own.
    clone.commit(batches[21])
    assert MemoryStore.from_image(clone.image()).stats().events == 22
    assert clone.crash().stats().events == 22
    survivor = store.crash()
    survivor.commit([PutOwnState(Journal(3), False)])
    assert MemoryStore.from_image(survivor.image()).saved().newest_journal_own == 3
    assert MemoryStore.from_image(now).saved().newest_journal_own == 0


def test_recovering_from_birth_stays_so_until_told(cluster: MadeCluster) -> None:
    store = MemoryStore(cluster.owner(), recovering=True)
    assert store.saved().recovering
    assert MemoryStore.from_image(store.image()).saved().recovering
    store = store.crash()
    assert store.saved().recovering
    store.commit([PutOwnState(Journal(1), False)])
    assert not store.crash().saved().recovering


def test_full_disk_takes_nothing(store: MemoryStore, cluster: MadeCluster) -> None:
    first = cluster.write(1)
    store.full = True
    with pytest.raises(StoreFull):
        store.commit([first])
    store.commit([])
    assert store.event(first.event.id) is None
    store.full = False
    store.commit([first])
    assert store.event(first.event.id) == first.event
