"""Signed requests in an executor: strictly 1, 2, 3 ..., once, and what of it outlives a restart."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from quipu.ledger import limits
from quipu.ledger.log.words import Index, Regime
from quipu.ledger.order import clients as orders
from quipu.ledger.order.client_items import (
    AccessList,
    AddClient,
    ClientItem,
    ReadResults,
    RemoveClient,
    acl_id,
    encode_client_item,
    signed_read,
)
from quipu.ledger.order.clients import signed_request
from quipu.storage.executors.acl import EVERYTHING, encode_acl
from quipu.storage.executors.book import Book
from quipu.storage.executors.desk import content_digest
from quipu.storage.executors.executor import Released
from quipu.storage.executors.interpreter import statement
from quipu.storage.executors.outcome import Answer, Code, Outcome, Value
from quipu.storage.executors.request import (
    ClientId,
    Configured,
    LogIndex,
    Message,
    MessageId,
    Ordered,
    Signed,
    encode_messages,
)
from quipu.storage.executors.sqlite_executor import SqliteExecutor
from tests.executing import CLUSTER
from tests.small_ledger import key_of

KEY = key_of("client")
ONE = ClientId(1)


def signed(message_id: int, *messages: Message) -> Signed:
    data = encode_messages(messages or (statement("INSERT INTO t VALUES (?)", message_id),))
    unsigned = orders.Request(orders.ClientId(1), message_id, content_digest(data), b"")
    return Signed(1, message_id, data, 1, KEY.sign(signed_request(CLUSTER, unsigned)))


def read(upto: int, have: int) -> ReadResults:
    return ReadResults(1, upto, have, KEY.sign(signed_read(CLUSTER, 1, upto, have)))


class Line:
    """An executor, and the order above it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.executor = SqliteExecutor(directory, CLUSTER)

    def give(self, *commands: Signed | ClientItem) -> list[Outcome | Answer]:
        """All in one turn, each at an index of its own."""
        at = self.executor.position().applied.at
        ordered = []
        for given in commands:
            at = LogIndex(at + 1)
            command: Signed | Configured
            if isinstance(given, Signed):
                command = given
            else:
                command = Configured(1, at, 0, encode_client_item(given))
            ordered.append(Ordered(at, command))
        return self.executor.apply(ordered, at)

    def codes(self, *commands: Signed | ClientItem) -> list[Code]:
        return [outcome.code for outcome in self.give(*commands)]

    def reopen(self) -> None:
        before = (self.executor.position(), self.executor.table_digest())
        self.executor.close()
        self.executor = SqliteExecutor(self.directory, CLUSTER)
        assert (self.executor.position(), self.executor.table_digest()) == before

    def rows(self) -> list[Value]:
        return [row[0] for row in self.executor.reader.query("SELECT v FROM t ORDER BY rowid").rows]


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    made = Line(tmp_path / "n1")
    listed = AccessList(encode_acl(EVERYTHING))
    add = AddClient(acl_id(Regime(1), Index(1), 0), 1, KEY.node_id)
    assert made.codes(listed, add) == [Code.OK, Code.OK]
    assert made.codes(signed(1, statement("CREATE TABLE t (v)"))) == [Code.OK]
    yield made
    made.executor.close()


def test_a_gap_waits_also_across_a_restart(line: Line) -> None:
    assert line.codes(signed(4), signed(3)) == [Code.WAITS, Code.WAITS]
    assert line.codes(signed(3)) == [Code.WAITS]
    line.reopen()
    assert line.rows() == []
    assert line.codes(signed(2)) == [Code.OK]
    assert line.rows() == [2, 3, 4]
    assert [(c, m) for c, m, _ in line.executor.executed] == [(1, 2), (1, 3), (1, 4)]
    assert line.executor.watermarks() == {1: 4}


def test_the_same_again_is_executed_once(line: Line) -> None:
    assert line.codes(signed(2), signed(2)) == [Code.OK, Code.REPEATED]
    line.reopen()
    assert line.codes(signed(2)) == [Code.REPEATED]
    assert line.rows() == [2]
    assert line.executor.signed_digest(ONE, MessageId(2)) == content_digest(signed(2).data)


