"""An app's own interpreter: the one that docs/executors.md shows."""

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from quipu.storage.executors.interpreter import Interpreter
from quipu.storage.executors.outcome import Code, Result
from quipu.storage.executors.request import LogIndex, Message, Ordered
from tests import tree
from tests.executing import Executed

PAGE = tree.read("docs/executors.md").partition("## An interpreter of your own")[2]
SHOWN = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)


def accounts() -> Interpreter:
    assert SHOWN is not None
    names: dict[str, Any] = {}
    exec(compile(SHOWN[1], "docs/executors.md", "exec"), names)
    made: Interpreter = names["Accounts"]()
    return made


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[Executed]:
    made = Executed(tmp_path / "bank", accounts())
    made.add()
    yield made
    made.executor.close()


def test_the_example_moves_money_exactly_once(bank: Executed) -> None:
    assert bank.run(Message(1, b"ann 500")).results == (Result(Code.OK, ("cents",), ((500,),), 1),)
    outcome = bank.run(Message(3, b"ann bob 200"), Message(3, b"bob cy 50"))
    assert [r.rows for r in outcome.results] == [((200,),), ((50,),)]
    assert bank.run(Message(3, b"ann bob 100"), Message(3, b"cy bob 51")).code is Code.CHECK
    assert bank.run(Message(3, b"dan bob 1")).code is Code.APP
    bank.reopen()
    found = bank.executor.reader.query("SELECT name, cents FROM account ORDER BY name")
    assert found.rows == (("ann", 300), ("bob", 150), ("cy", 50))


def test_the_example_refuses_before_the_order(bank: Executed) -> None:
    for message in (Message(1, b"ann"), Message(1, b"ann much"), Message(9, b"ann 5")):
        assert bank.refused(message) is Code.MALFORMED
        assert bank.run(message).code is Code.MALFORMED
    assert bank.refused(Message(1, b"ann 5")) is None
    assert bank.refused(Message(2, b"")) is None  # a checkpoint


def test_its_meaning_is_part_of_the_engine(bank: Executed) -> None:
    assert bank.executor.position().engine.endswith(" accounts/1")


class Stubborn:
    """Catches everything, and goes on writing after its transaction is gone."""

    name = "stubborn/1"
    as_client = True

    def prepare(self, database: Any) -> None:
        database.execute("CREATE TABLE t (a)")

    def validate(self, request: Any, message: Message, database: Any) -> None:
        """All may be tried."""

    def execute(self, request: Any, message: Message, database: Any) -> Result:
        for sql in (message.body.decode(), "INSERT INTO t VALUES ('after')"):
            with suppress(Exception):
                database.execute(sql)
        return Result(Code.OK)


def test_an_interpreter_cannot_write_beside_the_turn(tmp_path: Path) -> None:
    made = Executed(tmp_path / "stubborn", Stubborn())
    made.add()
    endless = b"INSERT INTO t WITH RECURSIVE r (x) AS (SELECT 1 UNION ALL SELECT 1 FROM r)"
    endless += b" SELECT x FROM r"
    assert made.run(Message(1, endless)).code is Code.STEPS_SPENT
    assert made.executor.reader.query("SELECT a FROM t").rows == ()
    assert made.run(Message(1, b"INSERT INTO t VALUES ('first')")).code is Code.OK
    found = made.executor.reader.query("SELECT a FROM t ORDER BY rowid")
    assert found.rows == (("first",), ("after",))
    made.executor.close()


class Faulty:
    name = "faulty/1"
    as_client = True

    def prepare(self, database: Any) -> None:
        database.execute("CREATE TABLE t (a)")

    def validate(self, request: Any, message: Message, database: Any) -> None:
        database.check(message.body.decode())

    def execute(self, request: Any, message: Message, database: Any) -> Result:
        done: Result = database.execute(message.body.decode())
        if message.kind == 9:
            raise ZeroDivisionError
        return done


def test_a_fault_of_the_program_is_no_outcome(tmp_path: Path) -> None:
    made = Executed(tmp_path / "faulty", Faulty())
    made.add()
    insert = b"INSERT INTO t VALUES (1)"
    before = (made.executor.position(), made.executor.table_digest())
    turn = [
        Ordered(LogIndex(2), made.request(Message(1, insert))),
        Ordered(LogIndex(2), made.request(Message(9, insert))),
    ]
    with pytest.raises(ZeroDivisionError):
        made.executor.apply(turn, LogIndex(2))
    assert (made.executor.position(), made.executor.table_digest()) == before
    assert made.refused(Message(1, b"SELECT random()")) is Code.NOT_DETERMINISTIC
    (outcome,) = made.executor.apply(turn[:1], LogIndex(2))
    assert outcome.code is Code.OK
    made.executor.close()
