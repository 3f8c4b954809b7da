"""Queries at one executor: its last commit, read and never written."""

import pytest

from quipu.storage.executors import limits
from quipu.storage.executors.acl import ALL, Acl, Right, Rule
from quipu.storage.executors.executor import RequestRefused
from quipu.storage.executors.outcome import Code
from quipu.storage.executors.reader import QueryFailed
from tests.executing import Executed

FOREVER = "WITH RECURSIVE r (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT x FROM r"


def test_a_query_says_which_state_it_saw(executed: Executed) -> None:
    executed.run("CREATE TABLE t (a)", "INSERT INTO t VALUES (1), ('x')")
    found = executed.executor.reader.query("SELECT a FROM t ORDER BY rowid")
    assert found.applied == executed.executor.position().applied
    assert (found.columns, found.rows, found.complete) == (("a",), ((1,), ("x",)), True)
    assert executed.executor.reader.query("SELECT a FROM t WHERE a = ?", ["x"]).rows == (("x",),)


def test_a_query_may_call_what_an_ordered_statement_may_not(executed: Executed) -> None:
    query = executed.executor.reader.query
    assert query("SELECT typeof(random()), length(datetime())").rows == (("integer", 19),)
    assert ("quipu_state",) in query("SELECT name FROM sqlite_schema").rows


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("CREATE TABLE u (a)", Code.NOT_ALLOWED),
        ("INSERT INTO t VALUES (1)", Code.NOT_ALLOWED),
        ("DELETE FROM t", Code.NOT_ALLOWED),
        ("PRAGMA query_only = OFF", Code.NOT_ALLOWED),
        ("ATTACH 'other' AS o", Code.NOT_ALLOWED),
        ("COMMIT", Code.NOT_ALLOWED),
        ("SELECT * FROM quipu_clients", Code.NOT_ALLOWED),
        ("SELECT * FROM pragma_database_list", Code.NOT_ALLOWED),
        ("SELECT ?", Code.BAD_PARAMETERS),
        ("SELECT * FROM missing", Code.BAD_SQL),
        ("SELECT 1; SELECT 2", Code.BAD_SQL),
        ("SELECT CAST(x'ff' AS TEXT)", Code.BAD_TEXT),
    ],
)
def test_what_a_query_may_not(executed: Executed, sql: str, code: Code) -> None:
    executed.run("CREATE TABLE t (a)")
    before = executed.executor.table_digest()
    with pytest.raises(QueryFailed) as caught:
        executed.executor.reader.query(sql)
    assert caught.value.code is code
    assert executed.executor.table_digest() == before
    assert executed.executor.reader.query("SELECT 1").rows == ((1,),)


def test_answers_are_bounded_and_say_so(executed: Executed) -> None:
    query = executed.executor.reader.query
    found = query(FOREVER)
    assert (len(found.rows), found.complete) == (limits.QUERY_ROWS_MAX, False)
    found = query(f"SELECT zeroblob(1000000) FROM ({FOREVER})")
    assert (len(found.rows), found.complete) == (limits.QUERY_BYTES_MAX // 1_000_010, False)


def test_time_ends_a_query(executed: Executed) -> None:
    with pytest.raises(QueryFailed) as caught:
        executed.executor.reader.query(f"SELECT count(*) FROM ({FOREVER})", time_s=0.01)
    assert caught.value.code is Code.STEPS_SPENT
    assert executed.executor.reader.query("SELECT 1").rows == ((1,),)


def test_an_integer_that_does_not_fit_is_refused(executed: Executed) -> None:
    with pytest.raises(QueryFailed) as caught:
        executed.executor.reader.query("SELECT ?", [2**63])
    assert caught.value.code is Code.BAD_PARAMETERS


def test_what_was_found_fit_is_looked_at_again_where_tables_or_rights_are_others(
    executed: Executed,
) -> None:
    writer = 2
    executed.add(writer, Acl((Rule("t", int(Right.READ | Right.WRITE)),)))
    insert = "INSERT INTO t (a) VALUES (1)"
    executed.run("CREATE TABLE t (a)")
    for client in (1, writer, 1):
        assert executed.refused(insert, client=client) is None
    executed.add(writer, Acl((Rule("t", Right.READ),)))
    assert executed.refused(insert, client=writer) is Code.NO_RIGHT
    assert executed.refused(insert) is None
    executed.run("DROP TABLE t", "CREATE VIEW t AS SELECT 1 AS a")
    assert executed.refused(insert) is Code.BAD_SQL
    assert executed.refused(("SELECT ?", 1)) is None
    assert executed.refused(("SELECT ?", 1, 2)) is Code.BAD_PARAMETERS


def test_what_takes_no_time_is_checked_at_once(executed: Executed) -> None:
    reader = executed.executor.reader
    short, long = executed.request("SELECT 1"), executed.request(f"SELECT '{'x' * 5_000}'")
    assert reader.validate_at_once(short)
    assert not reader.validate_at_once(long)
    with pytest.raises(RequestRefused, match="not-deterministic"):
        reader.validate_at_once(executed.request("SELECT random()"))
    with reader._lock:  # a query is under way
        assert not reader.validate_at_once(short)


def test_statements_of_one_kind_are_judged_by_who_asks(executed: Executed) -> None:
    """In one turn and in any order, for answers are remembered from one to the next."""
    other = 2
    executed.add(other, Acl((Rule("mine", int(ALL)),)))
    executed.run("CREATE TABLE mine (a)", "CREATE TABLE yours (a)")
    for _ in range(2):
        assert executed.run("INSERT INTO yours VALUES (1)").code is Code.OK
        refused = executed.run("INSERT INTO yours VALUES (1)", client=other)
        assert refused.code is Code.NO_RIGHT
        assert executed.run("INSERT INTO mine VALUES (1)", client=other).code is Code.OK
    assert executed.rows("SELECT count(*) FROM yours") == ((2,),)
