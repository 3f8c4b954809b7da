"""What libzmq tells of the connections of a socket.

A thread of its own would need a way back into the loop for each event; the monitor's descriptor
is read there like any other.
"""

import struct
from collections.abc import Callable

import zmq

from quipu.p2p import limits
from quipu.p2p.transports.readable import Context, Readable, Socket

_EVENT = struct.Struct("=HI")


class Monitor:
    """Tells the events of one socket in order: which, and its number (descriptor or error)."""

    def __init__(
        self, context: Context, socket: Socket, events: int, hear: Callable[[int, int], None]
    ) -> None:
        self._hear = hear
        self._watched = socket
        # A socket's descriptor is its own for as long as it lives, so the name is free.
        name = f"inproc://monitor-{socket.fileno()}"
        socket.monitor(name, events)
        self._socket = context.socket(zmq.PAIR)
        self._socket.rcvhwm = limits.EVENTS_WAITING_MAX
        self._socket.connect(name)
        self._readable = Readable(self._socket, self.read)
        self._readable.start()

    def read(self) -> bool:
        """Whether there may be more."""
        for _ in range(limits.EVENTS_TURN_MAX):
            if self._socket.closed:
                return False
            try:
                event, _address = self._socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return False
            self._hear(*_EVENT.unpack(event))
        return True

    def close(self) -> None:
        """Before the socket that it watches."""
        if not self._socket.closed:
            self._readable.stop()
            self._watched.disable_monitor()
            self._socket.close()
