"""Who may connect, and how long one may take to say something.

aiohttp alone waits for ever for a first header, and accepts without end.
"""

import asyncio
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


class Connection(RequestHandler):
    """Invariant: it has a place from the moment its door made it until it is lost or given up."""

    __slots__ = (
        "_address", "_deadline", "_door", "_drain", "_gone", "_is_left", "_since_s",
        "body_waited_s",
    )  # fmt: skip

    def __init__(
        self, door: "Door", address: str, loop: asyncio.AbstractEventLoop, **options: Any
    ) -> None:
        super().__init__(door, loop=loop, **options)
        self._door = door
        self._address = address
        self._deadline: asyncio.TimerHandle | None = None
        self._drain: asyncio.TimerHandle | None = None
        self._gone: asyncio.Event | None = None
        self._is_left = False  # what comes now is the rest of a body that was refused
        self._since_s = 0.0
        self.body_waited_s = 0.0  # before anybody took the request

    @property
    def address(self) -> str:
        """Of the caller; empty: it came through a file."""
        return self._address

    @property
    def has_asked(self) -> bool:
        return self._request_count > 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._since_s = self._loop.time()
        self._deadline = self._loop.call_later(self._door.first_header_s, self._late)

    def connection_lost(self, exc: BaseException | None) -> None:
        for timer in (self._deadline, self._drain):
            if timer is not None:
                timer.cancel()
        if self._gone is not None:
            self._gone.set()
        self._door.leave(self)
        super().connection_lost(exc)

    async def gone(self) -> None:
        """Returns when the caller has closed the connection: aiohttp tells a handler only when it
        writes."""
        if self.transport is not None:
            self._gone = self._gone or asyncio.Event()
            await self._gone.wait()

    def hold(self) -> None:
        if self.transport is not None:
            self.transport.pause_reading()

    def let_in(self) -> None:
        if self.transport is not None:
            self.transport.resume_reading()

    async def _handle_request(
        self, request: web.BaseRequest, *given: Any
    ) -> tuple[web.StreamResponse, bool]:
        response, is_broken = await super()._handle_request(request, *given)
        if not (response.keep_alive or request.content.is_eof()):
            self._leave_body(request.content_length or 0)
        return response, is_broken

    def _leave_body(self, length: int) -> None:
        """The rest of a refused body is read slowly, so that its caller comes to see the answer; of
        a huge one nothing is. aiohttp alone would read on as fast as it comes."""
        self._is_left = True
        self.hold()
        if length <= limits.LINGER_BYTES_MAX:
            self._drain_soon()

    def _drain_soon(self) -> None:
        self._drain = self._loop.call_at(self._door.next_drain_s(), self._drain_some)

    def _drain_some(self) -> None:
        super().resume_reading()
        if self._reading_paused:
            self._drain_soon()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_left and data:
            self.hold()
            self._drain_soon()
        elif self._messages and not self._messages[-1][1].is_eof():
            self._wait_for_taker(self._messages[-1][0])

    def _wait_for_taker(self, message: Any) -> None:
        """Hardly anybody takes a body of that length, so it is not read before somebody does."""
        length = getattr(message, "headers", {}).get("Content-Length", "0")
        if int(length) > self._door.batch_bytes_max:
            self.pause_reading()

    def resume_reading(self, resume_parser: bool = True) -> None:
        """aiohttp calls it for each body, and parses nothing once more (6 us)."""
        if self._reading_paused and not self._is_left:
            super().resume_reading(resume_parser)

    def idle_s(self) -> float:
        """How long nothing was asked on it, since it came or since its last answer; 0: an answer is
        under way, or it is not open yet."""
        if self._waiter is None or self._messages:
            return 0.0
        if not self.has_asked:
            return self._loop.time() - self._since_s
        return self._loop.time() - (self._next_keepalive_close_time - self._keepalive_timeout)

    def _late(self) -> None:
        if not self.has_asked:
            self.force_close()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """What is no HTTP, and what fell through: a problem like any other."""
        is_gone = isinstance(exc, ConnectionError) and self.transport is None
        if status >= 500 and not is_gone:
            self.log_exception("Error handling request", exc_info=exc)
        self.keep_alive(False)
        code = Code.BAD_REQUEST if status < 500 else Code.INTERNAL
        detail = (message or "")[:200] if status < 500 else ""
        response = problem_response(Problem(code, " ".join(detail.split())), "")
        response.force_close()
        return response


