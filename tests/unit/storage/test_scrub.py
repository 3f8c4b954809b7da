"""Scrub: silent on a sound store, and exact about each thing that is wrong."""

import re
from collections.abc import Callable
from mmap import PAGESIZE
from pathlib import Path

import pytest

from quipu.ledger import signing
from quipu.ledger.canonical import encode
from quipu.ledger.effects import (
    DropEvents,
    DropFeed,
    Durable,
    PutBranch,
    PutOwnState,
    StoreEpoch,
    StoreEvent,
)
from quipu.ledger.epochs import EpochDocument, Member
from quipu.ledger.event import Place, build_event, meta_of
from quipu.ledger.words import (
    GENESIS_EPOCH,
    Cord,
    EpochNo,
    EventId,
    Hlc,
    InvNumber,
    Journal,
    NodeNo,
    Seq,
)
from quipu.storage import keyed, keys, records
from quipu.storage.environment import StoreDamaged, Tables, WriteTxn
from quipu.storage.event_blob import encode_blob
from quipu.storage.lmdb_store import LmdbStore, open_store
from quipu.storage.scrub import ScrubProgress
from tests.made_events import MadeCluster, branch_of, entry_of, lived_through, slot
from tests.unit.storage.lmdb_files import flip, overwrite_page, pages_with, tampering

TURNS = 30


