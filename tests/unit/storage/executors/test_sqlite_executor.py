"""Turns, requests as transactions, results and their digests on SQLite."""

import math
import sqlite3
from pathlib import Path

import pytest

from quipu.storage.environment import StoreLocked
from quipu.storage.executors import limits
from quipu.storage.executors.acl import EVERYTHING, encode_acl
from quipu.storage.executors.executor import (
    Diverged,
    Mark,
    OtherEngine,
    OutOfOrder,
    Released,
    RequestRefused,
    check_mark,
)
from quipu.storage.executors.interpreter import statement
from quipu.storage.executors.outcome import Code, Outcome, Result
from quipu.storage.executors.request import (
    CHECKPOINT,
    STATEMENT,
    AddClient,
    ClientId,
    LogIndex,
    Message,
    MessageId,
    Ordered,
    Read,
    Request,
)
from quipu.storage.executors.sqlite_executor import SITES, OtherFormat, SqliteExecutor, WrongCluster
from quipu.storage.store import OutcomeUnknown, StoreClosed, StoreError, StoreFull
from tests.executing import CLUSTER, Executed

FOREVER = "WITH RECURSIVE r (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT x FROM r"


@pytest.fixture
def stock(executed: Executed) -> Executed:
    executed.run("CREATE TABLE stock (id INTEGER PRIMARY KEY, item TEXT UNIQUE NOT NULL, n INT)")
    return executed


def codes(outcome: Outcome) -> list[str]:
    return [str(result.code) for result in outcome.results]


def test_values_keep_their_types(executed: Executed) -> None:
    values = (None, 0, -(2**63), 2**63 - 1, 1.0, -0.5, math.inf, "", "ä\U0001f9f5", b"", b"\0\xff")
    marks = ", ".join("?" for _ in values)
    (row,) = executed.rows(f"SELECT {marks}", *values)
    assert row == values
    assert [type(v) for v in row] == [type(v) for v in values]
    assert executed.rows("SELECT typeof(?), typeof(?), typeof(?)", 1, 1.0, b"1") == (
        ("integer", "real", "blob"),
    )


@pytest.mark.parametrize("value", [math.nan, True, 2**63, (1, 2)])
def test_values_that_sqlite_has_not_are_refused(executed: Executed, value: object) -> None:
    said = ("SELECT ?", value)
    assert executed.refused(said) is Code.BAD_PARAMETERS  # type: ignore[arg-type]
    assert executed.run(said).code is Code.BAD_PARAMETERS  # type: ignore[arg-type]


def test_a_result_has_columns_rows_and_changes(stock: Executed) -> None:
    outcome = stock.run("INSERT INTO stock (item, n) VALUES ('nut', 3), ('bolt', 4) RETURNING id")
    assert outcome.results == (Result(Code.OK, ("id",), ((1,), (2,)), changes=2),)
    outcome = stock.run("UPDATE stock SET n = n + 1")
    assert outcome.results == (Result(Code.OK, changes=2),)
    outcome = stock.run("SELECT item AS what, n FROM stock ORDER BY n DESC")
    assert outcome.results == (Result(Code.OK, ("what", "n"), (("bolt", 5), ("nut", 4))),)


def test_a_request_takes_effect_whole_or_not_at_all(stock: Executed) -> None:
    outcome = stock.run(
        "INSERT INTO stock (item) VALUES ('nut')",
        "CREATE TABLE other (a)",
        "INSERT INTO stock (item) VALUES ('nut')",
        "SELECT 1",
    )
    assert outcome.code is Code.NOT_UNIQUE
    assert codes(outcome) == ["rolled-back", "rolled-back", "not-unique", "not-run"]
    assert outcome.results[2].detail == "UNIQUE constraint failed: stock.item"
    assert stock.rows("SELECT count(*) FROM stock") == ((0,),)
    assert stock.run("SELECT * FROM other").code is Code.BAD_SQL


