"""Digests of tables, snapshots, and executors that begin from one."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from quipu.storage.executors.executor import SnapshotMismatch
from quipu.storage.executors.outcome import Code
from quipu.storage.executors.request import LogIndex
from quipu.storage.executors.snapshots import DATABASE_FILE, TargetTaken, restore_snapshot
from quipu.storage.executors.sqlite_executor import SqliteExecutor
from quipu.storage.store import StoreError
from tests.executing import CLUSTER, Executed

ROWS = 300


@pytest.fixture
def full(executed: Executed) -> Executed:
    executed.run(
        "CREATE TABLE stock (id INTEGER PRIMARY KEY AUTOINCREMENT, item TEXT, n REAL)",
        "CREATE TABLE keyed (a TEXT, b BLOB, PRIMARY KEY (a, b)) WITHOUT ROWID",
        "CREATE TABLE plain (a)",
        "CREATE INDEX by_item ON stock (item)",
        "CREATE VIEW v AS SELECT item FROM stock",
    )
    fill = "WITH RECURSIVE r (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r WHERE x < ?) "
    executed.run((f"INSERT INTO stock (item, n) {fill} SELECT 'item ' || x, x / 3.0 FROM r", ROWS))
    executed.run((f"INSERT INTO keyed {fill} SELECT 'k' || x, x'00ff' FROM r", ROWS))
    executed.run("INSERT INTO plain VALUES (NULL), (1), (1.5), ('1'), (CAST(x'ff' AS TEXT))")
    executed.run("DELETE FROM stock WHERE id % 3 = 0")
    return executed


def test_the_digest_is_blind_to_the_layout_of_the_file(full: Executed) -> None:
    before = full.executor.table_digest()
    full.executor.close()
    connection = sqlite3.connect(full.directory / DATABASE_FILE)
    pages = connection.execute("PRAGMA page_count").fetchone()
    connection.execute("VACUUM")
    connection.execute("PRAGMA page_size = 8192")
    assert connection.execute("PRAGMA page_count").fetchone() != pages
    connection.close()
    full.reopen()
    assert full.executor.table_digest() == before


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE stock SET item = 'other' WHERE id = 1",
        "DELETE FROM keyed WHERE a = 'k7'",
        "UPDATE plain SET a = 1.0 WHERE a = 1 AND typeof(a) = 'integer'",
        "UPDATE plain SET a = x'31' WHERE typeof(a) = 'text' AND a = '1'",
        "UPDATE plain SET a = CAST(x'fe' AS TEXT) WHERE hex(a) = 'FF'",
        "UPDATE plain SET rowid = rowid + 100",
        "UPDATE sqlite_sequence SET seq = seq + 1",
        "DROP INDEX by_item",
        "CREATE TABLE another (a)",
        "UPDATE quipu_clients SET released = released + 1",
        "DELETE FROM quipu_results WHERE message_id = 2",
    ],
)
def test_the_digest_sees_every_change(full: Executed, sql: str) -> None:
    before = full.executor.table_digest()
    assert full.executor._connection.execute(sql).rowcount != 0
    assert full.executor.table_digest() != before


def test_a_row_does_not_pass_from_one_table_to_the_next(executed: Executed) -> None:
    executed.run("CREATE TABLE a (x)", "CREATE TABLE b (x)", "INSERT INTO a VALUES (1)")
    before = executed.executor.table_digest()
    executed.executor._connection.execute("DELETE FROM a")
    executed.executor._connection.execute("INSERT INTO b VALUES (1)")
    assert executed.executor.table_digest() != before


def test_an_executor_begins_from_a_snapshot_and_catches_up(full: Executed, tmp_path: Path) -> None:
    source = full.executor
    snapshot = source.snapshot(tmp_path / "snapshot")
    assert snapshot.applied == source.position().applied
    assert snapshot.tables == source.table_digest()
    mark = len(full.log)
    full.run("INSERT INTO stock (item) VALUES ('after') RETURNING id")
    full.read(upto=9, have=3)
    restore_snapshot(tmp_path / "snapshot", tmp_path / "new", snapshot)
    begun = SqliteExecutor(tmp_path / "new", CLUSTER)
    assert begun.position().applied == snapshot.applied
    outcomes = begun.apply(full.log[mark:], full.log[-1].at)
    assert [o.code for o in outcomes] == [Code.OK, Code.OK]
    assert begun.position() == source.position()
    assert begun.table_digest() == source.table_digest()
    begun.close()


def test_a_snapshot_is_of_one_commit_while_turns_go_on(full: Executed, tmp_path: Path) -> None:
    before = full.executor.position().applied
    with ThreadPoolExecutor(1) as turns:
        running = turns.submit(
            lambda: [full.run("INSERT INTO plain VALUES (7)") for _ in range(30)]
        )
        snapshot = full.executor.snapshot(tmp_path / "snapshot")
        running.result()
    again = SqliteExecutor(tmp_path / "again", CLUSTER)
    again.apply(full.log[: snapshot.applied.at], snapshot.applied.at)
    assert before.at <= snapshot.applied.at <= full.executor.position().applied.at
    assert again.position().applied == snapshot.applied
    assert again.table_digest() == snapshot.tables
    again.close()


def test_nothing_is_written_over(full: Executed, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_bytes(b"mine")
    with pytest.raises(TargetTaken):
        full.executor.snapshot(taken)
    assert taken.read_bytes() == b"mine"
    snapshot = full.executor.snapshot(tmp_path / "snapshot")
    with pytest.raises(TargetTaken):
        restore_snapshot(tmp_path / "snapshot", full.directory, snapshot)
    with pytest.raises(StoreError):
        full.executor.snapshot(tmp_path / "nowhere" / "snapshot")
    with pytest.raises(StoreError):
        restore_snapshot(tmp_path / "missing", tmp_path / "new", snapshot)


def test_a_snapshot_that_is_another_one_is_not_begun_from(full: Executed, tmp_path: Path) -> None:
    file = tmp_path / "snapshot"
    snapshot = full.executor.snapshot(file)
    wrong = [
        snapshot._replace(tables=snapshot.applied.digest),
        snapshot._replace(applied=snapshot.applied._replace(at=LogIndex(1))),
        snapshot._replace(engine="abacus"),
        snapshot._replace(file_digest=snapshot.tables),
    ]
    for description in wrong:
        with pytest.raises(SnapshotMismatch):
            restore_snapshot(file, tmp_path / "new", description)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(SnapshotMismatch):
        restore_snapshot(file, tmp_path / "new", snapshot)
    file.write_bytes(content[:-1])
    with pytest.raises(SnapshotMismatch):
        restore_snapshot(file, tmp_path / "new", snapshot)
    assert not (tmp_path / "new" / DATABASE_FILE).exists()
