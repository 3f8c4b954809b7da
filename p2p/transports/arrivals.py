"""The inbound connections, by their descriptors: how many there are, and what each has brought.

libzmq accepts without limit, and takes a message into memory until its last part has come. So
what is accepted beyond a number is shut, and so is a connection that brings bytes without end and
no frame. The descriptors belong to libzmq: it is only ever shut down here, through a copy that
was seen to be the very same connection, and libzmq closes it.
"""

import os
import socket
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum

import zmq

from quipu.p2p import limits

EVENTS = zmq.EVENT_ACCEPTED | zmq.EVENT_DISCONNECTED

_BYTES_RECEIVED = struct.Struct("=128xQ")  # where tcp_info has it, since Linux 4.1


class Fault(StrEnum):
    """Why something that came in was not taken, or a connection was shut."""

    PARTS = "parts"  # not two
    HEAD_BYTES = "head-bytes"  # larger than any header
    CROWD = "crowd"  # more connections than are let in
    ENDLESS = "endless"  # more bytes than any frame has, and no frame


@dataclass(slots=True)
class Connection:
    descriptor: int
    inode: int  # which connection that number meant: numbers come again
    is_heard: bool = False  # it brought a frame at some time
    is_busy: bool = False  # it brought one since it was last measured
    bytes_before: int | None = None
    is_gone: bool = False


class Arrivals:
    def __init__(self, port: int, faults: Counter[Fault]) -> None:
        self._port = port
        self._faults = faults
        self._living: dict[int, Connection] = {}  # by descriptor, oldest first

    def __len__(self) -> int:
        return len(self._living)

    def on_event(self, event: int, value: int) -> None:
        if event == zmq.EVENT_DISCONNECTED:
            self._forget(value)
        elif event == zmq.EVENT_ACCEPTED:
            self._forget(value)
            self._welcome(value)

    def at(self, descriptor: int) -> Connection:
        """Call it once all events are read. One that is not known here has ended already."""
        connection = self._living.get(descriptor)
        return connection if connection is not None else Connection(descriptor, 0, is_gone=True)

    def shut_endless(self) -> None:
        """Call it when no whole frame is left to read, so that bytes and no frame mean a part of
        one."""
        for connection in tuple(self._living.values()):
            if connection.is_busy:
                connection.is_busy, connection.bytes_before = False, None
                continue
            received = self._bytes_received(connection)
            if received is None:
                self._forget(connection.descriptor)
            elif connection.bytes_before is None:
                connection.bytes_before = received
            elif received - connection.bytes_before > limits.UNFINISHED_BYTES_MAX:
                self._shut(connection, Fault.ENDLESS)

    def _welcome(self, descriptor: int) -> None:
        with _copy_of(descriptor) as copy:
            if copy is None or not self._is_inbound(copy):
                return  # it ended before its event was read
            connection = Connection(descriptor, os.fstat(copy.fileno()).st_ino)
        self._living[descriptor] = connection
        if len(self._living) > limits.INBOUND_CONNECTIONS_MAX:
            # Whoever holds a place and says nothing makes room for those who may.
            silent = (c for c in self._living.values() if not c.is_heard)
            self._shut(next(silent, connection), Fault.CROWD)

    def _forget(self, descriptor: int) -> None:
        connection = self._living.pop(descriptor, None)
        if connection is not None:
            connection.is_gone = True

    def _is_inbound(self, copy: socket.socket) -> bool:
        is_tcp = copy.family in (socket.AF_INET, socket.AF_INET6)
        return is_tcp and int(copy.getsockname()[1]) == self._port

    def _bytes_received(self, connection: Connection) -> int | None:
        """None where that connection is no more."""
        with _copy_of(connection.descriptor) as copy:
            if copy is None or os.fstat(copy.fileno()).st_ino != connection.inode:
                return None
            told = copy.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _BYTES_RECEIVED.size)
            return int(_BYTES_RECEIVED.unpack(told)[0])

    def _shut(self, connection: Connection, fault: Fault) -> None:
        self._faults[fault] += 1
        self._forget(connection.descriptor)
        with _copy_of(connection.descriptor) as copy:
            if copy is not None and os.fstat(copy.fileno()).st_ino == connection.inode:
                with suppress(OSError):  # the peer was faster
                    copy.shutdown(socket.SHUT_RDWR)


@contextmanager
def _copy_of(descriptor: int) -> Iterator[socket.socket | None]:
    """None where that number is no socket any more."""
    try:
        number = os.dup(descriptor)
    except OSError:
        yield None
        return
    try:
        copy = socket.socket(fileno=number)
    except OSError:
        os.close(number)
        yield None
        return
    with copy:
        yield copy
