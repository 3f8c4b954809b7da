"""How much is taken on at one time: refused before a body is read, counted until it is answered."""

from dataclasses import dataclass, field

from quipu.api import limits
from quipu.api.codes import Code
from quipu.api.problems import Problem


@dataclass(slots=True)
class Pressure:
    """Invariant: `total` is the sum of `by_caller`, which has no caller with none under way."""

    in_flight_max: int
    per_caller_max: int
    total: int = 0
    by_caller: dict[str, int] = field(default_factory=dict)

    def enter(self, caller: str) -> None:
        """One more; whoever has entered leaves."""
        own = self.by_caller.get(caller, 0)
        if own >= self.per_caller_max:
            detail = f"{own} requests of this caller are under way"
            raise Problem(Code.TOO_MANY_REQUESTS, detail, retry_after_s=limits.RETRY_AFTER_S)
        if self.total >= self.in_flight_max:
            detail = f"{self.total} requests are under way"
            raise Problem(Code.NODE_FULL, detail, retry_after_s=limits.RETRY_AFTER_S)
        self.by_caller[caller] = own + 1
        self.total += 1

    def leave(self, caller: str) -> None:
        self.total -= 1
        left = self.by_caller[caller] - 1
        if left:
            self.by_caller[caller] = left
        else:
            del self.by_caller[caller]
