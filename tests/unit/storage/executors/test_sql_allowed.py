"""Which SQL is executed: refused before it is ordered, and again, equally, when it is executed."""

import pytest

from quipu.storage.executors import limits
from quipu.storage.executors.functions import DETERMINISTIC, UNSTEADY
from quipu.storage.executors.outcome import Code
from quipu.storage.executors.sql_text import words_of
from tests.executing import Executed

TABLES = (
    "CREATE TABLE stock (id INTEGER PRIMARY KEY, item TEXT UNIQUE, pieces INT CHECK (pieces >= 0))",
    "CREATE TABLE numbered (id INTEGER PRIMARY KEY AUTOINCREMENT, v)",
    "CREATE VIEW all_of_it AS SELECT item, pieces FROM stock",
)
UNSTEADY_SQL = [
    "SELECT random()",
    "SELECT RANDOM()",
    'SELECT "random"()',
    "SELECT hex(randomblob(4))",
    "SELECT date('now')",
    "SELECT datetime('now')",
    "SELECT datetime('2026-01-01')",
    "SELECT strftime('%s', 'now')",
    "SELECT julianday()",
    "SELECT unixepoch()",
    "SELECT current_time",
    "SELECT CURRENT_TIMESTAMP",
    "SELECT current_date",
    "SELECT last_insert_rowid()",
    "SELECT changes()",
    "SELECT total_changes()",
    "SELECT sqlite_version()",
    "SELECT sqlite_source_id()",
    "SELECT load_extension('x')",
    "INSERT INTO stock (item) VALUES (random())",
    "UPDATE stock SET item = datetime('now')",
    "DELETE FROM stock WHERE id = abs(random())",
    "INSERT INTO stock (item) VALUES ('a') ON CONFLICT DO UPDATE SET pieces = random()",
    "INSERT INTO stock (item) VALUES ('a') RETURNING random()",
    "SELECT item FROM stock ORDER BY random()",
    "WITH w AS (SELECT random() AS r) SELECT r FROM w",
    "CREATE TABLE t (a DEFAULT CURRENT_TIMESTAMP)",
    "CREATE TABLE t (a DEFAULT (random()))",
    "CREATE TABLE t (a CHECK (a > random()))",
    "CREATE TABLE t AS SELECT random() AS a",
    "CREATE VIEW v AS SELECT random() AS a",
    "CREATE TRIGGER g AFTER INSERT ON stock BEGIN DELETE FROM stock WHERE id = random(); END",
]
FORBIDDEN_SQL = [
    "PRAGMA user_version = 7",
    "PRAGMA foreign_keys = OFF",
    "SELECT * FROM pragma_user_version",
    "ATTACH ':memory:' AS other",
    "DETACH main",
    "VACUUM",
    "VACUUM INTO 'copy'",
    "ANALYZE",
    "REINDEX",
    "EXPLAIN SELECT 1",
    "EXPLAIN QUERY PLAN SELECT 1",
    "BEGIN",
    "BEGIN IMMEDIATE",
    "COMMIT",
    "END",
    "ROLLBACK",
    "SAVEPOINT a",
    "RELEASE quipu_request",
    "ROLLBACK TO quipu_request",
    "; /* here */ -- and there\n COMMIT",
    "CREATE TEMP TABLE t (a)",
    "CREATE TEMPORARY VIEW v AS SELECT 1",
    "CREATE TABLE temp.t (a)",
    "CREATE TEMP TRIGGER g AFTER INSERT ON stock BEGIN SELECT 1; END",
    "CREATE VIRTUAL TABLE f USING fts5(a)",
    "SELECT * FROM dbstat",
    "SELECT count(*) FROM dbstat",
    "CREATE TABLE dbstat (a)",
    "CREATE TABLE json_each (a)",
    "SELECT name FROM sqlite_schema",
    "SELECT count(*) FROM sqlite_master",
    "SELECT rootpage FROM sqlite_master",
    "SELECT seq FROM sqlite_sequence",
    "UPDATE sqlite_sequence SET seq = 9223372036854775807",
    "DELETE FROM sqlite_sequence",
    "SELECT * FROM quipu_state",
    "UPDATE quipu_state SET applied = 0",
    "DELETE FROM quipu_results",
    "DROP TABLE quipu_clients",
    "CREATE TABLE quipu_mine (a)",
    "CREATE TABLE Quipu_Mine (a)",
    "CREATE INDEX quipu_i ON stock (pieces)",
    "CREATE TRIGGER quipu_guard_9 AFTER INSERT ON stock BEGIN SELECT 1; END",
    "CREATE INDEX i ON quipu_results (digest)",
    "CREATE TABLE pragma_mine (a)",
    "INSERT OR ROLLBACK INTO stock (id) VALUES (1)",
    "UPDATE OR ROLLBACK stock SET id = 1",
    "CREATE TABLE t (a UNIQUE ON CONFLICT ROLLBACK)",
    "CREATE TRIGGER g AFTER INSERT ON stock BEGIN SELECT RAISE(ROLLBACK, 'all'); END",
    "CREATE TABLE t (a REFERENCES stock (id) DEFERRABLE INITIALLY /* later */ DEFERRED)",
    "UPDATE numbered SET rowid = 5, _rowid_ = 6 WHERE 0",
]
BROKEN_SQL = [
    "",
    "-- nothing",
    ";",
    "SELEC 1",
    "SELECT (",
    "SELECT 1; SELECT 2",
    "SELECT no_such(1)",
]
FINE_SQL = [
    "SELECT 1",
    "VALUES (1), (2)",
    "INSERT INTO stock (item, pieces) VALUES ('nut', 3) RETURNING id",
    "INSERT INTO stock (item) VALUES ('n') ON CONFLICT (item) DO UPDATE SET pieces = pieces + 1",
    "REPLACE INTO stock (id, item) VALUES (9, 'x')",
    "UPDATE stock SET pieces = 0 WHERE item LIKE 'n%'",
    "DELETE FROM stock WHERE id = 7",
    "SELECT item, pieces FROM all_of_it",
    "SELECT count(*) FROM stock",
    "SELECT 1 FROM stock",
    "WITH w AS (SELECT 1 AS a) SELECT count(*) FROM w",
    "WITH RECURSIVE r (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r WHERE x < 5) SELECT x FROM r",
    "SELECT value FROM json_each('[1, 2]')",
    "SELECT count(*) FROM json_tree('{\"a\": 1}')",
    "SELECT '{\"a\": 1}' ->> 'a', json_extract('{\"a\": 1}', '$.a')",
    "SELECT sum(pieces) OVER (ORDER BY id) FROM stock",
    "SELECT group_concat(item, ', ') FROM stock",
    "SELECT upper('a') || printf('%03d', 7) || quote('a') || hex(x'00')",
    "SELECT sqrt(2), floor(1.5), round(2.5)",
    "SELECT 'ROLLBACK', \"item\", [pieces], `id` FROM stock -- ROLLBACK",
    "SELECT 'current_timestamp is a text'",
    "CREATE TABLE other (a TEXT DEFAULT 'current_timestamp', b REFERENCES stock (id))",
    "CREATE TABLE typed (a INTEGER, b TEXT) STRICT",
    "CREATE TABLE keyed (a TEXT PRIMARY KEY) WITHOUT ROWID",
    "CREATE TABLE copied AS SELECT item FROM stock",
    "CREATE INDEX by_pieces ON stock (pieces)",
    "CREATE TRIGGER g AFTER INSERT ON stock BEGIN UPDATE stock SET pieces = 1; END",
    "CREATE VIEW v AS SELECT 1 AS random",
    "ALTER TABLE stock RENAME TO goods",
    "ALTER TABLE stock RENAME COLUMN pieces TO count",
    "ALTER TABLE stock ADD COLUMN place TEXT",
    "ALTER TABLE numbered DROP COLUMN v",
    "DROP TABLE numbered",
    "DROP VIEW all_of_it",
]


