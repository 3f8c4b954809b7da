"""One real peer machine, and hands: peers that say exactly what a test tells them to."""

from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import count
from typing import TypeVar

from quipu.ledger.canonical import encode
from quipu.ledger.signing import KeyPair
from quipu.ledger.words import NodeId, NodeNo, Now, hlc_at
from quipu.p2p import effects as fx
from quipu.p2p import inputs as ins
from quipu.p2p.addresses import SignedEndpoint, sign_endpoint
from quipu.p2p.bodies import Ack, Body, encode_body
from quipu.p2p.decen import Alive, Command, decode_command, encode_command
from quipu.p2p.desk import PeersConfig
from quipu.p2p.frame import decode_head, encode_head
from quipu.p2p.gossip import (
    KIND_OF_BODY,
    RULES,
    Foreign,
    Gossip,
    Kind,
    Origin,
    compose,
    decode_content,
    encode_gossip,
    gossip_id,
    join_content,
    signed,
)
from quipu.p2p.hello import Card, Pools, build_hello
from quipu.p2p.leaving import LEAVING_KIND, REMOVE, TAG_LEAVING, leaving_part
from quipu.p2p.link_keys import link_key_of
from quipu.p2p.peers import Peers
from quipu.p2p.words import Endpoint, LinkId, LinkKey, PeerState, PeerView, Start

CLUSTER_ID = sha256(b"a cluster on the bench").digest()
SECRET = sha256(b"its secret").digest()
START_MS = 1_790_000_000_000
NO_POOLS = Pools((), 0)
E = TypeVar("E", bound=fx.Effect)
_links = count(1)


def key_of(name: str) -> KeyPair:
    return KeyPair.from_seed(sha256(b"on the bench " + name.encode()).digest())


def node_id(name: str) -> NodeId:
    return key_of(name).node_id


def endpoint_of(name: str) -> Endpoint:
    return Endpoint(f"10.0.0.{int(name[1:]) if name[1:].isdigit() else 99}", 8471)


@dataclass(frozen=True, slots=True)
class Said:
    """A frame of the machine, read."""

    command: Command
    messages: tuple[Gossip | Foreign, ...]


@dataclass(slots=True)
class Hand:
    """A peer that a test moves. It holds its own key and the secret of the cluster."""

    bench: "Bench"
    name: str
    start: Start = Start((START_MS - 60_000) << 20)
    secrets: tuple[bytes, ...] = (SECRET,)
    link: LinkId = LinkId(b"")
    sequence: int = 0
    number: int = 0
    key: KeyPair = field(init=False)

    def __post_init__(self) -> None:
        self.key = key_of(self.name)

    @property
    def id(self) -> NodeId:
        return self.key.node_id

    @property
    def link_key(self) -> LinkKey:
        key = link_key_of(self.id)
        assert key is not None
        return key

    @property
    def endpoint(self) -> SignedEndpoint:
        return sign_endpoint(self.key, CLUSTER_ID, endpoint_of(self.name), self.start)

    @property
    def card(self) -> Card:
        return Card(self.id, self.name, self.start, "test", self.endpoint, self.secrets)

    # --- what it sends --------------------------------------------------------------------------
    def frame(self, command: Command, *messages: Gossip, link: LinkId | None = None) -> ins.Input:
        content = join_content([encode_gossip(m) for m in messages])
        head = encode_head(NodeNo(0), encode_command(command))
        return ins.FrameReceived(self.link if link is None else link, self.link_key, head, content)

    def hello(self, pools: Pools = NO_POOLS, again: bool = False) -> ins.Input:
        if not again:
            self.link, self.sequence = LinkId(next(_links).to_bytes(8, "big")), 0
        else:
            self.sequence += 1
        me = self.bench.key.node_id
        return self.frame(build_hello(self.card, me, self.sequence, pools))

    def alive(self, *messages: Gossip) -> ins.Input:
        self.sequence += 1
        return self.frame(Alive(self.sequence % 2**16), *messages)

    def raw_alive(self, content: bytes) -> ins.Input:
        """With a content that no codec of this version writes."""
        self.sequence += 1
        head = encode_head(NodeNo(0), encode_command(Alive(self.sequence % 2**16)))
        return ins.FrameReceived(self.link, self.link_key, head, content)

    def hello_of_protocol(self, least: int, most: int) -> ins.Input:
        self.sequence += 1
        hello = build_hello(self.card, self.bench.key.node_id, self.sequence, NO_POOLS)
        told = {**dict(hello.headers), "protocol-min": str(least), "protocol-max": str(most)}
        return self.frame(replace(hello, headers=tuple(told.items())))

    def farewell_of_version(self, version: int) -> bytes:
        """As a node of another version would write it."""
        made = self.origin()
        part = leaving_part(version, made.id, self.id, made.hlc)
        signature = self.key.sign(TAG_LEAVING + CLUSTER_ID + part)
        form = [version, made.id, LEAVING_KIND, self.id, None, REMOVE, made.hlc, 4, b"", signature]
        return encode(form)

    def origin(self, sender: NodeId | None = None) -> Origin:
        self.number += 1
        identity = gossip_id(self.start, self.number)
        return Origin(self.id if sender is None else sender, identity, hlc_at(START_MS))

    def message(self, body: Body, target: NodeId | None = None, hop_limit: int = 4) -> Gossip:
        kind = KIND_OF_BODY[type(body)]
        made = compose(self.origin(), kind, encode_body(body), target, hop_limit)
        return signed(made, CLUSTER_ID, self.key) if RULES[kind].is_signed else made

    def plain(self, kind: Kind, body: bytes) -> Gossip:
        return compose(self.origin(), kind, body)

    def farewell(self) -> Gossip:
        return signed(compose(self.origin(), Kind.LEAVING, b"", None, 4), CLUSTER_ID, self.key)

    # --- what it gets ---------------------------------------------------------------------------
    def said(self, effects: list[fx.Effect]) -> list[Said]:
        return [
            Said(
                decode_command(decode_head(effect.head).command),
                tuple(decode_content(effect.content)),
            )
            for effect in effects
            if isinstance(effect, fx.SendFrame) and effect.peer == self.id
        ]

    def commands(self, effects: list[fx.Effect]) -> list[type[Command]]:
        return [type(said.command) for said in self.said(effects)]

    def told(self, effects: list[fx.Effect], kind: Kind) -> list[Gossip]:
        return [
            message
            for said in self.said(effects)
            for message in said.messages
            if isinstance(message, Gossip) and message.kind == kind
        ]


