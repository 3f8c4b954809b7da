"""Effects: what leaves the core, as orders. Decide, make durable, then speak.

The shell writes all `Durable` effects of a step in one transaction, in order, commits it, and
only then carries out the `Spoken` ones. `SendEarly` and `AskEarly` alone may go before the commit.
"""

from dataclasses import dataclass

import msgspec

from quipu.ledger.event import EventMeta, SignedEvent
from quipu.ledger.evidence import Conviction
from quipu.ledger.history import BranchRecord
from quipu.ledger.inv import Inv
from quipu.ledger.refusals import Reason
from quipu.ledger.words import (
    BranchKey,
    EpochNo,
    EventId,
    InvNumber,
    Journal,
    NodeId,
    NodeNo,
    Seq,
    Slot,
    Ticket,
)


# --- durable ------------------------------------------------------------------------------------
class StoreEvent(msgspec.Struct, frozen=True, gc=False):
    """One for each event: a struct is made in 0.1 us, a frozen dataclass in 0.7."""

    event: SignedEvent
    meta: EventMeta


@dataclass(frozen=True, slots=True)
class PutBranch:
    """The whole record of a branch as it is at the end of the step."""

    record: BranchRecord


@dataclass(frozen=True, slots=True)
class AppendFeed:
    """These events became Read, in this order."""

    ids: tuple[EventId, ...]


@dataclass(frozen=True, slots=True)
class StoreInv:
    """A receipt, kept by (signer, number). `newest`: it is also the signer's newest."""

    signer_no: NodeNo
    inv: Inv
    newest: bool


@dataclass(frozen=True, slots=True)
class StoreProof:
    """A conviction; takes the place of the one held of the same culprit in the same role."""

    conviction: Conviction


@dataclass(frozen=True, slots=True)
class StoreEpoch:
    number: EpochNo
    document: bytes
    seals: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class PutOwnState:
    newest_journal: Journal
    recovering: bool
    pruned_to: EpochNo = EpochNo(0)


@dataclass(frozen=True, slots=True)
class DropEvents:
    """These events of a branch are let go, with all that leads to them but the feed."""

    key: BranchKey
    first: Seq
    last: Seq


@dataclass(frozen=True, slots=True)
class DropFeed:
    """Numbers of the feed up to this one are let go; the last number of all never is."""

    upto: int


@dataclass(frozen=True, slots=True)
class DropInvs:
    """Receipts of a signer below this number are let go: what they certify is gone, or lies in
    a later cut."""

    signer_no: NodeNo
    below: InvNumber


@dataclass(frozen=True, slots=True)
class EraseEntry:
    """In the place of this entry stands its leaf hash from now on."""

    slot: Slot
    index: int


@dataclass(frozen=True, slots=True)
class PutOverruling:
    """The next epoch as others opened it by force, without this node; empty: none."""

    document: bytes
    seals: tuple[bytes, ...]


# --- spoken -------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class SendMessage:
    peer: NodeId
    data: bytes
    has_time: bool = False  # it may go with what the peer is told next, a little later


@dataclass(frozen=True, slots=True)
class SendEarly:
    """One's own new event: it may go while the local fsync runs (a restart opens a new journal,
    and Read demands the author's own receipt, which is spoken after the fsync)."""

    peer: NodeId
    data: bytes


@dataclass(frozen=True, slots=True)
class AskEarly:
    """A question: it promises nothing that a loss of power could take back, and while the commit
    runs the peer prepares its answer."""

    peer: NodeId
    data: bytes


class EntriesStored(msgspec.Struct, frozen=True, gc=False):
    """Notice: the entries of a submission are durable, from this index of this event on."""

    ticket: Ticket
    event: EventId
    index: int


@dataclass(frozen=True, slots=True)
class EntriesRefused:
    """Notice: a submission is not taken; nothing of it was stored."""

    ticket: Ticket
    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True)
class EventsRead:
    """Notice: these became final."""

    ids: tuple[EventId, ...]


@dataclass(frozen=True, slots=True)
class NodeConvicted:
    """Notice: a proof of misbehaviour is held."""

    conviction: Conviction


@dataclass(frozen=True, slots=True)
class InputRefused:
    """Notice: something from outside was not taken; state is unchanged."""

    peer: NodeId
    reason: Reason
    detail: str


Durable = (
    StoreEvent
    | PutBranch
    | AppendFeed
    | StoreInv
    | StoreProof
    | StoreEpoch
    | PutOwnState
    | DropEvents
    | DropFeed
    | DropInvs
    | EraseEntry
    | PutOverruling
)
Spoken = (
    SendMessage
    | SendEarly
    | AskEarly
    | EntriesStored
    | EntriesRefused
    | EventsRead
    | NodeConvicted
    | InputRefused
)


@dataclass(slots=True)
class Effects:
    """What one step orders."""

    durable: list[Durable]
    spoken: list[Spoken]
