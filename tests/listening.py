"""A transport with an ear: keeps what it is told, and waits for what a test expects."""

import asyncio
from collections.abc import Callable
from hashlib import sha256
from typing import TypeVar

from quipu.ledger.signing import KeyPair
from quipu.p2p.inputs import FrameReceived
from quipu.p2p.transport import Happening, Hear, Transport
from quipu.p2p.transports.zmq_transport import ZmqTransport
from quipu.p2p.words import Endpoint

LOOPBACK = Endpoint("127.0.0.1", 0)
HEAD = b"head"
WAIT_S = 20.0

Kind = TypeVar("Kind", bound=Happening)


def key_of(name: str) -> KeyPair:
    return KeyPair.from_seed(sha256(name.encode()).digest())


class Listener:
    def __init__(
        self,
        name: str,
        listen: Endpoint = LOOPBACK,
        make: Callable[[KeyPair, Endpoint, Hear], Transport] = ZmqTransport,
        key: KeyPair | None = None,
    ) -> None:
        self.key = key or key_of(name)
        self.heard: list[Happening] = []
        self.fails_at: bytes | None = None
        self._changed = asyncio.Event()
        self._is_stopped = False
        self.transport = make(self.key, listen, self._hear)

    def _hear(self, happening: Happening) -> None:
        self.heard.append(happening)
        self._changed.set()
        if isinstance(happening, FrameReceived) and happening.content == self.fails_at:
            raise RuntimeError("as asked for")

    @property
    def frames(self) -> list[FrameReceived]:
        return self.all_of(FrameReceived)

    @property
    def contents(self) -> list[bytes]:
        return [f.content for f in self.frames]

    def all_of(self, kind: type[Kind]) -> list[Kind]:
        return [h for h in self.heard if isinstance(h, kind)]

    def dial(self, other: "Listener") -> None:
        self.transport.open(other.key.node_id, other.transport.bound)

    def send(self, other: "Listener", content: bytes) -> None:
        self.transport.send(other.key.node_id, HEAD, content)

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(WAIT_S):
            while not is_so():
                self._changed.clear()
                await self._changed.wait()

    async def until_heard(self, content: bytes) -> None:
        await self.until(lambda: content in self.contents[-1:])

    async def stop(self) -> None:
        if not self._is_stopped:
            self._is_stopped = True
            await self.transport.stop()