def test_a_failure_goes_back_to_the_last_checkpoint(stock: Executed) -> None:
    outcome = stock.run(
        "INSERT INTO stock (item) VALUES ('nut')",
        Message(CHECKPOINT, b""),
        "INSERT INTO stock (item) VALUES ('bolt')",
        "INSERT INTO stock (item) VALUES ('nut')",
    )
    assert codes(outcome) == ["ok", "ok", "rolled-back", "not-unique"]
    assert stock.rows("SELECT item FROM stock") == (("nut",),)


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (("INSERT INTO stock (item) VALUES (?)", None), Code.NOT_NULL),
        (("INSERT INTO checked VALUES (?)", -1), Code.CHECK),
        (("INSERT INTO strict VALUES (?)", "text"), Code.CONSTRAINT),
        (("INSERT INTO child VALUES (?)", 77), Code.FOREIGN_KEY),
        (("INSERT INTO stock (id, item) VALUES (?, 'a')", "text"), Code.WRONG_TYPE),
        (("INSERT INTO raising VALUES (?)", 1), Code.CONSTRAINT),
        (("SELECT ?",), Code.BAD_PARAMETERS),
        (("SELECT 1", 2), Code.BAD_PARAMETERS),
        (("SELECT CAST(? AS TEXT)", b"\xff"), Code.BAD_TEXT),
        (("SELECT zeroblob(?)", limits.VALUE_BYTES_MAX + 1), Code.VALUE_TOO_LARGE),
        (("SELECT zeroblob(?)", limits.RESULT_BYTES_MAX), Code.RESULT_TOO_LARGE),
        ((f"{FOREVER} LIMIT ?", limits.RESULT_ROWS_MAX + 1), Code.RESULT_TOO_LARGE),
        (("SELECT * FROM missing",), Code.BAD_SQL),
        (Message(STATEMENT, b"\xc1"), Code.MALFORMED),
        (Message(77, b""), Code.UNKNOWN_KIND),
    ],
)
def test_failures_are_results(stock: Executed, said: tuple[str, ...] | Message, code: Code) -> None:
    stock.run(
        "CREATE TABLE checked (a CHECK (a > 0))",
        "CREATE TABLE strict (a INT) STRICT",
        "CREATE TABLE child (a REFERENCES stock (id))",
        "CREATE TABLE raising (a)",
        "CREATE TRIGGER g AFTER INSERT ON raising BEGIN SELECT RAISE(ABORT, 'no'); END",
    )
    outcome = stock.run(said)
    assert outcome.code is code, outcome
    assert codes(outcome) == [str(code)]
    assert stock.run("SELECT 1").code is Code.OK


def test_results_of_one_request_share_their_bounds(executed: Executed) -> None:
    half = f"{FOREVER} LIMIT {limits.RESULT_ROWS_MAX // 2}"
    assert executed.run(half, half).code is Code.OK
    outcome = executed.run(half, half, "SELECT 1")
    assert codes(outcome) == ["rolled-back", "rolled-back", "result-too-large"]
    name = "x" * 100_000
    outcome = executed.run(*[f'SELECT 1 AS "{name}" WHERE 0'] * 11)  # names of columns count
    assert outcome.code is Code.RESULT_TOO_LARGE


def test_steps_are_counted_and_never_time(stock: Executed) -> None:
    endless = f"SELECT count(*) FROM ({FOREVER})"
    assert stock.run(endless).code is Code.STEPS_SPENT
    assert stock.run("SELECT 1").code is Code.OK


