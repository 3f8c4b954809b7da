"""Who may connect, and how long one may take to say something.

aiohttp alone waits for ever for a first header, and accepts without end.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, cast

import msgspec
from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from quipu.api import limits
from quipu.api.callers import is_trusted
from quipu.api.codes import Code
from quipu.api.counters import Counters
from quipu.api.face import problem_response
from quipu.api.problems import CONTENT_TYPE, Problem
from quipu.api.settings import Settings, is_loopback
from quipu.node.limits import CONNECTIONS_WAITING_MAX


class Connection(RequestHandler):
    """Invariant: it is counted by its door from `connection_made` to `connection_lost`."""

    __slots__ = ("_address", "_deadline", "_door", "_gone")

    def __init__(self, door: "Door", loop: asyncio.AbstractEventLoop, **options: Any) -> None:
        super().__init__(door, loop=loop, **options)
        self._door = door
        self._address = ""
        self._deadline: asyncio.TimerHandle | None = None
        self._gone: asyncio.Event | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        peer = transport.get_extra_info("peername")
        self._address = str(peer[0]) if isinstance(peer, tuple) else ""
        self._door.enter(self, self._address)

    def connection_lost(self, exc: BaseException | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        if self._gone is not None:
            self._gone.set()
        self._door.leave(self, self._address)
        super().connection_lost(exc)

    async def gone(self) -> None:
        """Returns when the caller has closed the connection: aiohttp tells a handler only when it
        writes."""
        if self.transport is not None:
            self._gone = self._gone or asyncio.Event()
            await self._gone.wait()

    def begin(self, first_header_s: float) -> None:
        """From now on it is read, and has that long for its first header."""
        self._deadline = self._loop.call_later(first_header_s, self._late)

    def hold(self) -> None:
        if self.transport is not None:
            self.transport.pause_reading()

    def let_in(self) -> None:
        if self.transport is not None:
            self.transport.resume_reading()

    def refuse(self, found: Problem) -> None:
        """Answers and closes, without having read anything."""
        if self.transport is not None:
            body = msgspec.json.encode(found.body(""))
            head = (
                f"HTTP/1.1 {found.kind.status} Refused\r\nContent-Type: {CONTENT_TYPE}\r\n"
                f"Retry-After: {found.retry_after_s}\r\nContent-Length: {len(body)}\r\n"
                "Connection: close\r\n\r\n"
            )
            self.transport.write(head.encode() + body)
        self.force_close()

    def idle_s(self) -> float:
        """How long nothing was asked on it since its last answer; 0: an answer is under way, or its
        first request has yet to come, for which it has a deadline."""
        if self._waiter is None or self._request_count == 0 or self._messages:
            return 0.0
        return self._loop.time() - (self._next_keepalive_close_time - self._keepalive_timeout)

    def _late(self) -> None:
        if self._request_count == 0:
            self.force_close()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """What is no HTTP, and what fell through: a problem like any other."""
        if status >= 500:
            self.log_exception("Error handling request", exc_info=exc)
        self.keep_alive(False)
        code = Code.BAD_REQUEST if status < 500 else Code.INTERNAL
        detail = (message or "")[:200] if status < 500 else ""
        response = problem_response(Problem(code, " ".join(detail.split())), "")
        response.force_close()
        return response


class Door(web.Server):
    """Invariant: at most `connections_max` are read; the others wait in the order they came."""

    def __init__(
        self,
        handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
        settings: Settings,
        counters: Counters,
        connection: "Callable[..., Connection] | None" = None,  # of which kind they are
    ) -> None:
        super().__init__(cast(Any, handler))
        self._connection = connection or Connection
        self._settings = settings
        self._counters = counters
        self._inside: dict[Connection, None] = {}
        self._waiting: deque[Connection] = deque()
        self._by_address: dict[str, int] = {}
        self._alarm: asyncio.TimerHandle | None = None

    def __call__(self) -> RequestHandler:
        return self._connection(
            self,
            asyncio.get_running_loop(),
            keepalive_timeout=self._settings.keepalive_s,
            access_log=None,
            max_line_size=limits.HEADER_BYTES_MAX,
            max_field_size=limits.HEADER_BYTES_MAX,
            lingering_time=2.0,
            auto_decompress=False,
        )

    def enter(self, connection: Connection, address: str) -> None:
        own = self._by_address[address] = self._by_address.get(address, 0) + 1
        if own > self._settings.connections_per_address_max and self._is_limited(address):
            self._counters.connections_refused += 1
            detail = f"{own - 1} connections of this address are open"
            found = Problem(Code.TOO_MANY_REQUESTS, detail, retry_after_s=limits.RETRY_AFTER_S)
            connection.refuse(found)
        elif len(self._inside) < self._settings.connections_max:
            self._let_in(connection)
        elif len(self._waiting) < CONNECTIONS_WAITING_MAX:
            connection.hold()
            self._waiting.append(connection)
            self._make_room_soon()
        else:
            self._counters.connections_refused += 1
            connection.force_close()
        self._count()

    def leave(self, connection: Connection, address: str) -> None:
        left = self._by_address.get(address, 1) - 1
        if left:
            self._by_address[address] = left
        else:
            self._by_address.pop(address, None)
        if connection in self._inside:
            del self._inside[connection]
        elif connection in self._waiting:
            self._waiting.remove(connection)
        while self._waiting and len(self._inside) < self._settings.connections_max:
            following = self._waiting.popleft()
            following.let_in()
            self._let_in(following)
        self._count()

    def _make_room_soon(self) -> None:
        if self._alarm is None:
            loop = asyncio.get_running_loop()
            self._alarm = loop.call_later(limits.IDLE_S, self._make_room)

    def _make_room(self) -> None:
        """Those that keep a place and ask nothing leave it to those that wait."""
        self._alarm = None
        idle = [one for one in self._inside if one.idle_s() >= limits.IDLE_S]
        for connection in idle[: len(self._waiting)]:
            connection.force_close()
        if self._waiting:
            self._make_room_soon()

    def _let_in(self, connection: Connection) -> None:
        self._inside[connection] = None
        connection.begin(self._settings.first_header_s)

    def _is_limited(self, address: str) -> bool:
        return not (is_loopback(address) or is_trusted(address, self._settings.trusted_proxies))

    def _count(self) -> None:
        self._counters.connections = len(self._inside)
        self._counters.connections_waiting = len(self._waiting)
