"""What only the store in LMDB does: whose it is, in which format, how it grows, what it refuses
to hand out."""

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import lmdb
import pytest

from quipu.ledger.effects import AppendFeed, Durable, PutOwnState, StoreEpoch, StoreEvent
from quipu.ledger.words import EpochNo, EventId, InvNumber, Journal, NodeNo, Seq
from quipu.storage import environment, keys, ownership, records
from quipu.storage.environment import StoreDamaged, StoreLocked, StoreMissing
from quipu.storage.lmdb_store import LmdbStore, open_store
from quipu.storage.ownership import FORMAT_NEWEST, FormatTooNew, FormatTooOld, StoreForeign
from quipu.storage.store import (
    DiskFailed,
    OutcomeUnknown,
    StoreClosed,
    StoreCorrupt,
    StoreError,
    StoreFull,
)
from tests.made_events import MadeCluster, branch_of, entry_of, lived_through, slot
from tests.unit.storage.lmdb_files import flip, tampering

MIB = 1 << 20


@pytest.fixture
def cluster() -> MadeCluster:
    return MadeCluster()


def made(path: Path, cluster: MadeCluster, turns: int = 12) -> list[list[Durable]]:
    """A store with some history, closed."""
    batches = lived_through(cluster, turns, entries=3)
    store = open_store(path, cluster.owner())
    for batch in batches:
        store.commit(batch)
    store.close()
    return batches


# --- whose it is ------------------------------------------------------------------------------
def test_second_opening_is_refused_in_this_process(tmp_path: Path, cluster: MadeCluster) -> None:
    store = open_store(tmp_path, cluster.owner())
    with pytest.raises(StoreLocked, match=str(os.getpid())):
        open_store(tmp_path, cluster.owner())
    store.close()
    open_store(tmp_path, cluster.owner()).close()


def test_second_process_is_refused(tmp_path: Path, cluster: MadeCluster) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from quipu.storage.lmdb_store import open_store\n"
        "from quipu.storage.store import Owner\n"
        "from quipu.storage.environment import StoreLocked\n"
        "try: open_store(Path(sys.argv[1]), Owner(bytes(32), bytes(32)))\n"
        "except StoreLocked: sys.exit(7)\n"
    )
    store = open_store(tmp_path, cluster.owner())
    try:
        done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    finally:
        store.close()
    assert done.returncode == 7


def test_other_cluster_and_other_node_are_refused(tmp_path: Path, cluster: MadeCluster) -> None:
    open_store(tmp_path, cluster.owner(1)).close()
    with pytest.raises(StoreForeign, match="node"):
        open_store(tmp_path, cluster.owner(2))
    with pytest.raises(StoreForeign, match="cluster"):
        open_store(tmp_path, MadeCluster(salt=b"s" * 16).owner(1))
    open_store(tmp_path, cluster.owner(1)).close()


@pytest.mark.parametrize(
    ("version", "refusal"),
    [(FORMAT_NEWEST + 1, FormatTooNew), (2**31, FormatTooNew), (0, FormatTooOld)],
)
def test_unknown_format_is_refused_and_left_alone(
    tmp_path: Path, cluster: MadeCluster, version: int, refusal: type[Exception]
) -> None:
    made(tmp_path, cluster)
    key, value = b"format", version.to_bytes(4, "big")
    with tampering(tmp_path) as (txn, tables):
        txn.put(key, records.guarded(key, value), db=tables.meta)
    before = (tmp_path / environment.DATA_FILE).read_bytes()
    with pytest.raises(refusal):
        open_store(tmp_path, cluster.owner())
    assert (tmp_path / environment.DATA_FILE).read_bytes() == before


def test_created_and_recovering_are_told(tmp_path: Path, cluster: MadeCluster) -> None:
    store = open_store(tmp_path / "a", cluster.owner(), recovering=True)
    assert store.created
    assert store.saved().recovering
    store.commit([PutOwnState(Journal(3), False)])
    store.close()
    # An existing store says itself whether it is recovering.
    store = open_store(tmp_path / "a", cluster.owner(), recovering=True)
    assert not store.created
    assert not store.saved().recovering
    store.close()


