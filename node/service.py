"""What a running node offers to those above it: the contract between `node` and `api`.

Everything here is called on the node's own event loop and nowhere else. What is answered is what
has been committed: nothing that the core has decided and the disk does not hold yet can be seen.
Reads are short (LMDB, microseconds); none of them waits.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol

import msgspec

from quipu.ledger.epochs import Epoch
from quipu.ledger.event import EventMeta, SignedEvent
from quipu.ledger.evidence import Conviction
from quipu.ledger.words import Cord, EventId, Hlc, Journal, NodeId, NodeNo, Seq
from quipu.node.change_service import RosterChanges
from quipu.node.client_service import Clients
from quipu.node.history_service import KeptHistory
from quipu.node.order_service import Order
from quipu.p2p.effects import QueryEnded
from quipu.p2p.words import Endpoint, PeerState, PeerView


class EntryId(msgspec.Struct, frozen=True, order=True, gc=False):
    """Public form: `<event id hex>:<index>`."""

    event: EventId
    index: int

    def __str__(self) -> str:
        return f"{self.event.hex()}:{self.index}"


class Stored(msgspec.Struct, frozen=True, gc=False):
    """Where a submission lies, durably: its entries are `index`, `index + 1` … of the event."""

    event_id: EventId
    index: int
    journal: Journal
    seq: Seq
    hlc: Hlc


class KeyedEntry(NamedTuple):
    """What an idempotency key was used for first."""

    entry: EntryId
    duplicates: tuple[EntryId, ...]  # the same key again, through other nodes; later by (hlc, id)


# --- refusals besides `quipu.ledger.refusals.Refused`, which `submit` lets through --------------
class NotTaken(Exception):
    """Nothing of the submission was stored."""


class Overloaded(NotTaken):
    """The inbox is full: soon there is room."""

    def __init__(self, retry_after_s: float, what: str) -> None:
        super().__init__(what)
        self.retry_after_s = retry_after_s


class Backlogged(Overloaded):
    """Too much of this node's own waits to become Read: the others have to confirm it first."""


class Draining(NotTaken):
    """The node is stopping: it finishes what it has taken and takes nothing more."""


class NotIngestNode(NotTaken):
    """An operator has taken this node from the ingest nodes: another one takes entries."""


class StoreIsFull(NotTaken):
    """No room on the disk. Reads go on, and writes come back by themselves when there is room."""


class TooManyConsumers(NotTaken):
    """As many named cursors as the node keeps are there."""


class NodeFailed(NotTaken):
    """An error of the program or of the disk, with nothing stored. It is in the log."""


class OutcomeUnknown(Exception):
    """The commit failed after the entries had their ids: they may turn up or not."""

    def __init__(self, ids: tuple[EntryId, ...]) -> None:
        super().__init__(", ".join(map(str, ids[:4])))
        self.ids = ids


# --- what is told -------------------------------------------------------------------------------
class EventState(StrEnum):
    STORED = "stored"
    READ = "read"
    VOID = "void"  # above the cut, of an author who left


class ReadBy(StrEnum):
    """What makes an event Read."""

    RECEIPTS = "receipts"
    CUT = "cut"  # it lies at or below the last checkpoint


@dataclass(frozen=True, slots=True)
class EventStatus:
    state: EventState
    read_by: ReadBy | None  # while it is not Read: None
    read_confirms: int  # members other than the author whose receipts of this epoch cover it
    required: int  # MAX_CONFIRMS of this epoch
    confirmed_by: tuple[NodeNo, ...]  # these members, by number; the author is not among them
    author_receipt: bool  # the author's own receipt, which Read needs as well, is held
    first_seen_ms: int | None  # wall clock of this node; None: not remembered
    read_ms: int | None  # the same; None: not Read, or not remembered (before this start)
    ordered: bool = False  # it has its place in the cluster journal


