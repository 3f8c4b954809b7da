"""Sessions with peers (seed 002): what links tell, and what each frame's command does.

HELLO first: until it is verified nothing else of a link is read. Then sequence, sign of life and
command, in this order; the messages inside of a frame are for `hearing`.
"""

from typing import TypeGuard, assert_never

from quipu.ledger.messages import proves_itself
from quipu.ledger.words import NodeId, Now
from quipu.p2p import limits
from quipu.p2p.bodies import VersionMismatch
from quipu.p2p.decen import (
    Alive,
    Broadcast,
    Command,
    DecenAck,
    Hello,
    Join,
    Leave,
    Ping,
    decode_command,
)
from quipu.p2p.desk import Desk
from quipu.p2p.effects import FramesMissed, LedgerHeard, LogHeard, PoolHeard
from quipu.p2p.frame import decode_head
from quipu.p2p.gossip import (
    Foreign,
    Gossip,
    Kind,
    decode_content,
    encode_gossip,
    join_content,
    number_of,
    rule_of,
    start_of,
)
from quipu.p2p.guests import Guests
from quipu.p2p.hearing import Hearing
from quipu.p2p.hello import (
    PROTOCOL_MAX,
    PROTOCOL_MIN,
    Greeting,
    build_hello,
    is_of_guest,
    verify_hello,
)
from quipu.p2p.inputs import FrameReceived
from quipu.p2p.links import Link, Way
from quipu.p2p.outbox import NOTHING
from quipu.p2p.pools import PoolList
from quipu.p2p.refusals import Cause, FrameRefused, refuse
from quipu.p2p.words import PoolName


