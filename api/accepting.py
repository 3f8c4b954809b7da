"""Takes connections: a few in each turn of the event loop, so many a second, and no more than there
are places. What is not taken waits in the kernel, where it costs the node nothing.

uvloop alone accepts for as long as there is one more. To open and to close one costs 80 us, so
whoever opened 5,000 at once stopped everybody else for a quarter of a second.
"""

import asyncio
import errno
import logging
import select
import socket
import ssl
import struct
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from quipu.api import limits
from quipu.api.connections import Connection, Door

log = logging.getLogger("quipu.api")
_BACKLOG_AT = 24  # in the kernel's tcp_info of a socket that listens: tcpi_unacked
_NO_ROOM = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))


class NotThere(Exception):
    """The kernel has no such family of addresses, though the name of a host leads there."""


@dataclass(slots=True)
class Pace:
    """Invariant: from any moment on, at most `burst` and `per_s` a second are spent."""

    per_s: float
    burst: float
    _left: float = field(init=False)
    _at_s: float = 0.0

    def __post_init__(self) -> None:
        self._left = self.burst

    def wait_s(self, now_s: float) -> float:
        """How long until some can be spent; 0: at once."""
        self._left = min(self.burst, self._left + (now_s - self._at_s) * self.per_s)
        self._at_s = now_s
        return 0.0 if self._left >= 1 else (limits.ACCEPTS_PER_TURN - self._left) / self.per_s

    def spend(self, cost: float) -> None:
        self._left -= cost


@dataclass(eq=False)
class Acceptor:
    """Invariant: its sockets listen from `start` to `stop`; they are watched but while it rests."""

    door: Door
    context: ssl.SSLContext | None
    _sockets: list[socket.socket] = field(default_factory=list)
    _greeting: dict[asyncio.Task[None], None] = field(default_factory=dict)
    _resting: asyncio.TimerHandle | None = None

    def __post_init__(self) -> None:
        self._pace = Pace(self.door.connections_per_s_max, limits.ACCEPTS_BURST)

    async def start(self, host: str, port: int) -> int:
        """The port, which is a free one where 0 was asked for. Raises `OSError`."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        try:
            for family, kind, _, _, address in dict.fromkeys(found):
                with suppress(NotThere):
                    self._listen(_socket_of(family, kind), address)
            if not self._sockets:
                raise OSError(errno.EADDRNOTAVAIL, f"{host} has no address here")
        except BaseException:
            self._close()
            raise
        self.door.when_room = self._go_on
        self._watch()
        return int(self._sockets[0].getsockname()[1])

    def _listen(self, listening: socket.socket, address: tuple[Any, ...]) -> None:
        self._sockets.append(listening)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if listening.family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.bind(address)
        listening.setblocking(False)
        listening.listen(limits.BACKLOG)

    async def stop(self) -> None:
        """Those that wait in the kernel are refused."""
        self.door.when_room = lambda: None
        self._rest(0.0)
        self._close()
        for task in self._greeting:
            task.cancel()
        await asyncio.gather(*self._greeting, return_exceptions=True)

    def _close(self) -> None:
        if self._resting is not None:
            self._resting.cancel()
        for listening in self._sockets:
            listening.close()
        self._sockets.clear()

    def waiting(self) -> int:
        """How many the kernel keeps that were not taken yet."""
        return sum(map(_waiting, self._sockets))

    # --- when -----------------------------------------------------------------------------------
    def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        for listening in self._sockets:
            loop.add_reader(listening, self._accept, listening)

    def _rest(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        for listening in self._sockets:
            loop.remove_reader(listening)
        if self._resting is not None:
            self._resting.cancel()
        self._resting = loop.call_later(seconds, self._look)

    def _go_on(self) -> None:
        if self._resting is not None:
            self._resting.cancel()
            self._resting = None
            self._watch()

    def _look(self) -> None:
        """Whether there is a place by now; else whoever asks nothing leaves his."""
        waiting = self.waiting() if self.door.is_full else 0
        if waiting:
            self._rest(limits.ROOM_LOOK_S)
            self.door.make_room(min(waiting, limits.ROOM_PER_LOOK))
        else:
            self._go_on()

    # --- one after the other --------------------------------------------------------------------
    def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(limits.ACCEPTS_PER_TURN):
            if self.door.is_full:
                return self._rest(limits.ROOM_LOOK_S)
            wait_s = self._pace.wait_s(loop.time())
            if wait_s:
                return self._rest(wait_s)
            try:
                accepted, address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionError):
                return None
            except OSError as error:
                if error.errno not in _NO_ROOM:
                    raise
                log.warning("no connection can be accepted for a while: %s", error)
                return self._rest(limits.ACCEPT_PAUSE_S)
            self._take(accepted, str(address[0]))
        return None

    def _take(self, accepted: socket.socket, address: str) -> None:
        accepted.setblocking(False)
        refusal = self.door.refusal(address)
        if refusal or _is_over(accepted):
            self._pace.spend(limits.REFUSAL_COST)
            self._refuse(accepted, refusal)
            return
        self._pace.spend(1.0 if self.context is None else limits.TLS_COST)
        connection = self.door(address)
        task = asyncio.get_running_loop().create_task(self._greet(accepted, connection))
        self._greeting[task] = None

        def ended(task: asyncio.Task[None]) -> None:
            del self._greeting[task]
            if task.cancelled():  # perhaps before it began
                self.door.leave(connection)
                accepted.close()

        task.add_done_callback(ended)

    def _refuse(self, accepted: socket.socket, refusal: bytes) -> None:
        with accepted, suppress(OSError):
            if self.context is None:
                accepted.send(refusal)

    async def _greet(self, accepted: socket.socket, connection: Connection) -> None:
        loop = asyncio.get_running_loop()
        deadline_s = None if self.context is None else self.door.first_header_s
        try:
            await loop.connect_accepted_socket(
                lambda: connection,
                accepted,
                ssl=self.context,
                ssl_handshake_timeout=deadline_s,
            )
        except (OSError, ssl.SSLError) as error:  # it went away, or speaks no TLS
            log.debug("a connection came to nothing: %s", error)
            self.door.leave(connection)
            accepted.close()


def _is_over(accepted: socket.socket) -> bool:
    """Whoever opened it has gone while it waited: the kernel hands out the dead as well."""
    try:
        return not accepted.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _waiting(listening: socket.socket) -> int:
    if hasattr(socket, "TCP_INFO"):
        told = listening.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _BACKLOG_AT + 4)
        return int(struct.unpack_from("=I", told, _BACKLOG_AT)[0])
    return len(select.select([listening], (), (), 0)[0])


def _socket_of(family: int, kind: int) -> socket.socket:
    try:
        return socket.socket(family, kind)
    except OSError as error:
        raise NotThere from error
