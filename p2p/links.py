"""Two one-way links a peer: the one dialled from here, and the one it dialled.

Decides when to dial, what a sequence number says, when a heartbeat is due. HELLO comes first on
each link; an inbound link without a verified one has no state here (seed 002 sessions). Must not
know who is alive: the parent says whom to dial, and how eagerly.
"""

from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

from quipu.ledger.words import NodeId
from quipu.p2p import limits
from quipu.p2p.hello import Greeting
from quipu.p2p.link_keys import link_key_of
from quipu.p2p.words import Endpoint, LinkId, LinkKey, Start


class Way(StrEnum):
    """The outbound link."""

    IDLE = "idle"
    DIALLING = "dialling"
    OPEN = "open"  # HELLO was sent


class Turn(StrEnum):
    DIALLED = "dialled"
    OPENED = "opened"
    CLOSED = "closed"  # by the transport, which tells it once, or by this node


TRANSITIONS: dict[tuple[Way, Turn], Way] = {
    (Way.IDLE, Turn.DIALLED): Way.DIALLING,
    (Way.DIALLING, Turn.OPENED): Way.OPEN,
    (Way.DIALLING, Turn.CLOSED): Way.IDLE,
    (Way.OPEN, Turn.CLOSED): Way.IDLE,
}


@dataclass(slots=True)
class Link:
    """`inbound` is set only with a verified `greeting`; both are of the newest start heard."""

    peer: NodeId
    start: Start = Start(0)  # the newest heard, over restarts too; 0: none
    # --- outbound
    way: Way = Way.IDLE
    wanted: bool = False
    slow: bool = False  # held for dead: dialled now and then
    endpoint: Endpoint | None = None  # that was dialled last
    dialled_ms: int = -limits.DIAL_FIRST_MS  # the last time
    due_ms: int = 0  # when to dial, or to give an answer of the transport up for lost
    failures: int = 0
    next_sequence: int = 0
    sent_ms: int = 0
    opened_ms: int = 0
    # --- inbound
    inbound: LinkId | None = None
    greeting: Greeting | None = None
    expected: int = 0
    missed: int = 0  # frames, over all inbound links of this peer
    asked_ms: int | None = None  # when a HELLO was last asked for
    answered_ms: int | None = None  # when one was last answered by one
    owed: bool = False  # a HELLO asked for and not come yet
    called: bool = False  # it dialled this node, which had not been speaking to it

    @property
    def is_both_ways(self) -> bool:
        return self.way is Way.OPEN and self.inbound is not None

    def number(self, now_ms: int) -> int:
        """The sequence of a frame that leaves now."""
        number = self.next_sequence
        self.next_sequence = (number + 1) % limits.SEQUENCES
        self.sent_ms = now_ms
        return number

    def take(self, sequence: int) -> int | None:
        """How many frames were missed before this one; None: it was here, or was overtaken."""
        missed = (sequence - self.expected) % limits.SEQUENCES
        if missed >= limits.SEQUENCES // 2:
            return None
        self.expected = (sequence + 1) % limits.SEQUENCES
        self.missed += missed
        return missed


