"""Cluster now: the lower median of the wall clocks of the members heard lately, one's own too.

It stamps events and says which receipts wait. Never a rule of validity: all Models converge,
whatever the clocks say.
"""

from quipu.ledger import limits
from quipu.ledger.words import Hlc, NodeNo, Now, hlc_at


class ClusterTime:
    def __init__(self) -> None:
        self._heard: dict[NodeNo, Now] = {}  # a member's wall clock, and when it was heard

    def hear(self, member: NodeNo, wall_ms: int, now: Now) -> None:
        if wall_ms <= limits.WALL_MS_MAX:
            self._heard[member] = Now(wall_ms, now.monotonic_ms)

    def now_ms(self, now: Now) -> int:
        clocks = [now.wall_ms]
        for wall_ms, heard_ms in self._heard.values():
            age_ms = now.monotonic_ms - heard_ms
            if age_ms <= limits.CLOCK_SAMPLE_AGE_MS:
                clocks.append(wall_ms + age_ms)
        return sorted(clocks)[(len(clocks) - 1) // 2]

    def due_until(self, now: Now, cut_hlc: Hlc) -> Hlc:
        """Events up to this hlc get receipts."""
        ahead = limits.CLOCK_AHEAD_MS
        return Hlc(max(hlc_at(self.now_ms(now) + ahead), cut_hlc + hlc_at(ahead)))