@pytest.fixture
def stock(executed: Executed) -> Executed:
    assert executed.run(*TABLES).code is Code.OK
    return executed


@pytest.mark.parametrize("sql", UNSTEADY_SQL)
def test_what_differs_between_executors_is_refused(stock: Executed, sql: str) -> None:
    assert stock.refused(sql) is Code.NOT_DETERMINISTIC
    assert stock.run(sql).code is Code.NOT_DETERMINISTIC


@pytest.mark.parametrize("sql", FORBIDDEN_SQL)
def test_what_reaches_beyond_the_request_is_refused(stock: Executed, sql: str) -> None:
    schema = "SELECT type, name, sql FROM sqlite_schema"
    before = stock.executor.reader.query(schema).rows
    assert stock.refused(sql) is Code.NOT_ALLOWED
    assert stock.run(sql).code is Code.NOT_ALLOWED
    assert stock.executor.reader.query(schema).rows == before
    assert stock.run("SELECT 1").code is Code.OK


@pytest.mark.parametrize("sql", BROKEN_SQL)
def test_broken_statements_are_refused(stock: Executed, sql: str) -> None:
    assert stock.refused(sql) is Code.BAD_SQL
    assert stock.run(sql).code is Code.BAD_SQL


@pytest.mark.parametrize("sql", FINE_SQL)
def test_the_rest_of_sql_is_executed(stock: Executed, sql: str) -> None:
    assert stock.refused(sql) is None
    outcome = stock.run(sql)
    assert outcome.code is Code.OK, outcome


