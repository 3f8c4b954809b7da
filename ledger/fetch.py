"""Asking (seed 003: GetData): which peer is asked for what, and when another one is.

Decides nothing about what comes back. An id is asked of one peer at a time, the one that named it
first; a request without an answer frees what it asked for; what nobody has is given up.

A node is far behind while a range goes on from answer to answer. Then it follows ranges alone:
single events from above them could not be placed, nor could what those rest on.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from quipu.ledger import limits
from quipu.ledger.messages import CoverWant, GetData, InvWant, RangeWant
from quipu.ledger.safeguards import Safeguards
from quipu.ledger.words import Cord, EventId, NodeId, Now, Seq


@dataclass(slots=True)
class Want:
    hint: NodeId
    not_before_ms: int
    asked: dict[NodeId, None] = field(default_factory=dict)
    in_flight: bool = False


@dataclass(slots=True)
class Wants:
    """What one peer could be asked for besides ids."""

    ranges: list[RangeWant] = field(default_factory=list)
    invs: list[InvWant] = field(default_factory=list)
    covers: list[CoverWant] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.ranges or self.invs or self.covers)


@dataclass(slots=True)
class Request:
    peer: NodeId
    ids: list[EventId]
    wants: Wants
    retry_ms: int
    expires_ms: int
    retried: bool = False


class Fetch:
    """Invariant: an id in flight belongs to exactly one request that is not retried yet."""

    def __init__(self, guards: Safeguards) -> None:
        self._guards = guards
        self.wanted: dict[EventId, Want] = {}
        self._requests: dict[int, Request] = {}
        self._failures: dict[NodeId, int] = {}
        self._orphans: dict[NodeId, dict[tuple[Cord, Seq], EventId]] = {}
        self._last_id = 0
        self._behind: dict[NodeId, int] = {}  # by whose ranges go on, and until when that counts

    def want(self, identity: EventId, hint: NodeId, not_before_ms: int) -> None:
        known = self.wanted.get(identity)
        if known is not None:
            known.not_before_ms = min(known.not_before_ms, not_before_ms)
        elif not self._guards.wants_bounded or len(self.wanted) < limits.WANTS_MAX:
            self.wanted[identity] = Want(hint, not_before_ms)

    def want_line(self, place: tuple[Cord, Seq], tip: EventId, peer: NodeId) -> None:
        """An event came from a peer far above what is held of its cord: the line up to its prev."""
        orphans = self._orphans.setdefault(peer, {})
        if len(orphans) < limits.GET_RANGES_MAX:
            orphans[place] = tip

    def take_orphans(self, peer: NodeId) -> dict[tuple[Cord, Seq], EventId]:
        return self._orphans.pop(peer, {})

    def got(self, identity: EventId) -> None:
        self.wanted.pop(identity, None)

    def lose(self, peer: NodeId) -> None:
        self._orphans.pop(peer, None)
        self._behind.pop(peer, None)
        for number in [n for n, request in self._requests.items() if request.peer == peer]:
            self._free(self._requests.pop(number))

    def is_waiting_for(self, peer: NodeId) -> bool:
        waits = [r.retried for r in self._requests.values() if r.peer == peer]
        return not all(waits) or len(waits) >= limits.REQUESTS_PER_PEER_MAX

    def taken(self) -> tuple[set[tuple[int, int, bytes]], set[int]]:
        """Range and cover tips, and signers, that a live request already asks for."""
        tips: set[tuple[int, int, bytes]] = set()
        signers: set[int] = set()
        for request in self._requests.values():
            if not request.retried:
                tips.update((w.author_no, w.journal, w.last) for w in request.wants.ranges)
                tips.update((w.author_no, w.journal, w.tip) for w in request.wants.covers)
                signers.update(w.signer_no for w in request.wants.invs if w.number)
        return tips, signers

    def tire(self, now: Now) -> None:
        """Requests that took too long."""
        for number, request in list(self._requests.items()):
            if not request.retried and now.monotonic_ms >= request.retry_ms:
                request.retried = True
                self._failures[request.peer] = self._failures.get(request.peer, 0) + 1
                self._free(request)
            if now.monotonic_ms >= request.expires_ms:
                del self._requests[number]

    def _free(self, request: Request) -> None:
        for identity in request.ids:
            if identity in self.wanted:
                self.wanted[identity].in_flight = False

    def in_order(self, peers: Iterable[NodeId]) -> list[NodeId]:
        """Those that answer before those that do not."""
        return sorted(peers, key=lambda peer: (self._failures.get(peer, 0), peer))

    def ids_for(self, peer: NodeId, peers: list[NodeId], now: Now) -> list[EventId]:
        ids: list[EventId] = []
        if not self.wanted or self.is_far_behind(now):
            return ids
        for identity, want in list(self.wanted.items()):
            if want.in_flight or now.monotonic_ms < want.not_before_ms:
                continue
            chosen = self._choose(want, peers)
            if chosen is None:
                self._give_up(identity, want)
            elif chosen == peer and len(ids) < limits.GET_IDS_MAX:
                ids.append(identity)
        return ids

    def _choose(self, want: Want, peers: list[NodeId]) -> NodeId | None:
        if want.hint in peers and want.hint not in want.asked:
            return want.hint
        if not self._guards.asks_another_peer:
            return want.hint if want.hint in peers else None
        return next((peer for peer in peers if peer not in want.asked), None)

    def _give_up(self, identity: EventId, want: Want) -> None:
        if self._guards.wants_bounded:
            del self.wanted[identity]
        else:
            want.asked.clear()

    def ask(self, peer: NodeId, ids: list[EventId], wants: Wants, now: Now) -> GetData:
        self._last_id += 1
        for identity in ids:
            want = self.wanted[identity]
            want.in_flight = True
            want.asked[peer] = None
        self._requests[self._last_id] = Request(
            peer,
            ids,
            wants,
            now.monotonic_ms + limits.REQUEST_RETRY_MS,
            now.monotonic_ms + limits.REQUEST_TIMEOUT_MS,
        )
        return GetData(
            self._last_id,
            list(ids),
            wants.ranges,
            wants.invs,
            wants.covers,
            limits.ANSWER_BYTES_MAX,
        )

    def is_asked(self, peer: NodeId, request_id: int) -> bool:
        request = self._requests.get(request_id)
        return request is not None and request.peer == peer

    def answered(self, peer: NodeId, request_id: int) -> Request | None:
        """The request that this answers; None when nothing was asked of that peer."""
        request = self._requests.get(request_id)
        if request is None or request.peer != peer:
            return None
        del self._requests[request_id]
        if not request.retried:
            self._free(request)
        if request.wants.ranges:
            self._behind.pop(peer, None)
        self._failures.pop(peer, None)
        return request

    def has_more(self, peer: NodeId, request: Request, now: Now) -> None:
        """The answer was full: what is still wanted may be asked of the same peer once more."""
        if request.wants.ranges:
            self._behind[peer] = now.monotonic_ms + limits.REQUEST_RETRY_MS
        for identity in request.ids:
            if identity in self.wanted:
                self.wanted[identity].asked.pop(peer, None)

    def is_far_behind(self, now: Now) -> bool:
        return any(now.monotonic_ms < until_ms for until_ms in self._behind.values())

    def next_deadline(self, now: Now) -> int | None:
        # What is due and was not asked for just now waits for a peer: an answer, or a connection.
        waits = [
            want.not_before_ms
            for want in self.wanted.values()
            if not want.in_flight and want.not_before_ms > now.monotonic_ms
        ]
        waits += [r.expires_ms if r.retried else r.retry_ms for r in self._requests.values()]
        waits += [until_ms for until_ms in self._behind.values() if until_ms > now.monotonic_ms]
        return min(waits, default=None)
