"""How a gossip message spreads: whether it is new here, and to whom it goes on (seed 004).

Straight to a target that is linked, else to all members up to 8; above that to 3 neighbours on a
ring that the hash of message and member lays, so that all nodes lay the same one and every member
is reached over three ways. Must not know what a message says.
"""

from collections.abc import Container, Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple

from quipu.ledger.words import NodeId
from quipu.p2p import limits
from quipu.p2p.words import GossipId, Start

_WINDOW = (1 << limits.SEEN_WINDOW) - 1


class Floor(NamedTuple):
    """Of that start all numbers up to this one count as seen, of older starts everything."""

    start: Start
    number: int


@dataclass(slots=True)
class _Seen:
    start: Start
    top: int  # the highest number
    window: int  # bit i: top - i was seen; what lies below the window counts as seen


class SeenSet:
    """One window a sender: bounded however much is sent, and never forgetting what it let pass."""

    def __init__(self, me: NodeId, kept: Iterable[tuple[NodeId, Floor]] = ()) -> None:
        self._me = me
        self.moved = False  # since it was last kept
        self._senders = {
            sender: _Seen(floor.start, floor.number, _WINDOW) for sender, floor in kept
        }

    def is_new(self, sender: NodeId, start: Start, number: int) -> bool:
        if sender == self._me:
            return False
        seen = self._senders.get(sender)
        if seen is None or start > seen.start:
            return True
        if start < seen.start:
            return False
        behind = seen.top - number
        if behind < 0:
            return True
        return behind < limits.SEEN_WINDOW and not seen.window >> behind & 1

    def mark(self, sender: NodeId, start: Start, number: int, members: Container[NodeId]) -> None:
        """Only what its sender signed: else anybody could use up the numbers of another one."""
        self.moved = True
        seen = self._senders.get(sender)
        if seen is None or start > seen.start:
            self._senders.pop(sender, None)
            self._make_room(members)
            self._senders[sender] = _Seen(start, number, 1)
        elif number > seen.top:
            shift = min(number - seen.top, limits.SEEN_WINDOW)
            seen.window = (seen.window << shift | 1) & _WINDOW
            seen.top = number
        else:
            seen.window |= 1 << (seen.top - number)

    def floors(self) -> dict[NodeId, Floor]:
        return {sender: Floor(seen.start, seen.top) for sender, seen in self._senders.items()}

    def _make_room(self, members: Container[NodeId]) -> None:
        """The sender whose start is seen the longest and who is no member has to go."""
        if len(self._senders) >= limits.SEEN_SENDERS_MAX:
            out = next((sender for sender in self._senders if sender not in members), None)
            if out is not None:
                del self._senders[out]


def receivers(
    identity: GossipId, me: NodeId, members: Iterable[NodeId], usable: Iterable[NodeId]
) -> list[NodeId]:
    """Of the usable ones (linked, and not known to have the message) those that get it."""
    members = list(members)
    if len(members) <= limits.SPREAD_ALL_MAX or me not in members:
        return list(usable)[: limits.SPREAD_ALL_MAX]
    free = dict.fromkeys(usable)
    ring = sorted(members, key=lambda member: sha256(identity + member).digest())
    here = ring.index(me)
    chosen: dict[NodeId, None] = {}
    for step in _steps(len(ring)):
        for place in range(here + step, here + step + len(ring)):
            member = ring[place % len(ring)]
            if member in free and member not in chosen:
                chosen[member] = None
                break
    return list(chosen)


def _steps(size: int) -> list[int]:
    """Powers of one base, so that few hops reach any place on the ring."""
    base = 2
    while base**limits.SPREAD_ABOVE < size:
        base += 1
    return [base**power for power in range(limits.SPREAD_ABOVE)]
