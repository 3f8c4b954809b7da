"""A node without manners: our own codecs and transport, and whatever keys it was given."""

import asyncio
import json
import re
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from quipu.devnet import Devnet
from quipu.devnet.processes import until
from quipu.ledger.messages import Message, encode_message
from quipu.ledger.signing import KeyPair
from quipu.ledger.words import NodeId, NodeNo, hlc_at
from quipu.node.invitation import read_invitation
from quipu.p2p.addresses import sign_endpoint
from quipu.p2p.bodies import Body
from quipu.p2p.decen import Alive, Command, Hello, encode_command
from quipu.p2p.frame import encode_head
from quipu.p2p.gossip import (
    Gossip,
    Kind,
    Origin,
    compose,
    compose_body,
    encode_gossip,
    gossip_id,
    join_content,
)
from quipu.p2p.gossip import signed as signed_gossip
from quipu.p2p.hello import Card, Pools, build_hello
from quipu.p2p.inputs import LinkClosed, LinkOpened
from quipu.p2p.limits import START_SHIFT
from quipu.p2p.words import Endpoint, Start
from tests.listening import Listener

MS_PER_S = 1_000
NO_POOLS = Pools((), 0)
NOTHING = join_content([])
OUTSIDER = NodeNo(0)
PAGE_BYTES = 4_096
BEAT_S = 1.0
UP_S = 20.0
MEMBERS = "/v1/cluster/members"
_REFUSED = re.compile(r'quipu_refused_total\{reason="([^"]+)"\} (\S+)')


