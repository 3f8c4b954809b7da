"""Worlds in which messages of the cores travel through peer machines: HELLO, frames, links that
break and are dialled again, and in some of them multicast. A core hears of a peer when its machine
says that it is up, and of nothing that did not come as a frame.
"""

from __future__ import annotations

import random

from quipu.ledger.inputs import MessageReceived, PeerConnected, PeerLost
from quipu.ledger.safeguards import ALL, Safeguards
from quipu.ledger.signing import KeyPair
from quipu.ledger.words import NodeId
from quipu.p2p import effects as fx
from quipu.p2p import inputs as ins
from quipu.p2p.queries import Verdict
from tests.simulation.node import SimNode
from tests.simulation.peers_world import PeersWorld, SimPeer
from tests.simulation.violation import Property, Violation
from tests.simulation.world import World

CASTS_LOST_MAX = 0.3
QUERY_MS = 5_000


class Line(SimPeer):
    """The peer machine of a node, which hands on what is for the core."""

    node: PeeredNode
    ended: fx.QueryEnded | None = None

    def _carry_out(self, effect: fx.Effect) -> None:
        SimPeer._carry_out(self, effect)
        match effect:
            case fx.PeerUp(peer):
                self.node.push(PeerConnected(peer))
            case fx.PeerDown(peer):
                self.node.push(PeerLost(peer))
            case fx.QueryEnded():
                self.ended = effect
            case fx.LedgerHeard(peer, data):
                self.heard.clear()
                self.node.told(peer, data)


class PeeredNode(SimNode):
    """Its core, disk and clock are those of any node; its links are those of its machine."""

    world: PeeredWorld

    def __init__(self, world: PeeredWorld, index: int, key: KeyPair, name: str) -> None:
        SimNode.__init__(self, world, index, key, name)
        self.line = world.lines[index]
        self.line.node = self

    def start(self) -> None:
        SimNode.start(self)
        self.line.start(*(other for other in self.world.peers.nodes if other is not self.line))

    def crash(self) -> None:
        was_up = self.up
        SimNode.crash(self)
        if was_up:
            self.line.crash()

    def told(self, peer: NodeId, data: bytes) -> None:
        if self.up:
            if self.world.judge.signers.by_key[self.key.node_id].watching:
                self.world.judge.on_delivery(self, data)
            self.push(MessageReceived(peer, data))

    def _heartbeat(self, boot: int) -> None:
        """That is the machine's part."""

    def _transmit(self, peer: NodeId, data: bytes, early: bool) -> None:
        self.world.judge.on_message(self, data, early)
        self.line.take(ins.LedgerSpoke(peer, data))


class PeeredWorld(World):
    """Honest members alone: liars among peers have worlds of their own."""

    kind: type[SimNode] = PeeredNode

    def __init__(
        self, seed: int | str, n: int, policy: str = "majority", safeguards: Safeguards = ALL
    ) -> None:
        World.__init__(self, seed, n, policy, safeguards)
        rng = random.Random(f"{seed}/peered")
        self.peers = PeersWorld(rng.getrandbits(32), n, kind=Line, scheduler=self.scheduler)
        self.peers.verify = self.verify
        self.network = self.peers.network
        self.peers.casts.loss = rng.choice((0.0, 0.05, CASTS_LOST_MAX))
        self.peers.casts.duplicate = rng.choice((0.0, 0.1))
        self.peers.casts.jitter_us = rng.choice((500, 40_000))
        self.lines = [line for line in self.peers.nodes if isinstance(line, Line)]
        for line in self.lines:
            line.has_multicast = rng.random() < 0.5

    def ask_all(self) -> None:
        """Healed, every member hears the question of any, and its answer comes back."""
        for line in self.lines:
            line.ended = None
            line.take(ins.QueryAsked(1, "frontier", b"same", QUERY_MS))
        self.run_ms(QUERY_MS + 100)
        for line in self.lines:
            ended = line.ended
            if ended is None or ended.verdict != Verdict.AGREED or ended.answer != b"same":
                detail = f"{line} asked all members, and was told {ended}"
                raise Violation(Property.ANSWERED, detail, self.scheduler.now_us)