def test_two_valid_signatures_over_different_bytes_end_the_client(line: Line) -> None:
    other = signed(2, statement("DELETE FROM t"))
    assert line.codes(signed(2), other, signed(3)) == [Code.OK, Code.TERMINATED, Code.TERMINATED]
    line.reopen()
    assert line.codes(signed(3)) == [Code.TERMINATED]
    standing = line.executor.standing(ONE)
    assert standing is not None
    assert other.signature in standing.proof
    assert signed(2).signature in standing.proof
    assert line.rows() == [2]


@pytest.mark.parametrize(
    "forged",
    [
        Signed(1, 2, signed(2).data, 1, bytes(64)),
        Signed(1, 2, signed(3).data, 1, signed(2).signature),
        Signed(1, 3, signed(2).data, 1, signed(2).signature),
        Signed(1, 2, signed(2).data, 0, signed(2).signature),
        Signed(1, 2, signed(2).data, 1, b""),
    ],
)
def test_bad_signatures_end_nobody(line: Line, forged: Signed) -> None:
    assert line.codes(forged, signed(2)) == [Code.BAD_SIGNATURE, Code.OK]


def test_ids_that_are_not_taken(line: Line) -> None:
    far = signed(2 + limits.CLIENT_AHEAD_MAX)
    stranger = Signed(9, 1, far.data, 1, far.signature)
    assert line.codes(signed(0), far, stranger) == [
        Code.BAD_ID,
        Code.TOO_FAR_AHEAD,
        Code.UNKNOWN_CLIENT,
    ]


def test_bytes_that_are_no_messages_use_their_id_up(line: Line) -> None:
    unsigned = orders.Request(orders.ClientId(1), 2, content_digest(b"\x00"), b"")
    rubbish = Signed(1, 2, b"\x00", 1, KEY.sign(signed_request(CLUSTER, unsigned)))
    assert line.codes(rubbish, signed(3)) == [Code.UNKNOWN_KIND, Code.OK]


def test_read_takes_a_signature_and_deletes_what_is_held(line: Line) -> None:
    line.give(signed(2), signed(3))
    forged = ReadResults(1, 3, 3, bytes(64))
    [refused] = line.give(forged)
    assert refused.code is Code.BAD_SIGNATURE
    [answer] = line.give(read(3, 1))
    assert isinstance(answer, Answer)
    assert [kept.message_id for kept in answer.kept] == [2, 3]
    line.give(read(3, 2))
    assert line.executor.result(ONE, MessageId(2)) == Released(2)
    assert line.codes(signed(2)) == [Code.RELEASED]
    line.reopen()
    assert line.codes(signed(2), read(9, 9)) == [Code.RELEASED, Code.AHEAD]


def test_results_that_nobody_reads_stop_their_client(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CLIENT_KEPT_MAX", 2)
    assert line.codes(signed(2), signed(3)) == [Code.OK, Code.RESULTS_UNREAD]
    assert line.codes(read(2, 2), signed(3)) == [Code.OK, Code.OK]


def test_who_is_removed_is_unknown_and_leaves_nothing(line: Line) -> None:
    line.give(signed(2), signed(4))
    assert line.codes(RemoveClient(1), RemoveClient(1)) == [Code.OK, Code.REMOVED]
    assert line.codes(signed(3)) == [Code.UNKNOWN_CLIENT]
    line.reopen()
    assert line.codes(signed(3)) == [Code.UNKNOWN_CLIENT]
    for table in ("quipu_signed", "quipu_keys", "quipu_results"):
        count = line.executor._connection.execute(f"SELECT count(*) FROM {table}").fetchone()
        assert count == (0,)


def test_a_list_that_nobody_can_read_grants_nothing(line: Line) -> None:
    at = line.executor.position().applied.at + 1
    add = AddClient(acl_id(Regime(1), Index(at), 0), 1, KEY.node_id)
    assert line.codes(AccessList(b"\x00"), add) == [Code.OK, Code.OK]
    line.reopen()
    assert line.executor.standing(ClientId(2)) is not None
    assert line.executor.standing(ClientId(3)) is None


def test_a_turn_that_fails_leaves_the_line_as_it_was(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("planted")

    before = line.executor.table_digest()
    with monkeypatch.context() as patched:
        patched.setattr(Book, "write", full)
        with pytest.raises(OSError, match="planted"):
            line.give(signed(2), signed(5))
    assert line.executor.table_digest() == before
    assert line.codes(signed(2), signed(2)) == [Code.OK, Code.REPEATED]
