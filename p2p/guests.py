"""Guests: nodes that hold the cluster's secret and the URI of this one, and no genesis yet.

A guest greets under the id of no cluster. Who proves the secret is dialled back, greeted, and given
the genesis; nothing else of it is kept, and it is no peer. Who does not prove it is told by the end
of its connection alone: no stranger makes this node dial anybody.
"""

from quipu.ledger.words import NodeId, Now
from quipu.p2p import limits
from quipu.p2p.decen import Alive, Hello
from quipu.p2p.desk import Desk
from quipu.p2p.effects import CloseLink, GuestServed, OpenLink, ShutLink
from quipu.p2p.gossip import join_content
from quipu.p2p.hello import Greeting, build_hello, verify_guest
from quipu.p2p.inputs import FrameReceived
from quipu.p2p.links import Way
from quipu.p2p.refusals import Cause, FrameRefused, refuse


class Guests:
    """Invariant: at most `GUESTS_MAX` links are open for them, each for `GUEST_TIME_MS` at most."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._served: dict[NodeId, Greeting] = {}
        self._until_ms: dict[NodeId, int] = {}  # when its link is closed, oldest first
        self._next_ms: int | None = None  # when the next one may begin

    def greeted(self, frame: FrameReceived, hello: Hello, now: Now) -> None:
        desk = self._desk
        if not desk.config.genesis:
            refuse(Cause.WRONG_CLUSTER, "a guest, and this node has nothing for guests")
        try:
            greeting = verify_guest(hello, frame.key, desk.voice.card, desk.config.verify)
        except FrameRefused:
            desk.outbox.tell(ShutLink(frame.link))
            raise
        if greeting.peer not in self._until_ms:  # else it asks again, and the answer is on its way
            self._check_room(now)
            self._serve(greeting, now)

    def opened(self, guest: NodeId, now: Now) -> None:
        greeting = self._served.pop(guest, None)
        if greeting is None:
            return
        desk = self._desk
        desk.outbox.to_guest(guest, build_hello(desk.voice.card, guest, 0, desk.pools.pools))
        desk.outbox.to_guest(guest, Alive(1), join_content([self._genesis(guest, now)]))
        desk.outbox.tell(GuestServed(guest, greeting.endpoint.endpoint))

    def closed(self, guest: NodeId) -> None:
        self._served.pop(guest, None)
        self._until_ms.pop(guest, None)

    def watch(self, now: Now) -> None:
        for guest in [g for g, end_ms in self._until_ms.items() if now.monotonic_ms >= end_ms]:
            self.closed(guest)
            if guest not in self._desk.links.by_peer:  # by then its link is that of a peer
                self._desk.outbox.tell(CloseLink(guest))

    def next_deadline(self) -> int | None:
        return min(self._until_ms.values(), default=None)

    # ---------------------------------------------------------------------------------------------
    def _check_room(self, now: Now) -> None:
        is_early = self._next_ms is not None and now.monotonic_ms < self._next_ms
        if is_early or len(self._until_ms) >= limits.GUESTS_MAX:
            refuse(Cause.TOO_MANY_GUESTS)
        self._next_ms = now.monotonic_ms + limits.GUEST_INTERVAL_MS

    def _serve(self, greeting: Greeting, now: Now) -> None:
        desk, guest, endpoint = self._desk, greeting.peer, greeting.endpoint.endpoint
        link = desk.links.by_peer.get(guest)
        if link is None:
            self._served[guest] = greeting
            desk.outbox.tell(OpenLink(guest, endpoint))
        elif link.way is Way.OPEN:
            desk.outbox.add(guest, self._genesis(guest, now))
            desk.outbox.tell(GuestServed(guest, endpoint))
        else:  # a founder of this very cluster, dialled anyway: it greets again in a second
            if link.way is Way.IDLE:
                desk.links.dialled(link, endpoint, now.monotonic_ms)
                desk.outbox.tell(OpenLink(guest, endpoint))
            return
        self._until_ms[guest] = now.monotonic_ms + limits.GUEST_TIME_MS

    def _genesis(self, guest: NodeId, now: Now) -> bytes:
        return self._desk.voice.genesis(self._desk.config.genesis, guest, now)
