"""A client of seed 001 for apps: it numbers and signs requests, sends each until it is executed,
once, on whatever node answers, and says which results it holds.
"""

import asyncio
import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

import msgspec
from nacl.bindings import crypto_sign

from quipu.client.errors import Conflict, NotFound, QuipuError, Unavailable, Undecided, Unreachable
from quipu.client.session_state import Pending, SessionState
from quipu.client.transport import Terms, Transport, pause

T = TypeVar("T")
JSON, MSGPACK = "application/json", "application/msgpack"
WAIT_S = 30.0
IN_FLIGHT_MAX = 32  # of the 64 ids that may wait for those before them
READ_EVERY = 64  # results that are held before the executors are told
REFUSED = ("not-deterministic", "statement-refused")
FULL = "results-unread"
STATEMENT, CHECKPOINT = 1, 2
TAG_REQUEST = b"quipu/sig/request/1\0"
TAG_RESULTS = b"quipu/sig/results/1\0"
SIGNATURE_BYTES = 64
_pack = msgspec.msgpack.encode
Statement = str | Sequence[Any] | bytes | None


class Result(msgspec.Struct, frozen=True):
    """Of one message."""

    code: str
    columns: list[str]
    rows: list[list[Any]]
    changes: int
    detail: str


class _Body(msgspec.Struct, frozen=True):
    message_id: str
    state: str
    code: str | None
    results: list[Result]


class Outcome(NamedTuple):
    """What came of a request, for ever. A failure is an outcome as well: see `code`."""

    message_id: int
    code: str
    results: list[Result]

    @property
    def ok(self) -> bool:
        return self.code == "ok"

    @property
    def rows(self) -> list[list[Any]]:
        """Of the last message."""
        return self.results[-1].rows if self.results else []


def packed(statements: Sequence[Statement]) -> bytes:
    """The messages of a request: SQL alone, or (SQL, parameter ...); bytes are a body of kind 1 for
    an interpreter of your own; None among them is a checkpoint."""
    messages: list[tuple[int, bytes]] = []
    for one in statements:
        if one is None:
            messages.append((CHECKPOINT, b""))
        elif isinstance(one, bytes):
            messages.append((STATEMENT, one))
        elif isinstance(one, str):
            messages.append((STATEMENT, _pack((one, ()))))
        else:
            messages.append((STATEMENT, _pack((one[0], tuple(one[1:])))))
    if not messages:
        raise ValueError("a request has at least one message")
    return _pack(messages)


