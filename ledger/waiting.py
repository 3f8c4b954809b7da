"""The waiting room: events whose prev or parents are not held yet (seed 003: the check for the
previous event failed). Bounded; what is dropped here, SyncEvent finds again.
"""

from dataclasses import dataclass

from quipu.ledger import limits
from quipu.ledger.event import SignedEvent
from quipu.ledger.safeguards import Safeguards
from quipu.ledger.words import Cord, EventId, NodeId, NodeNo


@dataclass(slots=True)
class Waiting:
    event: SignedEvent
    cord: Cord
    peer: NodeId  # who sent it
    asked: bool  # it came as an answer
    missing: dict[EventId, None]


class WaitingRoom:
    """Invariant: every event here misses at least one ancestor, and is listed under each."""

    def __init__(self, guards: Safeguards) -> None:
        self._guards = guards
        self._events: dict[EventId, Waiting] = {}
        self._children: dict[EventId, dict[EventId, None]] = {}
        self._cords: dict[Cord, dict[EventId, None]] = {}
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._events)

    def __contains__(self, identity: EventId) -> bool:
        return identity in self._events

    def has_children(self, identity: EventId) -> bool:
        return identity in self._children

    def wanted(self) -> list[EventId]:
        """What is waited for and does not wait here itself."""
        return [identity for identity in self._children if identity not in self._events]

    def park(self, waiting: Waiting) -> bool:
        """False when there was no room for it."""
        event = waiting.event
        self._events[event.id] = waiting
        self._cords.setdefault(waiting.cord, {})[event.id] = None
        self.size_bytes += event.size
        for ancestor in waiting.missing:
            self._children.setdefault(ancestor, {})[event.id] = None
        if self._guards.waiting_room_bounded:
            if len(self._cords[waiting.cord]) > limits.WAITING_PER_CORD_MAX:
                self._drop_highest(waiting.cord)
            while self._is_over():
                self._drop_highest(self._fullest_cord())
        return event.id in self._events

    def release(self, identity: EventId) -> list[Waiting]:
        """The events that waited for this one last. The caller goes on with each of them."""
        free: list[Waiting] = []
        for child in list(self._children.pop(identity, {})):
            waiting = self._events[child]
            del waiting.missing[identity]
            if not waiting.missing:
                self._forget(child)
                free.append(waiting)
            if not self._guards.release_all_waiting:
                break
        return free

    def drop_below(self, identity: EventId) -> int:
        """An ancestor was refused for good: what waits for it, at any distance, goes as well."""
        dropped = 0
        doomed = [identity]
        while doomed:
            for child in list(self._children.pop(doomed.pop(), {})):
                if child in self._events:
                    self._forget(child)
                    doomed.append(child)
                    dropped += 1
        return dropped

    def _is_over(self) -> bool:
        return (
            len(self._events) > limits.WAITING_EVENTS_MAX
            or self.size_bytes > limits.WAITING_BYTES_MAX
        )

    def _fullest_cord(self) -> Cord:
        """The largest cord of the author that takes the most room: nobody crowds out the others."""
        authors: dict[NodeNo, int] = {}
        for cord, events in self._cords.items():
            room = sum(self._events[identity].event.size for identity in events)
            authors[cord.author_no] = authors.get(cord.author_no, 0) + room
        fullest = max(authors, key=lambda author: (authors[author], author))
        cords = [cord for cord in self._cords if cord.author_no == fullest]
        return max(cords, key=lambda cord: (len(self._cords[cord]), cord))

    def _drop_highest(self, cord: Cord) -> None:
        self._forget(max(self._cords[cord], key=lambda i: (self._events[i].event.header.seq, i)))

    def _forget(self, identity: EventId) -> None:
        waiting = self._events.pop(identity)
        self.size_bytes -= waiting.event.size
        siblings = self._cords[waiting.cord]
        del siblings[identity]
        if not siblings:
            del self._cords[waiting.cord]
        for ancestor in waiting.missing:
            children = self._children.get(ancestor)
            if children is not None:
                children.pop(identity, None)
                if not children:
                    del self._children[ancestor]
