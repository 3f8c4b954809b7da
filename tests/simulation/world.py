"""A world: nodes, network, clocks, apps, faults and the judge, all from one seed."""

from __future__ import annotations

import random
from collections.abc import Iterator

from quipu.ledger.canonical import encode
from quipu.ledger.effects import Effects
from quipu.ledger.epochs import GENESIS_VERSION, Founder, Genesis
from quipu.ledger.inputs import Input
from quipu.ledger.limits import ATTACHMENTS
from quipu.ledger.observers import ranking
from quipu.ledger.safeguards import ALL, Safeguards
from quipu.ledger.signing import KeyPair
from quipu.ledger.words import NodeId
from tests.simulation.clock import START_WALL_MS, US_PER_MS, Scheduler
from tests.simulation.faults import Faults
from tests.simulation.keys import SharedVerifier, key_pair
from tests.simulation.network import Network
from tests.simulation.node import SimNode
from tests.simulation.properties import Judge
from tests.simulation.record import Record
from tests.simulation.registrar import Registrar
from tests.simulation.transcript import Transcript
from tests.simulation.workload import History, Workload

CLOCK_BELIEVED_US = 6_000_000
REROUTE_MS = 3_000  # two places that share a key take turns as the one that answers


class World:
    kind: type[SimNode] = SimNode  # of an honest node

    def __init__(
        self, seed: int | str, n: int, policy: str = "majority", safeguards: Safeguards = ALL
    ) -> None:
        self.seed = seed
        self.safeguards = safeguards
        self.scheduler = Scheduler()
        self.verify = SharedVerifier()
        self.network = Network(self.scheduler, random.Random(f"{seed}/network"), self._deliver)
        self.nodes: list[SimNode] = []
        self.dead: dict[int, None] = {}  # for good
        self.clones: dict[int, int] = {}
        self.observers: dict[int, None] = {}
        self._attachments: dict[NodeId, tuple[int, list[NodeId]]] = {}  # as of which epoch
        self.clocks_judged = True
        self._former_offsets: list[tuple[int, int]] = []
        self.one_branch_judged = False
        self.founders = [key_pair(f"n{number}") for number in range(1, n + 1)]
        self.genesis = self._write_genesis(policy)
        self.record = Record(self.genesis, self.verify)
        self.history = History(self.record)
        self.transcript: Transcript | None = None
        self.judge = Judge(self, self.record)
        self.faults = Faults(self)
        self.workload = Workload(self)
        self.registrar = Registrar(self)
        self._by_key: dict[NodeId, list[SimNode]] = {}

    def _write_genesis(self, policy: str) -> bytes:
        salt = random.Random(f"{self.seed}/genesis").randbytes(16)
        members = [
            Founder(key.node_id, f"n{number}", ["serializer"])
            for number, key in enumerate(self.founders, start=1)
        ]
        named = (GENESIS_VERSION, "simulated", START_WALL_MS, policy)
        return encode(Genesis(*named, members, salt, []))

    # --- nodes ----------------------------------------------------------------------------------
    def add_node(self, key: KeyPair, name: str, kind: type[SimNode] = SimNode) -> SimNode:
        node = kind(self, len(self.nodes), key, name)
        self.nodes.append(node)
        self._by_key.setdefault(key.node_id, []).append(node)
        if node.honest:
            self.judge.signers.add(node)
        return node

    def add_founders(self, kinds: list[type[SimNode]]) -> None:
        for number, (key, kind) in enumerate(zip(self.founders, kinds, strict=True), start=1):
            self.add_node(key, f"n{number}" if kind.honest else f"n{number}:{kind.__name__}", kind)

    def members_up(self) -> list[SimNode]:
        return [n for n in self.nodes if n.up and n.index not in self.observers]

    def honest(self) -> list[SimNode]:
        """Those that healing must make equal."""
        return [n for n in self.nodes if n.honest and n.index not in self.dead]

    def neighbours(self, node: SimNode) -> Iterator[tuple[NodeId, SimNode]]:
        for peer in self._by_key:
            if peer == node.key.node_id:
                continue
            other = self.at(node, peer)
            if other is not None and self._linked(node, other):
                yield peer, other

    def _linked(self, one: SimNode, other: SimNode) -> bool:
        for watcher, member in ((one, other), (other, one)):
            if watcher.index in self.observers:
                return member.key.node_id in self._attached(watcher.key.node_id)
        return True

    def _attached(self, observer: NodeId) -> list[NodeId]:
        newest = self.record.newest
        at, chosen = self._attachments.get(observer, (0, []))
        if at != newest.number:
            chosen = ranking(observer, newest.members.values())[:ATTACHMENTS]
            self._attachments[observer] = (newest.number, chosen)
        return chosen

    def at(self, sender: SimNode, peer: NodeId) -> SimNode | None:
        """Where a key is answered from now; copies of a directory take turns."""
        places = [place for place in self._by_key.get(peer, []) if place.up]
        if len(places) < 2:
            return places[0] if places else None
        turn = self.scheduler.now_us // (REROUTE_MS * US_PER_MS) + sender.index
        return places[turn % len(places)]

    def set_clock(self, node: SimNode, offset_ms: int, drift_ppm: int) -> None:
        """What the clock said before is believed by others for a while yet."""
        until_us = self.scheduler.now_us + CLOCK_BELIEVED_US
        self._former_offsets.append((until_us, node.clock.offset_ms))
        node.clock.offset_ms, node.clock.drift_ppm = offset_ms, drift_ppm

    def latest_honest_wall_ms(self) -> int:
        now_us = self.scheduler.now_us
        self._former_offsets = [item for item in self._former_offsets if item[0] > now_us]
        former = (START_WALL_MS + self.scheduler.now_ms + o for _, o in self._former_offsets)
        return max(*(n.clock.wall_ms(now_us) for n in self.nodes if n.honest), 0, *former)

    # --- frames ---------------------------------------------------------------------------------
    def send(self, sender: SimNode, peer: NodeId, data: bytes) -> None:
        receiver = self.at(sender, peer)
        if receiver is not None and self._linked(sender, receiver):
            self.network.send(sender.index, receiver.index, data)

    def _deliver(self, receiver: int, sender: int, data: bytes) -> None:
        node, other = self.nodes[receiver], self.nodes[sender]
        if not node.up:
            return
        if node.honest and self.judge.signers.by_key[node.key.node_id].watching:
            self.judge.on_delivery(node, data)
        node.receive(other, data)

    # --- transcript -----------------------------------------------------------------------------
    def trace(self, node: SimNode | None, text: str) -> None:
        if self.transcript is not None:
            self.transcript.add(self.scheduler.now_us, node, text)

    def trace_step(self, node: SimNode, inputs: list[Input], effects: Effects) -> None:
        if self.transcript is not None:
            self.transcript.add_step(self.scheduler.now_us, node, inputs, effects)

    def run_ms(self, duration_ms: int) -> None:
        self.scheduler.run_until(self.scheduler.now_us + duration_ms * US_PER_MS)
