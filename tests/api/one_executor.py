"""Clients that do what a test tells them, for tests of what HTTP makes of it."""

import asyncio
from collections.abc import Sequence

from quipu.node.client_service import (
    ClientRequest,
    ClientStanding,
    ClientView,
    Executed,
    ExecutorStatus,
)
from quipu.storage.executors.acl import EVERYTHING, encode_acl
from quipu.storage.executors.executor import NO_DIGEST, Mark
from quipu.storage.executors.outcome import Answer, Code, Kept, Outcome, Result, Value
from quipu.storage.executors.reader import Table
from quipu.storage.executors.request import Digest, LogIndex

ACL = bytes(15)
DONE = Outcome(Code.OK, (Result(Code.OK, ("v",), ((7,), (b"\x00",), (float("inf"),))),))


class OneExecutor:
    """Client 1 is there, and whatever it asks is done at once."""

    def __init__(self) -> None:
        self.fault: Exception | None = None  # raised by all that can refuse
        self.known: Executed | None = None  # what `check` finds
        self.added: list[tuple[bytes, bytes | None, bytes | None]] = []
        self.views = {1: ClientView(1, ACL, 1, bytes(32), removed=False)}
        self.asked: list[ClientRequest] = []
        self.queries: list[tuple[str, Sequence[Value], int | None]] = []
        self.reads: list[tuple[int, int, int, bytes]] = []

    def find(self, number: int) -> ClientView | None:
        return self.views.get(number)

    def status(self) -> ExecutorStatus:
        return ExecutorStatus("running", "", "sqlite", 7, NO_DIGEST, 0)

    async def standing(self, number: int) -> ClientStanding | None:
        return ClientStanding(3, 1, b"", encode_acl(EVERYTHING))

    async def add(self, public: bytes, rules: bytes | None, acl: bytes | None) -> ClientView:
        self._fail()
        self.added.append((public, rules, acl))
        self.views[2] = ClientView(2, acl or ACL, 1, public, removed=False)
        return self.views[2]

    async def change_rights(
        self, number: int, rules: bytes | None, acl: bytes | None
    ) -> ClientView:
        self._fail()
        self.views[number] = self.views[number]._replace(acl=acl or ACL)
        return self.views[number]

    async def remove(self, number: int) -> ClientView:
        self._fail()
        self.views[number] = self.views[number]._replace(removed=True)
        return self.views[number]

    async def check(self, request: ClientRequest, *, is_again: bool = False) -> Executed | None:
        self._fail()
        self.asked.append(request)
        return self.known

    def when_executed(self, request: ClientRequest) -> asyncio.Future[Executed]:
        answer: asyncio.Future[Executed] = asyncio.get_running_loop().create_future()
        answer.set_result(Executed(DONE))
        return answer

    def is_executed(self, client: int, message_id: int) -> bool:
        return False

    async def results(self, client: int, upto: int, have: int, signature: bytes) -> Answer:
        self._fail()
        self.reads.append((client, upto, have, signature))
        return Answer(Code.OK, (Kept(2, Digest(bytes(32)), DONE),), 2, 1)

    async def query(self, sql: str, parameters: Sequence[Value], client: int | None) -> Table:
        self._fail()
        self.queries.append((sql, parameters, client))
        return Table(Mark(LogIndex(7), NO_DIGEST), ("v",), ((7,), (b"\x00",)), complete=True)

    async def linear(self) -> None:
        self._fail()

    def _fail(self) -> None:
        if self.fault is not None:
            raise self.fault