@dataclass(slots=True)
class AsyncSession:
    """Invariant: an id is on the disk before anything is signed with it, and stays there until its
    result has been given to the app and the app has come back for more."""

    transport: Transport
    state: SessionState
    recovered: list[Outcome] = field(default_factory=list)
    _room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(IN_FLIGHT_MAX))
    _file: asyncio.Lock = field(default_factory=asyncio.Lock)
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    _is_open: bool = False
    _told: int = 0  # up to here the executors know what is held

    @classmethod
    def open(cls, transport: Transport, path: str | Path) -> "AsyncSession":
        """Raises `SessionInUse`."""
        state = SessionState(Path(path))
        return cls(transport, state, _told=state.have)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close(settle=error is None)

    @property
    def client(self) -> int | None:
        """Its number; None: nobody has registered its key yet."""
        return self.state.client

    @property
    def public_key(self) -> str:
        return self.state.public.hex()

    async def register(
        self,
        rights: Sequence[tuple[str, Sequence[str]]] | None = None,
        timeout: float = WAIT_S,  # noqa: ASYNC109
    ) -> int:
        """Makes it a client of this cluster, if it is none yet; takes a token of scope admin.
        `rights` are (tables, ("read", "write", "schema")); without them it may do everything.
        Where an answer is lost it asks again: a number that is not used harms nobody."""
        if self.state.client is not None:
            return self.state.client
        asked: dict[str, Any] = {"public_key": self.public_key}
        if rights is not None:
            asked["rights"] = [{"tables": name, "rights": list(what)} for name, what in rights]
        body, headers = msgspec.json.encode(asked), {"Content-Type": JSON}
        loop = asyncio.get_running_loop()
        ends_s, attempt = loop.time() + timeout, 0
        while True:
            try:
                answer = await self.transport.once("/v1/clients", body, headers, "clients")
                return await self.bind(int(msgspec.json.decode(answer.body)["client"]))
            except (Unavailable, Unreachable, Undecided):
                if loop.time() >= ends_s:
                    raise
            self.transport.next_node()
            await pause(attempt)
            attempt += 1

    async def bind(self, client: int) -> int:
        """It is the client with this number: an operator has registered `public_key`."""
        answer = await self.transport.read("/v1/node", {}, {})
        cluster = bytes.fromhex(msgspec.json.decode(answer.body)["cluster_id"])
        await self._in_file(lambda state: state.bind(cluster, client))
        return client

    # --- requests -------------------------------------------------------------------------------
    async def execute(self, *statements: Statement, timeout: float = WAIT_S) -> Outcome:  # noqa: ASYNC109
        """One transaction, executed exactly once: SQL, or (SQL, parameter ...) each.

        It is sent again, to other nodes too, until one says what came of it; raises `Unavailable`
        or `Unreachable` after the timeout, and `recover` goes on with it. Raises `Conflict` where
        the node refuses a statement before it is ordered, and where the client has ended.
        """
        messages = packed(statements)
        await self._ready(timeout)
        async with self._room:
            number = await self._in_file(lambda state: state.add(messages))
            outcome = await self._finished(Pending(number, messages, doubtful=False), timeout)
            await self._in_file(lambda state: state.answered(number))
        await self._tell()
        return outcome

    async def recover(self, timeout: float = WAIT_S) -> list[Outcome]:  # noqa: ASYNC109
        """What was under way when this session ended last, in the order of its ids: each executed
        by now. The first `execute` does it too; `recovered` keeps what it found."""
        await self._ready(timeout)
        return self.recovered

    async def results(self, upto: int | None = None) -> list[Outcome]:
        """Outcomes that the executors keep for this client, up to an id."""
        found: list[Outcome] = []
        have = self.state.have
        last = self.state.next_id - 1 if upto is None else upto
        while have < last:
            page = await self._read(last, have, release=False)
            found += [
                Outcome(
                    int(one["message_id"]),
                    one["code"],
                    msgspec.convert(one["results"], list[Result]),
                )
                for one in page["items"]
            ]
            if not page["items"] or not page["more"]:
                break
            have = int(page["items"][-1]["message_id"])
        return found

    async def close(self, *, settle: bool = True) -> None:
        """`settle`: results that were given out are dealt with, and the executors are told so."""
        try:
            if settle and self.state.client is not None:
                await self._in_file(lambda state: state.settle())
                if self.state.have > self._told:
                    await self._read(self.state.have, self.state.have, release=True)
        except QuipuError:
            pass  # told at another time: what is held twice harms nobody
        finally:
            await asyncio.to_thread(self.state.close)

    # --- within ---------------------------------------------------------------------------------
    async def _in_file(self, change: Callable[[SessionState], T]) -> T:
        async with self._file:
            return await asyncio.to_thread(change, self.state)

    async def _ready(self, timeout_s: float) -> None:
        if self.state.client is None:
            raise ValueError("no number yet: register() makes this a client, or bind(number)")
        async with self._opening:
            if self._is_open:
                return
            for pending in await self._in_file(lambda state: state.pending()):
                doubted = pending._replace(doubtful=True)  # who knows how far it came
                self.recovered.append(await self._finished(doubted, timeout_s))
                await self._in_file(lambda state, n=pending.message_id: state.answered(n))  # type: ignore[misc]
            self._is_open = True

    async def _finished(self, pending: Pending, timeout_s: float) -> Outcome:
        loop = asyncio.get_running_loop()
        ends_s, attempt = loop.time() + timeout_s, 0
        doubtful = pending.doubtful
        while True:
            left_s = ends_s - loop.time()
            try:
                found = await self._send(pending, doubtful, max(left_s, 0.1))
                if found is not None:
                    return found
                failure: QuipuError = Unavailable("it is stored and not executed yet")
                doubtful = await self._doubt(pending.message_id)
            except Undecided as error:
                failure = Unavailable(str(error))
                doubtful = await self._doubt(pending.message_id)
            except (Unreachable, Unavailable) as error:
                failure = error
            except Conflict as error:
                failure = error
                doubtful = await self._after(error, pending, doubtful)
            except NotFound as error:
                failure = await self._absent(error, pending)
            if loop.time() >= ends_s:
                raise failure
            self.transport.next_node()
            await pause(attempt)
            attempt += 1

    async def _after(self, error: Conflict, pending: Pending, doubtful: bool) -> bool:
        """Whether it is sent once more, and how; raises what stays so."""
        if error.code == FULL:
            await self._in_file(lambda state: state.settle())
            await self._read(self.state.have, self.state.have, release=True)
            return doubtful
        if error.code == "too-far-ahead":
            return doubtful
        if error.code in REFUSED and not doubtful:
            if await self._in_file(lambda state: state.take_back(pending.message_id)):
                raise error
            # Later ids are given out already, or a node may have it: it is ordered, and fails.
            return await self._doubt(pending.message_id)
        raise error

    async def _absent(self, error: NotFound, pending: Pending) -> QuipuError:
        """A node that is behind does not know the client yet; one that is gone stays so."""
        if error.code != "client-not-found":
            raise error
        return error

    async def _doubt(self, message_id: int) -> bool:
        await self._in_file(lambda state: state.doubt(message_id))
        return True

    async def _send(self, pending: Pending, again: bool, left_s: float) -> Outcome | None:
        """None: it is stored somewhere, and not executed yet."""
        body = msgspec.json.encode(
            {
                "message_id": str(pending.message_id),
                "messages_base64": base64.b64encode(pending.messages).decode(),
                "signature_base64": base64.b64encode(self._signed(pending)).decode(),
            }
        )
        params = {"wait": "executed", "timeout": f"{min(left_s, WAIT_S) * 1000:.0f}ms"}
        if again:
            params["again"] = "true"
        headers = {"Content-Type": JSON, "Accept": MSGPACK}
        path = f"/v1/clients/{self.state.client}/messages"
        terms = Terms("", "clients", may_repeat=again, at_least_once=again)
        answer = await self.transport.write(path, params, body, headers, terms)
        found = msgspec.msgpack.decode(answer.body, type=_Body)
        if found.state != "executed" or found.code is None:
            return None
        return Outcome(int(found.message_id), found.code, found.results)

    def _signed(self, pending: Pending) -> bytes:
        digest = sha256(pending.messages).digest()
        fields = [self.state.cluster, self.state.client, pending.message_id, digest]
        return crypto_sign(TAG_REQUEST + _pack(fields), self.state.secret)[:SIGNATURE_BYTES]

    async def _tell(self) -> None:
        """Now and then: what is held need not be kept."""
        have = self.state.have
        if have - self._told < READ_EVERY:
            return
        told, self._told = self._told, have
        try:
            await self._read(have, have, release=True)
        except QuipuError:
            self._told = told

    async def _read(self, upto: int, have: int, *, release: bool) -> Any:
        held = have if release else min(have, self._told)
        fields = [self.state.cluster, self.state.client, upto, held]
        signature = crypto_sign(TAG_RESULTS + _pack(fields), self.state.secret)[:SIGNATURE_BYTES]
        params = {"upto": str(upto), "have": str(held), "signature": signature.hex()}
        path = f"/v1/clients/{self.state.client}/results"
        answer = await self.transport.read(path, params, {"Accept": MSGPACK})
        if release:
            self._told = max(self._told, have)
        return msgspec.msgpack.decode(answer.body)
