"""Requests to several nodes: which one is asked, what is tried again, and for how long."""

import asyncio
import io
import os
import random
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import aiohttp
import msgspec

from quipu.client.errors import (
    UNDECIDED_CODES,
    Problem,
    QuipuError,
    Unavailable,
    Undecided,
    Unreachable,
    error_of,
)

CONNECT_S = 5.0
ANSWER_S = 150.0  # above the longest wait that a node grants
READ_ROUNDS = 3  # times that every node is asked before a read gives up
SUBMIT_ATTEMPTS = 4
PAUSE_S = 0.2  # doubled each time, with jitter, up to
PAUSE_S_MAX = 5.0

# Errors raised before a request can have reached a node.
NOT_SENT = (aiohttp.ClientConnectorError, aiohttp.InvalidURL, aiohttp.ConnectionTimeoutError)
BROKEN = (aiohttp.ClientError, TimeoutError, ConnectionError)


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes
    node: str


class _NotSent(Exception):
    """The node was not reached, so it has stored nothing."""


class _Broken(Exception):
    """The line broke: the node may have stored it or not."""


@dataclass(slots=True)
class Transport:
    """Invariant: `current` is the node that answered last, as far as one has."""

    nodes: Sequence[str]
    token: str | None = None
    tls: ssl.SSLContext | None = None
    timeout_s: float = ANSWER_S
    current: int = 0
    _session: aiohttp.ClientSession | None = field(default=None)

    def session(self) -> aiohttp.ClientSession:
        if self._session is None:
            headers = {"User-Agent": "quipu-client"}
            if self.token is not None:
                headers["Authorization"] = f"Bearer {self.token}"
            timeout = aiohttp.ClientTimeout(
                total=None, sock_connect=CONNECT_S, sock_read=self.timeout_s
            )
            connector = aiohttp.TCPConnector(limit=0, ssl=self.tls or True)
            self._session = aiohttp.ClientSession(
                headers=headers, timeout=timeout, connector=connector
            )
        return self._session

    def next_node(self) -> None:
        self.current = (self.current + 1) % len(self.nodes)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def read(
        self,
        path: str,
        params: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes | None = None,
    ) -> Answer:
        """From the first node that answers; each is asked again a few times. With a `body` by
        POST, of what changes nothing."""
        method = "GET" if body is None else "POST"
        failure: QuipuError = Unreachable("no node is named")
        for attempt in range(READ_ROUNDS * len(self.nodes)):
            node = self.nodes[self.current]
            try:
                answer = await self._once(_Request(method, node, path, params, body, headers))
                return _checked(answer)
            except (_NotSent, _Broken) as error:
                failure = Unreachable(f"{node}: {error}")
            except Unavailable as error:
                failure = error
            self.next_node()
            if (attempt + 1) % len(self.nodes) == 0:
                await pause(attempt // len(self.nodes))
        raise failure

    async def read_from(self, node: str, path: str, params: Mapping[str, str]) -> Answer:
        """From that node, once."""
        try:
            return _checked(await self._once(_Request("GET", node, path, params)))
        except (_NotSent, _Broken) as error:
            raise Unreachable(f"{node}: {error}") from error

    async def ask_first(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        rounds: int = READ_ROUNDS,
    ) -> Answer:
        """Of the first node alone, of what is the same when it is done twice."""
        wanted = _Request(method, self.nodes[0], path, {}, body, headers)
        failure: QuipuError = Unreachable("")
        for attempt in range(rounds):
            if attempt:
                await pause(attempt - 1)
            try:
                return _checked(await self._once(wanted))
            except (_NotSent, _Broken) as error:
                failure = Unreachable(f"{wanted.node}: {error}")
            except Unavailable as error:
                failure = error
        raise failure

    async def write(
        self,
        path: str,
        params: Mapping[str, str],
        body: bytes,
        headers: Mapping[str, str],
        terms: "Terms",
    ) -> Answer:
        """On one node, until it is decided. Another is asked only while it is sure that none has
        it, or where the caller has said that twice is no harm."""
        doubtful = False
        node = ""
        failure: QuipuError = Unreachable("no node is named")
        for attempt in range(SUBMIT_ATTEMPTS * len(self.nodes)):
            node = self.nodes[self.current]
            pause_s = 0.0
            try:
                answer = await self._once(_Request("POST", node, path, params, body, headers))
                return _checked(answer)
            except _NotSent as error:
                failure = Unreachable(f"{node}: {error}")
            except _Broken as error:
                doubtful = True
                failure = Unreachable(f"{node}: {error}")
                if not terms.may_repeat:
                    break
            except Unavailable as error:
                failure, pause_s = error, error.retry_after_s
                if error.code in UNDECIDED_CODES:
                    doubtful = True
                    break
                if error.problem is not None and not error.problem.retryable:
                    pause_s = 0.0
            if not doubtful or terms.at_least_once:
                self.next_node()
            if (attempt + 1) % len(self.nodes) == 0 or doubtful:
                await pause(attempt, pause_s)
        if doubtful:
            raise Undecided(
                f"it may be stored or not: {failure}", terms.key, terms.stream, node
            ) from failure
        raise failure

    async def once(self, path: str, body: bytes, headers: Mapping[str, str], name: str) -> Answer:
        """On one node, and never twice: another is asked only where this one was not reached."""
        failure = Unreachable("no node is named")
        for _ in self.nodes:
            node = self.nodes[self.current]
            try:
                answer = await self._once(_Request("POST", node, path, {}, body, headers))
                return _checked(answer)
            except _NotSent as error:
                failure = Unreachable(f"{node}: {error}")
                self.next_node()
            except _Broken as error:
                raise Undecided(f"it may be done or not: {error}", "", name, node) from error
            except Unavailable as error:
                if error.code in UNDECIDED_CODES:
                    raise Undecided(f"it may be done or not: {error}", "", name, node) from error
                raise
        raise failure

    async def _once(self, wanted: "_Request") -> Answer:
        try:
            async with self.session().request(
                wanted.method,
                wanted.node.rstrip("/") + wanted.path,
                params=wanted.params,
                data=None if wanted.body is None else io.BytesIO(wanted.body),
                headers=wanted.headers,
                allow_redirects=False,
            ) as response:
                content = await response.read()
                return Answer(response.status, response.headers, content, wanted.node)
        except NOT_SENT as error:
            raise _NotSent(_why(error)) from error
        except BROKEN as error:
            raise _Broken(str(error) or type(error).__name__) from error


def _why(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorError) and error.os_error.errno:
        return f"cannot be reached: {os.strerror(error.os_error.errno)}"
    return str(error) or type(error).__name__


class _Request(NamedTuple):
    method: str
    node: str
    path: str
    params: Mapping[str, str]
    body: bytes | None = None
    headers: Mapping[str, str] | None = None


class Terms(NamedTuple):
    """What a caller wants of a submission."""

    key: str = ""
    stream: str = "default"
    may_repeat: bool = True  # the node would know it again
    at_least_once: bool = False


async def pause(attempt: int, least_s: float = 0.0) -> None:
    longest = min(PAUSE_S * 2**attempt, PAUSE_S_MAX)
    await asyncio.sleep(max(least_s, longest * random.uniform(0.5, 1)))  # noqa: S311 - jitter


def _checked(answer: Answer) -> Answer:
    if answer.status < 400:
        return answer
    problem = problem_of(answer.status, answer.body)
    after = answer.headers.get("Retry-After", "0")
    raise error_of(problem, float(after) if after.isdecimal() else 0.0)


def problem_of(status: int, body: bytes) -> Problem:
    try:
        return msgspec.json.decode(body, type=Problem)
    except msgspec.DecodeError:
        text = body[:200].decode("utf-8", "replace")
        return Problem("not-quipu", status, "the answer is not that of a node", text, status >= 500)
