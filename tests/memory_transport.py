"""The transport's twin in memory: a hub in place of the network, with faults at will.

A link delivers in order or ends, like a real one. What a real network does to connections is
asked for here: `delay_ms`, `loss`, `cut` and `heal`. All chance comes of the seed.
"""

import asyncio
import random
from collections import deque
from collections.abc import Callable
from itertools import count

from quipu.ledger.words import NodeId
from quipu.p2p import limits
from quipu.p2p.inputs import FrameDropped, FrameReceived, LinkClosed, LinkOpened
from quipu.p2p.link_keys import link_key_of
from quipu.p2p.transport import Happening, Hear
from quipu.p2p.transports.refusals import AddressTaken
from quipu.p2p.words import Endpoint, LinkId, LinkKey

FIRST_PORT = 20_000


class Hub:
    """`schedule` runs something after so many seconds: the loop's, or that of a virtual clock."""

    def __init__(
        self, seed: int = 0, schedule: Callable[[float, Callable[[], None]], object] | None = None
    ) -> None:
        self._random = random.Random(seed)
        self._schedule = schedule
        self._listeners: dict[int, MemoryTransport] = {}
        self._ports = count(FIRST_PORT)
        self._links: list[_Link] = []
        self._links_named = 0
        self._cuts: set[frozenset[NodeId]] = set()
        self.delay_ms = (0.0, 0.0)  # each frame of a link takes between these; links overtake
        self.loss = 0.0  # of frames: as if the link were up and the network swallowed them

    # --- faults ---------------------------------------------------------------------------------
    def cut(self, one: NodeId, other: NodeId) -> None:
        """Ends the links between them and lets none be made."""
        self._cuts.add(frozenset((one, other)))
        for link in tuple(self._links):
            if {link.sender.node_id, link.peer} == {one, other}:
                link.end("the connection ended")

    def heal(self, one: NodeId, other: NodeId) -> None:
        self._cuts.discard(frozenset((one, other)))

    # --- for the transports ---------------------------------------------------------------------
    def listen(self, transport: "MemoryTransport", asked: Endpoint) -> Endpoint:
        port = asked.port or next(self._ports)
        if port in self._listeners:
            raise AddressTaken(f"{asked} is in use", "Set another port.")
        self._listeners[port] = transport
        return Endpoint(asked.host, port)

    def leave(self, transport: "MemoryTransport") -> None:
        del self._listeners[transport.bound.port]
        for link in tuple(self._links):
            if link.receiver is transport:
                link.end("the connection ended")

    def connect(self, sender: "MemoryTransport", peer: NodeId, endpoint: Endpoint) -> "_Link":
        self._links_named += 1
        link = _Link(self, sender, peer, LinkId(self._links_named.to_bytes(8)))
        self._links.append(link)
        self.soon(lambda: link.arrive(self._answer(sender.node_id, peer, endpoint)))
        return link

    def _answer(self, sender: NodeId, peer: NodeId, endpoint: Endpoint) -> "MemoryTransport | str":
        listener = self._listeners.get(endpoint.port)
        if listener is None or frozenset((sender, peer)) in self._cuts:
            return "no connection: refused, or no way to that address"
        return listener if listener.node_id == peer else "ended within the handshake"

    def links_to(self, receiver: "MemoryTransport") -> int:
        return sum(link.receiver is receiver for link in self._links)

    def shut(self, receiver: "MemoryTransport", name: LinkId) -> None:
        for link in tuple(self._links):
            if link.receiver is receiver and link.name == name:
                link.end("the connection ended")

    def forget(self, link: "_Link") -> None:
        self._links.remove(link)

    def deliver_to(self, receiver: "MemoryTransport") -> None:
        for link in tuple(self._links):
            if link.receiver is receiver:
                link.deliver()

    def is_lost(self) -> bool:
        return self.loss > 0 and self._random.random() < self.loss

    def soon(self, action: Callable[[], None]) -> None:
        schedule = self._schedule or asyncio.get_running_loop().call_later
        schedule(self._random.uniform(*self.delay_ms) / 1000, action)


