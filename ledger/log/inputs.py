"""Inputs of the log, in the past tense."""

from dataclasses import dataclass

from quipu.ledger.log.words import Index, LogTicket
from quipu.ledger.words import EpochNo, NodeId, NodeNo


@dataclass(frozen=True, slots=True)
class LogMessageReceived:
    """Of a member whose identity the link has proven."""

    peer: NodeNo
    data: bytes


@dataclass(frozen=True, slots=True)
class ItemsProposed:
    """To be ordered together, in one entry and in this order."""

    ticket: LogTicket
    items: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class SerializersProposed:
    """These shall vote in place of those who do."""

    ticket: LogTicket
    nodes: tuple[NodeNo, ...]


@dataclass(frozen=True, slots=True)
class ReadAsked:
    ticket: LogTicket


@dataclass(frozen=True, slots=True)
class ModelGrew:
    """What a voter waited for may be in its Model now."""


@dataclass(frozen=True, slots=True)
class OrderAwaited:
    """Somebody here waits for the order, and nobody did before."""


@dataclass(frozen=True, slots=True)
class LogCompacted:
    """What the entries up to this index have led to is kept elsewhere, by enough nodes."""

    index: Index
    state: bytes


@dataclass(frozen=True, slots=True)
class RosterChanged:
    """The newest epoch, who ever was a member, and who is told of the log now: members, and who
    still votes. Certificates of old are signed by those who left."""

    epoch: EpochNo
    keys: tuple[tuple[NodeNo, NodeId], ...]
    listeners: tuple[NodeNo, ...]
    barred: tuple[NodeNo, ...] = ()  # put out by force, and not taken in again: never heard


@dataclass(frozen=True, slots=True)
class DiskSetBack:
    """The core has found that this disk forgot what its node had signed."""


@dataclass(frozen=True, slots=True)
class RecoveryForced:
    """An operator says that this node may vote, whatever its lost disk said."""


@dataclass(frozen=True, slots=True)
class VotersForced:
    """An operator says that the other voters are lost for ever: this node alone votes."""


LogInput = (
    LogMessageReceived
    | ItemsProposed
    | SerializersProposed
    | ReadAsked
    | ModelGrew
    | OrderAwaited
    | LogCompacted
    | RosterChanged
    | DiskSetBack
    | RecoveryForced
    | VotersForced
)
