"""The log on disk: stores of the first format, disks that were replaced, and what scrub finds."""

from collections.abc import Callable
from pathlib import Path

import pytest

from quipu.ledger.effects import PutOwnState
from quipu.ledger.log.effects import PutBase, PutChosen, PutVote
from quipu.ledger.words import Journal
from quipu.storage import keys, log_tables, ownership, records
from quipu.storage.backup import copy_store
from quipu.storage.compaction import compact_store
from quipu.storage.counting import read_stats
from quipu.storage.environment import StoreDamaged, Tables, WriteTxn
from quipu.storage.lmdb_store import open_store
from quipu.storage.store import StoreCorrupt
from quipu.storage.verification import verify_store
from tests.contract.test_log_store_contract import base_at, entry_at
from tests.made_events import MadeCluster
from tests.unit.storage.lmdb_files import flip, tampering

OWNER = MadeCluster().owner()


def made(path: Path) -> None:
    store = open_store(path, OWNER)
    chosen = PutChosen(entry_at(3).index, (b"proof",))
    store.commit([*map(entry_at, (1, 2, 3, 4)), PutVote(b"vote"), chosen])
    store.close()


def of_first_format(path: Path, recovering: bool = False) -> None:
    """As the program wrote it that had no log."""
    open_store(path, OWNER).close()
    with tampering(path) as (txn, tables):
        txn.drop(tables.entries_of_log)
        txn.drop(tables.votes_of_log)
        state = PutOwnState(Journal(5), recovering)
        own = records.encode_own_state(ownership.OWN_STATE, state)
        txn.put(ownership.OWN_STATE, own, db=tables.meta)
        txn.put(b"format", records.guarded(b"format", (1).to_bytes(4, "big")), db=tables.meta)


@pytest.mark.parametrize("recovering", [False, True])
def test_store_of_the_first_format_gets_its_tables(tmp_path: Path, recovering: bool) -> None:
    path = tmp_path / "store"
    of_first_format(path, recovering)
    assert verify_store(path).findings == ()
    assert read_stats(path).log == 0
    copy_store(path, tmp_path / "copy")
    for _ in range(2):
        store = open_store(path, OWNER)
        assert store.saved().newest_journal_own == 5
        assert store.saved_log().recovering == recovering
        store.close()
    copy = open_store(tmp_path / "copy", OWNER)
    assert copy.saved_log().recovering
    copy.close()
    with tampering(path) as (txn, tables):  # of this format: it had them
        txn.drop(tables.entries_of_log)
        txn.drop(tables.votes_of_log)
    with pytest.raises(StoreDamaged):
        open_store(path, OWNER)
    assert verify_store(path).found


def test_disk_that_was_replaced_says_so_until_it_has_voted(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store", OWNER, recovering=True)
    assert store.saved_log().recovering
    store.commit([entry_at(1)])
    assert store.saved_log().recovering
    store.commit([PutVote(b"vote")])
    assert not store.saved_log().recovering
    store.close()


def test_backup_holds_the_log_and_counts_as_lost(tmp_path: Path) -> None:
    made(tmp_path / "store")
    copy_store(tmp_path / "store", tmp_path / "copy")
    store, copy = open_store(tmp_path / "store", OWNER), open_store(tmp_path / "copy", OWNER)
    here, there = store.saved_log(), copy.saved_log()
    assert (here.recovering, there.recovering) == (False, True)
    assert (here.entries, here.vote, here.chosen) == (there.entries, there.vote, there.chosen)
    store.close()
    copy.close()


def test_compaction_keeps_the_log(tmp_path: Path) -> None:
    path = tmp_path / "store"
    made(path)
    compact_store(path)
    store = open_store(path, OWNER)
    assert (len(store.saved_log().entries), store.stats().log) == (4, 4)
    store.close()


def test_base_takes_away_what_lies_below(tmp_path: Path) -> None:
    made(tmp_path / "store")
    store = open_store(tmp_path / "store", OWNER)
    store.commit([PutBase(base_at(9), b"state")])  # of another node, above one's own log
    store.close()
    store = open_store(tmp_path / "store", OWNER)
    saved = store.saved_log()
    assert (saved.entries, saved.base, saved.state) == ([], base_at(9), b"state")
    store.close()


Tamper = Callable[[WriteTxn, Tables], None]


def _lose_second(txn: WriteTxn, tables: Tables) -> None:
    txn.delete(keys.index_key(2), db=tables.entries_of_log)


def _lose_third_and_fourth(txn: WriteTxn, tables: Tables) -> None:
    for index in (3, 4):
        txn.delete(keys.index_key(index), db=tables.entries_of_log)


def _move_an_entry(txn: WriteTxn, tables: Tables) -> None:
    key = keys.index_key(2)
    txn.put(key, records.guarded(key, entry_at(3).data), db=tables.entries_of_log)


def _bytes_that_are_none(txn: WriteTxn, tables: Tables) -> None:
    key = keys.index_key(2)
    txn.put(key, records.guarded(key, b"no entry"), db=tables.entries_of_log)


def _stray_key(txn: WriteTxn, tables: Tables) -> None:
    txn.put(b"stray", records.guarded(b"stray", b""), db=tables.votes_of_log)


def _chosen_that_does_not_decode(txn: WriteTxn, tables: Tables) -> None:
    key = log_tables.CHOSEN
    txn.put(key, records.guarded(key, b"x"), db=tables.votes_of_log)


@pytest.mark.parametrize(
    ("tamper", "says"),
    [
        (_lose_second, "log: index 3: 2 is due there"),
        (_lose_third_and_fourth, "log: index 3: is missing: up to 3 is chosen"),
        (_move_an_entry, "log: index 2: holds index 3"),
        (_bytes_that_are_none, "log: index 2: is not well-formed"),
        (_stray_key, "is none of ours"),
        (_chosen_that_does_not_decode, "does not decode"),
    ],
)
def test_scrub_finds_what_is_wrong(tmp_path: Path, tamper: Tamper, says: str) -> None:
    path = tmp_path / "store"
    made(path)
    with tampering(path) as (txn, tables):
        tamper(txn, tables)
    assert says in "; ".join(map(str, verify_store(path).findings))


@pytest.mark.parametrize(("table", "key"), [("log", keys.index_key(2)), ("votes", b"vote")])
def test_flipped_bit_is_found_and_never_read(tmp_path: Path, table: str, key: bytes) -> None:
    path = tmp_path / "store"
    made(path)
    flip(path, table, key, -1)
    findings = verify_store(path).findings
    assert [(one.table, one.what) for one in findings] == [(table, "the checksum is wrong")]
    store = open_store(path, OWNER)
    with pytest.raises(StoreCorrupt, match="checksum"):
        store.saved_log()
    store.close()
