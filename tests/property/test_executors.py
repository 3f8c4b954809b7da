"""Executors against what must not matter (turns, restarts) and against a plain model of results."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from quipu.storage.executors.acl import EVERYTHING, Acl, Right, Rule, encode_acl
from quipu.storage.executors.executor import Position, Released
from quipu.storage.executors.interpreter import statement
from quipu.storage.executors.outcome import Answer, Code, Outcome
from quipu.storage.executors.request import (
    CHECKPOINT,
    AddClient,
    ClientId,
    Configured,
    Digest,
    LogIndex,
    Message,
    MessageId,
    Ordered,
    Plain,
    Read,
    RemoveClient,
    Request,
    Signed,
)
from quipu.storage.executors.sqlite_executor import SqliteExecutor
from tests.executing import CLUSTER

CLIENTS = st.integers(1, 3)
IDS = st.integers(0, 6)
LISTS = st.sampled_from([EVERYTHING, Acl((Rule("a*", int(Right.READ | Right.WRITE)),)), Acl()])
SAID = st.sampled_from(
    [
        "CREATE TABLE a (id INTEGER PRIMARY KEY, v UNIQUE, n REAL)",
        "CREATE TABLE IF NOT EXISTS b (v TEXT PRIMARY KEY, n) WITHOUT ROWID",
        "CREATE TABLE IF NOT EXISTS c (id INTEGER PRIMARY KEY AUTOINCREMENT, a REFERENCES a (id))",
        "CREATE INDEX i ON a (n)",
        "CREATE VIEW w AS SELECT v, n FROM a",
        "CREATE TRIGGER g AFTER DELETE ON a BEGIN INSERT INTO b VALUES (old.v, 1); END",
        "DROP TABLE a",
        "DROP INDEX i",
        "ALTER TABLE a RENAME TO a2",
        "ALTER TABLE a2 RENAME TO a",
        "ALTER TABLE a ADD COLUMN m",
        "INSERT INTO a (v, n) VALUES (1, 1.5), (2, 1e300), ('x', NULL) RETURNING id",
        "INSERT INTO a (v, n) SELECT 'y' || count(*), sum(n) / 3 FROM a",
        "INSERT OR REPLACE INTO a (id, v) VALUES (9223372036854775806, 2)",
        "INSERT INTO a (v) VALUES (zeroblob(3)), (9223372036854775807)",
        "INSERT INTO c (a) SELECT id FROM a",
        "INSERT INTO c (a) VALUES (77)",
        "UPDATE a SET n = n + 0.1, v = v || '!' WHERE id % 2",
        "DELETE FROM a WHERE id IN (SELECT id FROM a ORDER BY n DESC LIMIT 1)",
        "DELETE FROM c",
        "INSERT INTO b SELECT v, group_concat(n) FROM a GROUP BY v ON CONFLICT DO NOTHING",
        "SELECT * FROM a",
        "SELECT v, n FROM w ORDER BY n",
        "SELECT * FROM b",
        "SELECT random()",
        "SELECT",
    ]
)
MESSAGES = st.one_of(SAID.map(statement), SAID.map(statement), st.just(Message(CHECKPOINT, b"")))


@dataclass
class Ids:
    """Message ids as clients give them: the next one mostly."""

    next: dict[int, int] = field(default_factory=dict)

    def give(self, client: int) -> int:
        self.next[client] = self.next.get(client, 0) + 1
        return self.next[client]


@st.composite
def logs(draw: st.DrawFn, messages: st.SearchStrategy[Message] = MESSAGES) -> list[Ordered]:
    ids = Ids()
    log = [Ordered(LogIndex(1), AddClient(n, encode_acl(EVERYTHING))) for n in (1, 2)]
    at = 1
    for _ in range(draw(st.integers(1, 25))):
        at += draw(st.sampled_from([0, 1, 1, 1, 2, 70]))
        log.append(Ordered(LogIndex(at), draw(_commands(ids, messages))))
    return log


@st.composite
def _commands(draw: st.DrawFn, ids: Ids, messages: st.SearchStrategy[Message]) -> Plain:
    client = draw(CLIENTS)
    match draw(st.sampled_from("rrrrrrrrRRax-")):
        case "R":
            return Read(client, draw(IDS), draw(IDS))
        case "a":
            return AddClient(client, encode_acl(draw(LISTS)))
        case "x":
            return RemoveClient(client)
        case "-":  # an id that was used, or is far ahead
            return Request(client, draw(st.integers(1, 9)), (draw(messages),))
        case _:
            said = tuple(draw(st.lists(messages, min_size=1, max_size=4)))
            return Request(client, ids.give(client), said)


@given(logs(), st.data())
@settings(max_examples=40)
def test_turns_and_restarts_do_not_matter(log: list[Ordered], data: st.DataObject) -> None:
    places = sorted({item.at for item in log})
    cuts = data.draw(st.lists(st.sampled_from(places), unique=True).map(sorted))
    starts = data.draw(st.sets(st.sampled_from(places)))
    last = places[-1]
    at_once = _applied(log, [last], set())
    assert _applied(log, [*cuts, last], starts) == at_once
    assert _applied(log, places, set()) == at_once


def _applied(
    log: Sequence[Ordered], ends: Sequence[LogIndex], starts: set[LogIndex]
) -> tuple[list[Outcome | Answer], Position, Digest, list[Digest | None]]:
    with tempfile.TemporaryDirectory() as directory:
        executor = SqliteExecutor(Path(directory), CLUSTER)
        outcomes: list[Outcome | Answer] = []
        done = 0
        for end in ends:
            turn = [item for item in log if done < item.at <= end]
            outcomes += executor.apply(turn, end)
            done = end
            if end in starts:
                executor.close()
                executor = SqliteExecutor(Path(directory), CLUSTER)
        marks = [executor.digest_at(LogIndex(at)) for at in range(64, done + 1, 64)]
        found = outcomes, executor.position(), executor.table_digest(), marks
        executor.close()
    return found


@dataclass
class Model:
    """Results as docs/executors.md tells them: one dict, no database."""

    kept: dict[int, dict[int, bytes]] = field(default_factory=dict)  # client -> id -> what was said
    last: dict[int, int] = field(default_factory=dict)
    released: dict[int, int] = field(default_factory=dict)

    def step(self, command: Plain) -> object:
        client = command.client_id
        if isinstance(command, AddClient):
            self.kept.setdefault(client, {})
            return Code.OK
        if client not in self.kept:
            return Code.UNKNOWN_CLIENT
        match command:
            case RemoveClient():
                for table in (self.kept, self.last, self.released):
                    table.pop(client, None)
                return Code.OK
            case Request():
                if command.message_id <= self.last.get(client, 0):
                    return Code.REPEATED
                self.last[client] = command.message_id
                self.kept[client][command.message_id] = command.messages[0].body
                return Code.OK
            case Read():
                return self._read(client, command.upto, command.have)

    def _read(self, client: int, upto: int, have: int) -> object:
        last, released = self.last.get(client, 0), self.released.get(client, 0)
        if have > last:
            return Code.AHEAD
        code = Code.RELEASED if have < released else Code.OK
        self.released[client] = held = max(have, released)
        self.kept[client] = {n: said for n, said in self.kept[client].items() if n > held}
        return code, [n for n in sorted(self.kept[client]) if n <= upto], held


@given(logs(st.just(statement("SELECT 1"))))
@settings(max_examples=40)
def test_results_are_kept_as_the_model_keeps_them(log: list[Ordered]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        executor = SqliteExecutor(Path(directory), CLUSTER)
        model = Model()
        outcomes = executor.apply(log, log[-1].at)
        for item, outcome in zip(log, outcomes, strict=True):
            assert not isinstance(item.command, Signed | Configured)
            expected = model.step(item.command)
            if isinstance(outcome, Answer) and isinstance(expected, tuple):
                found = outcome.code, [k.message_id for k in outcome.kept], outcome.released
                assert found == expected
            else:
                assert outcome.code is expected
        for client in range(1, 4):
            for number in range(1, 12):
                _check_stored(executor, model, client, number)
        executor.close()


def _check_stored(executor: SqliteExecutor, model: Model, client: int, number: int) -> None:
    found = executor.result(ClientId(client), MessageId(number))
    if 0 < number <= model.released.get(client, 0):
        assert found == Released(model.released[client])
    elif number in model.kept.get(client, {}):
        assert not isinstance(found, Released | None)
        assert found.message_id == number
    else:
        assert found is None
