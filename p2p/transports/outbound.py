"""One outbound link: a DEALER with one connection, and the queue in front of it.

libzmq counts frames and never bytes, so it is given few at a time; the rest waits here, within a
budget of bytes.
"""

import asyncio
import socket
from collections import deque
from collections.abc import Callable

import zmq

from quipu.ledger.words import NodeId
from quipu.p2p import limits
from quipu.p2p.inputs import FrameDropped, LinkClosed, LinkOpened
from quipu.p2p.transport import Hear
from quipu.p2p.transports.descriptors import Descriptor
from quipu.p2p.transports.monitor import Monitor
from quipu.p2p.transports.options import Curve, address_of, set_dealer
from quipu.p2p.transports.readable import Context, Readable
from quipu.p2p.words import Endpoint, LinkKey

EVENTS = (
    zmq.EVENT_CONNECTED
    | zmq.EVENT_CLOSED
    | zmq.EVENT_DISCONNECTED
    | zmq.EVENT_HANDSHAKE_SUCCEEDED
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
)
# libzmq tells nothing where the system gives it no descriptor to dial with.
DIAL_TIMEOUT_MS = limits.CONNECT_TIMEOUT_MS + limits.HANDSHAKE_TIMEOUT_MS + 1_000


class Outbound:
    """Tells its opening and its end once each, and nothing after `close`. `ended` is called when
    it holds nothing of the system any more."""

    def __init__(
        self, context: Context, peer: NodeId, hear: Hear, ended: Callable[["Outbound"], None]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._context = context
        self.peer = peer
        self._hear = hear
        self._ended = ended
        self._queue: deque[tuple[bytes, bytes]] = deque()
        self._queue_bytes = 0
        self._is_dialled = False
        self._is_open = False
        self._close_by: float | None = None  # set once it is told to close
        self._is_over = False
        self._started_at = self._loop.time()
        self._descriptor: Descriptor | None = None
        self._why = ""
        self._timer = self._loop.call_later(
            DIAL_TIMEOUT_MS / 1000, self.end, f"no answer within {DIAL_TIMEOUT_MS} ms"
        )

    def dial(self, own: Curve, server: LinkKey, endpoint: Endpoint) -> None:
        """Raises `zmq.ZMQError` where libzmq takes no socket or no such address; then `end` it."""
        if self._is_over:
            return
        self._socket = self._context.socket(zmq.DEALER)
        try:
            set_dealer(self._socket, own, server, endpoint)
            self._monitor = Monitor(self._context, self._socket, EVENTS, self._on_event)
        except zmq.ZMQError:
            self._socket.close(linger=0)
            raise
        self._writable = Readable(self._socket, self._drain)
        self._is_dialled = True
        self._port = endpoint.port
        self._started_at = self._loop.time()
        self._socket.connect(address_of(endpoint))
        if self._queue:
            self._writable.start()

    def watch(self) -> None:
        """Call it now and then. Only the handshake and heartbeats come this way; libzmq would
        keep anything else in memory."""
        received = self._descriptor.bytes_received() if self._descriptor is not None else None
        lasted_s = self._loop.time() - self._started_at
        granted = limits.HANDSHAKE_BYTES_MAX + limits.HEARTBEAT_BYTES_SECOND_MAX * lasted_s
        if received is not None and received > granted:
            self.end("the peer sends where no peer sends anything")

    # --- frames ---------------------------------------------------------------------------------
    def send(self, head: bytes, content: bytes) -> None:
        if self._is_dialled and not self._queue and self._was_taken(head, content):
            return
        frame_bytes = len(head) + len(content)
        if self._queue_bytes + frame_bytes > limits.QUEUE_BYTES_MAX:
            self._loop.call_soon(self._hear, FrameDropped(self.peer, frame_bytes))
            return
        self._queue.append((head, content))
        self._queue_bytes += frame_bytes
        if self._is_dialled:
            self._writable.start()

    def _was_taken(self, head: bytes, content: bytes) -> bool:
        try:
            self._socket.send(head, zmq.SNDMORE | zmq.NOBLOCK)
        except zmq.Again:
            return False
        self._socket.send(content, zmq.NOBLOCK)  # libzmq never parts the parts
        return True

    def _drain(self) -> bool:
        """A turn that ends for want of room looks at EVENTS: that, and no failed try, makes sure
        that the descriptor gives a sign when there is room again."""
        for _ in range(limits.SEND_FRAMES_TURN_MAX):
            if not self._queue:
                break
            if self._was_taken(*self._queue[0]):
                head, content = self._queue.popleft()
                self._queue_bytes -= len(head) + len(content)
            elif not int(self._socket.getsockopt(zmq.EVENTS)) & zmq.POLLOUT:
                return False
        if self._queue:
            return True
        self._writable.stop()
        if self._close_by is not None:
            self._release()
        return False

    # --- ends -----------------------------------------------------------------------------------
    def close(self) -> None:
        """Delivers what was sent before, as far as the linger goes."""
        if self._is_over or self._close_by is not None:
            return
        self._close_by = self._loop.time() + limits.LINGER_MS / 1000
        self._timer.cancel()
        if self._queue:
            self._timer = self._loop.call_at(self._close_by, self._release)
        else:
            self._release()

    def end(self, why: str) -> None:
        if self._is_over:
            return
        is_asked = self._close_by is not None
        self._release()
        if not is_asked:
            self._hear(LinkClosed(self.peer, why))

    def _release(self) -> None:
        self._is_over = True
        self._timer.cancel()
        self._queue.clear()
        if self._is_dialled:
            left_s = 0.0 if self._close_by is None else self._close_by - self._loop.time()
            self._writable.stop()
            self._monitor.close()
            self._socket.close(linger=max(0, int(left_s * 1000)))
        self._ended(self)

    # --- what libzmq tells ----------------------------------------------------------------------
    def _on_event(self, event: int, value: int) -> None:
        match event:
            case zmq.EVENT_HANDSHAKE_SUCCEEDED:
                self._is_open = True
                self._timer.cancel()
                if self._close_by is None:
                    self._hear(LinkOpened(self.peer))
            case zmq.EVENT_CONNECTED:
                self._why = "ended within the handshake: not the node of this id, or not a node"
                self._started_at = self._loop.time()
                self._descriptor = Descriptor.of(value, self._is_to_peer)
            case zmq.EVENT_HANDSHAKE_FAILED_AUTH:
                self._why = f"the peer refuses this node's key (status {value})"
            case zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL:
                self._why = f"the peer does not speak CURVE as this node does (0x{value:08x})"
            case zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL:
                if self._has_lasted(limits.HANDSHAKE_TIMEOUT_MS):
                    self._why = f"no handshake within {limits.HANDSHAKE_TIMEOUT_MS} ms"
            case zmq.EVENT_DISCONNECTED:
                self.end("the connection ended" if self._is_open else self._why)
            case zmq.EVENT_CLOSED:
                self.end(self._not_connected())
            case _:
                raise AssertionError(f"event {event} was not asked for")

    def _is_to_peer(self, copy: socket.socket) -> bool:
        return int(copy.getpeername()[1]) == self._port

    def _has_lasted(self, duration_ms: int) -> bool:
        return self._loop.time() - self._started_at >= duration_ms / 1000 - 0.05

    def _not_connected(self) -> str:
        if self._has_lasted(limits.CONNECT_TIMEOUT_MS):
            return f"no connection within {limits.CONNECT_TIMEOUT_MS} ms"
        return "no connection: refused, or no way to that address"