class Lived:
    """A store in which a node lived for a while, closed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cluster = MadeCluster()
        self.batches = lived_through(self.cluster, TURNS, entries=3)
        store = self.open()
        for batch in self.batches:
            store.commit(batch)
        store.close()

    def open(self) -> LmdbStore:
        return open_store(self.path, self.cluster.owner())

    def event(self, turn: int) -> StoreEvent:
        effect = self.batches[turn][0]
        assert isinstance(effect, StoreEvent)
        return effect

    def commit(self, *effects: Durable) -> None:
        store = self.open()
        store.commit(effects)
        store.close()

    def scrub(self, *, signatures: bool = False) -> ScrubProgress:
        store = self.open()
        progress = ScrubProgress()
        for progress in store.scrub(signing.verify if signatures else None):
            assert progress.findings is not None
        store.close()
        assert progress.complete
        return progress

    def found(self, *, signatures: bool = False) -> list[str]:
        return [str(finding) for finding in self.scrub(signatures=signatures).findings]


@pytest.fixture
def lived(tmp_path: Path) -> Lived:
    return Lived(tmp_path / "store")


def test_sound_store_has_no_findings(lived: Lived) -> None:
    progress = lived.scrub(signatures=True)
    assert list(progress.findings) == []
    assert progress.events == TURNS


def test_sound_forks_have_no_findings(lived: Lived) -> None:
    below = lived.event(3).meta
    fork = lived.cluster.fork(below, below.slot.author_no, 1, "fork")
    above = lived.cluster.write(below.slot.author_no, [lived.event(4).meta], branch=1)
    record = branch_of(above.meta, base_seq=below.seq, parent=0, read_seq=below.seq)
    lived.commit(fork, above, record)
    assert lived.found(signatures=True) == []


def test_empty_store_has_no_findings(tmp_path: Path) -> None:
    store = open_store(tmp_path, MadeCluster().owner())
    assert [progress.found for progress in store.scrub()][-1] == 0
    store.close()


def test_slices_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quipu.storage.limits.SCRUB_SLICE_RECORDS", 10)
    lived = Lived(tmp_path / "store")
    store = lived.open()
    steps = [(p.phase, p.done, p.total) for p in store.scrub()]
    store.close()
    assert [step for step in steps if step[0] == "events"] == [
        ("events", 10, TURNS),
        ("events", 20, TURNS),
        ("events", 30, TURNS),
    ]
    monkeypatch.setattr("quipu.storage.limits.SCRUB_SLICE_BYTES", 1)
    store = lived.open()
    assert sum(p.phase == "events" for p in store.scrub()) == TURNS
    store.close()


def test_scrub_runs_beside_commits(lived: Lived) -> None:
    store = lived.open()
    head = lived.cluster.head(1)
    assert head is not None
    for progress in store.scrub():
        assert list(progress.findings) == []
        written = lived.cluster.write(1)
        read_seq = next(r.read_seq for r in store.saved().branches if r.key == head.branch)
        read_id = store.id_at(slot(1, read_seq))
        store.commit([written, branch_of(written.meta, read_seq=read_seq, read_id=read_id)])
    store.close()


Tamper = Callable[[WriteTxn, Tables, Lived], None]


def _remove(table: str, key: Callable[[Lived], bytes]) -> Tamper:
    def tamper(txn: WriteTxn, tables: Tables, lived: Lived) -> None:
        assert txn.delete(key(lived), db=getattr(tables, table))

    return tamper


def _replace(table: str, key: bytes, value: bytes) -> Tamper:
    def tamper(txn: WriteTxn, tables: Tables, lived: Lived) -> None:
        txn.put(key, value, db=getattr(tables, table))

    return tamper


def _keyed_row(key: str, turn: int) -> bytes:
    place = keys.slot_key(slot(1 + turn % 3, 1 + turn // 3))
    return keyed.row_key(keyed.scope_hash(None, "default", key), place, 2)


def _swap_feed(txn: WriteTxn, tables: Tables, lived: Lived) -> None:
    one, two = keys.feed_key(5), keys.feed_key(6)
    for number, turn in ((one, 5), (two, 4)):
        value = records.guarded(number, lived.event(turn).event.id)
        txn.put(number, value, db=tables.feed)


def _repeat_feed(txn: WriteTxn, tables: Tables, lived: Lived) -> None:
    key = keys.feed_key(TURNS)
    txn.put(key, records.guarded(key, lived.event(2).event.id), db=tables.feed)


def _feed_unknown(txn: WriteTxn, tables: Tables, lived: Lived) -> None:
    key = keys.feed_key(7)
    txn.put(key, records.guarded(key, b"u" * 32), db=tables.feed)


def _stray_edge(txn: WriteTxn, tables: Tables, lived: Lived) -> None:
    key = keys.slot_key(slot(1, 5)) + keys.slot_key(slot(2, 1))
    txn.put(key, b"", db=tables.edges)


def _edge_to_nothing(txn: WriteTxn, tables: Tables, lived: Lived) -> None:
    key = keys.slot_key(slot(1, 5)) + keys.slot_key(slot(2, 900))
    txn.put(key, b"", db=tables.edges)


def _stray_index(txn: WriteTxn, tables: Tables, lived: Lived) -> None:
    row = records.index_record(EventId(b"s" * 32), keys.slot_key(slot(2, 2)))
    txn.put(b"s" * 16, row, db=tables.ids)


def _index_to_nothing(txn: WriteTxn, tables: Tables, lived: Lived) -> None:
    row = records.index_record(EventId(b"s" * 32), keys.slot_key(slot(2, 900)))
    txn.put(b"s" * 16, row, db=tables.ids)


FAULTS: dict[str, tuple[Tamper, str]] = {
    "event gone": (
        _remove("events", lambda lived: keys.slot_key(slot(2, 4))),
        "ids: author 2 journal 1 seq 4: names .*, which is not there",
    ),
    "child of an event gone": (
        _remove("events", lambda lived: keys.slot_key(slot(2, 4))),
        "events: author 2 journal 1 seq 5: prev .* is not held",
    ),
    "parent gone": (
        _remove("events", lambda lived: keys.slot_key(slot(2, 4))),
        "events: author 3 journal 1 seq 4: parent .* is not held",
    ),
    "index gone": (
        _remove("ids", lambda lived: lived.event(4).event.id[:16]),
        "ids: author 2 journal 1 seq 2: .* is not indexed there",
    ),
    "index stray": (_stray_index, "ids: author 2 journal 1 seq 2: holds not 7373"),
    "index to nothing": (_index_to_nothing, "ids: author 2 journal 1 seq 900: names 7373"),
    "index cut": (_replace("ids", b"i" * 16, b"short"), "ids: prefix 6969.*: 5 bytes"),
    "edge gone": (
        _remove("edges", lambda lived: keys.slot_key(slot(1, 1)) + keys.slot_key(slot(2, 1))),
        "edges: author 2 journal 1 seq 1: no edge from",
    ),
    "edge stray": (_stray_edge, "edges: author 1 journal 1 seq 5: is no parent of author 2"),
    "edge to nothing": (_edge_to_nothing, "edges: author 1 journal 1 seq 5: an end"),
    "key not indexed": (
        _remove("keyed", lambda _: _keyed_row("key 4", 4)),
        "keyed: author 2 journal 1 seq 2: the key of entry 2 is not indexed",
    ),
    "key stray": (
        _replace("keyed", _keyed_row("key 5", 4), b""),
        "keyed: author 2 journal 1 seq 2: entry 2 has no such key",
    ),
    "key of nothing": (
        _replace("keyed", bytes(32) + keys.slot_key(slot(9, 9)) + bytes(4), b""),
        "keyed: author 9 journal 1 seq 9: entry 0 has no such key",
    ),
    "key cut": (_replace("keyed", b"cut", b""), "keys: key : unreadable"),
    "edge cut": (_replace("edges", b"cut", b""), "keys: key 637574: unreadable"),
    "feed swapped": (_swap_feed, "feed: number 5: .* comes before author"),
    "feed twice": (_repeat_feed, f"feed: number {TURNS}: .* comes a second time"),
    "feed unknown": (_feed_unknown, "events: feed number 7: event 7575.* is not held"),
    "feed gap": (
        _remove("feed", lambda lived: keys.feed_key(9)),
        "feed: number 10: follows number 8",
    ),
    "feed short": (
        _remove("feed", lambda lived: keys.feed_key(TURNS - 1)),
        "branches: author . journal 1 branch 0: read_seq 10, the feed has 9",
    ),
    "newest Inv gone": (
        _remove("invs", lambda lived: keys.inv_key(NodeNo(3), InvNumber(TURNS))),
        f"signers: signer 3: its newest Inv, {TURNS}, is not held",
    ),
    "Inv broken": (
        _replace(
            "invs",
            keys.inv_key(NodeNo(3), InvNumber(3)),
            records.guarded(keys.inv_key(NodeNo(3), InvNumber(3)), b"\x90"),
        ),
        "invs: signer 3 number 3: is not well-formed",
    ),
    "epoch broken": (
        _replace(
            "epochs",
            keys.epoch_key(EpochNo(2)),
            records.encode_epoch(keys.epoch_key(EpochNo(2)), b"document", ()),
        ),
        "epochs: epoch 2: is not well-formed",
    ),
    "epoch gap": (
        _replace(
            "epochs",
            keys.epoch_key(EpochNo(5)),
            records.encode_epoch(keys.epoch_key(EpochNo(5)), b"document", ()),
        ),
        "epochs: epoch 5: follows epoch 1",
    ),
    "proof broken": (_replace("proofs", b"\0culprit", b"abcdefgh"), "proofs: key 00.*checksum"),
    "branch broken": (
        _replace("branches", b"\0" * 14, b"abcdefgh"),
        "branches: key 0000.*checksum",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_fault_is_found_where_it_lies(lived: Lived, fault: str) -> None:
    tamper, expected = FAULTS[fault]
    with tampering(lived.path) as (txn, tables):
        tamper(txn, tables, lived)
    found = lived.found()
    assert any(re.match(expected, finding) for finding in found), found


@pytest.mark.parametrize("at", [0, 5, 40, 90, 110, 200, 330, 420, -1])
def test_changed_event_is_found(lived: Lived, at: int) -> None:
    flip(lived.path, "events", keys.slot_key(slot(2, 4)), at)
    found = lived.found()
    assert any(finding.startswith("events: author 2 journal 1 seq 4: ") for finding in found), found


def test_changed_signature_is_found_only_with_signatures(lived: Lived) -> None:
    event = lived.event(10)
    forged = event.event._replace(signature=bytes(64))
    with tampering(lived.path) as (txn, tables):
        txn.put(keys.slot_key(event.meta.slot), encode_blob(forged), db=tables.events)
    assert lived.found() == []
    assert lived.found(signatures=True) == [
        "events: author 2 journal 1 seq 4: its signature is not valid"
    ]


def test_inv_with_a_wrong_signature_is_found(lived: Lived) -> None:
    head = lived.cluster.head(1)
    assert head is not None
    stored = lived.cluster.inv(1, 999, [head], newest=False)
    data = stored.inv.data[:-1] + bytes([stored.inv.data[-1] ^ 1])
    key = keys.inv_key(NodeNo(1), InvNumber(999))
    with tampering(lived.path) as (txn, tables):
        txn.put(key, records.guarded(key, data), db=tables.invs)
    assert lived.found() == []
    assert lived.found(signatures=True) == ["invs: signer 1 number 999: its signature is not valid"]


def test_inv_under_another_number_is_found(lived: Lived) -> None:
    head = lived.cluster.head(1)
    assert head is not None
    stored = lived.cluster.inv(1, 998, [head], newest=False)
    for number in (999, TURNS - 2):  # the second takes the place of the newest of signer 1
        key = keys.inv_key(NodeNo(1), InvNumber(number))
        with tampering(lived.path) as (txn, tables):
            txn.put(key, records.guarded(key, stored.inv.data), db=tables.invs)
    assert lived.found() == [
        f"invs: signer 1 number {TURNS - 2}: is another number or of another cluster",
        "invs: signer 1 number 999: is another number or of another cluster",
        f"signers: signer 1: its newest Inv, {TURNS - 2}, is another",
    ]


def test_events_that_no_core_would_store_are_found(lived: Lived) -> None:
    """Well-formed by themselves, wrong by what lies below them."""
    head = lived.cluster.head(1)
    assert head is not None
    place = Place(
        cluster_id=lived.cluster.cluster_id,
        epoch=GENESIS_EPOCH,
        cord=Cord(NodeNo(1), Journal(1)),
        seq=Seq(head.seq + 1),
        prev=lived.event(0).event.id,
        parents=(),
        hlc=Hlc(1),
        depth=99,
    )
    foreign = place._replace(
        cluster_id=b"c" * 32,
        cord=Cord(NodeNo(1), Journal(2)),
        seq=Seq(1),
        prev=EventId(b"c" * 32),
        depth=1,
    )
    for where in (place, foreign):
        event = build_event(lived.cluster.keys[1], where, [entry_of("x")])
        stored = StoreEvent(event, meta_of(event, NodeNo(1), 0))
        lived.commit(stored, branch_of(stored.meta))
    found = lived.found()
    author = f"events: author 1 journal 1 seq {head.seq + 1}: "
    assert [finding for finding in found if finding.startswith("events")] == [
        author + "has another author than the cord's first event",
        author + "prev is not the event before it",
        author + "its depth is not 1 + the greatest below",
        author + "its hlc is not above those below",
        "events: author 1 journal 2 seq 1: is of another cluster",
        "events: author 1 journal 2 seq 1: has another author than the cord's first event",
    ]


def test_body_that_is_not_well_formed_is_found(lived: Lived) -> None:
    """The root is right, but an entry is none: no core would have taken it."""
    head = lived.cluster.head(2)
    assert head is not None
    place = Place(
        cluster_id=lived.cluster.cluster_id,
        epoch=GENESIS_EPOCH,
        cord=Cord(NodeNo(2), Journal(1)),
        seq=Seq(head.seq + 1),
        prev=head.id,
        parents=(),
        hlc=Hlc(head.hlc + 1),
        depth=head.depth + 1,
    )
    event = build_event(lived.cluster.keys[1], place, [b"no entry"])
    stored = StoreEvent(event, meta_of(event, NodeNo(2), 0))
    lived.commit(stored)
    where = f"events: author 2 journal 1 seq {head.seq + 1}: is not well-formed: malformed: "
    assert where + "Expected `array`, got `int`" in lived.found()


def test_branch_records_that_contradict_the_events_are_found(lived: Lived) -> None:
    head = lived.cluster.head(2)
    assert head is not None
    below = lived.event(1).meta
    lived.commit(branch_of(below, read_seq=Seq(10), read_id=head.id))
    assert lived.found() == [
        "branches: author 2 journal 1 branch 0: an event lies above held_seq 1",
    ]
    lived.commit(branch_of(head, held_id=below.id, read_seq=Seq(3), read_id=head.id))
    assert lived.found() == [
        "branches: author 2 journal 1 branch 0: held_seq 10 is not its held_id",
        "branches: author 2 journal 1 branch 0: read_seq 3 is not its read_id",
        "branches: author 2 journal 1 branch 0: read_seq 3, the feed has 10",
    ]


def test_epoch_documents_are_held_against_their_place(lived: Lived) -> None:
    members = [
        Member(no, key.node_id, f"n{no}", []) for no, key in enumerate(lived.cluster.keys, 1)
    ]
    document = encode(
        EpochDocument(1, lived.cluster.cluster_id, 2, bytes(32), 0, "majority", members, [], [], 0)
    )
    lived.commit(StoreEpoch(EpochNo(2), document, ()))
    assert lived.found() == []
    lived.commit(StoreEpoch(EpochNo(3), document, ()))
    assert lived.found() == ["epochs: epoch 3: its document is another"]


def test_more_findings_than_are_kept_are_counted(
    lived: Lived, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quipu.storage.limits.SCRUB_FINDINGS_MAX", 3)
    with tampering(lived.path) as (txn, tables):
        txn.drop(tables.ids, delete=False)
    progress = lived.scrub()
    assert len(progress.findings) == 3
    assert progress.found > TURNS


def test_broken_page_is_a_finding_and_not_the_end(tmp_path: Path) -> None:
    cluster = MadeCluster()
    batches = lived_through(cluster, 400)
    store = open_store(tmp_path, cluster.owner())
    for batch in batches:
        store.commit(batch)
    store.close()
    middle = batches[200][0]
    assert isinstance(middle, StoreEvent)
    for number in pages_with(tmp_path, middle.event.header_bytes):
        overwrite_page(tmp_path, number, bytes(PAGESIZE))
    store = open_store(tmp_path, cluster.owner())
    with pytest.raises(StoreDamaged):
        store.event(middle.event.id)
    first = batches[0][0]
    assert isinstance(first, StoreEvent)
    assert store.event(first.event.id) == first.event
    found = [str(finding) for progress in store.scrub() for finding in progress.findings]
    store.close()
    assert any(finding.startswith("events: from key") for finding in found)
    assert any("wrong type" in finding for finding in found)


# --- what was let go ------------------------------------------------------------------------------
def pruned(lived: Lived, upto: int) -> list[Durable]:
    """The oldest of each cord and their numbers in the feed go, as a node lets them go."""
    store = lived.open()
    dropped: list[Durable] = []
    for record in store.saved().branches:
        record.gone_upto, record.cut_seq = Seq(upto), Seq(upto + 1)
        dropped += [DropEvents(record.key, Seq(1), Seq(upto)), PutBranch(record)]
    store.close()
    return [*dropped, DropFeed(3 * upto), PutOwnState(Journal(1), False, EpochNo(2))]


def test_what_was_pruned_is_no_damage(lived: Lived) -> None:
    lived.commit(*pruned(lived, 4))
    assert lived.found(signatures=True) == []


def test_beside_what_was_pruned_damage_is_still_found(lived: Lived) -> None:
    lived.commit(*pruned(lived, 4))
    with tampering(lived.path) as (txn, tables):
        txn.delete(keys.slot_key(slot(1, 7)), db=tables.events)
    assert any("seq 7" in one for one in lived.found())


def test_a_feed_that_begins_late_without_pruning_is_damage(lived: Lived) -> None:
    with tampering(lived.path) as (txn, tables):
        txn.delete(keys.feed_key(1), db=tables.feed)
    assert any("follows number 0" in one for one in lived.found())
