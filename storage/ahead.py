"""Room ahead of what LMDB writes: zeros behind its last page, a mebibyte at a time.

A sync of blocks that are in the file already writes them and nothing else; where the file has to
grow for them, ext4 writes its journal too, and a commit takes two to five times as long.
"""

import os
from pathlib import Path

from quipu.storage import limits

_ZEROS = bytes(limits.AHEAD_BYTES)


class Ahead:
    """Only the writer of the store uses it, between two commits."""

    def __init__(self, data: Path) -> None:
        self._fd = os.open(data, os.O_RDWR | os.O_CLOEXEC)
        self._size = os.fstat(self._fd).st_size

    def make(self, used_bytes: int) -> None:
        """On a disk with little room, or that refuses, the file grows as LMDB writes."""
        if used_bytes + limits.AHEAD_BYTES_LEAST <= self._size:
            return
        self._size = max(self._size, os.fstat(self._fd).st_size)
        if used_bytes + limits.AHEAD_BYTES_LEAST <= self._size:
            return
        room = os.fstatvfs(self._fd)
        if room.f_bavail * room.f_frsize < limits.AHEAD_ROOM_LEAST:
            return
        try:
            self._size += os.pwrite(self._fd, _ZEROS, self._size)
        except OSError:
            self._size = os.fstat(self._fd).st_size

    def close(self) -> None:
        os.close(self._fd)
