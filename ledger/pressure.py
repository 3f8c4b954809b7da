"""Whether entries of clients come, here or at another member: what can wait then gives way."""

from dataclasses import dataclass

from quipu.ledger import limits
from quipu.ledger.turn import Turn
from quipu.ledger.words import Now


@dataclass(slots=True)
class Pressure:
    ends_ms: int = 0

    def feel(self, turn: Turn) -> None:
        """An event that nobody asked for shows that there will be more."""
        if turn.events:
            self.ends_ms = turn.now.monotonic_ms + limits.PRESSED_MS

    def is_on(self, now: Now) -> bool:
        return now.monotonic_ms < self.ends_ms
