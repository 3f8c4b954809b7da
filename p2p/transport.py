"""What the peer machine needs of a transport: real over ZeroMQ, and twins for tests."""

from collections.abc import Callable, Mapping
from typing import Protocol

from quipu.ledger.words import NodeId
from quipu.p2p.inputs import FrameDropped, FrameReceived, LinkClosed, LinkOpened
from quipu.p2p.words import Endpoint, LinkId

Happening = FrameReceived | LinkOpened | LinkClosed | FrameDropped
Hear = Callable[[Happening], None]


class Transport(Protocol):
    """One bound address and at most one outbound link a peer. Frames of a link keep their order;
    a link that broke is never mended: its end is told once, and what was under way is lost."""

    @property
    def bound(self) -> Endpoint:
        """Where it listens; the port is the real one where 0 was asked for."""

    @property
    def connections(self) -> int:
        """Inbound, with those that are still in their handshake."""

    @property
    def faults(self) -> Mapping[str, int]:
        """What was not taken, or ended a connection, by cause."""

    def open(self, peer: NodeId, endpoint: Endpoint) -> None:
        """In place of the link to that peer that there may be."""

    def send(self, peer: NodeId, head: bytes, content: bytes) -> None:
        """Never waits: what finds no room is dropped and told."""

    def close(self, peer: NodeId) -> None: ...

    def shut(self, link: LinkId) -> None:
        """Ends the connection of an inbound link."""

    def pause(self) -> None:
        """Reads nothing more; senders feel it when the queues between are full."""

    def resume(self) -> None: ...

    async def stop(self) -> None: ...
