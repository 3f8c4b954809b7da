"""What a node says about how much of the history it has: part of what `service` offers."""

from typing import Protocol

from quipu.ledger.words import EventId


class KeptHistory(Protocol):
    @property
    def feed_first(self) -> int:
        """1, or the number of the first event that was not pruned."""

    @property
    def history_from(self) -> int:
        """The checkpoint that the history here begins with; 0: all of it is here."""

    def was_pruned(self, event_id: EventId) -> bool:
        """Whether it was held here once, and let go."""
