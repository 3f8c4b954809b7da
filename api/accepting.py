"""Takes connections, a few in each turn of the event loop.

uvloop alone accepts for as long as there is one more, at 45 us each: whoever opened 5,000 at once
stopped everybody else for a quarter of a second.
"""

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from quipu.api import limits

log = logging.getLogger("quipu.api")
_NO_ROOM = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))


class NotThere(Exception):
    """The kernel has no such family of addresses, though the name of a host leads there."""


@dataclass(eq=False)
class Acceptor:
    """Invariant: its sockets listen, and are watched, from `start` to `stop`."""

    factory: Callable[[], asyncio.BaseProtocol]
    context: ssl.SSLContext | None
    _sockets: list[socket.socket] = field(default_factory=list)
    _greeting: dict[asyncio.Task[None], None] = field(default_factory=dict)
    _alarms: dict[socket.socket, asyncio.TimerHandle] = field(default_factory=dict)

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
        for listening in self._sockets:
            loop.add_reader(listening, self._accept, listening)
        return int(self._sockets[0].getsockname()[1])

    def _listen(self, listening: socket.socket, address: tuple[Any, ...]) -> None:
        self._sockets.append(listening)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if listening.family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            listening.bind(address)
        except OSError as error:
            raise OSError(error.errno, f"cannot listen on {address}: {error.strerror}") from error
        listening.setblocking(False)
        listening.listen(limits.BACKLOG)

    async def stop(self) -> None:
        """Those that wait in the kernel are refused."""
        loop = asyncio.get_running_loop()
        for alarm in self._alarms.values():
            alarm.cancel()
        for listening in self._sockets:
            loop.remove_reader(listening)
        self._close()
        for task in self._greeting:
            task.cancel()
        await asyncio.gather(*self._greeting, return_exceptions=True)

    def _close(self) -> None:
        for listening in self._sockets:
            listening.close()
        self._sockets.clear()

    def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(limits.ACCEPTS_PER_TURN):
            try:
                accepted, _ = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionError):
                return
            except OSError as error:
                if error.errno not in _NO_ROOM:
                    raise
                log.warning("no connection can be accepted for a while: %s", error)
                loop.remove_reader(listening)
                again = loop.call_later(limits.ACCEPT_PAUSE_S, self._watch, listening)
                self._alarms[listening] = again
                return
            accepted.setblocking(False)
            task = loop.create_task(self._greet(accepted))
            self._greeting[task] = None
            task.add_done_callback(self._greeting.pop)

    def _watch(self, listening: socket.socket) -> None:
        del self._alarms[listening]
        asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    async def _greet(self, accepted: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(self.factory, accepted, ssl=self.context)
        except (OSError, ssl.SSLError) as error:  # it went away, or speaks no TLS
            log.debug("a connection came to nothing: %s", error)
            accepted.close()


def _socket_of(family: int, kind: int) -> socket.socket:
    try:
        return socket.socket(family, kind)
    except OSError as error:
        raise NotThere from error
