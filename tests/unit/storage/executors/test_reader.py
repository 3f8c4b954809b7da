"""Queries at one executor: its last commit, read and never written."""

import pytest

from quipu.storage.executors import limits
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
