"""The descriptor of a ZeroMQ socket on the event loop.

It is no ordinary one: readable means that something may have changed, and any call on the socket
may take that sign away. So a turn goes on until the socket has nothing more, and one that ends
before comes again by itself.
"""

import asyncio
from collections.abc import Callable

import zmq

Socket = zmq.Socket[bytes]
Context = zmq.Context[Socket]


class Readable:
    """Runs `turn` when the socket may have something; `turn` says whether there may be more."""

    def __init__(self, socket: Socket, turn: Callable[[], bool]) -> None:
        self._loop = asyncio.get_running_loop()
        self._descriptor = socket.fileno()
        self._turn = turn
        self._is_on = False
        self._next: asyncio.Handle | None = None

    def start(self) -> None:
        """Begins with a turn: what came before is not told by the descriptor."""
        if not self._is_on:
            self._is_on = True
            self._loop.add_reader(self._descriptor, self._on_sign)
            self.wake()

    def stop(self) -> None:
        """Before the socket is closed: its descriptor is another's afterwards."""
        if self._is_on:
            self._is_on = False
            self._loop.remove_reader(self._descriptor)
        if self._next is not None:
            self._next.cancel()
            self._next = None

    def _on_sign(self) -> None:
        if self._next is None:
            self._run()

    def wake(self) -> None:
        """A turn soon, for whoever has called the socket outside of one."""
        if self._next is None and self._is_on:
            self._next = self._loop.call_soon(self._run)

    def _run(self) -> None:
        self._next = None
        has_more = True  # also where the turn raises: the sign is gone, the rest is still there
        try:
            has_more = self._turn()
        finally:
            if has_more:
                self.wake()
