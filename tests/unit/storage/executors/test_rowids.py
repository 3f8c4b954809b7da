"""SQLite takes rowids at random above the greatest: no row gets there."""

import sqlite3

import pytest

from quipu.storage.executors import limits
from quipu.storage.executors.outcome import Code
from tests.executing import Executed

MOST = limits.INTEGER_MAX


def test_sqlite_really_takes_rowids_at_random() -> None:
    """Why the guards are there, and why they are triggers: the row is gone when the statement
    ends."""
    tricks = set()
    for _ in range(3):
        connection = sqlite3.connect(":memory:")
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, u UNIQUE)")
        connection.execute(f"REPLACE INTO t VALUES ({MOST}, 'a'), (NULL, 'b'), (5, 'a')")
        tricks.add(connection.execute("SELECT id FROM t WHERE u = 'b'").fetchone()[0])
        connection.close()
    assert len(tricks) == 3


@pytest.mark.parametrize(
    "table",
    [
        "t (id INTEGER PRIMARY KEY, u UNIQUE)",
        "t (id INTEGER PRIMARY KEY AUTOINCREMENT, u UNIQUE)",
        "t (id INTEGER PRIMARY KEY, u UNIQUE, rowid)",
        "t (id INTEGER PRIMARY KEY, u UNIQUE, rowid, _rowid_, oid)",
        "t (id INTEGER PRIMARY KEY, u TEXT UNIQUE) STRICT",
    ],
)
def test_no_statement_gets_there(executed: Executed, table: str) -> None:
    assert executed.run(f"CREATE TABLE {table}").code is Code.OK
    for sql in (
        f"INSERT INTO t (id) VALUES ({MOST})",
        f"REPLACE INTO t (id, u) VALUES ({MOST}, 'a'), (NULL, 'b'), (5, 'a')",
        f"INSERT INTO t (id, u) VALUES (1, 'a'), (2, 'a') ON CONFLICT DO UPDATE SET id = {MOST}",
    ):
        assert executed.run(sql).code is Code.ROWID_EXHAUSTED, sql
    executed.run("INSERT INTO t (id, u) VALUES (1, 'a')")
    assert executed.run(f"UPDATE t SET id = {MOST}").code is Code.ROWID_EXHAUSTED
    assert executed.rows("INSERT INTO t (u) VALUES ('next') RETURNING id") == ((2,),)


def test_tables_without_a_key_are_guarded_by_their_hidden_rowid(executed: Executed) -> None:
    executed.run("CREATE TABLE t (a)")
    outcome = executed.run(f"INSERT INTO t (rowid, a) VALUES ({MOST}, 1)")
    assert outcome.code is Code.ROWID_EXHAUSTED
    executed.run("ALTER TABLE t RENAME COLUMN a TO rowid")  # the name means the column now
    outcome = executed.run(f"INSERT INTO t (_rowid_, rowid) VALUES ({MOST}, 1)")
    assert outcome.code is Code.ROWID_EXHAUSTED
    assert executed.run(f"INSERT INTO t (rowid) VALUES ({MOST})").code is Code.OK


def test_guards_follow_renames_drops_rollbacks_and_starts(executed: Executed) -> None:
    executed.run("CREATE TABLE t (a)")
    executed.run("ALTER TABLE t RENAME TO s")
    executed.run("CREATE TABLE t (a)")
    assert executed.run("DROP TABLE t", "SELECT no_such(1)").code is Code.BAD_SQL
    executed.run("CREATE TABLE u (a)", "DROP TABLE u")
    executed.reopen()
    for table in ("t", "s"):
        outcome = executed.run(f"INSERT INTO {table} (rowid) VALUES ({MOST})")
        assert outcome.code is Code.ROWID_EXHAUSTED, table


def test_a_client_cannot_drop_a_guard(executed: Executed) -> None:
    executed.run("CREATE TABLE t (a)")
    assert executed.run("DROP TRIGGER temp.quipu_guard_1").code is Code.NOT_ALLOWED
    assert executed.run(f"INSERT INTO t (rowid) VALUES ({MOST})").code is Code.ROWID_EXHAUSTED
