"""What a running node offers of the order: the contract between `node` and `api`, as in `service`.

What is answered is chosen, applied and committed here.
"""

import asyncio
from typing import NamedTuple, Protocol

from quipu.ledger.order.sequences import SequenceRefusal
from quipu.ledger.words import EventId, NodeId, NodeNo
from quipu.node.config_service import Config
from quipu.node.numbers import NumberHeld


class JournalGone(Exception):
    """Log entries below this index are not held any more."""

    def __init__(self, oldest: int) -> None:
        super().__init__(f"the log of this node begins at {oldest}")
        self.oldest = oldest


class NoQuorum(Exception):
    """This node knows of no master that a majority follows: nothing was ordered."""

    def __init__(self, retry_after_s: float, what: str) -> None:
        super().__init__(what)
        self.retry_after_s = retry_after_s


class StateDiffers(Exception):
    """This node is in ERR (seed 000): it serves no locks, publishes and linear reads."""


class OrderUnknown(Exception):
    """The answer did not come in time, or not at all: it may have been ordered or not."""


class SequenceRefused(Exception):
    """Ordered, and changes nothing: the same on every node."""

    def __init__(self, why: SequenceRefusal, name: str) -> None:
        super().__init__(name)
        self.why = why


class OrderStatus(NamedTuple):
    """Where this node stands in the log."""

    role: str
    regime: int  # the newest that it promised or heard of
    master: NodeNo | None  # None: it knows of none
    serializers: tuple[NodeNo, ...]
    next_serializers: tuple[NodeNo, ...] | None  # while one set takes over from another
    base: int  # entries up to here are dropped
    applied: int  # entries up to here have taken effect here
    chosen: int  # entries up to here stand for ever
    last: int
    digest: bytes  # running, at `chosen`
    events: int  # ordered in all
    events_behind: int  # Read here and not ordered
    state: str = "WRK"  # of seed 000: DSC, WRK or ERR


class OrderedEntry(NamedTuple):
    """One log entry that stands for ever."""

    log_index: int
    regime: int
    master_no: NodeNo
    final: bool
    digest: bytes
    items: list[bytes]


class SequenceState(NamedTuple):
    """A sequence as this node has applied it."""

    name: str
    number: int  # the highest published; 0: none
    running: bytes  # digest over all up to this number
    token: int  # of the newest lock; 0: there was none
    holder: NodeNo | None  # who holds the lock now
    last: int  # the highest number of that lock


class LockGranted(NamedTuple):
    token: int
    first: int
    last: int


class NumberGone(Exception):
    """What stood under numbers below this one is not held any more."""

    def __init__(self, oldest: int) -> None:
        super().__init__(f"numbers below {oldest} are not held any more")
        self.oldest = oldest


class NumberPublished(NamedTuple):
    number: int
    running: bytes
    log_index: int


class LyingSerializer(NamedTuple):
    """Who signed two things about the log that contradict each other, and the proof."""

    node_id: NodeId
    proof: bytes


class Order(Protocol):
    @property
    def config(self) -> Config: ...

    def when_ordered(self, event_id: EventId) -> asyncio.Future[bool]:
        """True when it is ordered; False when it never will be, and when the node drains. Raises
        `Overloaded`."""

    def status(self) -> OrderStatus: ...

    def states(self) -> dict[NodeNo, str]:
        """DSC, WRK or ERR, of this node and of the members that told it."""

    def entries(self, after: int, limit: int) -> list[OrderedEntry]:
        """What is applied above that index, in order. Raises `JournalGone`."""

    def liars(self) -> list[LyingSerializer]:
        """Since the start of this node."""

    def force_recovery(self) -> None:
        """An operator says that this node may vote, whatever its lost disk said."""

    # --- sequences: each raises `NoQuorum`, `OrderUnknown`, `SequenceRefused`, `Overloaded` or
    # `Draining`
    def sequence(self, name: str) -> SequenceState | None:
        """As far as it is applied here; None: never used."""

    def number(self, name: str, number: int) -> NumberHeld | None:
        """What was published under it; None: nothing yet. Raises `NumberGone`."""

    def sequences_after(self, after: str, limit: int) -> list[SequenceState]:
        """Those with a name above `after`, by name."""

    async def linear(self) -> None:
        """Until all that was acknowledged anywhere before this call is applied here."""

    async def lock(self, name: str, count: int) -> LockGranted:
        """The next numbers for this node, in the place of a holder that is gone."""

    async def publish(
        self, name: str, digest: bytes, token: int | None = None, number: int = 0
    ) -> NumberPublished:
        """Under the lock with that token; without one, the next number if the lock is free."""

    async def release(self, name: str, token: int) -> None: ...
