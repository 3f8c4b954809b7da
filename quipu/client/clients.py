"""Clients of seed 001 and the database of executors, as methods of `AsyncClient` and `Client`."""

import base64
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

import msgspec

from quipu.client.sessions import WAIT_S, AsyncSession, Outcome, Statement
from quipu.client.transport import Terms, Transport

T = TypeVar("T")
JSON = "application/json"


def _parameter(value: Any) -> Any:
    packed = isinstance(value, bytes | bytearray)
    return {"base64": base64.b64encode(value).decode()} if packed else value


class AsyncClients(ABC):
    _transport: Transport

    def session(self, path: str | Path) -> AsyncSession:
        """A client that signs: exactly-once SQL. The file keeps its key and what is under way, and
        is made where it is not there. Raises `SessionInUse`."""
        return AsyncSession.open(self._transport, path)

    async def new_client(
        self,
        public_key: str,
        *,
        rights: Sequence[Mapping[str, Any]] | None = None,
        acl_id: str | None = None,
    ) -> Any:
        """Registers an Ed25519 key, in hex; takes a token of scope admin."""
        body: dict[str, Any] = {"public_key": public_key}
        if rights is not None:
            body["rights"] = list(rights)
        if acl_id is not None:
            body["acl_id"] = acl_id
        return await self._order("/v1/clients", body)

    async def clients(self, *, after: int = 0, limit: int = 100) -> Any:
        """The clients by number, as the node that answers has applied them."""
        return await self._json("/v1/clients", {"after": after, "limit": limit})

    async def client(self, number: int) -> Any:
        """Raises `NotFound`."""
        return await self._json(f"/v1/clients/{number}")

    async def change_rights(
        self,
        number: int,
        *,
        rights: Sequence[Mapping[str, Any]] | None = None,
        acl_id: str | None = None,
    ) -> Any:
        """Other rights from one place in the order on; its ids and results stay."""
        body = {"rights": list(rights)} if rights is not None else {"acl_id": acl_id}
        content, headers = msgspec.json.encode(body), {"Content-Type": JSON}
        path = f"/v1/clients/{number}/rights"
        answer = await self._transport.ask_first("PUT", path, content, headers, rounds=1)
        return msgspec.json.decode(answer.body)

    async def remove_client(self, number: int) -> Any:
        """Its results are deleted, and its number is never given again."""
        answer = await self._transport.ask_first("DELETE", f"/v1/clients/{number}", rounds=1)
        return msgspec.json.decode(answer.body)

    async def client_messages(self, number: int, request: Mapping[str, Any], **options: str) -> Any:
        """A request that is signed already; a `session` does this by itself."""
        body, headers = msgspec.json.encode(request), {"Content-Type": JSON}
        path = f"/v1/clients/{number}/messages"
        answer = await self._transport.write(path, options, body, headers, Terms())
        return msgspec.json.decode(answer.body)

    async def client_results(self, number: int, upto: int, have: int = 0, *, signature: str) -> Any:
        """READ with a signature that is there already; `session.results` signs by itself."""
        given = {"upto": upto, "have": have, "signature": signature}
        return await self._json(f"/v1/clients/{number}/results", given)

    async def sql(
        self,
        statement: str,
        *parameters: Any,
        consistency: str = "local",
        client: int | None = None,
    ) -> Any:
        """Rows of an executor's database; "linear": with all that was acknowledged anywhere."""
        asked = {"sql": statement, "parameters": [_parameter(value) for value in parameters]}
        body = msgspec.json.encode(asked if client is None else asked | {"client": client})
        answer = await self._transport.read(
            "/v1/sql:query", {"consistency": consistency}, {"Content-Type": JSON}, body
        )
        return msgspec.json.decode(answer.body)

    async def executor(self) -> Any:
        """How far the executor of the node that answers is."""
        return await self._json("/v1/executor")

    @abstractmethod
    async def _order(self, path: str, body: Mapping[str, Any]) -> Any:
        """A POST that goes to one node, once."""

    @abstractmethod
    async def _json(
        self,
        path: str,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """What a GET answers."""


class Clients(ABC):
    """The same without `await`."""

    _client: AsyncClients

    def session(self, path: str | Path) -> "Session":
        """A client that signs: exactly-once SQL. The file keeps its key and what is under way, and
        is made where it is not there. Raises `SessionInUse`."""
        return Session(self._run, self._run(_opened(self._client, path)))

    def new_client(
        self,
        public_key: str,
        *,
        rights: Sequence[Mapping[str, Any]] | None = None,
        acl_id: str | None = None,
    ) -> Any:
        """Registers an Ed25519 key, in hex; takes a token of scope admin."""
        return self._run(self._client.new_client(public_key, rights=rights, acl_id=acl_id))

    def clients(self, *, after: int = 0, limit: int = 100) -> Any:
        """The clients by number, as the node that answers has applied them."""
        return self._run(self._client.clients(after=after, limit=limit))

    def client(self, number: int) -> Any:
        """Raises `NotFound`."""
        return self._run(self._client.client(number))

    def change_rights(
        self,
        number: int,
        *,
        rights: Sequence[Mapping[str, Any]] | None = None,
        acl_id: str | None = None,
    ) -> Any:
        """Other rights from one place in the order on; its ids and results stay."""
        return self._run(self._client.change_rights(number, rights=rights, acl_id=acl_id))

    def remove_client(self, number: int) -> Any:
        """Its results are deleted, and its number is never given again."""
        return self._run(self._client.remove_client(number))

    def client_messages(self, number: int, request: Mapping[str, Any], **options: str) -> Any:
        """A request that is signed already; a `session` does this by itself."""
        return self._run(self._client.client_messages(number, request, **options))

    def client_results(self, number: int, upto: int, have: int = 0, *, signature: str) -> Any:
        """READ with a signature that is there already; `session.results` signs by itself."""
        wanted = self._client.client_results(number, upto, have, signature=signature)
        return self._run(wanted)

    def sql(
        self,
        statement: str,
        *parameters: Any,
        consistency: str = "local",
        client: int | None = None,
    ) -> Any:
        """Rows of an executor's database; "linear": with all that was acknowledged anywhere."""
        wanted = self._client.sql(statement, *parameters, consistency=consistency, client=client)
        return self._run(wanted)

    def executor(self) -> Any:
        """How far the executor of the node that answers is."""
        return self._run(self._client.executor())

    @abstractmethod
    def _run(self, wanted: Coroutine[Any, Any, T]) -> T: ...


async def _opened(client: AsyncClients, path: str | Path) -> AsyncSession:
    return client.session(path)  # its locks belong to the loop


class Run(Protocol):
    def __call__(self, wanted: Coroutine[Any, Any, T]) -> T: ...


class Session:
    """`AsyncSession` without `await`."""

    def __init__(self, run: Run, session: AsyncSession) -> None:
        self._run = run
        self._session = session

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(settle=error is None)

    @property
    def client(self) -> int | None:
        """Its number; None: nobody has registered its key yet."""
        return self._session.client

    @property
    def public_key(self) -> str:
        return self._session.public_key

    @property
    def recovered(self) -> list[Outcome]:
        return self._session.recovered

    def register(
        self,
        rights: Sequence[tuple[str, Sequence[str]]] | None = None,
        timeout: float = WAIT_S,
    ) -> int:
        """Makes it a client of this cluster, if it is none yet; takes a token of scope admin.
        `rights` are (tables, ("read", "write", "schema")); without them it may do everything.
        Where an answer is lost it asks again: a number that is not used harms nobody."""
        return self._run(self._session.register(rights, timeout))

    def bind(self, client: int) -> int:
        """It is the client with this number: an operator has registered `public_key`."""
        return self._run(self._session.bind(client))

    def execute(self, *statements: Statement, timeout: float = WAIT_S) -> Outcome:
        """One transaction, executed exactly once: SQL, or (SQL, parameter ...) each.

        It is sent again, to other nodes too, until one says what came of it; raises `Unavailable`
        or `Unreachable` after the timeout, and `recover` goes on with it. Raises `Conflict` where
        the node refuses a statement before it is ordered, and where the client has ended.
        """
        return self._run(self._session.execute(*statements, timeout=timeout))

    def recover(self, timeout: float = WAIT_S) -> list[Outcome]:
        """What was under way when this session ended last, in the order of its ids: each executed
        by now. The first `execute` does it too; `recovered` keeps what it found."""
        return self._run(self._session.recover(timeout))

    def results(self, upto: int | None = None) -> list[Outcome]:
        """Outcomes that the executors keep for this client, up to an id."""
        return self._run(self._session.results(upto))

    def close(self, *, settle: bool = True) -> None:
        """`settle`: results that were given out are dealt with, and the executors are told so."""
        self._run(self._session.close(settle=settle))