class Bench:
    """The machine of n1, in a roster of `members`, and its clock."""

    def __init__(self, members: int = 3, kept: bytes | None = None, name: str = "n1") -> None:
        self.key = key_of(name)
        self.names = [f"n{number}" for number in range(1, members + 1)]
        self.now = Now(START_MS, 1_000_000)
        self.config = PeersConfig(
            key=self.key,
            cluster_id=CLUSTER_ID,
            secrets=(SECRET,),
            name=name,
            version="test",
            endpoint=endpoint_of(name),
            node_no=NodeNo(1),
            members=tuple(node_id(n) for n in self.names),
            entropy=7,
        )
        self.peers = Peers(self.config, kept, self.now)
        self.effects: list[fx.Effect] = []  # all of them

    @property
    def me(self) -> NodeId:
        return self.key.node_id

    def step(self, *inputs: ins.Input, after_ms: int = 0) -> list[fx.Effect]:
        """One turn; before it, time passes in turns of its own, as a running node has them."""
        while after_ms > 500:
            self._pass(500)
            after_ms -= 500
            self._turn()
        self._pass(after_ms)
        return self._turn(*inputs)

    def run(self, span_ms: int) -> list[fx.Effect]:
        """All effects of that time."""
        before = len(self.effects)
        self.step(after_ms=span_ms)
        return self.effects[before:]

    def sleep(self, span_ms: int, *inputs: ins.Input) -> list[fx.Effect]:
        """Not a turn in all that time."""
        self._pass(span_ms)
        return self._turn(*inputs)

    def hand(self, name: str) -> Hand:
        return Hand(self, name)

    def linked(self, name: str, pools: Pools = NO_POOLS) -> Hand:
        """A hand whose links are verified both ways, and which has acknowledged the machine."""
        hand = self.hand(name)
        self.step(hand.hello(pools))
        effects = self.step(ins.LinkOpened(hand.id))
        for event in hand.told(effects, Kind.DISCOVERED):
            self.step(hand.alive(hand.message(Ack(event.id, hand.endpoint))))
        return hand

    def view(self, name: str) -> PeerView:
        return next(v for v in self.peers.views() if v.peer == node_id(name))

    def state(self, name: str) -> PeerState:
        return self.view(name).state

    def _pass(self, span_ms: int) -> None:
        self.now = Now(self.now.wall_ms + span_ms, self.now.monotonic_ms + span_ms)

    def _turn(self, *inputs: ins.Input) -> list[fx.Effect]:
        effects = self.peers.step(list(inputs), self.now)
        self.effects += effects
        return effects


def of(effects: list[fx.Effect], kind: type[E]) -> list[E]:
    return [effect for effect in effects if isinstance(effect, kind)]


def causes(effects: list[fx.Effect]) -> list[str]:
    return [effect.cause for effect in effects if isinstance(effect, fx.Refusal)]