class Door(web.Server):
    """Invariant: each of its connections has one place, from being accepted until it is lost. Who
    listens for it takes no more of them than there are places; the others wait in the kernel."""

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
        self._by_address: dict[str, int] = {}
        self._idle: list[Connection] = []  # some that were idle, those that leave first last
        self._looks_s = 0.0
        self._drained_s = 0.0
        self.when_room: Callable[[], None] = lambda: None  # told when it is full no more

    @property
    def first_header_s(self) -> float:
        return self._settings.first_header_s

    @property
    def connections_per_s_max(self) -> float:
        return self._settings.connections_per_s_max

    @property
    def batch_bytes_max(self) -> int:
        return self._settings.batch_bytes_max

    @property
    def is_full(self) -> bool:
        return len(self._inside) >= self._settings.connections_max

    def refusal(self, address: str) -> bytes:
        """What one more of that address is answered; empty: it may come in. Nothing was made for it
        and nothing read."""
        own = self._by_address.get(address, 0)
        if own < self._settings.connections_per_address_max or not self._is_limited(address):
            return b""
        self._counters.connections_refused += 1
        detail = f"{own} connections of this address are open"
        return _answer(Problem(Code.TOO_MANY_REQUESTS, detail, retry_after_s=limits.RETRY_AFTER_S))

    def __call__(self, address: str = "") -> Connection:
        connection = self._connection(
            self,
            address,
            asyncio.get_running_loop(),
            keepalive_timeout=self._settings.keepalive_s,
            access_log=None,
            max_line_size=limits.HEADER_BYTES_MAX,
            max_field_size=limits.HEADER_BYTES_MAX,
            lingering_time=limits.LINGER_S,
            auto_decompress=False,
        )
        self._inside[connection] = None
        self._by_address[address] = self._by_address.get(address, 0) + 1
        self._counters.connections = len(self._inside)
        return connection

    def leave(self, connection: Connection) -> None:
        was_full = self.is_full
        if connection not in self._inside:
            return
        del self._inside[connection]
        left = self._by_address[connection.address] - 1
        if left:
            self._by_address[connection.address] = left
        else:
            del self._by_address[connection.address]
        self._counters.connections = len(self._inside)
        if was_full:
            self.when_room()

    def make_room(self, wanted: int) -> None:
        """Those that keep a place and ask nothing leave it to those that wait, before all those
        that never asked anything. To look through all of them takes a while, so it is not done
        each time."""
        now_s = asyncio.get_running_loop().time()
        if not self._idle and now_s >= self._looks_s:
            self._looks_s = now_s + limits.IDLE_LOOK_S
            self._idle = [one for one in self._inside if one.idle_s() >= limits.IDLE_S]
            self._idle.sort(key=lambda one: not one.has_asked)
        while self._idle and wanted > 0:
            connection = self._idle.pop()
            if connection in self._inside and connection.idle_s() >= limits.IDLE_S:
                connection.force_close()
                wanted -= 1

    def next_drain_s(self) -> float:
        """When the next piece of a refused body may be read: of all of them together, so few a
        second that nobody feels it."""
        self._drained_s = max(self._drained_s, asyncio.get_running_loop().time())
        self._drained_s += limits.DRAIN_STEP_S
        return self._drained_s

    def _is_limited(self, address: str) -> bool:
        return not (is_loopback(address) or is_trusted(address, self._settings.trusted_proxies))


def _answer(found: Problem) -> bytes:
    body = msgspec.json.encode(found.body(""))
    head = (
        f"HTTP/1.1 {found.kind.status} Refused\r\nContent-Type: {CONTENT_TYPE}\r\n"
        f"Retry-After: {found.retry_after_s}\r\nContent-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + body