def test_start_that_was_killed_before_its_first_commit_counts_as_none(
    tmp_path: Path, cluster: MadeCluster
) -> None:
    env = environment.open_environment(tmp_path, MIB)
    environment.open_tables(env, tmp_path, create=True)
    env.close()
    store = open_store(tmp_path, cluster.owner(), recovering=True)
    assert store.created
    assert store.saved().recovering
    store.close()


def test_store_that_lost_a_table_or_its_owner_is_damaged(
    tmp_path: Path, cluster: MadeCluster
) -> None:
    made(tmp_path / "a", cluster)
    with tampering(tmp_path / "a") as (txn, tables):
        txn.drop(tables.edges, delete=True)
    with pytest.raises(StoreDamaged, match="table is missing"):
        open_store(tmp_path / "a", cluster.owner())
    made(tmp_path / "b", MadeCluster())
    with tampering(tmp_path / "b") as (txn, tables):
        txn.drop(tables.meta, delete=False)
    with pytest.raises(StoreDamaged, match="owner"):
        open_store(tmp_path / "b", cluster.owner())


def test_environment_of_another_program_is_no_store(tmp_path: Path, cluster: MadeCluster) -> None:
    with lmdb.Environment(str(tmp_path), max_dbs=2) as env:
        env.open_db(b"theirs")
    with pytest.raises(StoreMissing):
        open_store(tmp_path, cluster.owner())


def test_files_are_for_their_owner_alone(tmp_path: Path, cluster: MadeCluster) -> None:
    made(tmp_path / "store", cluster)
    assert (tmp_path / "store").stat().st_mode & 0o077 == 0
    for file in (tmp_path / "store").iterdir():
        assert file.stat().st_mode & 0o077 == 0, file


def test_lmdb_is_told_to_make_every_commit_durable(tmp_path: Path, cluster: MadeCluster) -> None:
    store = open_store(tmp_path, cluster.owner())
    flags = store._env.flags()
    assert (flags["sync"], flags["metasync"], flags["writemap"]) == (True, True, False)
    store.close()


# --- growing ------------------------------------------------------------------------------------
def test_map_grows_under_the_batch_that_needs_it(tmp_path: Path, cluster: MadeCluster) -> None:
    store = open_store(tmp_path, cluster.owner(), map_bytes=MIB)
    first = cluster.write(1)
    store.commit([first])
    before = store.stats().map_bytes
    large = [cluster.write(1, (), [entry_of("x" * 900_000)]) for _ in range(8)]
    reading = store.invs_from(NodeNo(1), InvNumber(0))
    store.commit([*large, AppendFeed(tuple(one.event.id for one in large))])
    assert store.stats().map_bytes > before
    assert list(reading) == []
    assert [store.event(one.event.id) for one in (first, *large)] == [
        one.event for one in (first, *large)
    ]
    # Written once, although it was begun more than once.
    assert store.stats().feed == 8
    store.close()


def test_reading_goes_on_while_another_thread_commits_and_grows(
    tmp_path: Path, cluster: MadeCluster
) -> None:
    batches = lived_through(cluster, 300, entries=40)
    store = open_store(tmp_path, cluster.owner(), map_bytes=MIB)
    store.commit(batches[0])
    written = [0]
    failures: list[Exception] = []

    def write() -> None:
        try:
            for number, batch in enumerate(batches[1:], start=1):
                store.commit(batch)
                written[0] = number
        except (StoreError, AssertionError) as error:
            failures.append(error)

    writer = threading.Thread(daemon=True, target=write)
    writer.start()
    read = 0
    while writer.is_alive():
        newest = written[0]
        effect = batches[newest][0]
        assert store.event(effect.event.id) == effect.event  # type: ignore[union-attr]
        assert len(store.feed(0, 1000)) >= newest
        read += 1
    writer.join()
    assert failures == []
    assert read > 10
    assert store.stats().map_bytes > MIB
    store.close()


def test_pages_are_used_again_though_somebody_read(tmp_path: Path, cluster: MadeCluster) -> None:
    store = open_store(tmp_path, cluster.owner())
    head = cluster.write(1).meta
    sizes = []
    for number in range(400):
        store.commit([branch_of(head, moved_ms=number)])
        if number % 50 == 0:
            store.saved()  # and then no read for 49 commits
            sizes.append(store.stats().used_bytes)
    assert sizes[-1] <= sizes[2] + 64 * 1024
    store.close()


