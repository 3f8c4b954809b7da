"""Inputs: what enters the core, in the past tense. One step takes all inputs of one turn."""

from dataclasses import dataclass

import msgspec

from quipu.ledger.words import BranchKey, EpochNo, EventId, InvNumber, NodeId, NodeNo, Seq, Ticket


class EntriesSubmitted(msgspec.Struct, frozen=True, gc=False):
    """Canonical bytes of entries that become part of one event, together and in order. One for
    each request of an app: a struct is made in 0.1 us, a frozen dataclass in 0.7."""

    ticket: Ticket
    entries: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class PeerConnected:
    peer: NodeId


@dataclass(frozen=True, slots=True)
class PeerLost:
    peer: NodeId


@dataclass(frozen=True, slots=True)
class MessageReceived:
    """A message of a peer whose identity the link has proven."""

    peer: NodeId
    data: bytes


@dataclass(frozen=True, slots=True)
class EpochClosed:
    """CLOSE is ordered: sign one last Inv of the epoch that it ends, naming it."""

    close: bytes
    epoch: EpochNo | None = None  # that it ends; None: the newest


@dataclass(frozen=True, slots=True)
class EpochOffered:
    """This node, as the master, has computed the cut of the next epoch from these seals."""

    document: bytes
    seals: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class ReadyAsked:
    """These shall be members of the next epoch: are they ready for it?"""

    nodes: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class EpochOpened:
    """OPEN is ordered: the next epoch document with its cut, and the SEALs that it rests on."""

    document: bytes
    seals: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class HistoryPruned:
    """So much of what lies below the cut of that epoch is to be let go; a long history in many
    steps. `rows`: the last event that goes, by branch."""

    epoch: EpochNo
    rows: tuple[tuple[BranchKey, Seq], ...]
    feed_upto: int
    invs: tuple[tuple[NodeNo, InvNumber], ...] = ()  # those below this number, by signer


@dataclass(frozen=True, slots=True)
class EntryErased:
    """An ERASE that is Read names this entry, and it may be erased."""

    event: EventId
    index: int


@dataclass(frozen=True, slots=True)
class ForceFollowed:
    """An operator says that this node goes with the epoch that others opened by force."""


Input = (
    EntriesSubmitted
    | PeerConnected
    | PeerLost
    | MessageReceived
    | EpochClosed
    | EpochOpened
    | EpochOffered
    | ReadyAsked
    | HistoryPruned
    | EntryErased
    | ForceFollowed
)