class _Link:
    def __init__(self, hub: Hub, sender: "MemoryTransport", peer: NodeId, name: LinkId) -> None:
        self._hub = hub
        self.name = name
        self._queue: deque[tuple[bytes, bytes]] = deque()
        self._queue_bytes = 0
        self._arrived = 0  # of the queue's frames, the first so many are at the receiver
        self.sender = sender
        self.peer = peer
        self.receiver: MemoryTransport | None = None
        self.is_closing = False
        self._is_over = False

    def arrive(self, answer: "MemoryTransport | str") -> None:
        if self._is_over:
            return
        if isinstance(answer, str):
            self.end(answer)
            return
        self.receiver = answer
        if not self.is_closing:
            self.sender.tell(LinkOpened(self.peer))
        self.deliver()

    def send(self, head: bytes, content: bytes) -> None:
        frame_bytes = len(head) + len(content)
        if self._queue_bytes + frame_bytes > limits.QUEUE_BYTES_MAX:
            self._hub.soon(lambda: self.sender.tell(FrameDropped(self.peer, frame_bytes)))
        elif not self._hub.is_lost():
            self._queue.append((head, content))
            self._queue_bytes += frame_bytes
            self._hub.soon(self._on_arrived)

    def _on_arrived(self) -> None:
        self._arrived += 1
        self.deliver()

    def deliver(self) -> None:
        """As many as have arrived, oldest first: which of them overtook is not to be seen."""
        receiver = self.receiver
        while self._arrived and receiver is not None and not receiver.is_paused:
            self._arrived -= 1
            head, content = self._queue.popleft()
            self._queue_bytes -= len(head) + len(content)
            receiver.tell(FrameReceived(self.name, self.sender.link_key, head, content))
            receiver = self.receiver  # gone, if what it heard made an end
        if self.is_closing and not self._queue:
            self.end("")

    def close(self) -> None:
        self.is_closing = True
        if not self._queue:
            self.end("")

    def end(self, why: str) -> None:
        if self._is_over:
            return
        self._is_over = True
        self.receiver = None
        self._queue.clear()
        self._arrived = 0
        self._hub.forget(self)
        if not self.is_closing:
            self.sender.link_ended(self)
            self.sender.tell(LinkClosed(self.peer, why))


class MemoryTransport:
    def __init__(self, hub: Hub, node_id: NodeId, listen: Endpoint, hear: Hear) -> None:
        key = link_key_of(node_id)
        assert key is not None
        self._hub = hub
        self._hear = hear
        self._links: dict[NodeId, _Link] = {}
        self._is_stopped = False
        self.node_id = node_id
        self.link_key: LinkKey = key
        self.is_paused = False
        self.bound = hub.listen(self, listen)
        self.faults: dict[str, int] = {}

    @property
    def connections(self) -> int:
        return self._hub.links_to(self)

    def open(self, peer: NodeId, endpoint: Endpoint) -> None:
        self.close(peer)
        self._links[peer] = self._hub.connect(self, peer, endpoint)

    def send(self, peer: NodeId, head: bytes, content: bytes) -> None:
        link = self._links.get(peer)
        is_too_large = len(head) > limits.HEAD_BYTES_MAX or len(content) > limits.CONTENT_BYTES_MAX
        if link is None or is_too_large:
            dropped = FrameDropped(peer, len(head) + len(content))
            self._hub.soon(lambda: self.tell(dropped))
        else:
            link.send(head, content)

    def close(self, peer: NodeId) -> None:
        link = self._links.pop(peer, None)
        if link is not None:
            link.close()

    def shut(self, link: LinkId) -> None:
        self._hub.soon(lambda: self._hub.shut(self, link))

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False
        self._hub.soon(lambda: self._hub.deliver_to(self))

    async def stop(self) -> None:
        for peer in tuple(self._links):
            self.close(peer)
        self._is_stopped = True
        self._hub.leave(self)

    def tell(self, happening: Happening) -> None:
        if not self._is_stopped:
            self._hear(happening)

    def link_ended(self, link: _Link) -> None:
        if self._links.get(link.peer) is link:
            del self._links[link.peer]
