"""Inputs: what enters the peer machine, in the past tense. One step takes all inputs of a turn."""

from dataclasses import dataclass, field

from quipu.ledger.words import NodeId
from quipu.p2p.words import Endpoint, LinkId, LinkKey, PoolName


# --- from the transport -------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class FrameReceived:
    """A two-part message on an inbound link, whose peer holds the secret half of `key`."""

    link: LinkId
    key: LinkKey
    head: bytes
    content: bytes


@dataclass(frozen=True, slots=True)
class LinkOpened:
    """The outbound link to a peer is up, and it proved that it is that peer."""

    peer: NodeId


@dataclass(frozen=True, slots=True)
class LinkClosed:
    """The outbound link is gone or was never made; the transport does not try again."""

    peer: NodeId
    why: str


@dataclass(frozen=True, slots=True)
class FrameDropped:
    """A frame for that peer found no room in its queue."""

    peer: NodeId
    frame_bytes: int


@dataclass(frozen=True, slots=True)
class BeaconHeard:
    """A datagram of the multicast group, of anybody."""

    datagram: bytes


@dataclass(frozen=True, slots=True)
class CastHeard:
    """A datagram of the group for multicast, of anybody."""

    datagram: bytes


# --- from the node ------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class LedgerSpoke:
    """The core has a message for a peer."""

    peer: NodeId
    data: bytes


@dataclass(frozen=True, slots=True)
class LogSpoke:
    """The quorum log has a message for a peer."""

    peer: NodeId
    data: bytes


@dataclass(frozen=True, slots=True)
class RosterChanged:
    """The members of the newest epoch: who counts in fan-outs, witnesses and queries."""

    members: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class SecretsChanged:
    """The cluster's secrets from now on; links that are open stay."""

    secrets: tuple[bytes, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class SeedGiven:
    """A URI of configuration or invitation: dial it, for ever."""

    peer: NodeId
    endpoint: Endpoint


@dataclass(frozen=True, slots=True)
class QueryAsked:
    """Ask the members, or `of` them that one other; the outcome is told by `QueryEnded` under the
    same ticket."""

    ticket: int
    question: str
    argument: bytes
    timeout_ms: int
    of: NodeId | None = None


@dataclass(frozen=True, slots=True)
class QuestionAnswered:
    """What the node answers to the `Question` that it was handed under that ticket."""

    ticket: int
    answer: bytes


@dataclass(frozen=True, slots=True)
class PoolJoined:
    pool: PoolName


@dataclass(frozen=True, slots=True)
class PoolLeft:
    pool: PoolName


@dataclass(frozen=True, slots=True)
class PoolSpoke:
    """Something for all nodes of a pool."""

    pool: PoolName
    data: bytes


@dataclass(frozen=True, slots=True)
class LeaveAsked:
    """Say goodbye to all, signed; nothing is sent after it."""


Input = (
    FrameReceived
    | LinkOpened
    | LinkClosed
    | FrameDropped
    | BeaconHeard
    | CastHeard
    | LedgerSpoke
    | LogSpoke
    | RosterChanged
    | SecretsChanged
    | SeedGiven
    | QueryAsked
    | QuestionAnswered
    | PoolJoined
    | PoolLeft
    | PoolSpoke
    | LeaveAsked
)
