"""Connections that libzmq owns, looked at and ended from outside of it.

libzmq tells their descriptors and nothing more. A number comes again for another connection, so
whatever is done here goes through a copy that was seen to be the same one. libzmq alone closes.
"""

import os
import socket
import stat
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

_BYTES_RECEIVED = struct.Struct("=128xQ")  # where tcp_info has it, since Linux 4.1

IsOurs = Callable[[socket.socket], bool]


class Descriptor:
    """One TCP connection for as long as it lives."""

    def __init__(self, number: int, inode: int) -> None:
        self.number = number
        self._inode = inode

    @classmethod
    def of(cls, number: int, is_ours: IsOurs) -> "Descriptor | None":
        """None where the connection has ended before somebody came to look."""
        with _copy_of(number) as copy:
            if copy is None or copy.family not in (socket.AF_INET, socket.AF_INET6):
                return None
            with suppress(OSError):  # it has no other end any more
                if is_ours(copy):
                    return cls(number, os.fstat(copy.fileno()).st_ino)
            return None

    def bytes_received(self) -> int | None:
        """In all; None once the connection is no more."""
        with self._same() as copy:
            if copy is None:
                return None
            told = copy.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _BYTES_RECEIVED.size)
            return int(_BYTES_RECEIVED.unpack(told)[0])

    def shut(self) -> None:
        with self._same() as copy:
            if copy is not None:
                with suppress(OSError):  # the other end was faster
                    copy.shutdown(socket.SHUT_RDWR)

    @contextmanager
    def _same(self) -> Iterator[socket.socket | None]:
        with _copy_of(self.number) as copy:
            is_same = copy is not None and os.fstat(copy.fileno()).st_ino == self._inode
            yield copy if is_same else None


@contextmanager
def _copy_of(number: int) -> Iterator[socket.socket | None]:
    """None where that number is no socket now. A file is not even copied: to close any descriptor
    of one lets go all locks that this process has on it, and LMDB rests on such a lock."""
    try:
        is_socket = stat.S_ISSOCK(os.fstat(number).st_mode)
        copied = os.dup(number) if is_socket else None
    except OSError:
        copied = None
    if copied is None:
        yield None
        return
    try:
        copy = socket.socket(fileno=copied)
    except OSError:
        os.close(copied)
        yield None
        return
    with copy:
        yield copy
