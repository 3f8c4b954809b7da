"""What every store does, held against both. A store that is started again holds what was
committed; nothing here knows how."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from quipu.ledger.effects import (
    AppendFeed,
    DropEvents,
    DropFeed,
    DropInvs,
    Durable,
    EraseEntry,
    PutOwnState,
    StoreEpoch,
    StoreEvent,
    StoreProof,
)
from quipu.ledger.entry import data_entry, encode_entry
from quipu.ledger.event import decode_event, event_id
from quipu.ledger.evidence import check_proof, prove_author
from quipu.ledger.history import Held, SignerRecord
from quipu.ledger.holes import hole_of
from quipu.ledger.merkle import leaf_hash
from quipu.ledger.messages import bytes_of
from quipu.ledger.signing import verify
from quipu.ledger.words import EpochNo, EventId, InvNumber, Journal, NodeNo, Seq
from quipu.storage import keys
from quipu.storage.lmdb_store import open_store
from quipu.storage.memory_store import MemoryStore
from quipu.storage.store import SlotTaken, Store, StoreClosed
from tests.made_events import MadeCluster, branch_of, entry_of, slot


class Disk:
    """A store of one kind that can be started again on what it had."""

    def __init__(self, kind: str, path: Path, cluster: MadeCluster) -> None:
        self._kind = kind
        self._path = path
        self._owner = cluster.owner()
        self.store: Store = self._start()

    def _start(self) -> Store:
        if self._kind == "lmdb":
            return open_store(self._path, self._owner)
        return MemoryStore(self._owner)

    def restart(self) -> Store:
        if isinstance(self.store, MemoryStore):
            self.store = self.store.crash()
        else:
            self.store.close()
            self.store = self._start()
        return self.store

    def before_and_after(self) -> Iterator[Store]:
        yield self.store
        yield self.restart()


@pytest.fixture
def cluster() -> MadeCluster:
    return MadeCluster()


@pytest.fixture(params=["lmdb", "memory"])
def disk(request: pytest.FixtureRequest, tmp_path: Path, cluster: MadeCluster) -> Iterator[Disk]:
    made = Disk(request.param, tmp_path / "store", cluster)
    yield made
    made.store.close()


@pytest.fixture
def store(disk: Disk) -> Store:
    return disk.store


def test_new_store_holds_nothing(store: Store) -> None:
    saved = store.saved()
    assert (saved.branches, saved.signers, saved.epochs, saved.proofs) == ([], [], [], [])
    assert saved.newest_journal_own == 0
    assert saved.recovering is False
    assert store.feed(0, 10) == []
    assert store.stats()[:6] == (0, 0, 0, 0, 0, 0)


def test_event_comes_back_whole(disk: Disk, cluster: MadeCluster) -> None:
    first = cluster.write(1)
    second = cluster.write(2, [first.meta], [entry_of("a"), entry_of("b" * 300), entry_of("c")])
    third = cluster.write(1, [second.meta], [entry_of("d" * 70_000)])
    effects = [first, second, third]
    disk.store.commit(effects)
    for store in disk.before_and_after():
        for effect in effects:
            assert store.event(effect.event.id) == effect.event
            assert store.meta(effect.event.id) == effect.meta
            assert store.meta_by_prefix(effect.event.id[:16]) == effect.meta
            assert store.id_at(effect.meta.slot) == effect.event.id
        assert store.stats().events == 3


def test_events_become_visible_by_commit_alone(store: Store, cluster: MadeCluster) -> None:
    first, second = cluster.write(1), cluster.write(1)
    store.commit([first])
    assert store.event(second.event.id) is None
    store.commit([second])
    assert store.event(second.event.id) == second.event


def test_unknown_is_none(store: Store, cluster: MadeCluster) -> None:
    store.commit([cluster.write(1)])
    unknown = EventId(bytes(32))
    assert store.meta(unknown) is None
    assert store.event(unknown) is None
    assert store.entry(unknown, 0) is None
    assert store.children(unknown) == []
    assert store.meta_by_prefix(bytes(16)) is None
    assert store.id_at(slot(1, 2)) is None
    assert store.id_at(slot(9, 1)) is None
    assert store.inv(NodeNo(1), InvNumber(1)) is None
    assert list(store.invs_from(NodeNo(1), InvNumber(0))) == []


def test_what_no_event_can_have_is_unknown(store: Store, cluster: MadeCluster) -> None:
    store.commit([cluster.write(1)])
    assert store.meta(EventId(b"")) is None
    assert store.meta_by_prefix(b"") is None
    assert store.meta_by_prefix(bytes(32)) is None
    assert store.id_at(slot(1, 2**64)) is None
    assert store.id_at(slot(1, -1)) is None
    assert store.inv(NodeNo(1), InvNumber(2**64)) is None
    assert list(store.invs_from(NodeNo(1), InvNumber(2**64))) == []


def test_entry_is_read_alone(store: Store, cluster: MadeCluster) -> None:
    sizes = [0, 1, 200, 255, 256, 300, 65_535, 65_536, 70_000, 5]
    entries = [entry_of("x" * size) for size in sizes]
    written = cluster.write(1, (), entries)
    store.commit([written])
    assert [store.entry(written.event.id, index) for index in range(len(entries))] == entries
    assert store.entry(written.event.id, len(entries)) is None
    assert store.entry(written.event.id, -1) is None


def test_leaf_hashes_are_made_where_nobody_has(store: Store, cluster: MadeCluster) -> None:
    entries = [entry_of("a"), entry_of("b"), entry_of("c")]
    written = cluster.write(1, (), entries)
    store.commit([StoreEvent(written.event._replace(leaves=()), written.meta)])
    assert [store.entry(written.event.id, index) for index in range(3)] == entries


@pytest.mark.parametrize("count", [1, 15, 16, 17, 1000])
def test_entry_of_an_event_of_any_count(store: Store, cluster: MadeCluster, count: int) -> None:
    entries = [entry_of(f"entry {index}") for index in range(count)]
    written = cluster.write(1, (), entries)
    store.commit([written])
    for index in {0, count // 2, count - 1}:
        assert store.entry(written.event.id, index) == entries[index]


def test_key_finds_its_entries_in_its_scope_alone(disk: Disk, cluster: MadeCluster) -> None:
    entries = [entry_of("one"), entry_of("two", "k"), entry_of("three", "k", "app")]
    first = cluster.write(1, entries=entries)
    again = cluster.write(2, entries=[entry_of("two", "k")])
    disk.store.commit([again, first, again])
    for store in disk.before_and_after():
        assert store.find_key(None, "default", "k") == [(first.event.id, 1), (again.event.id, 0)]
        assert store.find_key("app", "default", "k") == [(first.event.id, 2)]
        assert store.find_key(None, "other", "k") == []
        assert store.find_key(None, "default", "one") == []


def test_key_of_a_refused_batch_is_unknown(store: Store, cluster: MadeCluster) -> None:
    written = cluster.write(1, entries=[entry_of("one", "k")])
    clash = cluster.fork(None, 1, 0, "clash")
    with pytest.raises(SlotTaken):
        store.commit([written, clash])
    assert store.find_key(None, "default", "k") == []


def test_children_are_those_that_name_it(disk: Disk, cluster: MadeCluster) -> None:
    root = cluster.write(1)
    side = cluster.write(2, [root.meta])
    other = cluster.write(3, [root.meta, side.meta])
    above = cluster.write(1, [other.meta])
    disk.store.commit([root, side, other, above])
    for store in disk.before_and_after():
        assert store.children(root.event.id) == [above.event.id, side.event.id, other.event.id]
        assert store.children(side.event.id) == [other.event.id]
        assert store.children(other.event.id) == [above.event.id]
        assert store.children(above.event.id) == []


def test_children_of_a_forked_event(store: Store, cluster: MadeCluster) -> None:
    first, second = cluster.write(1), cluster.write(1)
    fork = cluster.fork(first.meta, 1, 1, "fork")
    root_fork = cluster.fork(None, 1, 2, "root fork")
    store.commit([first, second, fork, root_fork])
    assert store.children(first.event.id) == [second.event.id, fork.event.id]
    assert store.children(root_fork.event.id) == []


def test_child_stored_before_its_parent_has_no_edge(store: Store, cluster: MadeCluster) -> None:
    root = cluster.write(1)
    side = cluster.write(2, [root.meta])
    store.commit([side])
    store.commit([root])
    assert store.children(root.event.id) == []


def test_a_branch_is_read_in_parts(store: Store, cluster: MadeCluster) -> None:
    line = [cluster.write(1) for _ in range(5)]
    fork = cluster.fork(line[1].meta, 1, 1, "fork")
    other = cluster.write(1, journal=2)
    store.commit([*line, fork, other])
    held = [
        Held(e.meta.branch, e.meta.seq, e.event.id, e.meta.hlc, e.event.size, bytes_of(e.event))
        for e in line
    ]
    assert store.run(slot(1, 1), Seq(9), 1 << 20) == held
    assert store.run(slot(1, 2), Seq(4), 1 << 20) == held[1:4]
    assert store.run(slot(1, 2), Seq(4), 0) == held[1:2]
    assert store.run(slot(1, 5), Seq(4), 1 << 20) == []
    assert store.run(slot(1, 6), Seq(9), 1 << 20) == []
    assert [one.id for one in store.run(slot(1, 3, branch=1), Seq(9), 0)] == [fork.event.id]
    metas = [e.meta for e in line]
    assert store.metas_from(slot(1, 1), Seq(9), 10) == metas
    assert store.metas_from(slot(1, 2), Seq(9), 2) == metas[1:3]
    assert store.metas_from(slot(1, 3), Seq(2), 9) == []
    assert store.metas_from(slot(1, 3, branch=1), Seq(9), 9) == [fork.meta]


def test_branch_has_only_its_own_events(store: Store, cluster: MadeCluster) -> None:
    first, second, third = cluster.write(1), cluster.write(1), cluster.write(1)
    fork = cluster.fork(first.meta, 1, 1, "fork")
    fork_above = cluster.write(1, branch=1)
    store.commit([first, second, third, fork, fork_above])
    assert store.id_at(slot(1, 1)) == first.event.id
    assert store.id_at(slot(1, 2)) == second.event.id
    assert store.id_at(slot(1, 1, branch=1)) is None
    assert store.id_at(slot(1, 2, branch=1)) == fork.event.id
    assert store.id_at(slot(1, 3, branch=1)) == fork_above.event.id
    assert store.id_at(slot(1, 4, branch=1)) is None
    meta = store.meta(fork_above.event.id)
    assert meta is not None
    assert meta.slot.number == 1


def test_ids_with_equal_prefixes_are_told_apart(
    disk: Disk, cluster: MadeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "PREFIX_BYTES", 1)
    written: list[StoreEvent] = []
    for _ in range(600):
        written.append(cluster.write(1, [written[-3].meta] if len(written) > 3 else []))
    firsts: dict[bytes, StoreEvent] = {}
    for effect in written:
        firsts.setdefault(effect.event.id[:1], effect)
    assert len(firsts) < len(written) / 2
    disk.store.commit(written[:300])
    disk.store.commit(written[300:])
    for store in disk.before_and_after():
        for effect in written:
            assert store.meta(effect.event.id) == effect.meta
            assert store.event(effect.event.id) == effect.event
        for prefix, first in firsts.items():
            assert store.meta_by_prefix(prefix) == first.meta
            assert store.meta(EventId(prefix + bytes(31))) is None
        assert store.children(written[10].event.id) == [
            written[11].event.id,
            *([written[13].event.id]),
        ]


def test_stored_twice_is_stored_once(store: Store, cluster: MadeCluster) -> None:
    first, second = cluster.write(1), cluster.write(2)
    store.commit([first, second, first])
    store.commit([second])
    assert store.stats().events == 2
    assert store.event(first.event.id) == first.event


def test_slot_is_never_overwritten(store: Store, cluster: MadeCluster) -> None:
    first, second = cluster.write(1), cluster.write(1)
    store.commit([first, second])
    rival = cluster.fork(first.meta, 1, 0, "rival")
    with pytest.raises(SlotTaken):
        store.commit([AppendFeed((first.event.id,)), rival])
    moved = StoreEvent(second.event, second.meta._replace(slot=slot(1, 2, branch=1)))
    with pytest.raises(SlotTaken):
        store.commit([AppendFeed((first.event.id,)), moved])
    assert store.event(second.event.id) == second.event
    assert store.event(rival.event.id) is None
    assert store.id_at(slot(1, 2)) == second.event.id
    assert store.feed(0, 10) == []


def test_batch_is_all_or_nothing(disk: Disk, cluster: MadeCluster) -> None:
    first, second = cluster.write(1), cluster.write(2)
    rival = cluster.fork(None, 1, 0, "rival")
    state = PutOwnState(Journal(7), True)
    disk.store.commit([first, cluster.inv(1, 5, [first.meta]), branch_of(first.meta)])
    broken: list[Durable] = [
        second,
        AppendFeed((second.event.id,)),
        branch_of(first.meta, read_seq=Seq(1)),
        cluster.inv(1, 6, [second.meta]),
        cluster.inv(1, 5, [second.meta]),
        StoreEpoch(EpochNo(2), b"document", ()),
        state,
        rival,
    ]
    for _ in range(2):
        with pytest.raises(SlotTaken):
            disk.store.commit(broken)
        store = disk.restart()
        assert store.event(second.event.id) is None
        assert store.feed(0, 10) == []
        assert store.inv(NodeNo(1), InvNumber(6)) is None
        invs = list(store.invs_from(NodeNo(1), InvNumber(0)))
        assert invs == [cluster.inv(1, 5, [first.meta]).inv.data]
        saved = store.saved()
        assert saved.newest_journal_own == 0
        assert saved.epochs == []
        assert [record.read_seq for record in saved.branches] == [0]
        assert [record.number for record in saved.signers] == [5]


def test_later_effects_of_a_batch_win(disk: Disk, cluster: MadeCluster) -> None:
    first = cluster.write(1)
    disk.store.commit(
        [
            PutOwnState(Journal(1), True),
            first,
            branch_of(first.meta, signed_seq=Seq(0)),
            branch_of(first.meta, signed_seq=Seq(1)),
            PutOwnState(Journal(2), False),
        ]
    )
    saved = disk.restart().saved()
    assert (saved.newest_journal_own, saved.recovering) == (2, False)
    assert [record.signed_seq for record in saved.branches] == [1]


def test_branch_records_come_back_as_they_were(disk: Disk, cluster: MadeCluster) -> None:
    head = cluster.write(2).meta
    receipts = {NodeNo(3): (Seq(9), InvNumber(2**63)), NodeNo(1): (Seq(4), InvNumber(8))}
    full = branch_of(
        head,
        base_seq=Seq(3),
        parent=4,
        read_seq=Seq(5),
        read_id=EventId(b"r" * 32),
        cut_seq=Seq(2),
        signed_seq=Seq(6),
        leaf=True,
        lender=b"l" * 32,
        moved_ms=1_700_000_000_123,
        receipts=receipts,
    )
    plain = branch_of(cluster.write(1).meta)
    disk.store.commit([full, plain])
    saved = disk.restart().saved()
    assert saved.branches == [plain.record, full.record]
    # A core iterates over receipts, so their order is part of the record.
    assert list(saved.branches[1].receipts) == [3, 1]


def test_saved_belongs_to_the_caller(store: Store, cluster: MadeCluster) -> None:
    head = cluster.write(1).meta
    store.commit([branch_of(head), cluster.inv(1, 5, [head])])
    saved = store.saved()
    saved.branches[0].receipts[NodeNo(9)] = (Seq(1), InvNumber(1))
    saved.branches[0].read_seq = Seq(1)
    saved.signers[0].sealed = b"changed"
    again = store.saved()
    assert again.branches == [branch_of(head).record]
    assert again.signers[0].sealed == b""


def test_branch_record_is_replaced(disk: Disk, cluster: MadeCluster) -> None:
    head = cluster.write(1).meta
    disk.store.commit([branch_of(head)])
    disk.store.commit([branch_of(head, read_seq=Seq(1), read_id=head.id)])
    assert disk.restart().saved().branches == [
        branch_of(head, read_seq=Seq(1), read_id=head.id).record
    ]
    assert disk.store.stats().branches == 1


def test_feed_is_numbered_without_gaps(disk: Disk, cluster: MadeCluster) -> None:
    effects = [cluster.write(1 + number % 3) for number in range(6)]
    ids = [effect.event.id for effect in effects]
    disk.store.commit([*effects, AppendFeed((ids[0], ids[1])), AppendFeed((ids[2],))])
    disk.store.commit([AppendFeed(())])
    disk.restart()
    disk.store.commit([AppendFeed((ids[4], ids[3]))])
    store = disk.restart()
    expected = list(enumerate([ids[0], ids[1], ids[2], ids[4], ids[3]], start=1))
    assert store.feed(0, 100) == expected
    assert store.feed(0, 2) == expected[:2]
    assert store.feed(2, 2) == expected[2:4]
    assert store.feed(5, 2) == []
    assert store.feed(99, 2) == []
    assert store.feed(0, 0) == []
    assert store.feed(-5, 1) == expected[:1]
    assert store.stats().feed == 5


def test_an_erased_entry_leaves_its_leaf_hash(disk: Disk, cluster: MadeCluster) -> None:
    entries = [
        encode_entry(data_entry(text, idempotency_key=key))
        for text, key in ((b"a", "k"), (b"forget me", "gone"), (b"c", "k"))
    ]
    several, lone = cluster.write(1, (), entries), cluster.write(2, (), entries[1:2])
    disk.store.commit([several, lone])
    leaves = several.event.leaves
    disk.store.commit([EraseEntry(several.meta.slot, 1), EraseEntry(lone.meta.slot, 0)])
    disk.store.commit([EraseEntry(lone.meta.slot, 0)])  # once more
    disk.store.commit([several])  # whole, from somebody who has not heard of it
    for store in disk.before_and_after():
        found = store.entries(several.event.id, 0, 3)
        assert found is not None
        assert found[1] == [entries[0], hole_of(leaves[1]), entries[2]]
        assert store.entry(lone.event.id, 0) == hole_of(leaf_hash(entries[1]))
        assert store.find_key(None, "default", "gone") == []
        assert len(store.find_key(None, "default", "k")) == 2
        event = store.event(several.event.id)
        assert event is not None
        assert b"forget me" not in event.body
        read = decode_event(event.header_bytes, event.signature, event.body)
        assert (read.id, read.leaves, read.hollow) == (several.event.id, leaves, True)
        assert [held.data.body for held in store.run(several.meta.slot, Seq(9), 1 << 20)] == [
            event.body
        ]


def test_invs_are_kept_by_number(disk: Disk, cluster: MadeCluster) -> None:
    head = cluster.write(1).meta
    numbers = [5, 70, 300, 2**40]
    ones = [cluster.inv(1, number, [head]) for number in numbers]
    other = cluster.inv(2, 100, [head])
    disk.store.commit([*ones, other])
    for store in disk.before_and_after():
        data = [one.inv.data for one in ones]
        assert [store.inv(NodeNo(1), InvNumber(number)) for number in numbers] == data
        assert store.inv(NodeNo(1), InvNumber(6)) is None
        assert list(store.invs_from(NodeNo(1), InvNumber(0))) == data
        assert list(store.invs_from(NodeNo(1), InvNumber(70))) == data[1:]
        assert list(store.invs_from(NodeNo(1), InvNumber(71))) == data[2:]
        assert list(store.invs_from(NodeNo(1), InvNumber(2**40 + 1))) == []
        assert list(store.invs_from(NodeNo(2), InvNumber(0))) == [other.inv.data]
        assert list(store.invs_from(NodeNo(3), InvNumber(0))) == []
        assert store.stats().invs == 5


def test_many_invs_are_read_in_parts(store: Store, cluster: MadeCluster) -> None:
    head = cluster.write(1).meta
    invs = [cluster.inv(1, number, [head]) for number in range(1, 201)]
    store.commit(invs)
    read = store.invs_from(NodeNo(1), InvNumber(3))
    first = next(iter(read))
    store.commit([cluster.inv(2, 1, [head])])
    assert [first, *read] == [inv.inv.data for inv in invs[2:]]


def test_newest_inv_of_a_signer(disk: Disk, cluster: MadeCluster) -> None:
    head = cluster.write(1).meta
    low, high = cluster.inv(1, 5, [head], newest=False), cluster.inv(1, 9, [head])
    sealed = cluster.inv(2, 7, [head], close=b"c" * 32)
    disk.store.commit([low, high, sealed])
    assert disk.restart().saved().signers == [
        SignerRecord(NodeNo(1), InvNumber(9), high.inv.id, EpochNo(1)),
        SignerRecord(NodeNo(2), InvNumber(7), sealed.inv.id, EpochNo(1), b"c" * 32),
    ]
    newer = cluster.inv(1, 12, [head])
    disk.store.commit([newer])
    assert disk.restart().saved().signers[0].number == 12
    assert disk.store.inv(NodeNo(1), InvNumber(9)) == high.inv.data


def test_proof_replaces_that_of_the_same_culprit_and_role(disk: Disk, cluster: MadeCluster) -> None:
    def proof(author_no: int, *texts: str) -> StoreProof:
        rivals = [cluster.fork(None, author_no, 0, text).event for text in texts]
        one, other = [(event.header_bytes, event.signature, event.id) for event in rivals]
        data = prove_author(one, other)
        return StoreProof(check_proof(data, cluster.cluster_id, verify))

    first, second, other = proof(1, "a", "b"), proof(1, "a", "c"), proof(2, "a", "b")
    as_signer = StoreProof(first.conviction._replace(as_signer=True, data=b"as signer"))
    disk.store.commit([first, other, as_signer])
    disk.store.commit([second])
    held = {second.conviction.data, other.conviction.data, b"as signer"}
    saved = disk.restart().saved()
    assert set(saved.proofs) == held
    assert saved.proofs[-1] == b"as signer"
    assert disk.store.stats().proofs == 3


def test_epochs_come_back_in_order(disk: Disk) -> None:
    disk.store.commit([StoreEpoch(EpochNo(2), b"two", (b"seal", b"seal 2"))])
    disk.store.commit([StoreEpoch(EpochNo(3), b"three", ())])
    disk.store.commit([StoreEpoch(EpochNo(300), b"three hundred", (b"s",))])
    assert disk.restart().saved().epochs == [
        (b"two", (b"seal", b"seal 2")),
        (b"three", ()),
        (b"three hundred", (b"s",)),
    ]


def test_own_state_comes_back(disk: Disk) -> None:
    disk.store.commit([PutOwnState(Journal(2**63), True)])
    saved = disk.restart().saved()
    assert (saved.newest_journal_own, saved.recovering) == (2**63, True)


def test_empty_commit_changes_nothing(disk: Disk, cluster: MadeCluster) -> None:
    disk.store.commit([])
    assert disk.restart().stats()[:6] == (0, 0, 0, 0, 0, 0)


def test_closed_store_refuses_everything(store: Store, cluster: MadeCluster) -> None:
    written = cluster.write(1)
    store.commit([written])
    store.close()
    store.close()
    refused: list[Callable[[], object]] = [
        lambda: store.commit([]),
        lambda: store.commit([written]),
        lambda: store.saved(),
        lambda: store.meta(written.event.id),
        lambda: store.event(written.event.id),
        lambda: store.entry(written.event.id, 0),
        lambda: store.id_at(slot(1, 1)),
        lambda: store.children(written.event.id),
        lambda: store.feed(0, 1),
        lambda: list(store.invs_from(NodeNo(1), InvNumber(0))),
        lambda: store.stats(),
    ]
    for call in refused:
        with pytest.raises(StoreClosed):
            call()


def test_header_stays_verbatim(store: Store, cluster: MadeCluster) -> None:
    written = cluster.write(1)
    store.commit([written])
    event = store.event(written.event.id)
    assert event is not None
    assert event_id(event.header_bytes) == event.id
    assert event.header_bytes == written.event.header_bytes


# --- letting go -------------------------------------------------------------------------------
def keyed_chain(cluster: MadeCluster, count: int) -> list[StoreEvent]:
    return [cluster.write(1, entries=[entry_of("x", f"key {n}")]) for n in range(count)]


def test_what_is_let_go_leaves_nothing_but_that_it_was_here(
    disk: Disk, cluster: MadeCluster
) -> None:
    other = cluster.write(2)
    events = keyed_chain(cluster, 4)
    tied = cluster.write(2, parents=[events[1].meta])
    ids = tuple(e.event.id for e in (other, *events, tied))
    head = branch_of(events[3].meta, gone_upto=Seq(2), cut_seq=Seq(3))
    disk.store.commit([other, *events, tied, branch_of(tied.meta), AppendFeed(ids)])
    disk.store.commit(
        [
            DropEvents(events[0].meta.branch, Seq(1), Seq(2)),
            head,
            DropFeed(3),
            PutOwnState(Journal(7), False, EpochNo(2)),
        ]
    )
    for store in disk.before_and_after():
        assert [store.meta(e.event.id) is None for e in events] == [True, True, False, False]
        assert [store.was_pruned(e.event.id) for e in events] == [True, True, False, False]
        assert store.meta_by_prefix(keys.prefix_of(events[0].event.id)) is None
        assert store.id_at(events[0].meta.slot) is None
        assert store.find_key(None, "default", "key 1") == []
        assert store.find_key(None, "default", "key 2") == [(events[2].event.id, 0)]
        assert store.children(events[1].event.id) == []
        assert store.children(other.event.id) == [tied.event.id]
        assert store.feed(0, 2) == [(4, ids[3]), (5, ids[4])]
        assert store.feed(4, 9) == [(5, ids[4]), (6, ids[5])]
        saved = store.saved()
        assert saved.pruned_to == 2
        assert saved.branches[0].gone_upto == 2
        stats = store.stats()
        assert (stats.events, stats.feed, stats.feed_first, stats.pruned) == (4, 6, 4, 2)
        store.commit([AppendFeed(())])
    disk.store.commit([DropFeed(2**63 - 1), AppendFeed((events[3].event.id,))])
    for store in disk.before_and_after():  # the numbers go on
        assert store.feed(0, 9) == [(7, events[3].event.id)]
        assert (store.stats().feed, store.stats().feed_first) == (7, 7)


def test_receipts_are_let_go_by_number(disk: Disk, cluster: MadeCluster) -> None:
    head = cluster.write(1)
    invs = [cluster.inv(2, number, [head.meta]) for number in (3, 5, 8)]
    mine = cluster.inv(1, 4, [head.meta])
    disk.store.commit([head, *invs, mine])
    disk.store.commit([DropInvs(NodeNo(2), InvNumber(8))])
    for store in disk.before_and_after():
        assert list(store.invs_from(NodeNo(2), InvNumber(0))) == [invs[2].inv.data]
        assert list(store.invs_from(NodeNo(1), InvNumber(0))) == [mine.inv.data]
        assert store.inv(NodeNo(2), InvNumber(5)) is None