# --- commits that fail --------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("kind", "code", "refusal"),
    [
        (lmdb.DiskError, errno.ENOSPC, StoreFull),
        (lmdb.Error, errno.EDQUOT, StoreFull),
        (lmdb.Error, errno.EFBIG, StoreFull),
        (lmdb.Error, errno.EIO, DiskFailed),
        (lmdb.CorruptedError, -30796, StoreDamaged),
        (lmdb.PanicError, -30795, OutcomeUnknown),
    ],
)
def test_failed_commit_is_named(
    tmp_path: Path,
    cluster: MadeCluster,
    monkeypatch: pytest.MonkeyPatch,
    kind: type[lmdb.Error],
    code: int,
    refusal: type[Exception],
) -> None:
    store = open_store(tmp_path, cluster.owner())
    first, second = cluster.write(1), cluster.write(1)
    store.commit([first])

    def fail(*_: object) -> None:
        error = kind("write")
        object.__setattr__(error, "code", code)  # only the binding itself can give one
        raise error

    with monkeypatch.context() as patch:
        patch.setattr("quipu.storage.batch.Batch.write", fail)
        with pytest.raises(refusal):
            store.commit([second])
    assert store.event(first.event.id) == first.event
    assert store.event(second.event.id) is None
    if refusal is OutcomeUnknown:
        with pytest.raises(OutcomeUnknown):
            store.commit([second])
    else:
        store.commit([second])
        assert store.event(second.event.id) == second.event
    store.close()