def test_steps_end_at_the_same_place_whatever_went_before(
    tmp_path: Path, executed: Executed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A prepared statement that is used again would go on counting where it ended."""
    monkeypatch.setattr(limits, "REQUEST_STEPS_MAX", 20_000)
    sizes = [*range(600, 1_600, 100), *range(1_000, 1_100, 3)]
    said = f"SELECT count(*) FROM ({FOREVER} LIMIT ?)"
    at_once = [executed.run((said, size)).code for size in sizes]
    fresh = Executed(tmp_path / "fresh")
    fresh.add()
    found = []
    for size in sizes:
        fresh.run("CREATE TABLE t (a)", "SELECT no_such(1)")  # the schema is read anew
        found.append(fresh.run((said, size)).code)
        fresh.reopen()
    fresh.executor.close()
    assert found == at_once
    assert set(found) == {Code.OK, Code.STEPS_SPENT}


def test_a_write_that_spends_its_steps_takes_nobody_along(stock: Executed) -> None:
    """SQLite ends the whole transaction then: the turn is run again without that statement."""
    at = LogIndex(stock.executor.position().applied.at)
    turn = [
        Ordered(LogIndex(at + 1), stock.request("INSERT INTO stock (item) VALUES ('before')")),
        Ordered(
            LogIndex(at + 1),
            stock.request(
                "INSERT INTO stock (item) VALUES ('undone')",
                "CREATE TABLE undone (a)",
                f"INSERT INTO stock (item) {FOREVER}",
                "SELECT 1",
            ),
        ),
        Ordered(
            LogIndex(at + 2),
            stock.request(f"UPDATE stock SET n = (SELECT max(x) FROM ({FOREVER}))"),
        ),
        Ordered(LogIndex(at + 2), stock.request("INSERT INTO stock (item) VALUES ('after')")),
    ]
    outcomes = stock.executor.apply(turn, LogIndex(at + 2))
    assert [str(o.code) for o in outcomes] == ["ok", "steps-spent", "steps-spent", "ok"]
    assert isinstance(outcomes[1], Outcome)
    assert codes(outcomes[1]) == ["rolled-back", "rolled-back", "steps-spent", "not-run"]
    found = stock.executor.reader.query("SELECT id, item FROM stock ORDER BY id")
    assert found.rows == ((1, "before"), (2, "after"))


def test_a_request_of_too_many_messages_is_not_run(executed: Executed) -> None:
    said = ["SELECT 1"] * (limits.MESSAGES_PER_REQUEST_MAX + 1)
    assert executed.refused(*said) is Code.TOO_MANY_MESSAGES
    assert executed.run(*said) == Outcome(Code.TOO_MANY_MESSAGES)


def test_unknown_clients_and_known_ids_change_nothing(stock: Executed) -> None:
    insert = statement("INSERT INTO stock (item) VALUES ('nut')")
    assert stock.order(Request(7, 1, (insert,))) == Outcome(Code.UNKNOWN_CLIENT)
    with pytest.raises(RequestRefused) as caught:
        stock.executor.validate(Request(7, 1, (insert,)))
    assert caught.value.code is Code.UNKNOWN_CLIENT
    assert stock.order(Request(1, 1, (insert,))) == Outcome(Code.REPEATED)
    assert stock.rows("SELECT count(*) FROM stock") == ((0,),)
    stored = stock.executor.result(ClientId(1), MessageId(1))
    assert not isinstance(stored, Released | None)
    assert stored.outcome.code is Code.OK


def test_a_client_that_is_removed_is_gone_with_its_results(stock: Executed) -> None:
    assert stock.remove() == Outcome(Code.OK)
    assert stock.remove() == Outcome(Code.UNKNOWN_CLIENT)
    assert stock.run("SELECT 1") == Outcome(Code.UNKNOWN_CLIENT)
    assert stock.executor.result(ClientId(1), MessageId(1)) is None
    assert stock.order(AddClient(2, b"\xc1")).code is Code.BAD_ACL
    assert stock.read(1, 0, client=2).code is Code.UNKNOWN_CLIENT


def test_results_are_kept_until_the_client_says_that_it_holds_them(executed: Executed) -> None:
    for number in range(1, 5):
        executed.run(f"SELECT {number}")
    answer = executed.read(upto=3, have=0)
    assert (answer.code, answer.upto, answer.released) == (Code.OK, 3, 0)
    assert [k.message_id for k in answer.kept] == [1, 2, 3]
    assert [k.outcome.results[0].rows for k in answer.kept] == [((1,),), ((2,),), ((3,),)]
    assert executed.read(upto=3, have=0) == answer  # a lost answer loses nothing
    answer = executed.read(upto=9, have=2)
    assert [k.message_id for k in answer.kept] == [3, 4]
    assert (answer.upto, answer.released) == (4, 2)
    assert executed.executor.result(ClientId(1), MessageId(2)) == Released(2)
    answer = executed.read(upto=9, have=1)  # said before that it holds 2
    assert answer.code is Code.RELEASED
    assert [k.message_id for k in answer.kept] == [3, 4]
    assert executed.read(upto=9, have=5).code is Code.AHEAD
    assert executed.executor.result(ClientId(1), MessageId(5)) is None
    executed.reopen()
    assert executed.executor.result(ClientId(1), MessageId(1)) == Released(2)
    assert executed.read(upto=4, have=4).kept == ()


def test_one_answer_is_bounded_and_the_next_goes_on(executed: Executed) -> None:
    size = limits.RESULT_BYTES_MAX - 100
    for _ in range(6):
        executed.run(("SELECT zeroblob(?)", size))
    seen: list[int] = []
    while len(seen) < 6:
        answer = executed.read(upto=6, have=len(seen))
        assert 0 < len(answer.kept) < 6
        seen += [k.message_id for k in answer.kept]
        assert answer.upto == seen[-1]
    assert seen == [1, 2, 3, 4, 5, 6]


def test_a_client_that_never_reads_is_stopped(
    executed: Executed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "KEPT_BYTES_PER_CLIENT_MAX", 1_000)
    assert executed.run(("SELECT zeroblob(?)", 1_000)).code is Code.OK
    assert executed.refused("SELECT 1") is Code.RESULTS_UNREAD
    assert executed.run("SELECT 1") == Outcome(Code.RESULTS_UNREAD)
    executed.read(upto=2, have=2)
    assert executed.run("SELECT 1").code is Code.OK


def test_the_same_commands_give_the_same_digests(tmp_path: Path, stock: Executed) -> None:
    stock.run("INSERT INTO stock (item) VALUES ('nut')", "SELECT * FROM stock")
    stock.run("INSERT INTO stock (item) VALUES ('nut')")
    stock.read(upto=2, have=1)
    other = SqliteExecutor(tmp_path / "other", CLUSTER)
    other.apply(stock.log, stock.log[-1].at)
    assert other.position() == stock.executor.position()
    assert other.table_digest() == stock.executor.table_digest()
    other.apply([Ordered(LogIndex(99), Read(1, 0, 0))], LogIndex(99))
    assert other.position() != stock.executor.position()
    other.close()


def test_digests_are_compared_at_the_same_index(tmp_path: Path, executed: Executed) -> None:
    other = SqliteExecutor(tmp_path / "other", CLUSTER)
    liar = SqliteExecutor(tmp_path / "liar", CLUSTER)
    stride = limits.MARK_STRIDE
    add = AddClient(1, encode_acl(EVERYTHING))
    executed.executor.apply([Ordered(LogIndex(5), Read(1, 0, 0))], LogIndex(5))
    other.apply(executed.log, LogIndex(4))
    other.apply([Ordered(LogIndex(5), Read(1, 0, 0))], LogIndex(3 * stride))
    liar.apply([Ordered(LogIndex(1), add), Ordered(LogIndex(5), add)], LogIndex(stride))
    executed.executor.apply([], LogIndex(stride + 1))
    assert check_mark(executed.executor, liar.position().applied._replace(at=LogIndex(2))) is False
    mark = Mark(
        LogIndex(stride), other.digest_at(LogIndex(stride)) or other.position().applied.digest
    )
    assert check_mark(executed.executor, mark) is True
    with pytest.raises(Diverged) as caught:
        check_mark(other, liar.position().applied)
    assert caught.value.index == stride
    other.close()
    liar.close()


@pytest.mark.parametrize(
    ("places", "upto"), [([1], 1), ([3, 2], 3), ([2, 4], 3), ([], 0), ([2], 2**63)]
)
def test_commands_out_of_order_are_a_fault_of_the_caller(
    executed: Executed, places: list[int], upto: int
) -> None:
    before = executed.executor.position()
    turn = [Ordered(LogIndex(at), Read(1, 0, 0)) for at in places]
    with pytest.raises(OutOfOrder):
        executed.executor.apply(turn, LogIndex(upto))
    assert executed.executor.position() == before


def test_an_empty_turn_moves_the_index_alone(executed: Executed) -> None:
    before = executed.executor.position().applied
    assert executed.executor.apply([], before.at) == []
    assert executed.executor.apply([], LogIndex(9)) == []
    assert executed.executor.position().applied == Mark(LogIndex(9), before.digest)


def test_it_goes_on_after_a_start(stock: Executed) -> None:
    stock.run("INSERT INTO stock (item) VALUES ('nut')")
    before = (stock.executor.position(), stock.executor.table_digest())
    stock.reopen()
    assert (stock.executor.position(), stock.executor.table_digest()) == before
    assert stock.rows("INSERT INTO stock (item) VALUES ('bolt') RETURNING id") == ((2,),)


def test_only_its_owner_opens_it(executed: Executed) -> None:
    with pytest.raises(StoreLocked):
        SqliteExecutor(executed.directory, CLUSTER)
    executed.executor.close()
    executed.executor.close()
    for ask in (executed.executor.table_digest, lambda: executed.executor.apply([], LogIndex(9))):
        with pytest.raises(StoreClosed):
            ask()
    with pytest.raises(WrongCluster):
        SqliteExecutor(executed.directory, bytes(32))
    executed.reopen()


def test_another_engine_goes_on_only_when_told_to(
    executed: Executed, monkeypatch: pytest.MonkeyPatch
) -> None:
    executed.executor.close()
    monkeypatch.setattr(
        "quipu.storage.executors.sqlite_executor.engine", lambda: "sqlite 9.9.9 abacus 0"
    )
    with pytest.raises(OtherEngine):
        SqliteExecutor(executed.directory, CLUSTER)
    adopted = SqliteExecutor(executed.directory, CLUSTER, adopt=True)
    assert adopted.position().engine == "sqlite 9.9.9 abacus 0 sql/1"
    adopted._connection.execute("UPDATE quipu_state SET format = 1")
    adopted.close()
    with pytest.raises(OtherFormat):
        SqliteExecutor(executed.directory, CLUSTER, adopt=True)
    restored = sqlite3.connect(executed.directory / "executor.sqlite3", isolation_level=None)
    restored.execute("UPDATE quipu_state SET format = 2")
    restored.close()
    with pytest.raises(WrongCluster):
        SqliteExecutor(executed.directory, bytes(32), adopt=True)
    executed.reopen()


def test_a_full_disk_ends_the_turn_and_leaves_nothing(stock: Executed) -> None:
    before = (stock.executor.position(), stock.executor.table_digest())
    connection = stock.executor._connection
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages}")
    fill = stock.request(("INSERT INTO stock (item) VALUES (?)", "x" * 100_000))
    turn = [Ordered(LogIndex(before[0].applied.at + 1), fill)]
    with pytest.raises(StoreFull):
        stock.executor.apply(turn, turn[0].at)
    assert (stock.executor.position(), stock.executor.table_digest()) == before
    connection.execute(f"PRAGMA max_page_count = {pages + 1_000}")
    (outcome,) = stock.executor.apply(turn, turn[0].at)  # the same turn, once there is room
    assert outcome.code is Code.OK


@pytest.mark.parametrize("site", [*SITES][:3])
def test_an_error_within_a_turn_leaves_nothing_of_it(stock: Executed, site: str) -> None:
    def passing(at: str) -> None:
        if at == site:
            raise RuntimeError(site)

    before = (stock.executor.position(), stock.executor.table_digest())
    stock.executor._passing = passing
    turn = [Ordered(LogIndex(before[0].applied.at + 1), stock.request("CREATE TABLE t (a)"))]
    with pytest.raises(RuntimeError):
        stock.executor.apply(turn, turn[0].at)
    stock.executor._passing = lambda at: None
    assert (stock.executor.position(), stock.executor.table_digest()) == before
    (outcome,) = stock.executor.apply(turn, turn[0].at)
    assert outcome.code is Code.OK


def test_after_a_commit_of_unknown_outcome_only_opening_anew_tells(stock: Executed) -> None:
    """The commit is durable and its answer was lost: no guess is made."""

    class Torn:
        def __init__(self, real: sqlite3.Connection) -> None:
            self._real = real

        def execute(self, sql: str, *rest: object) -> object:
            if sql == "COMMIT":
                self._real.execute("COMMIT")
                raise sqlite3.OperationalError("disk I/O error")
            return self._real.execute(sql, *rest)  # type: ignore[arg-type]

        def __getattr__(self, name: str) -> object:
            return getattr(self._real, name)

    real = stock.executor._connection
    stock.executor._connection = Torn(real)  # type: ignore[assignment]
    at = LogIndex(stock.executor.position().applied.at + 1)
    turn = [Ordered(at, stock.request("INSERT INTO stock (item) VALUES ('nut')"))]
    with pytest.raises(OutcomeUnknown):
        stock.executor.apply(turn, at)
    with pytest.raises(StoreClosed):
        stock.executor.apply(turn, at)
    stock.executor._connection = real
    stock.reopen()
    assert stock.executor.position().applied.at == at
    assert stock.rows("SELECT count(*) FROM stock") == ((1,),)


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "executor.sqlite3").write_bytes(b"not a database" * 1_000)
    with pytest.raises(StoreError):
        SqliteExecutor(tmp_path, CLUSTER)


def test_a_stored_result_that_changed_is_not_handed_out(executed: Executed) -> None:
    executed.run("SELECT 1")
    executed.executor._connection.execute("UPDATE quipu_results SET digest = zeroblob(32)")
    with pytest.raises(StoreError):
        executed.executor.result(ClientId(1), MessageId(1))
