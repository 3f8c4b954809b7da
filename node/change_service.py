"""What a running node offers of changes of roster: the contract between `node` and `api`."""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol

from quipu.ledger.order.wishes import Candidate
from quipu.ledger.words import NodeId


class ChangeInFlight(Exception):
    """Another change of the roster is under way: one at a time."""


class NomineeRefused(Exception):
    """Who shall be a member cannot be one now: `how` says why. Nothing was done."""

    def __init__(self, how: str, nodes: Sequence[NodeId]) -> None:
        super().__init__(", ".join(node.hex() for node in nodes))
        self.how = how


class Unforced(StrEnum):
    """Why nothing is done by force."""

    QUORUM = "quorum-answers"
    UNFIT = "cannot-force"


class ForceRefused(Exception):
    """Nothing was done."""

    def __init__(self, why: Unforced, detail: str) -> None:
        super().__init__(detail)
        self.why = why


class Stage(StrEnum):
    """How far a change is."""

    READY = "ready"  # its members are asked whether they hold what the others hold
    SEALING = "sealing"  # CLOSE is ordered: members sign their last receipts of the epoch
    OPENING = "opening"  # the cut is fetched and signed for


class ChangeProgress(NamedTuple):
    """A change in flight. One without an id is a checkpoint that the cluster makes by itself."""

    id: bytes
    stage: Stage
    candidates: tuple[Candidate, ...]
    policy: str
    begun_ms: int
    missing: tuple[NodeId, ...]  # whose READY, seal or receipt is not here yet


class ChangeEnded(NamedTuple):
    id: bytes
    how: str
    nodes: tuple[NodeId, ...]


class RosterStatus(NamedTuple):
    epoch: int
    policy: str
    change: ChangeProgress | None
    ended: ChangeEnded | None  # the newest that an operator asked for
    forced: tuple[int, ...] = ()  # epochs that were opened by force
    overruled_by: int | None = None  # the forced epoch that this node was left out of


class Recovered(NamedTuple):
    """What `recover` came to."""

    epoch: int
    followed: bool  # others had opened it


class RosterChanges(Protocol):
    def status(self) -> RosterStatus: ...

    async def propose(self, candidates: Sequence[Candidate], policy: str) -> bytes:
        """Answers the id of the change once its members have said that they are ready, and the
        epoch that there is ends. Raises `NomineeRefused`, `ChangeInFlight`, `NoQuorum`,
        `OrderUnknown`, `Overloaded` or `Draining`."""

    async def recover(self) -> Recovered:
        """By force: the other members are lost for ever, and this node goes on alone; or, where
        another one did so and left this one out, this node follows it. Raises `ForceRefused`,
        `OrderUnknown` or `Draining`."""