class Cause(StrEnum):
    """Why an event is not Read yet."""

    OWN_RECEIPT = "own-receipt"  # the author's receipt has not come
    RECEIPTS = "receipts"  # of `members` at least `wanted` more are needed
    PARENT = "parent"  # `events` among its ancestors are not Read themselves
    CLOCK = "clock"  # stamped ahead of the cluster's time: receipts wait until `until_ms`
    JOURNALS = "journals"  # too many open journals of its author: waits for a checkpoint
    SUSPENDED = "suspended"  # a proof of misbehaviour against its author is held
    LEFT = "author-left"  # above the cut, of an author who is no member any more


@dataclass(frozen=True, slots=True)
class Obstacle:
    cause: Cause
    members: tuple[NodeNo, ...] = ()
    offline: tuple[NodeNo, ...] = ()  # those of `members` that are not connected now
    events: tuple[EventId, ...] = ()
    wanted: int = 0
    until_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    status: EventStatus
    obstacles: tuple[Obstacle, ...]  # empty where it is Read


@dataclass(frozen=True, slots=True)
class FrontierRow:
    """One branch of one cord, as far as this node has committed it."""

    author_no: NodeNo
    journal: Journal
    branch: int  # 0: the one stored first
    held_seq: Seq
    held_id: EventId
    read_seq: Seq  # 0: nothing of it is Read
    read_id: EventId  # empty where read_seq is 0


@dataclass(frozen=True, slots=True)
class ReceiptRow:
    """One branch of one cord, and how far the receipts of each member cover it."""

    author_no: NodeNo
    journal: Journal
    branch: int
    held_seq: Seq
    read_seq: Seq
    signed: tuple[tuple[NodeNo, Seq], ...]  # by number; who has signed nothing of it is left out


class MemberRow(NamedTuple):
    number: NodeNo
    node_id: NodeId
    name: str
    roles: tuple[str, ...]


class Mark(NamedTuple):
    """Where a walk over Unread events stands, in words that mean the same at every node."""

    cord: Cord
    seq: Seq
    id: EventId


# --- news ---------------------------------------------------------------------------------------
class EventStored(NamedTuple):
    """An event is durable here; not Read yet."""

    event_id: EventId


class EventRead(NamedTuple):
    """An event became Read; `number` is its place in this node's feed."""

    number: int
    event_id: EventId


class EventOrdered(NamedTuple):
    """An event has its place in the cluster journal: this one of the items of this entry."""

    event_id: EventId
    log_index: int
    number: int


class Gap(NamedTuple):
    """This subscriber was too slow: `missed` news were dropped. Feed numbers `after` + 1 to
    `upto` hold what became Read meanwhile (none where they are equal): `feed` gives it again."""

    missed: int
    after: int
    upto: int


class Goodbye(NamedTuple):
    """The node stops. The last thing a subscription says."""

    reason: str


class PeerMoved(NamedTuple):
    """Another node is held for something else now: alive, suspect, left …"""

    peer: NodeId
    before: PeerState
    after: PeerState
    why: str


News = EventStored | EventRead | EventOrdered | PeerMoved | Gap | Goodbye


class Subscription(Protocol):
    """News in order, from the moment of `subscribe` on. Its queue is bounded: what does not fit is
    dropped and said by a `Gap` at its place. Iteration ends after `Goodbye` or `close`."""

    @property
    def feed_number(self) -> int:
        """The last feed number before the first news: read `feed` up to here, then listen."""

    def __aiter__(self) -> AsyncIterator[News]: ...

    async def __anext__(self) -> News: ...

    def close(self) -> None: ...


# --- health -------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Check:
    name: str
    passes: bool
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Health:
    live: tuple[Check, ...]  # the loop turns and the writer answers
    ready: tuple[Check, ...]  # this node takes entries
    read: tuple[Check, ...]  # finality is possible
    store: tuple[Check, ...] = ()  # what is stored is what was written, as far as was looked

    @property
    def is_live(self) -> bool:
        return all(check.passes for check in self.live)

    @property
    def is_ready(self) -> bool:
        return self.is_live and all(check.passes for check in self.ready)

    @property
    def is_readable(self) -> bool:
        return self.is_live and all(check.passes for check in self.read)


