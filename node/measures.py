"""What the node counts of itself. Plain numbers; the API turns them into a metrics page."""

from bisect import bisect_left
from dataclasses import dataclass, field

from quipu.ledger import signing
from quipu.ledger.refusals import Reason
from quipu.node import limits
from quipu.node.service import Histogram


def histogram(bounds: tuple[float, ...]) -> Histogram:
    return Histogram(bounds, [0] * (len(bounds) + 1))


def observe(into: Histogram, value: float) -> None:
    """`counts` are of one bucket each while counting; `cumulative` makes them what is shown."""
    into.counts[bisect_left(into.bounds, value)] += 1
    into.total += value


def cumulative(counted: Histogram) -> Histogram:
    counts, running = [], 0
    for count in counted.counts:
        running += count
        counts.append(running)
    return Histogram(counted.bounds, counts, counted.total)


@dataclass(slots=True)
class Measures:
    turns: int = 0
    commits: int = 0
    commit_failures: int = 0
    step_failures: int = 0
    rebuilds: int = 0
    checkpoints: int = 0
    submissions_stored: int = 0
    entries_stored: int = 0
    events_stored: int = 0
    events_read: int = 0
    overloaded: int = 0
    outcomes_unknown: int = 0
    signatures_made: int = 0
    signatures_checked: int = 0
    inputs_refused: dict[Reason, int] = field(default_factory=dict)
    commit_seconds: Histogram = field(
        default_factory=lambda: histogram(limits.COMMIT_SECONDS_BOUNDS)
    )
    step_seconds: Histogram = field(default_factory=lambda: histogram(limits.STEP_SECONDS_BOUNDS))

    def verify(self, public: bytes, message: bytes, signature: bytes) -> bool:
        self.signatures_checked += 1
        return signing.verify(public, message, signature)

    def refused(self, reason: Reason) -> None:
        self.inputs_refused[reason] = self.inputs_refused.get(reason, 0) + 1

    def counters(self) -> dict[str, int]:
        return {
            "turns_total": self.turns,
            "commits_total": self.commits,
            "commit_failures_total": self.commit_failures,
            "step_failures_total": self.step_failures,
            "core_rebuilds_total": self.rebuilds,
            "checkpoints_total": self.checkpoints,
            "submissions_stored_total": self.submissions_stored,
            "entries_stored_total": self.entries_stored,
            "events_stored_total": self.events_stored,
            "events_read_total": self.events_read,
            "overloaded_total": self.overloaded,
            "outcomes_unknown_total": self.outcomes_unknown,
            "signatures_made_total": self.signatures_made,
            "signatures_checked_total": self.signatures_checked,
        }
