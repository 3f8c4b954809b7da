"""A fast checker of what apps saw: one order, without holes, in real time.

It knows operations and reads with the times they were asked and answered, and what each node was
told to be chosen. It shares nothing with the log; mutated histories show that it bites.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field


class HistoryError(Exception):
    """What an app saw is no linear history."""


@dataclass(slots=True)
class Operation:
    """`position` None: not known to be ordered, and it may be."""

    item: bytes
    asked_us: int
    answered_us: int | None = None
    position: tuple[int, int] | None = None  # index, number
    rejected: bool = False  # said to be not ordered, for sure


@dataclass(slots=True)
class Read:
    asked_us: int
    answered_us: int
    index: int


@dataclass(slots=True)
class LogHistory:
    """What every node reports as chosen, in the order in which it does."""

    operations: list[Operation] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    chosen: dict[int, tuple[int, bytes, tuple[bytes, ...]]] = field(default_factory=dict)

    def report(self, index: int, regime: int, digest: bytes, items: tuple[bytes, ...]) -> None:
        """One value an index, for all nodes and for ever."""
        seen = self.chosen.setdefault(index, (regime, digest, items))
        if seen != (regime, digest, items):
            raise HistoryError(f"two values at index {index}: regimes {seen[0]} and {regime}")

    def check(self) -> None:
        self._check_log()
        self._check_operations()
        self._check_times()

    def _check_log(self) -> None:
        before = 0
        for expected, index in enumerate(sorted(self.chosen), start=1):
            if index != expected:
                raise HistoryError(f"a hole at index {expected}")
            regime = self.chosen[index][0]
            if regime < before:
                raise HistoryError(f"regime {regime} after {before} at index {index}")
            before = regime

    def _check_operations(self) -> None:
        places: dict[bytes, tuple[int, int]] = {}
        for index, (_, _, items) in self.chosen.items():
            for number, item in enumerate(items):
                if item in places:
                    raise HistoryError(f"ordered twice: {item!r}")
                places[item] = (index, number)
        for operation in self.operations:
            place = places.get(operation.item)
            if operation.position is not None and operation.position != place:
                raise HistoryError(f"{operation.item!r} is at {place}, not {operation.position}")
            if operation.rejected and place is not None:
                raise HistoryError(f"rejected, and ordered: {operation.item!r}")

    def _check_times(self) -> None:
        """Whatever was answered before something was asked lies below it."""
        ends: list[tuple[int, tuple[int, int], str]] = []
        starts: list[tuple[int, tuple[int, int], str]] = []
        for operation in self.operations:
            if operation.position is None or operation.answered_us is None:
                continue
            name = repr(operation.item)
            ends.append((operation.answered_us, operation.position, name))
            starts.append((operation.asked_us, operation.position, name))
        for read in self.reads:
            position = (read.index, 1 << 30)  # after all of its entry
            ends.append((read.answered_us, position, "a read"))
            starts.append((read.asked_us, position, "a read"))
        ends.sort()
        times = [time for time, _, _ in ends]
        highest: list[tuple[tuple[int, int], str]] = []
        for _, position, name in ends:
            newest = (position, name)
            highest.append(max(highest[-1], newest) if highest else newest)
        for asked_us, position, name in starts:
            before = bisect_left(times, asked_us)
            if before and highest[before - 1][0] > position:
                raise HistoryError(f"{name} at {position} asked after {highest[before - 1]}")