@dataclass(slots=True)
class Histogram:
    """Cumulative like Prometheus: `counts[i]` are the samples <= `bounds[i]`; the last is all."""

    bounds: tuple[float, ...]
    counts: list[int]
    total: float = 0.0


@dataclass(frozen=True, slots=True)
class Metrics:
    """Names are without the `quipu_` prefix; counters end in `_total`."""

    counters: dict[str, int]
    gauges: dict[str, float]
    histograms: dict[str, Histogram]
    refused: dict[str, int] = field(default_factory=dict)  # by reason


# --- consumers ----------------------------------------------------------------------------------
class ConsumerWish(msgspec.Struct, frozen=True):
    """What a caller says of a named cursor."""

    owner: str | None  # the name of its token; None: made where nobody needs one
    cursor: str
    stream: str | None
    ttl_ms: int
    feed_number: int = 0  # that it has read up to; 0 as well where its cursor is another node's


class Consumer(msgspec.Struct, frozen=True, kw_only=True):
    """A named cursor, as it is kept."""

    name: str
    wish: ConsumerWish
    stored_ms: int
    etag: str  # another one after each change

    @property
    def expires_ms(self) -> int:
        return self.stored_ms + self.wish.ttl_ms


class Consumers(Protocol):
    """The named cursors of this node. One whose time is over is not there any more."""

    def find(self, name: str) -> Consumer | None: ...

    def all(self) -> list[Consumer]:
        """By name."""

    async def change(
        self, name: str, wished: Callable[[Consumer | None], ConsumerWish | None]
    ) -> Consumer | None:
        """Durable when it returns. `wished` is given what is kept, which nobody else changes
        meanwhile, and says what shall be (None: nothing) or raises. Raises `TooManyConsumers`,
        `StoreIsFull` or `DiskFailed`: then the one before is kept."""


