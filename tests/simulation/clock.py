"""Virtual time: one heap of things to come, and the clocks that nodes believe in."""

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush

from quipu.ledger.words import Now

START_WALL_MS = 1_790_000_000_000  # where virtual time begins, in September 2026
US_PER_MS = 1_000
US_PER_S = 1_000_000

Action = Callable[..., None]


class Scheduler:
    """Runs actions in the order of (time, order of asking)."""

    def __init__(self) -> None:
        self.now_us = 0
        self._heap: list[tuple[int, int, Action, tuple[object, ...]]] = []
        self._asked = 0

    def at(self, time_us: int, action: Action, *args: object) -> None:
        self._asked += 1
        heappush(self._heap, (max(time_us, self.now_us), self._asked, action, args))

    def after(self, delay_us: int, action: Action, *args: object) -> None:
        self.at(self.now_us + delay_us, action, *args)

    def run_until(self, end_us: int) -> None:
        heap = self._heap
        while heap and heap[0][0] <= end_us:
            time_us, _, action, args = heappop(heap)
            self.now_us = time_us
            action(*args)
        self.now_us = end_us

    @property
    def now_ms(self) -> int:
        return self.now_us // US_PER_MS


@dataclass(slots=True)
class NodeClock:
    """The wall clock of one machine, which may be wrong, and a monotonic clock of one boot."""

    offset_ms: int = 0
    drift_ppm: int = 0
    boot_us: int = 0
    monotonic_base_ms: int = 0

    def wall_ms(self, now_us: int) -> int:
        drift_ms = now_us * self.drift_ppm // (US_PER_S * US_PER_MS)
        return START_WALL_MS + now_us // US_PER_MS + drift_ms + self.offset_ms

    def now(self, now_us: int) -> Now:
        monotonic_ms = self.monotonic_base_ms + (now_us - self.boot_us) // US_PER_MS
        return Now(self.wall_ms(now_us), monotonic_ms)

    def when_us(self, monotonic_ms: int) -> int:
        return self.boot_us + (monotonic_ms - self.monotonic_base_ms) * US_PER_MS
