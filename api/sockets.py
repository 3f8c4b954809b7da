"""The admin socket: a file that its owner alone may open, so nobody is asked for a token."""

import os
from pathlib import Path

from aiohttp import web

from quipu.api import limits
from quipu.node import limits as node_limits

SOCKET_MODE = 0o600


class SocketPathTooLong(OSError):
    """The kernel takes no longer name of a socket."""

    def __init__(self, path: Path) -> None:
        size = len(os.fsencode(path))
        most = node_limits.SOCKET_PATH_BYTES_MAX
        super().__init__(f"{path} has {size} bytes, and the name of a socket takes {most}")


class SocketPathUnusable(OSError):
    """Something else has that name, or there is no place for it."""


def check_socket_path(path: Path) -> None:
    """Raises `SocketPathTooLong` or `SocketPathUnusable`."""
    if len(os.fsencode(path)) > node_limits.SOCKET_PATH_BYTES_MAX:
        raise SocketPathTooLong(path)
    if not path.parent.is_dir():
        raise SocketPathUnusable(f"{path.parent} is no directory")
    if path.exists() and not path.is_socket():
        raise SocketPathUnusable(f"{path} is there, and is no socket")


class PrivateSite(web.UnixSite):
    """Replaces the socket of a node that was killed: whoever starts this holds the directory."""

    def __init__(self, runner: web.BaseRunner, path: Path) -> None:
        check_socket_path(path)
        super().__init__(runner, path, backlog=limits.BACKLOG)
        self._file = path

    async def start(self) -> None:
        self._file.unlink(missing_ok=True)
        before = os.umask(0o777 & ~SOCKET_MODE)  # never open to others, not for a moment
        try:
            await super().start()
        finally:
            os.umask(before)

    async def stop(self) -> None:
        await super().stop()
        self._file.unlink(missing_ok=True)