class Sessions:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._hearing = Hearing(desk)
        self.guests = Guests(desk)

    def know(self, peer: NodeId) -> None:
        desk = self._desk
        if peer == desk.me:
            return
        desk.links.know(peer)
        desk.membership.know(peer)
        desk.wants_changed = True

    def dial_anew(self, peer: NodeId, now: Now) -> None:
        """Whoever let go of a link does not take it up again for a greeting on the old one."""
        link = self._desk.links.by_peer[peer]
        is_stale = now.monotonic_ms - link.opened_ms >= limits.CALLED_AFTER_MS
        if peer not in self._desk.up and link.way is Way.OPEN and is_stale:
            self._desk.close(link, now)

    # --- links ----------------------------------------------------------------------------------
    def opened(self, peer: NodeId, now: Now) -> None:
        desk = self._desk
        link = desk.links.by_peer.get(peer)
        if link is None:
            self.guests.opened(peer, now)
            return
        if not desk.links.opened(link, now.monotonic_ms):
            return
        self._greet(link, now)
        desk.settle(link, now)

    def closed(self, peer: NodeId, now: Now) -> None:
        self.guests.closed(peer)
        link = self._desk.links.by_peer.get(peer)
        if link is not None and self._desk.links.closed(link, now.monotonic_ms):
            self._desk.down(peer)

    def beat(self, link: Link, now: Now) -> None:
        """A sign of life. To a peer that is not up it is HELLO: the first one may have got lost,
        or what was heard from it was of a process that is no more."""
        if link.peer not in self._desk.up:
            link.owed = True
            self._greet(link, now)
        else:
            self._desk.outbox.alive(link, now, NOTHING)

    def _greet(self, link: Link, now: Now) -> None:
        desk = self._desk
        card, pools = desk.voice.card, desk.pools.pools
        desk.outbox.frame(link, lambda n: build_hello(card, link.peer, n, pools), now)

    def _ask_hello(self, link: Link, now: Now) -> None:
        """By greeting it again: a HELLO in the midst of a link is answered by one."""
        if self._desk.links.may_ask_hello(link, now.monotonic_ms):
            self._greet(link, now)

    # --- frames ---------------------------------------------------------------------------------
    def frame(self, frame: FrameReceived, now: Now) -> bool:
        """Whether nothing has changed but that the peer was heard, as with nearly all of them."""
        link = self._desk.links.by_inbound.get(frame.link)
        try:
            command = decode_command(decode_head(frame.head).command)
            if isinstance(command, Hello):
                self._on_hello(frame, command, now)
            elif link is None:
                self._on_stranger(frame, now)
            else:
                return self._on_traffic(link, command, frame.content, now)
        except FrameRefused as refusal:
            link = link or self._desk.links.by_key.get(frame.key)
            if refusal.cause is Cause.NO_COMMON_VERSION and link is not None:
                self._part(link, now)
            self._desk.refuse(None if link is None else link.peer, refusal.cause, refusal.detail)
        return False

    def _on_stranger(self, frame: FrameReceived, now: Now) -> None:
        """A HELLO may have been lost on its way: a peer that is known is asked for it."""
        link = self._desk.links.by_key.get(frame.key)
        if link is not None:
            self._ask_hello(link, now)
        refuse(Cause.NOT_HELLO)

    def _on_hello(self, frame: FrameReceived, hello: Hello, now: Now) -> None:
        desk = self._desk
        if frame.content != NOTHING:
            refuse(Cause.TRAILING_BYTES, "content with HELLO")
        if is_of_guest(hello):
            self.guests.greeted(frame, hello, now)
            return
        greeting = verify_hello(hello, frame.key, desk.voice.card, desk.config.verify)
        peer = greeting.peer
        link = desk.links.by_peer.get(peer)
        if link is None:
            if len(desk.links.by_peer) >= limits.PEERS_MAX:
                refuse(Cause.TOO_MANY_PEERS)
            self.know(peer)
            link = desk.links.know(peer)
        if greeting.start < link.start:
            refuse(Cause.OLDER_START, str(greeting.start))
        is_again = link.inbound == frame.link
        if is_again:
            self._check_sequence(link, hello.sequence)
        else:
            is_unspoken = now.monotonic_ms - link.sent_ms >= limits.CALLED_AFTER_MS
            link.called |= is_unspoken and not link.wanted
            self._replace(link, greeting, now)
        is_newer = greeting.start > link.start
        desk.links.greeted(link, frame.link, greeting, hello.sequence)
        if is_again and not link.owed:
            self._greet_back(link, now)
        link.owed = False
        self._admit(link, greeting, is_newer, now)

    def _replace(self, link: Link, greeting: Greeting, now: Now) -> None:
        """What was under way on the link before is lost: whoever uses it has to begin anew."""
        desk = self._desk
        desk.down(link.peer)
        standing = desk.membership.know(link.peer)
        is_of_old_start = standing.direct_ms is not None and link.opened_ms <= standing.direct_ms
        if 0 < link.start < greeting.start and is_of_old_start:
            desk.close(link, now)  # it leads to a process that is no more

    def _greet_back(self, link: Link, now: Now) -> None:
        if self._desk.links.may_answer_hello(link, now.monotonic_ms):
            self._greet(link, now)

    def _admit(self, link: Link, greeting: Greeting, is_newer: bool, now: Now) -> None:
        desk, peer = self._desk, greeting.peer
        if desk.book.is_news(greeting.endpoint):
            desk.book.signed[peer] = greeting.endpoint  # verified with its HELLO
        desk.peer_pools.setdefault(peer, PoolList()).greeted(*greeting.pools)
        desk.wants_changed = True
        desk.kept_changed |= is_newer
        if link.way is Way.DIALLING and link.endpoint != desk.book.endpoint(peer):
            desk.close(link, now)  # it has moved
        desk.links.hurry(link, now.monotonic_ms)
        change = desk.membership.started if is_newer else desk.membership.heard
        desk.moved(change(peer, now.monotonic_ms), now)
        desk.settle(link, now)

    def _part(self, link: Link, now: Now) -> None:
        """No version in common: say so and close; it may come back as a newer one."""
        desk = self._desk
        if link.way is Way.OPEN:
            version = desk.voice.card.version
            spoken = VersionMismatch(PROTOCOL_MIN, PROTOCOL_MAX, version)
            content = join_content([encode_gossip(desk.voice.say(spoken, now))])
            desk.outbox.alive(link, now, content)
            desk.close(link, now)

    def _check_sequence(self, link: Link, sequence: int) -> None:
        missed = link.take(sequence)
        if missed is None:
            refuse(Cause.REPEATED_SEQUENCE, f"{sequence}, expected {link.expected}")
        if missed:
            self._desk.outbox.tell(FramesMissed(link.peer, missed))

    def _on_sign_of_life(self, link: Link, sequence: int, now: Now) -> bool:
        desk, peer = self._desk, link.peer
        self._check_sequence(link, sequence)
        move = desk.membership.heard(peer, now.monotonic_ms)
        if move is not None:
            desk.moved(move, now)
        is_up = peer in desk.up
        if not is_up:
            desk.settle(link, now)
        return is_up and move is None

    def _on_traffic(self, link: Link, command: Command, content: bytes, now: Now) -> bool:
        desk, peer = self._desk, link.peer
        is_known = self._on_sign_of_life(link, command.sequence, now)
        match command:
            case Alive():
                return self._on_content(peer, content, now) and is_known
            case Broadcast(pool=pool):
                self._on_broadcast(peer, pool, content)
            case _ if content != NOTHING:
                refuse(Cause.TRAILING_BYTES, "content where none belongs")
            case Join(pool=pool, status=status):
                if not desk.peer_pools.setdefault(peer, PoolList()).joined(pool, status):
                    self._ask_hello(link, now)
            case Leave(pool=pool, status=status):
                if not desk.peer_pools.setdefault(peer, PoolList()).left(pool, status):
                    self._ask_hello(link, now)
            case Ping():
                if link.way is Way.OPEN:
                    desk.outbox.frame(link, DecenAck, now)
            case DecenAck():
                pass  # a sign of life, and nothing else
            case Hello():
                raise AssertionError("taken before")
            case _:
                assert_never(command)
        return False

    # --- multicast ------------------------------------------------------------------------------
    def cast(self, peer: NodeId, command: Command, content: bytes) -> None:
        """No link shows who says it: so nothing is taken but what is signed. No sign of life."""
        desk = self._desk
        try:
            if isinstance(command, Broadcast):
                self._on_broadcast(peer, command.pool, content)
                return
            for message in decode_content(content):
                is_of_core = message.kind == Kind.LEDGER
                if not (is_of_core and _is_plain(message, peer) and proves_itself(message.body)):
                    refuse(Cause.NOT_ITS_OWN, "a multicast that does not prove itself")
                desk.outbox.tell(LedgerHeard(peer, message.body))
        except FrameRefused as refusal:
            desk.refuse(peer, refusal.cause, refusal.detail)

    # --- content --------------------------------------------------------------------------------
    def _on_content(self, peer: NodeId, content: bytes, now: Now) -> bool:
        """Messages of the core come by thousands a second: nothing is asked of them but whose.
        Answers whether there were no others."""
        desk = self._desk
        is_up, is_plain = peer in desk.up, True
        for message in decode_content(content):
            if is_up and message.kind == Kind.LEDGER and _is_plain(message, peer):
                desk.outbox.tell(LedgerHeard(peer, message.body))
                continue
            if is_up and message.kind == Kind.LOG and _is_plain(message, peer):
                desk.outbox.tell(LogHeard(peer, message.body))
                continue
            is_plain = False
            try:
                self._on_message(peer, message, now)
            except FrameRefused as refusal:
                desk.refuse(peer, refusal.cause, refusal.detail)
        return is_plain

    def _on_message(self, peer: NodeId, message: Gossip | Foreign, now: Now) -> None:
        if message.kind not in (Kind.LEDGER, Kind.LOG) or isinstance(message, Foreign):
            self._hearing.hear(peer, message, now)
            return
        rule_of(message)
        refuse(Cause.NOT_UP if message.sender == peer else Cause.NOT_ITS_OWN, "of core or log")

    def _on_broadcast(self, peer: NodeId, pool: PoolName, content: bytes) -> None:
        desk = self._desk
        if pool not in desk.pools.names:
            refuse(Cause.NOT_IN_POOL, pool)
        for message in decode_content(content):
            if isinstance(message, Foreign) or message.kind != Kind.POOL:
                refuse(Cause.MALFORMED, f"kind {message.kind} in a BROADCAST")
            rule_of(message)
            if message.sender != peer:
                refuse(Cause.NOT_ITS_OWN, "of a pool")
            start, number = start_of(message.id), number_of(message.id)
            if not desk.seen.is_new(peer, start, number):
                refuse(Cause.DUPLICATE, "of a pool")  # by multicast and over the link
            desk.seen.mark(peer, start, number, desk.membership.members)
            desk.outbox.tell(PoolHeard(pool, peer, message.body))


def _is_plain(message: Gossip | Foreign, peer: NodeId) -> TypeGuard[Gossip]:
    """The link proves the peer: its own, unsigned, to nobody else, with no action."""
    return (
        isinstance(message, Gossip)
        and message.sender == peer
        and message.signature is None
        and message.action == 0
    )
