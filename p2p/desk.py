"""What the parts of the peer machine hold in common, and the moves that touch several of them.

The parent and the one that hears gossip work on it; the children on it do not know each other.
"""

from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256

from quipu.ledger import signing
from quipu.ledger.signing import KeyPair, Verifier
from quipu.ledger.words import NodeId, NodeNo, Now
from quipu.p2p import limits
from quipu.p2p.addresses import SignedEndpoint, check_endpoint
from quipu.p2p.bodies import Joined, Lost
from quipu.p2p.book import Book
from quipu.p2p.cast_ear import Ear
from quipu.p2p.casting import Casting, Frame
from quipu.p2p.decen import Broadcast
from quipu.p2p.effects import CloseLink, PeerDown, PeerUp, Refusal, StateChanged
from quipu.p2p.gossip import Gossip, Kind, encode_gossip, onward
from quipu.p2p.links import Link, Links, Way
from quipu.p2p.membership import Membership, Move
from quipu.p2p.outbox import Outbox
from quipu.p2p.pools import PoolList
from quipu.p2p.queries import Queries, Questions
from quipu.p2p.refusals import Cause, FrameRefused
from quipu.p2p.spread import SeenSet, receivers
from quipu.p2p.voice import Voice
from quipu.p2p.words import Endpoint, GossipId, PeerState, StreamId

_PRESENT = (PeerState.ALIVE, PeerState.UNKNOWN)
_RETURNED_FROM = (PeerState.UNKNOWN, PeerState.UNREACHABLE, PeerState.DEAD, PeerState.LEFT)


@dataclass(frozen=True, slots=True)
class PeersConfig:
    """`endpoint`: where others reach this node. `entropy`: 64 random bits, others at each start."""

    key: KeyPair
    cluster_id: bytes
    secrets: tuple[bytes, ...] = field(repr=False)  # all are shown, one in common admits
    name: str
    version: str  # of the program, for people
    endpoint: Endpoint
    node_no: NodeNo
    members: tuple[NodeId, ...]
    entropy: int
    genesis: bytes = b""  # what guests are given; empty: there are none
    has_beacon: bool = False
    has_multicast: bool = False
    verify: Verifier = signing.verify


