"""Effects of the log. All durable ones of a step are one transaction; only then it speaks."""

from dataclasses import dataclass, field

from quipu.ledger.log.entry import LogEntry
from quipu.ledger.log.evidence import LogConviction
from quipu.ledger.log.words import Index, LogTicket, Regime
from quipu.ledger.refusals import Reason
from quipu.ledger.words import NodeNo


# --- durable ------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class StoreLogEntry:
    index: Index
    data: bytes


@dataclass(frozen=True, slots=True)
class DropLogFrom:
    """These entries were never chosen; others take their place."""

    index: Index


@dataclass(frozen=True, slots=True)
class PutVote:
    """What this node promised and accepted: the whole record."""

    record: bytes


@dataclass(frozen=True, slots=True)
class PutChosen:
    index: Index
    certificate: tuple[bytes, ...]  # ACCEPTED that prove it


@dataclass(frozen=True, slots=True)
class PutConfirmed:
    """What proves the Confirm at this index: those who retired sign nothing later."""

    index: Index
    certificate: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class PutBase:
    """The log begins above this base; entries and proofs at and below it go."""

    record: bytes
    state: bytes


@dataclass(frozen=True, slots=True)
class PutLie:
    """What a serializer signed and no honest one does. It stays, whatever becomes of the log."""

    culprit: NodeNo
    proof: bytes


@dataclass(frozen=True, slots=True)
class ForgetLog:
    """The whole log and the vote go, and the disk counts as lost: the cluster went on without this
    node, by force, and its operator lets it follow."""


# --- spoken -------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class SendLogMessage:
    peer: NodeNo
    data: bytes


@dataclass(frozen=True, slots=True)
class EntryChosen:
    """Notice: this stands at its index for ever. Told once, in the order of the log."""

    entry: LogEntry
    digest: bytes


@dataclass(frozen=True, slots=True)
class BaseTaken:
    """Notice: the state up to this index came from another node, in place of entries."""

    index: Index
    state: bytes


@dataclass(frozen=True, slots=True)
class ItemsOrdered:
    """Notice: the items of a proposal are chosen, from this number of this entry on."""

    ticket: LogTicket
    regime: Regime
    index: Index
    number: int


@dataclass(frozen=True, slots=True)
class ItemsNotOrdered:
    """Notice. `is_known` false: they may be ordered still."""

    ticket: LogTicket
    is_known: bool
    reason: str


@dataclass(frozen=True, slots=True)
class ReadReady:
    """Notice: what was acknowledged before the question lies at or below this index, and all up
    to it is chosen here. None: nobody could say."""

    ticket: LogTicket
    index: Index | None


@dataclass(frozen=True, slots=True)
class MasterChanged:
    """Notice: whom this node takes for the master now."""

    regime: Regime
    master: NodeNo | None


@dataclass(frozen=True, slots=True)
class SerializerConvicted:
    """Notice: a proof that a serializer lied is held."""

    conviction: LogConviction


@dataclass(frozen=True, slots=True)
class LogInputRefused:
    """Notice: something from outside was not taken; state is unchanged."""

    peer: NodeNo
    reason: Reason
    detail: str


LogDurable = (
    StoreLogEntry | DropLogFrom | PutVote | PutChosen | PutConfirmed | PutBase | PutLie | ForgetLog
)
LogSpoken = (
    SendLogMessage
    | EntryChosen
    | BaseTaken
    | ItemsOrdered
    | ItemsNotOrdered
    | ReadReady
    | MasterChanged
    | SerializerConvicted
    | LogInputRefused
)


@dataclass(slots=True)
class LogEffects:
    """What one step orders."""

    durable: list[LogDurable] = field(default_factory=list)
    spoken: list[LogSpoken] = field(default_factory=list)
