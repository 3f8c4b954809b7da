"""A world of logs: nodes, network, faults, apps and the judge, all from one seed."""

from __future__ import annotations

import random
from hashlib import sha256

from quipu.ledger.log.safeguards import ALL, LogSafeguards
from quipu.ledger.signing import KeyPair
from quipu.ledger.words import NodeId, NodeNo
from tests.simulation.clock import US_PER_MS, Scheduler
from tests.simulation.keys import SharedVerifier, key_pair
from tests.simulation.log.history import LogHistory
from tests.simulation.log.judge import LogJudge
from tests.simulation.log.node import EVENT, SimLogNode
from tests.simulation.network import Network

FSYNC_US = (200, 3_000)
MODEL_DELAY_US = (0, 60_000)


class LogWorld:
    def __init__(
        self, seed: int | str, n: int, serializers: int, guards: LogSafeguards = ALL
    ) -> None:
        self.seed, self.guards = seed, guards
        self.scheduler = Scheduler()
        self.verify = SharedVerifier()
        self.rng = random.Random(f"{seed}/world")
        self.network = Network(self.scheduler, random.Random(f"{seed}/network"), self._deliver)
        self.cluster_id = sha256(f"{seed}".encode()).digest()
        self.founders = tuple(NodeNo(i) for i in range(1, serializers + 1))
        self.keys: dict[NodeNo, NodeId] = {
            NodeNo(i): key_pair(f"n{i}").node_id for i in range(1, n + 1)
        }
        self.liars: dict[NodeNo, None] = {}
        self.history = LogHistory()
        self.judge = LogJudge(self)
        self.nodes: dict[NodeNo, SimLogNode] = {}
        for number in self.keys:
            self.nodes[number] = SimLogNode(self, number)
        self._proposed = 0

    def key(self, number: NodeNo) -> KeyPair:
        return key_pair(f"n{number}")

    # --- frames and disks -----------------------------------------------------------------------
    def send(self, sender: NodeNo, receiver: NodeNo, data: bytes) -> None:
        self.network.send(sender, receiver, data)

    def _deliver(self, receiver: int, sender: int, data: bytes) -> None:
        node = self.nodes[NodeNo(receiver)]
        if node.up:
            node.receive(NodeNo(sender), data)

    def fsync_us(self, node: SimLogNode) -> int:
        return self.rng.randint(*FSYNC_US)

    # --- apps -----------------------------------------------------------------------------------
    def up(self) -> list[SimLogNode]:
        return [node for node in self.nodes.values() if node.up]

    def master(self) -> SimLogNode | None:
        """The one of the highest regime; a former one may not know yet that it is none."""
        masters = [node for node in self.up() if node.is_master]
        return max(masters, key=lambda node: node.machine.state.promised, default=None)

    def work(self, every_ms: int, until_ms: int) -> None:
        """Proposals and reads at random nodes, some of them of events that Models lack yet."""
        if self.scheduler.now_ms >= until_ms:
            return
        nodes = self.up()
        if nodes:
            node = self.rng.choice(nodes)
            if self.rng.random() < 0.25:
                node.read()
            else:
                node.propose([self._item()])
        delay_us = self.rng.randint(1, 2 * every_ms) * US_PER_MS
        self.scheduler.after(delay_us, self.work, every_ms, until_ms)

    def _item(self) -> bytes:
        self._proposed += 1
        if self.rng.random() < 0.5:
            return b"plain %d" % self._proposed
        item = EVENT + b"%d" % self._proposed
        for node in self.nodes.values():
            self.scheduler.after(self.rng.randint(*MODEL_DELAY_US), node.learn, item)
        return item

    def run_ms(self, duration_ms: int) -> None:
        self.scheduler.run_until(self.scheduler.now_us + duration_ms * US_PER_MS)