def test_batch_that_never_fits_is_refused(
    tmp_path: Path, cluster: MadeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(tmp_path, cluster.owner())

    def fail(*_: object) -> None:
        raise lmdb.MapFullError("put", -30792)

    monkeypatch.setattr("quipu.storage.batch.Batch.write", fail)
    monkeypatch.setattr("quipu.storage.limits.MAP_GROWTHS_PER_COMMIT_MAX", 2)
    with pytest.raises(StoreFull):
        store.commit([cluster.write(1)])
    store.close()


# --- bytes that changed ---------------------------------------------------------------------------
EVENT_KEY = keys.slot_key(slot(1, 1))


@pytest.mark.parametrize("at", [0, 3, 10, 30, 60, 100, 112, 130])
def test_changed_event_is_never_handed_out(tmp_path: Path, cluster: MadeCluster, at: int) -> None:
    first = made(tmp_path, cluster)[0][0]
    identity = first.event.id  # type: ignore[union-attr]
    flip(tmp_path, "events", EVENT_KEY, at)
    store = open_store(tmp_path, cluster.owner())
    with pytest.raises(StoreCorrupt, match="author 1 journal 1 seq 1"):
        store.event(identity)
    store.close()


def test_every_bit_of_an_event_is_guarded(tmp_path: Path, cluster: MadeCluster) -> None:
    first = made(tmp_path, cluster)[0][0]
    event = first.event  # type: ignore[union-attr]
    with tampering(tmp_path) as (txn, tables):
        blob = txn.get(EVENT_KEY, b"", db=tables.events)
    table_end = len(blob) - len(event.body)
    table_start = table_end - 36 * event.header.entry_count
    store = open_store(tmp_path, cluster.owner())
    for at in range(len(blob)):
        changed = bytearray(blob)
        changed[at] ^= 1 << (at % 8)
        with store._env.begin(write=True) as writer:
            writer.put(EVENT_KEY, bytes(changed), db=store._tables.events)
        store._snapshot.renew()
        if table_start <= at < table_end:  # the table serves single entries alone
            assert store.event(event.id) == event
        else:
            with pytest.raises(StoreCorrupt):
                store.event(event.id)
        broken = 0
        for index in range(event.header.entry_count):
            try:
                assert store.entry(event.id, index) is not None
            except StoreCorrupt:
                broken += 1
        assert broken or at >= table_end
    store.close()


@pytest.mark.parametrize("at", [0, 100, 130, 300, -1])
def test_storing_an_event_again_heals_it(tmp_path: Path, cluster: MadeCluster, at: int) -> None:
    first = made(tmp_path, cluster)[0][0]
    assert isinstance(first, StoreEvent)
    flip(tmp_path, "events", EVENT_KEY, at)
    store = open_store(tmp_path, cluster.owner())
    store.commit([first])
    assert store.event(first.event.id) == first.event
    assert [progress.found for progress in store.scrub()][-1] == 0
    store.close()


def test_storing_an_event_again_heals_what_leads_to_it(
    tmp_path: Path, cluster: MadeCluster
) -> None:
    effect = made(tmp_path, cluster)[4][0]
    assert isinstance(effect, StoreEvent)
    with tampering(tmp_path) as (txn, tables):
        txn.delete(effect.event.id[:16], db=tables.ids)
        parent = keys.slot_key(slot(1, 2)) + keys.slot_key(effect.meta.slot)
        assert txn.delete(parent, db=tables.edges)
    store = open_store(tmp_path, cluster.owner())
    assert store.meta(effect.event.id) is None
    store.commit([effect])
    assert store.event(effect.event.id) == effect.event
    assert [progress.found for progress in store.scrub()][-1] == 0
    store.close()


def test_cut_and_missing_events_are_found(tmp_path: Path, cluster: MadeCluster) -> None:
    first = made(tmp_path, cluster)[0][0]
    identity = first.event.id  # type: ignore[union-attr]
    for cut in (0, 50, 115, 200, -1):
        with tampering(tmp_path) as (txn, tables):
            blob = txn.get(EVENT_KEY, b"", db=tables.events)
            txn.put(EVENT_KEY, blob[:cut], db=tables.events)
        store = open_store(tmp_path, cluster.owner())
        with pytest.raises(StoreCorrupt):
            store.meta(identity)
        store.close()
        with tampering(tmp_path) as (txn, tables):
            txn.put(EVENT_KEY, blob, db=tables.events)
    with tampering(tmp_path) as (txn, tables):
        txn.delete(EVENT_KEY, db=tables.events)
    store = open_store(tmp_path, cluster.owner())
    with pytest.raises(StoreCorrupt, match="not there"):
        store.meta(identity)
    store.close()


def test_index_that_leads_elsewhere_is_found(tmp_path: Path, cluster: MadeCluster) -> None:
    batches = made(tmp_path, cluster)
    identity = batches[0][0].event.id  # type: ignore[union-attr]
    with tampering(tmp_path) as (txn, tables):
        row = records.index_record(identity, keys.slot_key(slot(2, 1)))
        txn.put(identity[:16], row, db=tables.ids)
    store = open_store(tmp_path, cluster.owner())
    with pytest.raises(StoreCorrupt, match="the index says"):
        store.meta(identity)
    store.close()
    with tampering(tmp_path) as (txn, tables):
        txn.put(identity[:16], row[:-1], db=tables.ids)
    store = open_store(tmp_path, cluster.owner())
    with pytest.raises(StoreCorrupt, match="ids"):
        store.meta(identity)
    store.close()


def test_changed_small_records_are_found(tmp_path: Path, cluster: MadeCluster) -> None:
    batches = made(tmp_path, cluster)
    inv = next(effect for effect in batches[0] if hasattr(effect, "inv")).inv
    store = open_store(tmp_path, cluster.owner())
    store.commit([StoreEpoch(EpochNo(2), b"document", (b"seal",))])
    head = cluster.head(1)
    assert head is not None
    store.close()

    def read_inv(store: LmdbStore) -> object:
        return store.inv(NodeNo(1), inv.number)

    def read_feed(store: LmdbStore) -> object:
        return store.feed(0, 5)

    places = [
        ("invs", keys.inv_key(NodeNo(1), inv.number), read_inv),
        ("feed", keys.feed_key(2), read_feed),
        ("branches", keys.branch_key(head.branch), LmdbStore.saved),
        ("signers", keys.signer_key(NodeNo(1)), LmdbStore.saved),
        ("epochs", keys.epoch_key(EpochNo(2)), LmdbStore.saved),
        ("meta", ownership.OWN_STATE, LmdbStore.saved),
    ]
    for table, key, read in places:
        for at in (0, -1):
            flip(tmp_path, table, key, at)
            store = open_store(tmp_path, cluster.owner())
            with pytest.raises(StoreCorrupt, match=table):
                read(store)
            store.close()
            flip(tmp_path, table, key, at)
            store = open_store(tmp_path, cluster.owner())
            read(store)
            store.close()


def test_records_that_pass_their_checksum_and_do_not_decode_are_found(
    tmp_path: Path, cluster: MadeCluster
) -> None:
    made(tmp_path, cluster)
    head = cluster.head(1)
    assert head is not None
    for table, key in (
        ("branches", keys.branch_key(head.branch)),
        ("signers", keys.signer_key(NodeNo(1))),
        ("epochs", keys.epoch_key(EpochNo(2))),
        ("meta", ownership.OWN_STATE),
    ):
        with tampering(tmp_path) as (txn, tables):
            before = txn.get(key, db=getattr(tables, table))
            txn.put(key, records.guarded(key, b"\xc1"), db=getattr(tables, table))
        store = open_store(tmp_path, cluster.owner())
        with pytest.raises(StoreCorrupt, match="does not decode"):
            store.saved()
        store.close()
        with tampering(tmp_path) as (txn, tables):
            if before is None:
                txn.delete(key, db=getattr(tables, table))
            else:
                txn.put(key, before, db=getattr(tables, table))


def test_lost_own_state_is_found(tmp_path: Path, cluster: MadeCluster) -> None:
    made(tmp_path, cluster)
    with tampering(tmp_path) as (txn, tables):
        txn.delete(ownership.OWN_STATE, db=tables.meta)
    store = open_store(tmp_path, cluster.owner())
    with pytest.raises(StoreCorrupt, match="missing"):
        store.saved()
    store.close()


@pytest.mark.parametrize("key", [b"format", b"cluster", b"node"])
def test_damaged_owner_is_damage(tmp_path: Path, cluster: MadeCluster, key: bytes) -> None:
    made(tmp_path, cluster)
    flip(tmp_path, "meta", key, -1)
    with pytest.raises(StoreDamaged):
        open_store(tmp_path, cluster.owner())
    with tampering(tmp_path) as (txn, tables):
        txn.delete(key, db=tables.meta)
    with pytest.raises(StoreDamaged):
        open_store(tmp_path, cluster.owner())


def test_closing_while_receipts_are_read_ends_the_reading(
    tmp_path: Path, cluster: MadeCluster
) -> None:
    store = open_store(tmp_path, cluster.owner())
    head = cluster.write(1).meta
    store.commit([cluster.inv(1, number, [head]) for number in range(1, 200)])
    reading = iter(store.invs_from(NodeNo(1), InvNumber(0)))
    next(reading)
    store.close()
    with pytest.raises(StoreClosed):
        list(reading)


def test_branch_record_of_another_key_is_not_taken(tmp_path: Path, cluster: MadeCluster) -> None:
    made(tmp_path, cluster)
    one, two = cluster.head(1), cluster.head(2)
    assert one is not None
    assert two is not None
    with tampering(tmp_path) as (txn, tables):
        value = txn.get(keys.branch_key(one.branch), b"", db=tables.branches)
        txn.put(keys.branch_key(two.branch), value, db=tables.branches)
    store = open_store(tmp_path, cluster.owner())
    with pytest.raises(StoreCorrupt, match="checksum"):
        store.saved()
    store.close()


def test_unknown_ids_stay_unknown_after_a_restart(tmp_path: Path, cluster: MadeCluster) -> None:
    made(tmp_path, cluster)
    store = open_store(tmp_path, cluster.owner())
    assert store.meta(EventId(b"u" * 32)) is None
    assert store.id_at(slot(1, int(Seq(99)))) is None
    store.close()


def test_readers_that_were_killed_are_forgotten(tmp_path: Path, cluster: MadeCluster) -> None:
    store = open_store(tmp_path, cluster.owner())
    program = (
        "import sys; from pathlib import Path\n"
        "from quipu.storage.environment import open_readonly\n"
        "env = open_readonly(Path(sys.argv[1]))\n"
        "with env.begin():\n"
        "    print('reads', flush=True); sys.stdin.read()\n"
    )
    line = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as reading:
        assert reading.stdout is not None
        assert reading.stdout.readline() == b"reads\n"
        reading.kill()
    assert str(reading.pid) in readers_of(store)
    store.forget_dead_readers()
    assert str(reading.pid) not in readers_of(store)
    store.close()
    store.forget_dead_readers()


def readers_of(store: LmdbStore) -> str:
    return store._env.readers()
