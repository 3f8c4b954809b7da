"""What is held and not Read, in the order of its places, from any mark on."""

from quipu.ledger.words import Now, Seq
from quipu.node.machine import Machine, Surroundings
from quipu.node.service import Mark
from quipu.storage.memory_store import MemoryStore
from tests.made_events import MadeCluster, branch_of

NOW = Now(1_700_000_100_000, 1)


def test_unread_is_ordered_by_cord_seq_and_id_across_branches() -> None:
    cluster = MadeCluster()
    trunk = [cluster.write(2) for _ in range(3)]
    forked = [cluster.fork(trunk[0].meta, 2, 1, "fork"), cluster.write(2, branch=1)]
    older, newer = [cluster.write(3) for _ in range(2)], [cluster.write(3, journal=2)]
    store = MemoryStore(cluster.owner())
    store.commit(
        [
            *(*trunk, *forked, *older, *newer),
            branch_of(trunk[-1].meta, read_seq=Seq(1), read_id=trunk[0].meta.id),
            branch_of(forked[-1].meta, base_seq=Seq(1)),
            branch_of(older[-1].meta),
            branch_of(newer[-1].meta, read_seq=Seq(1), read_id=newer[-1].meta.id),
        ]
    )
    surroundings = Surroundings(
        cluster.keys[0], cluster.genesis, lambda owner: store, lambda: NOW, lambda: 7
    )
    machine = Machine.open(surroundings)
    stored = [written.meta for written in (*trunk[1:], *forked, *older)]
    marks = sorted(Mark(meta.branch.cord, meta.seq, meta.id) for meta in stored)
    assert machine.unread(99) == [mark.id for mark in marks]
    assert machine.unread(2) == [mark.id for mark in marks[:2]]
    for place, mark in enumerate(marks):
        assert machine.unread(99, mark) == [later.id for later in marks[place + 1 :]]
    read = newer[0].meta
    assert machine.unread(99, Mark(read.branch.cord, read.seq, read.id)) == []
