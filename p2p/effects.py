"""Effects: what leaves the peer machine, as orders, in the order in which they are carried out."""

from dataclasses import dataclass

from quipu.ledger.words import NodeId
from quipu.p2p.words import Endpoint, LinkId, PeerState, PoolName


# --- to the transport ---------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class OpenLink:
    """Connect to a peer; `LinkOpened` or `LinkClosed` follows. What is sent before that waits."""

    peer: NodeId
    endpoint: Endpoint


@dataclass(frozen=True, slots=True)
class CloseLink:
    """What was sent before is still delivered where that takes no more than the linger."""

    peer: NodeId


@dataclass(frozen=True, slots=True)
class SendFrame:
    peer: NodeId
    head: bytes
    content: bytes


@dataclass(frozen=True, slots=True)
class ShutLink:
    """End the connection of an inbound link: all that this node can tell a stranger."""

    link: LinkId


@dataclass(frozen=True, slots=True)
class SendBeacon:
    """To the multicast group of the local network."""

    datagram: bytes


@dataclass(frozen=True, slots=True)
class SendCast:
    """To the group for multicast."""

    datagram: bytes


# --- to the node --------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class PeerUp:
    """Both ways are open and verified, and it is in the live view."""

    peer: NodeId


@dataclass(frozen=True, slots=True)
class PeerDown:
    peer: NodeId


@dataclass(frozen=True, slots=True)
class LedgerHeard:
    """A message for the core, of a peer that is up."""

    peer: NodeId
    data: bytes


@dataclass(frozen=True, slots=True)
class LogHeard:
    """A message for the quorum log, of a peer that is up."""

    peer: NodeId
    data: bytes


@dataclass(frozen=True, slots=True)
class StateChanged:
    """Notice: a peer moved on the ladder."""

    peer: NodeId
    before: PeerState
    after: PeerState
    why: str


@dataclass(frozen=True, slots=True)
class Question:
    """A member asks this node; `QuestionAnswered` with the ticket brings the answer back."""

    ticket: int
    peer: NodeId
    question: str
    argument: bytes


@dataclass(frozen=True, slots=True)
class QueryEnded:
    """`verdict`: agreed, contested or timeout. `answers`: the newest of each node, as signed."""

    ticket: int
    verdict: str
    answer: bytes | None
    answers: tuple[tuple[NodeId, bytes], ...]
    asked: int


@dataclass(frozen=True, slots=True)
class PoolHeard:
    pool: PoolName
    peer: NodeId
    data: bytes


@dataclass(frozen=True, slots=True)
class FramesMissed:
    """Notice: the sequence of a peer's frames has a gap. Nothing is asked for: syncing repairs."""

    peer: NodeId
    frames: int


@dataclass(frozen=True, slots=True)
class KeepPeers:
    """What a restart begins with: peers, their signed endpoints, the floors of what was seen."""

    data: bytes


@dataclass(frozen=True, slots=True)
class GuestServed:
    """Notice: a node that holds the secret and no genesis was sent it."""

    guest: NodeId
    endpoint: Endpoint


@dataclass(frozen=True, slots=True)
class Refusal:
    """Something from outside was not taken: counted under `cause`; state is unchanged."""

    peer: NodeId | None
    cause: str
    detail: str


Effect = (
    OpenLink
    | CloseLink
    | SendFrame
    | ShutLink
    | SendBeacon
    | SendCast
    | PeerUp
    | PeerDown
    | LedgerHeard
    | LogHeard
    | StateChanged
    | Question
    | QueryEnded
    | PoolHeard
    | FramesMissed
    | KeepPeers
    | GuestServed
    | Refusal
)
