"""An executor and the log above it, for tests: each call is ordered and executed."""

from pathlib import Path

from quipu.storage.executors.acl import EVERYTHING, Acl, encode_acl
from quipu.storage.executors.executor import RequestRefused
from quipu.storage.executors.interpreter import Interpreter, statement
from quipu.storage.executors.outcome import Answer, Code, Outcome, Value
from quipu.storage.executors.request import (
    AddClient,
    Command,
    LogIndex,
    Message,
    Ordered,
    Read,
    RemoveClient,
    Request,
)
from quipu.storage.executors.sqlite_executor import SqliteExecutor

CLUSTER = bytes(range(32))
Said = str | tuple[str | Value, ...] | Message


class Executed:
    def __init__(self, directory: Path, interpreter: Interpreter | None = None) -> None:
        self.directory = directory
        self._interpreter = interpreter
        self.executor = SqliteExecutor(directory, CLUSTER, interpreter)
        self._ids: dict[int, int] = {}
        self.log: list[Ordered] = []

    def add(self, client: int = 1, acl: Acl = EVERYTHING) -> Outcome | Answer:
        return self.order(AddClient(client, encode_acl(acl)))

    def remove(self, client: int = 1) -> Outcome | Answer:
        return self.order(RemoveClient(client))

    def run(self, *said: Said, client: int = 1) -> Outcome:
        outcome = self.order(self.request(*said, client=client))
        assert isinstance(outcome, Outcome)
        return outcome

    def rows(self, sql: str, *parameters: Value, client: int = 1) -> tuple[tuple[Value, ...], ...]:
        outcome = self.run((sql, *parameters), client=client)
        assert outcome.code is Code.OK, outcome
        return outcome.results[-1].rows

    def read(self, upto: int, have: int, client: int = 1) -> Answer:
        answer = self.order(Read(client, upto, have))
        assert isinstance(answer, Answer)
        return answer

    def refused(self, *said: Said, client: int = 1) -> Code | None:
        """What `validate` says, before anything is ordered."""
        request = Request(client, self._ids.get(client, 0) + 1, tuple(map(spoken, said)))
        try:
            self.executor.validate(request)
        except RequestRefused as refused:
            return refused.code
        return None

    def request(self, *said: Said, client: int = 1) -> Request:
        self._ids[client] = self._ids.get(client, 0) + 1
        return Request(client, self._ids[client], tuple(map(spoken, said)))

    def order(self, command: Command) -> Outcome | Answer:
        at = LogIndex(self.executor.position().applied.at + 1)
        self.log.append(Ordered(at, command))
        (outcome,) = self.executor.apply([self.log[-1]], at)
        return outcome

    def reopen(self) -> None:
        self.executor.close()
        self.executor = SqliteExecutor(self.directory, CLUSTER, self._interpreter)


def spoken(said: Said) -> Message:
    match said:
        case Message():
            return said
        case str():
            return statement(said)
        case (str() as sql, *parameters):
            return statement(sql, *parameters)
    raise AssertionError(said)
