"""The listening side: a ROUTER that reads frames of all inbound links and never sends.

Each frame carries the key that its connection proved (the user id of the ZAP answer), so a name
that a peer gave itself never stands for another one.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import zmq

from quipu.p2p import limits
from quipu.p2p.inputs import FrameReceived
from quipu.p2p.transports.arrivals import EVENTS, Arrivals, Connection, Fault
from quipu.p2p.transports.monitor import Monitor
from quipu.p2p.transports.options import CURVE_BYTES, Curve, address_of, set_router
from quipu.p2p.transports.readable import Context, Readable
from quipu.p2p.transports.refusals import cannot_listen
from quipu.p2p.words import Endpoint, LinkId, LinkKey

LINK_ID_BYTES = 8
FRAME_WIRE_BYTES = 2 * CURVE_BYTES  # on the wire, besides what is in the two parts


@dataclass(slots=True)
class _Link:
    user_id: str
    key: LinkKey
    link: LinkId
    connection: Connection


class Inbound:
    """Bound from the beginning. `_links` holds the links by libzmq's name for their connections,
    which a peer may choose and use again; the `LinkId` told is neither."""

    def __init__(
        self,
        context: Context,
        own: Curve,
        listen: Endpoint,
        hear: Callable[[FrameReceived], None],
        is_known: Callable[[LinkKey], bool],
    ) -> None:
        self._hear = hear
        self._links: dict[bytes, _Link] = {}
        self._links_named = 0
        self._skipped: _Link | None = None  # which is within a message of too many parts
        self._is_paused = False
        self._is_drained = False
        self.faults: Counter[Fault] = Counter()
        self._socket = context.socket(zmq.ROUTER)
        set_router(self._socket, own, listen)
        try:
            self._socket.bind(address_of(listen))
        except zmq.ZMQError as error:
            raise cannot_listen(listen, error.errno, str(error)) from error
        port = self._socket.getsockopt_string(zmq.LAST_ENDPOINT).rpartition(":")[2]
        self.bound = Endpoint(listen.host, int(port))
        self._arrivals = Arrivals(self.bound.port, self.faults, is_known)
        self._monitor = Monitor(context, self._socket, EVENTS, self._arrivals.on_event)
        self._readable = Readable(self._socket, self._turn)
        self._readable.start()

    @property
    def connections(self) -> int:
        return len(self._arrivals)

    def shut(self, link: LinkId) -> None:
        for known in self._links.values():
            if known.link == link:
                self._arrivals.end(known.connection)

    def pause(self) -> None:
        """For less than the heartbeat's timeout: once the queues are full, libzmq does not see
        the heartbeats behind them either, and gives the connection up."""
        self._is_paused = True
        self._is_drained = False
        self._readable.stop()

    def resume(self) -> None:
        self._is_paused = False
        self._readable.start()

    def watch(self) -> None:
        """Call it now and then. A frame that waits to be read hides what came after it."""
        if int(self._socket.getsockopt(zmq.EVENTS)) & zmq.POLLIN:
            self._is_drained = False
            self._readable.wake()  # that look has taken the sign away
        self._monitor.read()
        self._arrivals.shut_endless(is_all_read=self._is_drained)

    def close(self) -> None:
        self._readable.stop()
        self._monitor.close()
        self._socket.close()

    # --- reading --------------------------------------------------------------------------------
    def _turn(self) -> bool:
        self._is_drained = False
        bytes_left = limits.READ_BYTES_TURN_MAX
        for _ in range(limits.READ_FRAMES_TURN_MAX):
            try:
                bytes_left -= self._read_one()
            except zmq.Again:
                self._is_drained = True
                self._forget_gone()
                return False
            if bytes_left <= 0 or self._is_paused or self._socket.closed:
                break
        return not self._is_paused

    def _read_one(self) -> int:
        """One message, or one part of a message that is skipped; `zmq.Again` comes of nothing but
        its first part. Flat, since each frame passes here: 4 us in all, 1 us of them the key."""
        receive = self._socket.recv
        if self._skipped is not None:
            part = receive(zmq.NOBLOCK, copy=False)
            self._skipped.connection.bytes_read += len(part)
            if not part.more:
                self._skipped = None
            return len(part)
        name = receive(zmq.NOBLOCK)
        head = receive(zmq.NOBLOCK, copy=False)
        user_id = str(head.get("User-Id"))
        link = self._links.get(name)
        if link is None or link.user_id != user_id:
            link = self._new_link(name, user_id, head)
        connection = link.connection
        connection.is_busy = True
        if not head.more:
            self.faults[Fault.PARTS] += 1
            connection.bytes_read += len(head)
            return len(head)
        content = receive(zmq.NOBLOCK, copy=False)
        head_bytes = len(head)
        frame_bytes = head_bytes + len(content)
        connection.bytes_read += frame_bytes + FRAME_WIRE_BYTES
        if content.more:
            self._skipped = link
            self.faults[Fault.PARTS] += 1
        elif head_bytes > limits.HEAD_BYTES_MAX:
            self.faults[Fault.HEAD_BYTES] += 1
        else:
            self._hear(FrameReceived(link.link, link.key, head.bytes, content.bytes))
        return frame_bytes

    def _new_link(self, name: bytes, user_id: str, head: zmq.Frame) -> _Link:
        while self._monitor.read():  # whoever had this descriptor before is told gone by now
            pass
        if len(self._links) > 2 * limits.INBOUND_CONNECTIONS_MAX:
            self._forget_gone()  # of those that are always busy, nobody is waited for
        self._links_named += 1
        link_id = LinkId(self._links_named.to_bytes(LINK_ID_BYTES))
        key = LinkKey(bytes.fromhex(user_id))
        connection = self._arrivals.heard(int(head.get(zmq.SRCFD)), key)
        link = _Link(user_id, key, link_id, connection)
        self._links[name] = link
        return link

    def _forget_gone(self) -> None:
        """All that their connections brought is read."""
        gone = [name for name, link in self._links.items() if link.connection.is_gone]
        for name in gone:
            del self._links[name]
