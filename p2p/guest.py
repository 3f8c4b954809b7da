"""A guest: a node that knows one URI and the cluster's secret, and asks there for the genesis.

Pure, as the peer machine is, and much less: one link out to greet, one link in that must be of the
key of the URI's node, greet by the same secret, and bring what has the cluster's id as its hash.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from quipu.ledger import signing
from quipu.ledger.epochs import cluster_id_of, decode_genesis
from quipu.ledger.refusals import Refused
from quipu.ledger.signing import KeyPair
from quipu.ledger.words import NOT_A_MEMBER, NodeId, Now
from quipu.p2p import inputs as ins
from quipu.p2p import limits
from quipu.p2p.addresses import sign_endpoint
from quipu.p2p.decen import Alive, Hello, decode_command, encode_command
from quipu.p2p.effects import OpenLink, SendFrame
from quipu.p2p.frame import decode_head, encode_head
from quipu.p2p.gossip import Kind, decode_content
from quipu.p2p.hello import NO_CLUSTER, Card, Pools, build_hello, verify_host
from quipu.p2p.link_keys import link_key_of
from quipu.p2p.outbox import NOTHING
from quipu.p2p.refusals import Cause, FrameRefused, refuse
from quipu.p2p.words import Endpoint, LinkId, Start

NO_POOLS = Pools((), 0)
HANDSHAKE = "ended within the handshake"  # as transports begin to say it


class Failure(StrEnum):
    """Why a guest goes without a genesis."""

    UNREACHABLE = "unreachable"
    OTHER_NODE = "other-node"  # or another program
    REFUSED = "refused"  # it ends the connection once it is greeted
    UNANSWERED = "unanswered"
    ANSWER = "answer"  # it does answer, with something that cannot be taken


@dataclass(frozen=True, slots=True)
class Failed:
    failure: Failure
    detail: str
    cause: Cause | None = None  # where it is an answer


@dataclass(frozen=True, slots=True)
class GuestConfig:
    """`endpoint`: where the host can reach this node. `entropy`: of its start."""

    key: KeyPair
    host: NodeId
    host_endpoint: Endpoint
    secrets: tuple[bytes, ...] = field(repr=False)
    name: str
    version: str
    endpoint: Endpoint
    entropy: int
    verify: signing.Verifier = signing.verify


Effect = OpenLink | SendFrame


class Guest:
    """`outcome` is the genesis, or why there is none; once it is there nothing more is done."""

    def __init__(self, config: GuestConfig, now: Now) -> None:
        drawn = config.entropy & ((1 << limits.START_SHIFT) - 1)
        start = Start(now.wall_ms << limits.START_SHIFT | drawn)
        signed = sign_endpoint(config.key, NO_CLUSTER, config.endpoint, start)
        self._config = config
        self._card = Card(
            config.key.node_id, config.name, start, config.version, signed, config.secrets
        )
        self._host_key = link_key_of(config.host)
        self._end_ms = now.monotonic_ms + limits.GUEST_WAIT_MS
        self._greet_ms: int | None = None  # when to greet it again; None: there is no link
        self._greetings = 0
        self._greeted: tuple[LinkId, bytes] | None = None  # its link, and the id of its cluster
        self.outcome: bytes | Failed | None = None

    def begin(self) -> list[Effect]:
        return [OpenLink(self._config.host, self._config.host_endpoint)]

    def step(self, inputs: list[ins.Input], now: Now) -> list[Effect]:
        for item in inputs:
            if self.outcome is None:
                self._take(item, now)
        if self.outcome is None and now.monotonic_ms >= self._end_ms:
            self.outcome = Failed(Failure.UNANSWERED, f"within {limits.GUEST_WAIT_MS} ms")
        is_due = self._greet_ms is not None and now.monotonic_ms >= self._greet_ms
        return [self._greeting(now)] if self.outcome is None and is_due else []

    def next_deadline(self) -> int:
        return self._end_ms if self._greet_ms is None else min(self._greet_ms, self._end_ms)

    # ---------------------------------------------------------------------------------------------
    def _take(self, item: ins.Input, now: Now) -> None:
        match item:
            case ins.LinkOpened():
                self._greet_ms = now.monotonic_ms
            case ins.LinkClosed(why=why):
                self.outcome = Failed(self._failure_of(why), why)
            case ins.FrameReceived() if item.key == self._host_key:
                try:
                    self._hear(item)
                except FrameRefused as refusal:
                    self.outcome = Failed(Failure.ANSWER, str(refusal), refusal.cause)
            case _:
                pass  # founders are dialled by other members too, who have nothing for a guest

    def _failure_of(self, why: str) -> Failure:
        if self._greet_ms is not None:
            return Failure.REFUSED
        return Failure.OTHER_NODE if why.startswith(HANDSHAKE) else Failure.UNREACHABLE

    def _greeting(self, now: Now) -> SendFrame:
        """Again and again: the host may have had no room, or be new to the secret."""
        self._greet_ms = now.monotonic_ms + limits.HELLO_AGAIN_MS
        sequence = self._greetings % limits.SEQUENCES
        self._greetings += 1
        hello = build_hello(self._card, self._config.host, sequence, NO_POOLS)
        head = encode_head(NOT_A_MEMBER, encode_command(hello))
        return SendFrame(self._config.host, head, NOTHING)

    def _hear(self, frame: ins.FrameReceived) -> None:
        command = decode_command(decode_head(frame.head).command)
        if isinstance(command, Hello):
            greeting = verify_host(command, frame.key, self._card, self._config.verify)
            self._greeted = (frame.link, greeting.endpoint.cluster_id)
        elif isinstance(command, Alive) and self._greeted is not None:
            link, cluster_id = self._greeted
            for message in decode_content(frame.content) if frame.link == link else ():
                if message.kind == Kind.GENESIS and not isinstance(message, tuple):
                    self._judge(message.body, cluster_id)

    def _judge(self, genesis: bytes, cluster_id: bytes) -> None:
        if cluster_id_of(genesis) != cluster_id:
            refuse(Cause.WRONG_CLUSTER, "the genesis is of another cluster than its HELLO")
        try:
            decode_genesis(genesis)
        except Refused as refusal:
            refuse(Cause.MALFORMED, f"no genesis: {refusal}")
        self.outcome = genesis
