"""How much is taken on at one time: refused before a body is read, counted until it is answered.

A burst is queued, up to what the node can hold. Where more than keeps the node busy goes on coming,
a queue would only make all of them wait: then the rest is refused.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from quipu.api import limits
from quipu.api.codes import Code
from quipu.api.problems import Problem


@dataclass(slots=True)
class Pressure:
    """Invariant: `total` is the sum of `by_caller`, which has no caller with none under way; `busy`
    are those of them whose body is there, so that slow bodies keep nobody out."""

    in_flight_max: int
    per_caller_max: int
    standing_max: int = limits.IN_FLIGHT_STANDING_MAX
    clock: Callable[[], float] = time.monotonic
    total: int = 0
    busy: int = 0
    by_caller: dict[str, int] = field(default_factory=dict)
    _met_s: float = -limits.CALM_S  # when there were last as many busy as `standing_max`
    _since_s: float = 0.0  # when that began, with no calm in between

    def enter(self, caller: str) -> None:
        """One more; whoever has entered leaves."""
        own = self.by_caller.get(caller, 0)
        if own >= self.per_caller_max:
            detail = f"{own} requests of this caller are under way"
            raise Problem(Code.TOO_MANY_REQUESTS, detail, retry_after_s=limits.RETRY_AFTER_S)
        if self.total >= self.in_flight_max:
            raise _full(self.total)
        self.by_caller[caller] = own + 1
        self.total += 1

    def leave(self, caller: str) -> None:
        self.total -= 1
        left = self.by_caller[caller] - 1
        if left:
            self.by_caller[caller] = left
        else:
            del self.by_caller[caller]

    def begin(self) -> None:
        """The body is there and will be decoded; whoever has begun ends."""
        if self.busy >= self.standing_max and self._outlasts_a_burst():
            raise _full(self.busy)
        self.busy += 1

    def end(self) -> None:
        self.busy -= 1

    @contextmanager
    def working(self) -> Iterator[None]:
        self.begin()
        try:
            yield
        finally:
            self.end()

    def _outlasts_a_burst(self) -> bool:
        now_s = self.clock()
        if now_s - self._met_s > limits.CALM_S:
            self._since_s = now_s
        self._met_s = now_s
        return now_s - self._since_s >= limits.BURST_S


def _full(count: int) -> Problem:
    detail = f"{count} requests are under way"
    return Problem(Code.NODE_FULL, detail, retry_after_s=limits.RETRY_AFTER_S)
