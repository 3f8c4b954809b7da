"""The inbound connections: how many there are, and what each has brought.

libzmq accepts without limit, and holds a message in memory until its last part has come. So what
is accepted beyond a number is shut, and so is a connection that brings bytes and no frame. Whom
this node dials itself keeps its place; strangers make room for each other.
"""

import socket
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import zmq

from quipu.p2p import limits
from quipu.p2p.transports.descriptors import Descriptor
from quipu.p2p.words import LinkKey

EVENTS = zmq.EVENT_ACCEPTED | zmq.EVENT_DISCONNECTED


class Fault(StrEnum):
    """Why something that came in was not taken, or a connection was shut."""

    PARTS = "parts"  # not two
    HEAD_BYTES = "head-bytes"  # larger than any header
    WORDLESS = "wordless"  # it ended by itself before it brought a frame: no node of ours
    CROWD = "crowd"  # more connections than are let in
    ENDLESS = "endless"  # more bytes than any frame has, and no frame


@dataclass(slots=True)
class Connection:
    descriptor: Descriptor | None
    key: LinkKey | None = None  # from its first frame on
    is_busy: bool = False  # it brought one since it was last measured
    bytes_read: int = 0  # of frames, as they were on the wire, about
    bytes_unfinished: int = 0
    is_gone: bool = False


class Arrivals:
    def __init__(
        self, port: int, faults: Counter[Fault], is_known: Callable[[LinkKey], bool]
    ) -> None:
        self._port = port
        self._faults = faults
        self._is_known = is_known
        self._living: dict[int, Connection] = {}  # by number, oldest first
        self._unheard: Counter[int] = Counter()  # ended; a frame of them may still wait

    def __len__(self) -> int:
        return len(self._living)

    def on_event(self, event: int, number: int) -> None:
        ended = self._living.get(number)
        if ended is not None and ended.key is None:
            self._unheard[number] += 1
        self._forget(number)
        if event == zmq.EVENT_ACCEPTED:
            self._welcome(number)

    def heard(self, number: int, key: LinkKey) -> Connection:
        """The connection with that first frame. Call it once all events are read: what is not
        known here has ended already."""
        connection = self._living.get(number)
        if connection is None:
            self._unheard[number] -= 1
            return Connection(None, key, is_gone=True)
        connection.key = key
        same = [c for c in self._living.values() if c.key == key]
        if len(same) > limits.INBOUND_CONNECTIONS_KEY_MAX:
            self._shut(same[0], Fault.CROWD)
        return connection

    def end(self, connection: Connection) -> None:
        if not connection.is_gone and connection.descriptor is not None:
            self._forget(connection.descriptor.number)
            connection.descriptor.shut()

    def shut_endless(self, *, is_all_read: bool) -> None:
        """When no whole frame is left to read, what a connection has brought besides its frames
        is the beginning of one. When some are left, only the sum of all says something."""
        if is_all_read:
            self._count_wordless()
        for number, connection in tuple(self._living.items()):
            if not self._measured(connection):
                self._forget(number)
        unfinished_bytes = sum(c.bytes_unfinished for c in self._living.values())
        for connection in sorted(self._living.values(), key=_suspicion, reverse=True):
            is_endless = is_all_read and connection.bytes_unfinished > limits.UNFINISHED_BYTES_MAX
            if is_endless or unfinished_bytes > limits.UNFINISHED_ALL_BYTES_MAX:
                unfinished_bytes -= connection.bytes_unfinished
                self._shut(connection, Fault.ENDLESS)

    def _count_wordless(self) -> None:
        wordless = sum(count for count in self._unheard.values() if count > 0)
        self._unheard.clear()
        if wordless:
            self._faults[Fault.WORDLESS] += wordless

    def _measured(self, connection: Connection) -> bool:
        assert connection.descriptor is not None, "only those that were seen are living"
        received = connection.descriptor.bytes_received()
        if received is None:
            return False
        unfinished = received - connection.bytes_read
        if connection.is_busy and unfinished < limits.UNCOUNTED_BYTES_MAX:
            # What nobody counts does not add up over days. Who is within a message is not busy
            # again before it has ended, so this forgives little, and once.
            unfinished, connection.bytes_read = 0, received
        connection.is_busy, connection.bytes_unfinished = False, unfinished
        return True

    def _welcome(self, number: int) -> None:
        descriptor = Descriptor.of(number, self._is_inbound)
        if descriptor is None:  # it has ended since
            self._unheard[number] += 1
            return
        connection = Connection(descriptor)
        self._living[number] = connection
        if len(self._living) > limits.INBOUND_CONNECTIONS_MAX:
            self._shut(self._least_wanted(), Fault.CROWD)

    def _least_wanted(self) -> Connection:
        """The oldest stranger, unless those who have not even spoken are too many."""
        silent = [c for c in self._living.values() if c.key is None]
        strangers = [c for c in self._living.values() if c.key and not self._is_known(c.key)]
        if strangers and len(silent) <= limits.INBOUND_SILENT_MAX:
            return strangers[0]
        return silent[0]  # the newest is one

    def _is_inbound(self, copy: socket.socket) -> bool:
        return int(copy.getsockname()[1]) == self._port

    def _forget(self, number: int) -> None:
        connection = self._living.pop(number, None)
        if connection is not None:
            connection.is_gone = True

    def _shut(self, connection: Connection, fault: Fault) -> None:
        assert connection.descriptor is not None, "only those that were seen are living"
        self._faults[fault] += 1
        self.end(connection)


def _suspicion(connection: Connection) -> tuple[bool, int]:
    """Whoever never sent a frame has no reason for many bytes; of the others, who has most."""
    unfinished = connection.bytes_unfinished
    return connection.key is None and unfinished > limits.UNCOUNTED_BYTES_MAX, unfinished
