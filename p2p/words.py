"""The words of the peer protocol that several of its modules share."""

from enum import StrEnum
from typing import NamedTuple, NewType

from quipu.ledger.words import NodeId

LinkId = NewType("LinkId", bytes)  # one inbound connection, as the transport names it; never reused
Start = NewType("Start", int)  # u64 (ms << 20 | 20 random bits): one start of a node
GossipId = NewType(
    "GossipId", bytes
)  # 16 bytes: start of the sender (u64), its running number (u64)
PoolName = NewType("PoolName", str)  # 1 to 255 octets, case-sensitive
StreamId = NewType("StreamId", bytes)  # 8 bytes: what one start of a node multicasts
LinkKey = NewType("LinkKey", bytes)  # Curve25519 public key of a connection, 32 bytes


class Endpoint(NamedTuple):
    """Where a node accepts connections."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class PeerState(StrEnum):
    """The ladder of seed 004, 002 and 000 at once. Only ALIVE is in the live view."""

    ALIVE = "alive"
    SUSPECT = "suspect"  # silent for 5 s
    UNREACHABLE = "unreachable"  # silent for 10 s, and so say witnesses
    DEAD = "dead"  # silent for 30 s: its queues are freed, dialling goes on
    LEFT = "left"  # said so itself, with its signature
    UNKNOWN = "unknown"  # named by somebody, never heard


class PeerView(NamedTuple):
    """What this node knows of another one, for the API and for operators."""

    peer: NodeId
    state: PeerState
    endpoint: Endpoint | None
    heard_ms_ago: int | None
    start: Start | None
    pools: tuple[PoolName, ...]
    linked_in: bool  # it reached this node, HELLO verified
    linked_out: bool  # this node reached it
    version: str
    name: str = ""  # as it calls itself
    trouble: str = ""  # why it is not linked, in words for people
