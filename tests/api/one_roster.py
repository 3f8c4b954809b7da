"""Changes of the roster that come to what a test tells them."""

from collections.abc import Sequence

from quipu.ledger.order.wishes import Candidate
from quipu.node.change_service import ChangeEnded, ChangeProgress, RosterStatus

CHANGE_ID = bytes(range(32))


class OneRoster:
    def __init__(self) -> None:
        self.fault: Exception | None = None
        self.change: ChangeProgress | None = None
        self.ended: ChangeEnded | None = None
        self.proposed: list[tuple[list[Candidate], str]] = []

    def status(self) -> RosterStatus:
        return RosterStatus(1, "majority", self.change, self.ended)

    async def propose(self, candidates: Sequence[Candidate], policy: str) -> bytes:
        if self.fault is not None:
            raise self.fault
        self.proposed.append((list(candidates), policy))
        return CHANGE_ID
