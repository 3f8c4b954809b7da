"""The cluster journal (seed 001): the order of events is a linear extension of the DAG.

A voter takes a reference only to an event of its own Model that is not ordered yet, whose prev and
parents are ordered already or named before it.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from quipu.ledger.log.entry import LogEntry
from quipu.ledger.log.words import Index
from quipu.ledger.order.items import EventReference, read_item
from quipu.ledger.words import EventId


class ModelEvent(NamedTuple):
    """What the Model says of one of its events."""

    node_no: int
    journal: int
    seq: int
    below: tuple[EventId, ...]  # prev, where it is an event, and parents


class Model(Protocol):
    def event(self, identity: EventId) -> ModelEvent | None:
        """None: not in the Model."""

    def is_gone(self, reference: EventReference) -> bool:
        """It was in the Model, and has been pruned."""

    def was_ordered(self, identity: EventId) -> bool:
        """By an entry that is chosen and applied."""


class JournalGate:
    """A voter's question to what it is to accept; the log asks it."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.applied = Index(0)  # the model's `was_ordered` knows the log up to here

    def after(self, before: Iterable[LogEntry]) -> "JournalPassage":
        return JournalPassage(self._model, (e for e in before if e.index > self.applied))


class JournalPassage:
    """Named so far are events of entries that are not applied yet: read once they are asked for."""

    def __init__(self, model: Model, before: Iterable[LogEntry]) -> None:
        self._model = model
        self._before = before
        self._named: dict[EventId, None] = {}

    def passes(self, items: Sequence[bytes]) -> None:
        self._named.update((EventId(r.id), None) for r in references_of(items))

    def _read_before(self) -> None:
        before, self._before = self._before, ()
        for entry in before:
            self.passes(entry.items)

    def admits(self, items: Sequence[bytes]) -> bool:
        if self._lacks_last(items):
            return False
        self._read_before()
        fresh: dict[EventId, None] = {}
        for reference in references_of(items):
            if not self._may_follow(reference, fresh):
                return False
            fresh[EventId(reference.id)] = None
        self._named.update(fresh)
        return True

    def _lacks_last(self, items: Sequence[bytes]) -> bool:
        """Who is behind is asked again each time the Model grows: one look tells it no, mostly."""
        last = read_item(items[-1]) if items else None
        if not isinstance(last, EventReference) or self._model.is_gone(last):
            return False
        return self._model.event(EventId(last.id)) is None

    def _may_follow(self, reference: EventReference, fresh: dict[EventId, None]) -> bool:
        identity = EventId(reference.id)
        event = self._model.event(identity)
        if event is None and self._model.is_gone(reference):
            return True  # only who comes late is told of it: the others have ordered it long ago
        place = (reference.node_no, reference.journal, reference.seq)
        if event is None or (event.node_no, event.journal, event.seq) != place:
            return False
        if self._comes_before(identity, fresh):
            return False
        return all(self._comes_before(below, fresh) for below in event.below)

    def _comes_before(self, identity: EventId, fresh: dict[EventId, None]) -> bool:
        return identity in self._named or identity in fresh or self._model.was_ordered(identity)


def references_of(items: Sequence[bytes]) -> list[EventReference]:
    found = (read_item(item) for item in items)
    return [item for item in found if isinstance(item, EventReference)]
