"""The contract of a store: one transaction of durable effects a turn, and the past to read.

It keeps what it is told and judges nothing: whether an event may be stored is decided in
`ledger`. What it does promise: `commit` is all or nothing and durable on return, reads show the
last commit, and bytes that are not what was stored are never handed out.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from quipu.ledger.effects import Durable
from quipu.ledger.event import EventMeta
from quipu.ledger.history import History, Saved
from quipu.ledger.log.effects import LogDurable
from quipu.ledger.log.state import SavedLog
from quipu.ledger.words import EventId, NodeId

Kept = Durable | LogDurable


class Owner(NamedTuple):
    """Whose store it is: no other node and no other cluster opens it."""

    cluster_id: bytes
    node_id: NodeId


class StoreStats(NamedTuple):
    """What is in it, without counting: the cost does not grow with the ledger."""

    events: int
    feed: int  # events that became Read here, the pruned ones too: the number of the last one
    invs: int
    branches: int
    proofs: int
    epochs: int
    log: int  # entries above its base
    used_bytes: int  # pages that hold something or once did
    file_bytes: int
    map_bytes: int
    feed_first: int = 1  # the lowest number that is still there
    pruned: int = 0  # events that were held here and let go
    live_bytes: int = 0  # pages that hold something now; the others are used again


class StoreError(Exception):
    """Any reason why the store cannot do what it is asked."""


class StoreFull(StoreError):
    """No room on the disk. Nothing of the batch was written; reading goes on; try again later."""


class DiskFailed(StoreError):
    """The disk answered with an error. Nothing of the batch was written."""


class OutcomeUnknown(StoreError):
    """The last word of a commit failed: it may be durable or not. Only opening anew tells."""


class StoreClosed(StoreError):
    pass


class StoreCorrupt(StoreError):
    """A record is not what was stored: which one, and how it shows. Peers hold it, too."""

    def __init__(self, table: str, place: str, what: str) -> None:
        super().__init__(f"{table}: {place}: {what}")
        self.table = table
        self.place = place
        self.what = what


class SlotTaken(StoreError):
    """Another event has that slot on that branch, or the event another slot: a fault of ours."""


class Store(History, Protocol):
    def commit(self, durable: Sequence[Kept]) -> None:
        """All of these in this order, or none; on return they survive a loss of power."""

    def saved(self) -> Saved:
        """What a core needs to go on after a start; the caller may keep and change it."""

    def saved_log(self) -> SavedLog:
        """The same for the log. `recovering`: made or set back for a node that had another disk,
        and no vote was stored since."""

    def feed(self, after: int, limit: int) -> list[tuple[int, EventId]]:
        """Events in the order in which they became Read, numbered without gaps, from 1 or from the
        first one that was not pruned."""

    def ids_between(self, first: bytes, last: bytes, limit: int) -> list[EventId]:
        """Ids whose first 16 bytes are not below `first` and not above `last`, in order."""

    def children(self, identity: EventId) -> list[EventId]:
        """Events stored after it that name it as prev or parent, in the order of their slots."""

    def entry(self, identity: EventId, index: int) -> bytes | None:
        """The canonical bytes of one entry, checked against its leaf."""

    def entries(
        self, identity: EventId, first: int, count: int
    ) -> tuple[EventMeta, list[bytes]] | None:
        """The place of an event, and those of so many of its entries that there are."""

    def find_key(self, submitter: str | None, stream: str, key: str) -> list[tuple[EventId, int]]:
        """The entries submitted under an idempotency key, in the order of their slots."""

    def was_pruned(self, identity: EventId) -> bool:
        """Whether this event was held here and let go. A node that began with a checkpoint knows
        nothing of what lies below it."""

    def stats(self) -> StoreStats: ...

    def forget_dead_readers(self) -> None:
        """A process that was killed while it read pins the pages it saw until somebody looks."""

    def close(self) -> None:
        """Once or more than once."""