class BadNode:
    """Within a running loop. `secret`: what it takes for the cluster's; `stolen`: the key of a
    member, which does not run meanwhile."""

    def __init__(
        self,
        net: Devnet,
        name: str = "liar",
        secret: bytes | None = None,
        stolen: KeyPair | None = None,
    ) -> None:
        invitation = read_invitation(net.invitation)
        self.net = net
        self.cluster_id = invitation.cluster_id
        self.listener = Listener(name, key=stolen)
        self.key = self.listener.key
        self.start = Start(int(time.time() * MS_PER_S) << START_SHIFT)
        endpoint = self.listener.transport.bound
        signed = sign_endpoint(self.key, self.cluster_id, endpoint, self.start)
        secrets = (invitation.secret if secret is None else secret,)
        self.card = Card(self.key.node_id, name, self.start, "0", signed, secrets)
        self._sequences: dict[NodeId, int] = {}
        self._said = 0
        self._beating: asyncio.Task[None] | None = None

    # --- links ----------------------------------------------------------------------------------
    async def dial(self, number: int) -> NodeId:
        peer, endpoint = where(self.net, number)
        heard = self.listener.heard
        before = len(heard)
        self._sequences[peer] = 0
        self.listener.transport.open(peer, endpoint)
        await self.listener.until(
            lambda: any(isinstance(h, LinkOpened | LinkClosed) and h.peer == peer
                        for h in heard[before:])
        )  # fmt: skip
        return peer

    async def greet(self, number: int, change: Callable[[Hello], Hello] = lambda h: h) -> NodeId:
        """With a link of its own."""
        peer = await self.dial(number)
        hello = build_hello(self.card, peer, self._sequence(peer), NO_POOLS)
        self.command(peer, change(hello))
        return peer

    async def up(self, *numbers: int) -> None:
        """Taken for a peer by these, so that their cores hear it; until it stops it is alive."""
        for number in numbers:
            await self.greet(number)
        self._beating = asyncio.create_task(self._beat())
        for number in numbers:
            await asyncio.to_thread(self._await_up, number)

    def _await_up(self, number: int) -> None:
        def is_up() -> bool:
            with urllib.request.urlopen(f"{self.net.node(number).api}{MEMBERS}", timeout=5) as said:
                rows = json.load(said)["items"]
            me = [row for row in rows if row["node_id"] == self.key.node_id.hex()]
            return bool(me) and me[0]["linked_in"] and me[0]["linked_out"]

        assert until(is_up, UP_S), f"node {number} does not take it for a peer"

    async def _beat(self) -> None:
        while True:
            for peer in list(self._sequences):
                self.alive(peer, NOTHING)
            await asyncio.sleep(BEAT_S)

    def ledger(self, number: int, message: Message | bytes) -> None:
        self._speak(number, Kind.LEDGER, message)

    def log(self, number: int, message: bytes) -> None:
        self._speak(number, Kind.LOG, message)

    def _speak(self, number: int, kind: Kind, message: Message | bytes) -> None:
        """As its core would."""
        peer, _ = where(self.net, number)
        data = message if isinstance(message, bytes) else encode_message(message)
        self._said += 1
        origin = Origin(
            self.key.node_id,
            gossip_id(self.start, self._said),
            hlc_at(int(time.time() * MS_PER_S)),
        )
        self.alive(peer, content_of(compose(origin, kind, data, None, 0)))

    def command(self, peer: NodeId, command: Command, content: bytes = NOTHING) -> None:
        self.raw(peer, encode_head(OUTSIDER, encode_command(command)), content)

    def alive(self, peer: NodeId, content: bytes) -> None:
        self.command(peer, Alive(self._sequence(peer)), content)

    def raw(self, peer: NodeId, head: bytes, content: bytes) -> None:
        self.listener.transport.send(peer, head, content)

    async def stop(self) -> None:
        if self._beating is not None:
            self._beating.cancel()
        await self.listener.stop()

    # --- words ----------------------------------------------------------------------------------
    def says(self, body: Body, sender: NodeId | None = None, key: KeyPair | None = None) -> Gossip:
        """As somebody else, where a sender is named; signed with its own key all the same."""
        self._said += 1
        origin = Origin(
            sender or self.key.node_id,
            gossip_id(self.start, self._said),
            hlc_at(int(time.time() * MS_PER_S)),
        )
        message = compose_body(origin, body, None, 4)
        return signed_gossip(message, self.cluster_id, key or self.key)

    def next_sequence(self, peer: NodeId) -> int:
        return self._sequence(peer)

    def rewind(self, peer: NodeId) -> None:
        """Its frames are numbered as if the link had just begun."""
        self._sequences[peer] = 0

    def _sequence(self, peer: NodeId) -> int:
        number = self._sequences[peer]
        self._sequences[peer] = (number + 1) % (1 << 16)
        return number


def where(net: Devnet, number: int) -> tuple[NodeId, Endpoint]:
    node = net.node(number)
    return NodeId(bytes.fromhex(node.node_id)), Endpoint("127.0.0.1", node.p2p_port)


def has_proof(net: Devnet, number: int) -> bool:
    with urllib.request.urlopen(f"{net.node(number).api}/v1/evidence", timeout=UP_S) as told:
        return bool(json.loads(told.read())["items"])


def header_changed(name: str, value: str) -> Callable[[Hello], Hello]:
    def change(hello: Hello) -> Hello:
        headers = tuple((n, value if n == name else v) for n, v in hello.headers)
        return replace(hello, headers=headers)

    return change


def content_of(*messages: Gossip) -> bytes:
    return join_content([encode_gossip(message) for message in messages])


def refusals(net: Devnet, number: int) -> Counter[str]:
    """By reason, as the node counts them."""
    with urllib.request.urlopen(f"{net.node(number).ops}/metrics", timeout=5) as answer:
        lines = answer.read().decode().splitlines()
    found = (_REFUSED.fullmatch(line) for line in lines)
    return Counter({m[1]: int(float(m[2])) for m in found if m is not None})


def rss_bytes(net: Devnet, number: int) -> int:
    running = net.node(number).running
    assert running is not None
    pages = int(Path(f"/proc/{running.pid}/statm").read_text().split()[1])
    return pages * PAGE_BYTES
