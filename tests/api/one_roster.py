"""Changes of the roster that come to what a test tells them."""

from collections.abc import Sequence

from quipu.ledger.order.wishes import Candidate
from quipu.node.change_service import ChangeEnded, ChangeProgress, Recovered, RosterStatus

CHANGE_ID = bytes(range(32))


class OneRoster:
    def __init__(self) -> None:
        self.fault: Exception | None = None
        self.change: ChangeProgress | None = None
        self.ended: ChangeEnded | None = None
        self.forced: tuple[int, ...] = ()
        self.overruled_by: int | None = None
        self.proposed: list[tuple[list[Candidate], str]] = []

    def status(self) -> RosterStatus:
        change, ended = self.change, self.ended
        return RosterStatus(1, "majority", change, ended, self.forced, self.overruled_by)

    async def recover(self) -> Recovered:
        if self.fault is not None:
            raise self.fault
        return Recovered(2, self.overruled_by is not None)

    async def propose(self, candidates: Sequence[Candidate], policy: str) -> bytes:
        if self.fault is not None:
            raise self.fault
        self.proposed.append((list(candidates), policy))
        return CHANGE_ID
