"""A node without manners: our own codecs and transport, and whatever keys it was given."""

import re
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from quipu.devnet import Devnet
from quipu.ledger.signing import KeyPair
from quipu.ledger.words import NodeId, NodeNo, hlc_at
from quipu.node.invitation import read_invitation
from quipu.p2p.addresses import sign_endpoint
from quipu.p2p.bodies import Body
from quipu.p2p.decen import Alive, Command, Hello, encode_command
from quipu.p2p.frame import encode_head
from quipu.p2p.gossip import Gossip, Origin, compose_body, encode_gossip, gossip_id, join_content
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
_REFUSED = re.compile(r'quipu_refused_total\{reason="([^"]+)"\} (\S+)')


class BadNode:
    """Within a running loop. `secret`: what it takes for the cluster's."""

    def __init__(self, net: Devnet, name: str = "liar", secret: bytes | None = None) -> None:
        invitation = read_invitation(net.invitation)
        self.net = net
        self.cluster_id = invitation.cluster_id
        self.listener = Listener(name)
        self.key = self.listener.key
        self.start = Start(int(time.time() * MS_PER_S) << START_SHIFT)
        endpoint = self.listener.transport.bound
        signed = sign_endpoint(self.key, self.cluster_id, endpoint, self.start)
        secrets = (invitation.secret if secret is None else secret,)
        self.card = Card(self.key.node_id, name, self.start, "0", signed, secrets)
        self._sequences: dict[NodeId, int] = {}
        self._said = 0

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

    def command(self, peer: NodeId, command: Command, content: bytes = NOTHING) -> None:
        self.raw(peer, encode_head(OUTSIDER, encode_command(command)), content)

    def alive(self, peer: NodeId, content: bytes) -> None:
        self.command(peer, Alive(self._sequence(peer)), content)

    def raw(self, peer: NodeId, head: bytes, content: bytes) -> None:
        self.listener.transport.send(peer, head, content)

    async def stop(self) -> None:
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

    def _sequence(self, peer: NodeId) -> int:
        number = self._sequences[peer]
        self._sequences[peer] = (number + 1) % (1 << 16)
        return number


def where(net: Devnet, number: int) -> tuple[NodeId, Endpoint]:
    node = net.node(number)
    return NodeId(bytes.fromhex(node.node_id)), Endpoint("127.0.0.1", node.p2p_port)


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