class Links:
    def __init__(self, me: NodeId, entropy: int) -> None:
        self._salt = me + entropy.to_bytes(8, "big")
        self.by_peer: dict[NodeId, Link] = {}
        self.by_inbound: dict[LinkId, Link] = {}
        self.by_key: dict[LinkKey, Link] = {}  # of peers whose HELLO may have got lost
        self._beat_ms: int | None = None  # never later than a heartbeat is due
        self._dial_ms: int | None = None  # never later than a link is to be dialled

    def know(self, peer: NodeId) -> Link:
        link = self.by_peer.get(peer)
        if link is None:
            link = self.by_peer[peer] = Link(peer)
            key = link_key_of(peer)
            if key is not None:
                self.by_key[key] = link
        return link

    def forget(self, peer: NodeId) -> None:
        link = self.by_peer.pop(peer, None)
        if link is None:
            return
        if link.inbound is not None:
            del self.by_inbound[link.inbound]
        key = link_key_of(peer)
        if key is not None:
            self.by_key.pop(key, None)

    # --- outbound -------------------------------------------------------------------------------
    def want(self, link: Link, wanted: bool, slow: bool, now_ms: int) -> None:
        if wanted and link.way is Way.IDLE:
            is_hurried = link.slow and not slow
            if not link.wanted or is_hurried:
                link.due_ms = now_ms
                link.failures = 0
            self._soon(link.due_ms)
        link.wanted, link.slow = wanted, slow

    def hurry(self, link: Link, now_ms: int) -> None:
        """It is there, as its own HELLO shows: dial it now, whatever failed before."""
        self._dial_again(link, now_ms)

    def hurry_by_hearsay(self, link: Link, now_ms: int) -> None:
        """Others say that it is there: not faster than after a first failure, however often."""
        self._dial_again(link, max(now_ms, link.dialled_ms + limits.DIAL_FIRST_MS))

    def _dial_again(self, link: Link, due_ms: int) -> None:
        if link.way is Way.IDLE and link.wanted:
            link.failures, link.due_ms = 0, due_ms
            self._soon(due_ms)

    def due(self, now_ms: int) -> list[Link]:
        """Links to be dialled now; also those whose transport never said what became of them."""
        if self._dial_ms is None or now_ms < self._dial_ms:
            return []
        found: list[Link] = []
        self._dial_ms = None
        for link in self.by_peer.values():
            if link.way is Way.DIALLING and now_ms >= link.due_ms:
                self.closed(link, now_ms)
            if link.way is Way.IDLE and link.wanted and now_ms >= link.due_ms:
                found.append(link)
            elif link.way is Way.DIALLING or (link.way is Way.IDLE and link.wanted):
                self._soon(link.due_ms)
        return found

    def dialled(self, link: Link, endpoint: Endpoint, now_ms: int) -> None:
        link.way = TRANSITIONS[link.way, Turn.DIALLED]
        link.endpoint, link.dialled_ms = endpoint, now_ms
        link.due_ms = now_ms + limits.DIAL_ANSWER_MS
        self._soon(link.due_ms)

    def opened(self, link: Link, now_ms: int) -> bool:
        """False for an outcome that nobody waits for."""
        if link.way is not Way.DIALLING:
            return False
        link.way = TRANSITIONS[link.way, Turn.OPENED]
        link.failures = link.next_sequence = 0
        link.opened_ms = now_ms
        self._beat(now_ms + limits.HEARTBEAT_INTERVAL_MS)
        return True

    def closed(self, link: Link, now_ms: int) -> bool:
        after = TRANSITIONS.get((link.way, Turn.CLOSED))
        if after is None:
            return False
        link.way = after
        link.due_ms = now_ms + self._delay_ms(link)
        link.failures += 1
        if link.wanted:
            self._soon(link.due_ms)
        return True

    def _delay_ms(self, link: Link) -> int:
        """Doubled up to a bound, a quarter more or less, so that nodes do not dial in step."""
        delay_ms = min(limits.DIAL_FIRST_MS << min(link.failures, 8), limits.DIAL_LAST_MS)
        if link.slow:
            delay_ms = limits.DIAL_DEAD_MS
        drawn = sha256(self._salt + link.peer + link.failures.to_bytes(8, "big")).digest()[0]
        return delay_ms * (384 + drawn) // 512

    # --- inbound --------------------------------------------------------------------------------
    def greeted(self, link: Link, inbound: LinkId, greeting: Greeting, sequence: int) -> None:
        """The link that brought it takes the place of the one before."""
        if link.inbound is not None and link.inbound != inbound:
            del self.by_inbound[link.inbound]
        link.inbound, link.greeting, link.start = inbound, greeting, greeting.start
        link.expected = (sequence + 1) % limits.SEQUENCES
        self.by_inbound[inbound] = link

    def may_ask_hello(self, link: Link, now_ms: int) -> bool:
        if link.way is not Way.OPEN or not _is_due(link.asked_ms, now_ms):
            return False
        link.asked_ms, link.owed = now_ms, True
        return True

    def may_answer_hello(self, link: Link, now_ms: int) -> bool:
        """Two that take each other's HELLO for a question must not answer each other for ever."""
        if link.way is not Way.OPEN or not _is_due(link.answered_ms, now_ms):
            return False
        link.answered_ms = now_ms
        return True

    # --- heartbeats -----------------------------------------------------------------------------
    def silent(self, now_ms: int) -> list[Link]:
        """Open links on which nothing went out for a heartbeat's time."""
        if self._beat_ms is None or now_ms < self._beat_ms:
            return []
        found: list[Link] = []
        self._beat_ms = None
        for link in self.by_peer.values():
            if link.way is not Way.OPEN:
                continue
            due_ms = link.sent_ms + limits.HEARTBEAT_INTERVAL_MS
            if now_ms >= due_ms:
                found.append(link)
                due_ms = now_ms + limits.HEARTBEAT_INTERVAL_MS
            self._beat(due_ms)
        return found

    def _beat(self, due_ms: int) -> None:
        self._beat_ms = due_ms if self._beat_ms is None else min(self._beat_ms, due_ms)

    def next_deadline(self) -> int | None:
        return min((d for d in (self._beat_ms, self._dial_ms) if d is not None), default=None)

    def _soon(self, due_ms: int) -> None:
        self._dial_ms = due_ms if self._dial_ms is None else min(self._dial_ms, due_ms)


def _is_due(last_ms: int | None, now_ms: int) -> bool:
    return last_ms is None or now_ms - last_ms >= limits.HELLO_AGAIN_MS
