"""Who may connect (ZeroMQ's RFC 27): anybody who proves a CURVE key, and nobody without one.

Whether that key belongs to a peer is decided by its HELLO; here it is only noted, as the user id
of the connection, so that each of its frames tells it.
"""

import zmq

from quipu.p2p import limits
from quipu.p2p.transports.readable import Context, Readable

ADDRESS = "inproc://zeromq.zap.01"
DOMAIN = b"quipu"
VERSION = b"1.0"
REQUEST_PARTS = 6  # before the credentials
KEY_BYTES = 32


def answer(request: list[bytes]) -> list[bytes] | None:
    """None for what is no request at all. The user id is text: libzmq ends it at the first zero."""
    if len(request) < REQUEST_PARTS or request[0] != VERSION:
        return None
    request_id, mechanism, credentials = request[1], request[5], request[REQUEST_PARTS:]
    if mechanism == b"CURVE" and len(credentials) == 1 and len(credentials[0]) == KEY_BYTES:
        return [VERSION, request_id, b"200", b"OK", credentials[0].hex().encode(), b""]
    return [VERSION, request_id, b"400", b"only CURVE is spoken here", b"", b""]


class Doorkeeper:
    """Answers libzmq within one context; it asks once for each handshake."""

    def __init__(self, context: Context) -> None:
        self._socket = context.socket(zmq.ROUTER)
        self._socket.linger = 0
        self._socket.bind(ADDRESS)
        self._readable = Readable(self._socket, self._turn)
        self._readable.start()

    def _turn(self) -> bool:
        for _ in range(limits.EVENTS_TURN_MAX):
            try:
                asker, _empty, *request = self._socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return False
            reply = answer(request)
            if reply is not None:
                self._socket.send_multipart([asker, b"", *reply], zmq.NOBLOCK)
        return True

    def close(self) -> None:
        self._readable.stop()
        self._socket.close()
