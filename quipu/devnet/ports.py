"""Ports on loopback that nobody uses, held until their node listens."""

import random
import socket
from types import TracebackType
from typing import Self

from quipu.devnet import limits
from quipu.devnet.failures import DevnetFailed

HOST = "127.0.0.1"


class HeldPorts:
    """Bound and not listening: with SO_REUSEADDR the node may listen there, as it does, and
    nobody else gets them by chance."""

    def __init__(self, count: int) -> None:
        self._held: list[socket.socket] = []
        try:
            self.numbers = [self._hold() for _ in range(count)]
        except BaseException:
            self.release()
            raise

    def _hold(self) -> int:
        for _ in range(limits.PORT_TRIES):
            port = random.randint(limits.PORT_FIRST, limits.PORT_LAST)  # noqa: S311 - no secret
            if is_free(port):
                held = socket.socket()
                held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                self._held.append(held)
                held.bind((HOST, port))
                return port
        raise DevnetFailed(
            f"no free port between {limits.PORT_FIRST} and {limits.PORT_LAST} on {HOST}",
            "Stop programs that listen there, then try again.",
        )

    def release(self) -> None:
        for held in self._held:
            held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


def is_free(port: int) -> bool:
    """No one is bound there, listening or not."""
    with socket.socket() as tried:
        try:
            tried.bind((HOST, port))
        except OSError:
            return False
        return True
