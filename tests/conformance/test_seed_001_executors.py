"""Seed 001, the clauses of executors (docs/protocols.md), on the executor alone; what a node makes
of them is in test_seed_001_clients.py."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from quipu.storage.executors.acl import Acl, Right, Rule
from quipu.storage.executors.executor import Diverged, Released, check_mark
from quipu.storage.executors.outcome import Code
from quipu.storage.executors.request import CHECKPOINT, ClientId, LogIndex, Message, MessageId
from quipu.storage.executors.sqlite_executor import SqliteExecutor
from tests.conformance.clauses import clause
from tests.executing import CLUSTER, Executed


@pytest.fixture
def n1(tmp_path: Path) -> Iterator[Executed]:
    made = Executed(tmp_path / "n1")
    made.add()
    made.run("CREATE TABLE stock (id INTEGER PRIMARY KEY, item TEXT UNIQUE)")
    yield made
    made.executor.close()


@pytest.fixture
def n2(tmp_path: Path) -> Iterator[SqliteExecutor]:
    made = SqliteExecutor(tmp_path / "n2", CLUSTER)
    yield made
    made.close()


@clause("001-11")
def test_a_data_stream_belongs_to_a_database(n1: Executed) -> None:
    n1.run(("INSERT INTO stock (item) VALUES (?)", "nut"))
    assert n1.executor.reader.query("SELECT item FROM stock").rows == (("nut",),)


@clause("001-13")
def test_the_stream_is_master_and_the_database_follows(n1: Executed, n2: SqliteExecutor) -> None:
    """Once each, and the applied index is of the same commit as what it speaks of."""
    n1.run("INSERT INTO stock (item) VALUES ('nut')")
    n2.apply(n1.log[:2], LogIndex(2))
    n2.apply(n1.log[2:], n1.log[-1].at)
    assert n2.position() == n1.executor.position()
    assert n2.table_digest() == n1.executor.table_digest()
    n1.reopen()
    assert n1.executor.position() == n2.position()
    assert n1.rows("SELECT count(*) FROM stock") == ((1,),)


@clause("001-14", "001-116")
def test_each_client_acts_with_its_own_rights(n1: Executed) -> None:
    n1.add(2, Acl((Rule("stock", Right.READ),)))
    assert n1.run("SELECT item FROM stock", client=2).code is Code.OK
    assert n1.run("DELETE FROM stock", client=2).code is Code.NO_RIGHT
    assert n1.run("DELETE FROM stock", client=1).code is Code.OK


@clause("001-17")
def test_each_clients_results_stay_until_they_are_cleared(n1: Executed) -> None:
    n1.add(2)
    n1.run("SELECT 'of 2'", client=2)
    n1.reopen()
    for client, number in ((1, 1), (2, 1)):
        kept = n1.executor.result(ClientId(client), MessageId(number))
        assert not isinstance(kept, Released | None)
    n1.read(upto=1, have=1)
    assert n1.executor.result(ClientId(1), MessageId(1)) == Released(1)
    kept = n1.executor.result(ClientId(2), MessageId(1))
    assert not isinstance(kept, Released | None)
    assert kept.outcome.results[0].rows == (("of 2",),)


@clause("001-105")
def test_the_messages_of_a_request_are_one_transaction(n1: Executed) -> None:
    insert = "INSERT INTO stock (item) VALUES ('nut')"
    assert n1.run(insert, insert).code is Code.NOT_UNIQUE
    assert n1.rows("SELECT count(*) FROM stock") == ((0,),)
    assert n1.run(insert, "INSERT INTO stock (item) VALUES ('bolt')").code is Code.OK
    assert n1.rows("SELECT count(*) FROM stock") == ((2,),)


@clause("001-106")
def test_checkpoints_may_stand_among_the_messages(n1: Executed) -> None:
    insert = "INSERT INTO stock (item) VALUES ('nut')"
    assert n1.run(insert, Message(CHECKPOINT, b""), insert).code is Code.NOT_UNIQUE
    assert n1.rows("SELECT item FROM stock") == (("nut",),)


@clause("001-107")
def test_each_message_has_its_result_and_it_is_stored(n1: Executed) -> None:
    said = ("INSERT INTO stock (item) VALUES ('nut') RETURNING id", "SELECT item FROM stock")
    outcome = n1.run(*said)
    assert [result.rows for result in outcome.results] == [((1,),), (("nut",),)]
    kept = n1.executor.result(ClientId(1), MessageId(2))
    assert not isinstance(kept, Released | None)
    assert kept.outcome == outcome
    assert kept.request == n1.read(upto=2, have=1).kept[0].request


@clause("001-108", "001-109", "001-110")
def test_read_gives_what_came_before_and_clears_what_is_held(
    n1: Executed, n2: SqliteExecutor
) -> None:
    """It is in the order, so every executor clears the same."""
    for number in (2, 3, 4):
        n1.run(f"SELECT {number}")
    first = n1.read(upto=3, have=0)
    assert [k.message_id for k in first.kept] == [1, 2, 3]
    assert n1.read(upto=3, have=0) == first
    assert [k.message_id for k in n1.read(upto=4, have=3).kept] == [4]
    *_, answer = n2.apply(n1.log, n1.log[-1].at)
    assert answer.told() == n1.read(upto=4, have=3).told()
    for number in (1, 2, 3):
        assert n2.result(ClientId(1), MessageId(number)) == Released(3)


@clause("001-114")
def test_executors_compare_the_requests_that_they_executed(
    n1: Executed, n2: SqliteExecutor
) -> None:
    n2.apply(n1.log, n1.log[-1].at)
    assert check_mark(n2, n1.executor.position().applied)
    n1.run("SELECT 1")
    n2.apply([n1.log[-1]._replace(command=n1.request("SELECT 2"))], n1.log[-1].at)
    with pytest.raises(Diverged):
        check_mark(n2, n1.executor.position().applied)


@clause("001-117")
def test_requests_are_checked_ahead_and_nothing_is_stored(n1: Executed) -> None:
    before = (n1.executor.position(), n1.executor.table_digest())
    assert n1.refused("INSERT INTO stock (item) VALUES (random())") is Code.NOT_DETERMINISTIC
    assert n1.refused("INSERT INTO stock (item) VALUES ('nut')") is None
    assert (n1.executor.position(), n1.executor.table_digest()) == before