@dataclass(slots=True)
class Desk:
    config: PeersConfig
    voice: Voice
    book: Book
    links: Links
    membership: Membership
    seen: SeenSet
    outbox: Outbox
    pools: PoolList = field(default_factory=PoolList)  # of this node
    peer_pools: dict[NodeId, PoolList] = field(default_factory=dict)
    queries: Queries = field(default_factory=Queries)
    questions: Questions = field(default_factory=Questions)
    up: dict[NodeId, None] = field(default_factory=dict)
    casting: Casting | None = None  # what this node multicasts; None: nothing, nor does it listen
    ears: dict[StreamId, Ear] = field(default_factory=dict)
    health: dict[GossipId, tuple[NodeId, int]] = field(default_factory=dict)  # asked when of whom
    is_acked: bool = False  # somebody has heard that this node is there
    to_join: dict[NodeId, int] = field(default_factory=dict)  # when to tell that it has come
    wants_changed: bool = True  # whom to dial is to be found out anew
    kept_changed: bool = True  # a restart would begin with something else

    @property
    def me(self) -> NodeId:
        return self.config.key.node_id

    # --- saying ---------------------------------------------------------------------------------
    def direct(self, peer: NodeId, message: Gossip) -> None:
        self.outbox.add(peer, encode_gossip(message))

    def spread(self, message: Gossip, came_from: NodeId | None = None) -> None:
        """Straight to a target that is linked, else over the others; never back. To one that is
        silent both: its link may be broken in one way, and nobody knows yet."""
        target = NodeId(message.target) if message.target is not None else None
        if target is not None and self._is_open(target):
            self.direct(target, message)
            if self.membership.state(target) in _PRESENT:
                return
        usable = [
            member
            for member in self.book.members
            if member not in (came_from, message.sender, target)
            and self._is_open(member)
            and self.membership.state(member) in _PRESENT
        ]
        data = encode_gossip(message)
        for peer in receivers(GossipId(message.id), self.me, self.book.members, usable):
            self.outbox.add(peer, data)

    def forward(self, message: Gossip, came_from: NodeId) -> None:
        """Once, for the seen-set lets a message pass once. Of an observer only questions spread:
        the rest matters to those alone that it told."""
        is_of_member = message.sender in self.membership.members
        is_spread = is_of_member or message.kind == Kind.QUERY or message.target is not None
        if is_spread and message.hop_limit > 0 and message.target != self.me:
            self.spread(onward(message), came_from)

    def over_link(self, peer: NodeId, frames: list[Frame], now: Now) -> None:
        """What was multicast, and did not come."""
        link = self.links.by_peer.get(peer)
        if link is None or link.way is not Way.OPEN:
            return
        for pool, content in frames:
            if pool is None:
                self.outbox.alive(link, now, content)
            else:
                self.outbox.frame(link, partial(Broadcast, pool=pool), now, content)

    def _is_open(self, peer: NodeId) -> bool:
        link = self.links.by_peer.get(peer)
        return link is not None and link.way is Way.OPEN

    def refuse(self, peer: NodeId | None, cause: Cause, detail: str = "") -> None:
        self.outbox.tell(Refusal(peer, cause, detail))

    # --- knowing --------------------------------------------------------------------------------
    def learn(self, endpoint: SignedEndpoint) -> bool:
        """Takes an endpoint that its own node signed. Refuses what it did not sign."""
        if not self.book.is_news(endpoint):
            return False
        check_endpoint(endpoint, self.config.cluster_id, self.config.verify)
        peer = NodeId(endpoint.node_id)
        self.book.signed[peer] = endpoint
        self.wants_changed = self.kept_changed = True
        return True

    def learn_all(self, told_by: NodeId, endpoints: list[SignedEndpoint]) -> None:
        """Of members alone: others say themselves where they are."""
        for endpoint in endpoints:
            if endpoint.node_id in self.membership.members:
                try:
                    self.learn(endpoint)
                except FrameRefused as refusal:
                    self.refuse(told_by, refusal.cause, refusal.detail)

    # --- moving ---------------------------------------------------------------------------------
    def moved(self, move: Move | None, now: Now) -> None:
        if move is None:
            return
        peer, before, after, sign = move
        self.outbox.tell(StateChanged(peer, before, after, sign))
        self.wants_changed = True
        link = self.links.know(peer)
        is_member = peer in self.membership.members
        if after is PeerState.ALIVE and before in _RETURNED_FROM and is_member:
            drawn = sha256(self.me + peer + link.start.to_bytes(8, "big")).digest()[0]
            self.to_join[peer] = now.monotonic_ms + drawn * limits.JOINED_WITHIN_MS // 256
        elif after is PeerState.UNREACHABLE and is_member:
            message = self._lost(peer, link, now)
            self.health[GossipId(message.id)] = (peer, now.monotonic_ms)
            self.spread(message)
        self.settle(link, now)
        if after in (PeerState.DEAD, PeerState.LEFT):
            self._let_go(link, now)

    def settle(self, link: Link, now: Now) -> None:
        """Up: both ways verified, in the live view, and its own frames come."""
        peer = link.peer
        is_up = (
            link.is_both_ways
            and self.membership.state(peer) is PeerState.ALIVE
            and self.membership.is_direct(peer, now.monotonic_ms)
        )
        if is_up and peer not in self.up:
            self.up[peer] = None
            self.outbox.tell(PeerUp(peer))
        elif not is_up:
            self.down(peer)

    def down(self, peer: NodeId) -> None:
        if peer in self.up:
            del self.up[peer]
            self.outbox.tell(PeerDown(peer))
            self.ears = {stream: ear for stream, ear in self.ears.items() if ear.peer != peer}
            if self.casting is not None:
                self.casting.lose(peer)

    def close(self, link: Link, now: Now) -> None:
        if link.way is not Way.IDLE:
            self.links.closed(link, now.monotonic_ms)
            self.outbox.tell(CloseLink(link.peer))
            self.down(link.peer)

    def forget(self, peer: NodeId) -> None:
        self.links.forget(peer)
        self.membership.forget(peer)
        self.outbox.discard(peer)
        self.peer_pools.pop(peer, None)
        self.book.signed.pop(peer, None)
        self.to_join.pop(peer, None)

    def _let_go(self, link: Link, now: Now) -> None:
        """Its queues are freed. Members are dialled for ever; an observer dials by itself."""
        self.close(link, now)
        self.outbox.discard(link.peer)
        self.peer_pools.pop(link.peer, None)
        if link.peer not in self.membership.members and link.peer not in self.book.seeds:
            self.forget(link.peer)

    def tell_joined(self, now: Now) -> None:
        """Who has come is told by whoever sees it, unless another one was quicker."""
        due = [peer for peer, due_ms in self.to_join.items() if now.monotonic_ms >= due_ms]
        for peer in due:
            del self.to_join[peer]
            endpoint = self.book.signed.get(peer)
            if endpoint is not None and self.membership.state(peer) is PeerState.ALIVE:
                body = Joined(endpoint, self.links.know(peer).start)
                self.spread(self.voice.say(body, now, None, limits.HOPS_MAX))

    def _lost(self, peer: NodeId, link: Link, now: Now) -> Gossip:
        silent_ms = now.monotonic_ms - self.membership.know(peer).heard_ms
        return self.voice.say(Lost(peer, link.start, silent_ms), now, None, limits.HOPS_MAX)
