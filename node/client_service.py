"""What a running node offers of clients and its executor: the contract between `node` and `api`.

Clients are registered in the order; what they ask is executed where an executor runs.
"""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from quipu.storage.executors.outcome import Answer, Outcome, Value
from quipu.storage.executors.reader import Table


class ClientRefused(Exception):
    """Not done, and why: a word of the closed list of codes."""

    def __init__(self, why: str, detail: str = "") -> None:
        super().__init__(detail or why)
        self.why = why
        self.detail = detail


class NoExecutor(Exception):
    """This node runs none, or the one that it runs has stopped or is not there yet."""

    def __init__(self, detail: str, *, may_come: bool) -> None:
        super().__init__(detail)
        self.may_come = may_come  # it is on its way: waiting helps


class ClientView(NamedTuple):
    """A client, as far as this node has applied the order."""

    number: int
    acl: bytes
    sig_type: int
    public: bytes
    removed: bool


class ClientStanding(NamedTuple):
    """What the executor of this node knows of a client."""

    next_id: int
    have: int
    proof: bytes  # empty: it is not terminated
    rules: bytes


class ClientRequest(NamedTuple):
    """As a client signed it."""

    client: int
    message_id: int
    data: bytes
    sig_type: int
    signature: bytes


class Executed(NamedTuple):
    """What came of a request."""

    outcome: Outcome


class ExecutorStatus(NamedTuple):
    state: str  # running, off, waiting, failed
    detail: str
    engine: str
    applied: int  # of the log
    digest: bytes  # running, over all commands up to there
    behind: int  # log entries that are applied here and not looked at by it yet


class Clients(Protocol):
    def find(self, number: int) -> ClientView | None: ...

    def status(self) -> ExecutorStatus: ...

    async def standing(self, number: int) -> ClientStanding | None:
        """None: no executor here knows it."""

    async def add(self, public: bytes, rules: bytes | None, acl: bytes | None) -> ClientView:
        """With a new access list, or one that is there. Raises `ClientRefused` and what asks the
        order raises."""

    async def change_rights(
        self, number: int, rules: bytes | None, acl: bytes | None
    ) -> ClientView:
        """From its place in the order on; ids and results stay."""

    async def remove(self, number: int) -> ClientView: ...

    async def check(self, request: ClientRequest, *, is_again: bool = False) -> Executed | None:
        """Raises `ClientRefused` for what could not be executed. What was executed already is
        answered; None: it is to be submitted. `is_again`: it may have been submitted before, so
        only its signature and its place are looked at."""

    def when_executed(self, request: ClientRequest) -> asyncio.Future[Executed]:
        """Asked before it is submitted. Raises `ClientRefused` where the order found it not due,
        `NoExecutor`, `Overloaded`."""

    def is_executed(self, client: int, message_id: int) -> bool: ...

    async def results(self, client: int, upto: int, have: int, signature: bytes) -> Answer:
        """READ, through the order."""

    async def query(self, sql: str, parameters: Sequence[Value], client: int | None) -> Table:
        """Of the last commit of the executor here; with the rights of a client, or with all."""

    async def linear(self) -> None:
        """Until all that was acknowledged anywhere before is executed here."""