def test_a_missing_table_may_be_there_by_then(stock: Executed) -> None:
    sql = "INSERT INTO later (a) VALUES (1)"
    assert stock.refused("CREATE TABLE later (a)", sql) is None
    assert stock.run(sql).code is Code.BAD_SQL
    assert stock.run("CREATE TABLE later (a)", sql).code is Code.OK


def test_a_view_that_came_in_by_a_quoted_name_is_refused_where_it_is_used(stock: Executed) -> None:
    assert stock.run('CREATE VIEW sly AS SELECT "random"() AS r').code is Code.OK
    assert stock.refused("SELECT r FROM sly") is Code.NOT_DETERMINISTIC
    assert stock.run("SELECT r FROM sly").code is Code.NOT_DETERMINISTIC


def test_a_trigger_that_came_in_by_a_quoted_name_is_refused_where_it_fires(stock: Executed) -> None:
    made = (
        "CREATE TRIGGER sly AFTER INSERT ON stock BEGIN"
        ' UPDATE stock SET pieces = "random"() WHERE id = new.id; END'
    )
    assert stock.run(made).code is Code.OK
    assert stock.run("INSERT INTO stock (item) VALUES ('a')").code is Code.NOT_DETERMINISTIC
    assert stock.rows("SELECT count(*) FROM stock") == ((0,),)


def test_a_table_does_not_take_a_reserved_name_by_renaming(stock: Executed) -> None:
    outcome = stock.run("ALTER TABLE stock RENAME TO quipu_stock")
    assert outcome.code is Code.NOT_ALLOWED
    assert stock.rows("SELECT count(*) FROM stock") == ((0,),)


def test_a_long_statement_is_refused(stock: Executed) -> None:
    sql = "SELECT 1 -- " + "x" * limits.SQL_BYTES_MAX
    assert stock.refused(sql) is Code.BAD_SQL
    assert stock.run(sql).code is Code.BAD_SQL
    assert stock.run("SELECT 'a\0b'").code is Code.BAD_SQL


def test_parameters_have_no_names(stock: Executed) -> None:
    """Python's binding takes names from a list in one version and not in the next."""
    for sql in ("SELECT :a", "SELECT @a", "SELECT $a", "SELECT ?1"):
        assert stock.refused((sql, 1)) is Code.BAD_PARAMETERS
        assert stock.run((sql, 1)).code is Code.BAD_PARAMETERS
    assert stock.rows("SELECT ?, ?, '$.a :b'", 1, 2) == ((1, 2, "$.a :b"),)


def test_no_function_is_both_allowed_and_not() -> None:
    assert DETERMINISTIC.isdisjoint(UNSTEADY)


@pytest.mark.parametrize(
    ("sql", "first", "second"),
    [
        ("select 1", "SELECT", "1"),
        ("/* drop */ -- alter\n insert into a values (1)", "INSERT", "INTO"),
        ("'drop' select", "SELECT", ""),
        ("drop/**/table x", "DROP", "TABLE"),
        ("? : @ values", "VALUES", ""),
        ("/* never closed", "", ""),
        ("'never closed select", "", ""),
    ],
)
def test_words_are_told_from_what_only_looks_like_them(sql: str, first: str, second: str) -> None:
    assert words_of(sql)[:2] == (first, second)