# --- the ledger ---------------------------------------------------------------------------------
class Ledger(KeptHistory, Protocol):
    @property
    def node_id(self) -> NodeId: ...

    @property
    def cluster_id(self) -> bytes: ...

    @property
    def genesis(self) -> bytes: ...

    @property
    def cluster_name(self) -> str: ...

    @property
    def name(self) -> str:
        """The name of this node, as configured."""

    @property
    def epoch(self) -> Epoch:
        """The newest opened one: number, policy, members, max_confirms."""

    @property
    def journal(self) -> Journal | None:
        """The one that this start writes to; None before its first event."""

    def members(self) -> tuple[MemberRow, ...]:
        """The roster of the newest epoch."""

    # --- writing
    def admit(self, body_bytes: int, is_again: bool = False) -> AbstractContextManager[None]:
        """Asked before a body is read: raises `Overloaded`, `Draining` or `StoreIsFull`, or holds
        room for that many bytes until the context is left:
        `with ledger.admit(length): body = await …; stored = await ledger.submit(…)`.
        Who waits for room asks again, and is counted as refused but once."""

    def submit(self, entries: Sequence[bytes]) -> Awaitable[Stored]:
        """Canonical bytes of entries that become part of one event, together and in order.

        Returns when they are durable. Raises `Refused` (of `quipu.ledger.refusals`: bad-entry,
        bad-body, too-large, unread-backlog, not-a-member, catching-up), a `NotTaken`, or
        `OutcomeUnknown`. Cancelling the caller does not take the entries back.
        """

    def check(self, entries: Sequence[bytes]) -> None:
        """Raises what `submit` would raise now; stores nothing."""

    def find_key(self, submitter: str | None, stream: str, key: str) -> KeyedEntry | None:
        """What an idempotency key was used for, among all that is committed here."""

    # --- reading
    def status(self, event_id: EventId) -> EventStatus | None:
        """None: not held here. So in all that follows."""

    async def wait_read(self, event_id: EventId, timeout_s: float) -> bool:
        """Whether it is Read, at the latest after the timeout. False also when the node drains."""

    def when_read(self, event_id: EventId) -> asyncio.Future[bool]:
        """True when it is Read; False when it never will be, and when the node drains. Whoever
        waits no longer ends it. Raises `Overloaded`."""

    def event(self, event_id: EventId) -> SignedEvent | None: ...

    def entry(self, event_id: EventId, index: int) -> bytes | None:
        """The canonical bytes of one entry, checked against its leaf."""

    def entries(
        self, event_id: EventId, first: int, count: int
    ) -> tuple[EventMeta, list[bytes]] | None:
        """The place of an event, and those of so many of its entries that there are."""

    def meta(self, event_id: EventId) -> EventMeta | None: ...

    def find_event(self, prefix: bytes) -> EventMeta | None:
        """By the first 16 bytes of its id."""

    def ids_between(self, first: bytes, last: bytes, limit: int) -> list[EventId]:
        """Ids whose first 16 bytes are not below `first` and not above `last`, in order."""

    def children(self, event_id: EventId) -> list[EventId]: ...

    def ancestors(self, event_id: EventId, depth: int, limit: int) -> list[EventMeta]:
        """Breadth first, without the event itself: up to `depth` edges away, at most `limit`."""

    def feed(self, after: int, limit: int) -> list[tuple[int, EventId]]:
        """What became Read, in that order, numbered from `feed_first` on without gaps."""

    @property
    def feed_number(self) -> int:
        """The number of the last event that became Read; 0: none yet."""

    def unread(self, limit: int, after: Mark | None = None) -> list[EventId]:
        """Held and not Read, by cord, seq and id, at most `limit` of those beyond `after`."""

    def leaves(self) -> list[EventId]:
        """Events of the Model that no event of the Model names, oldest first."""

    def frontier(self) -> list[FrontierRow]:
        """By (author_no, journal, branch)."""

    @property
    def receipts_moved(self) -> int:
        """As long as it stays, so do the receipts."""

    def receipts(self, limit: int) -> list[ReceiptRow]:
        """The newest journals first; at most `limit` branches."""

    def finality_ms(self, limit: int) -> list[int]:
        """How long each of the last events took here from its coming to Read; newest first."""

    def explain(self, event_id: EventId) -> Explanation | None: ...

    def proof(self, event_id: EventId, index: int) -> bytes:
        """The finality bundle. Raises `Refused` (not-read, bad-entry)."""

    def convictions(self) -> tuple[Conviction, ...]: ...

    @property
    def consumers(self) -> Consumers: ...

    @property
    def order(self) -> Order: ...

    @property
    def roster(self) -> RosterChanges: ...

    @property
    def clients(self) -> Clients: ...

    # --- peers ----------------------------------------------------------------------------------
    @property
    def endpoint(self) -> Endpoint | None:
        """Where other nodes reach this one; None: it has no network."""

    def peers(self) -> tuple[PeerView, ...]:
        """Every node that this one knows of, as far as it has been met."""

    async def meet(self, peer: NodeId, where: Endpoint) -> bool:
        """Dials it for some seconds, until it has said who it is; whether it has."""

    async def query(
        self, question: str, argument: bytes, timeout_s: float, of: NodeId | None = None
    ) -> QueryEnded:
        """Asks all members, this node among them, or one other. Raises `Overloaded`."""

    # --- news and health
    def subscribe(self, queue_max: int = 1_024, hears_order: bool = False) -> Subscription:
        """`EventOrdered` is told to those alone who want to hear it."""

    def health(self) -> Health: ...

    def metrics(self) -> Metrics: ...
