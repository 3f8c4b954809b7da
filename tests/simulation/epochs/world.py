"""A world of machines with core and log, an operator who wants a roster, and a judge of epochs."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from quipu.ledger.order.safeguards import ALL as ROSTER_ALL
from quipu.ledger.order.safeguards import RosterSafeguards
from quipu.ledger.order.wishes import Candidate
from quipu.ledger.words import NodeId, NodeNo
from tests.simulation.clock import US_PER_MS
from tests.simulation.epochs.judge import EpochJudge
from tests.simulation.epochs.node import EpochNode
from tests.simulation.node import SimNode
from tests.simulation.world import World

if TYPE_CHECKING:
    from collections.abc import Sequence

Drops = Callable[[SimNode, NodeId, bytes], bool]  # what a world made by hand loses
LOG_HEAD = b"\xc1log"  # no message of a core begins so
LOOK_MS = 250


class Operator:
    """Says what roster is wanted, again and again, to whoever is master, until it is so."""

    def __init__(self, world: EpochWorld) -> None:
        self._world = world
        self._wanted: list[tuple[tuple[EpochNode, ...], str]] = []
        self.endings: list[str] = []
        world.scheduler.after(LOOK_MS * US_PER_MS, self._look)

    @property
    def busy(self) -> bool:
        return bool(self._wanted)

    def change(self, members: Sequence[EpochNode], policy: str = "") -> None:
        self._wanted.append((tuple(members), policy))

    def explain(self) -> str:
        nodes = self._wanted[0][0] if self._wanted else ()
        return f"{[n.name for n in nodes]} wanted, ended {self.endings}"

    def _look(self) -> None:
        world = self._world
        world.scheduler.after(LOOK_MS * US_PER_MS, self._look)
        if not self._wanted:
            return
        members, policy = self._wanted[0]
        newest = world.record.newest
        policy = policy or newest.policy
        wanted = {node.key.node_id for node in members}
        if set(newest.members.values()) == wanted and newest.policy == policy:
            self._wanted.pop(0)
            return
        for node in world.nodes:
            if isinstance(node, EpochNode) and node.is_master:
                self._tell(node, members, policy)

    def _tell(self, node: EpochNode, members: Sequence[EpochNode], policy: str) -> None:
        wish = node.book.state.wish
        if wish is None or self._is_stale(node):
            node.wish(candidates_of(members), policy)
        ended = node.book.state.ended
        if ended is not None and ended.how not in self.endings:
            self.endings.append(ended.how)

    def _is_stale(self, node: EpochNode) -> bool:
        pending = node.book.state.pending
        return pending is not None and pending.is_stale(node.circumstances().cluster_now_ms)


def candidates_of(members: Sequence[EpochNode]) -> list[Candidate]:
    return [Candidate(m.key.node_id, m.name.split(":")[0], ["serializer"]) for m in members]


class EpochWorld(World):
    kind = EpochNode

    def __init__(
        self,
        seed: int | str,
        n: int,
        policy: str = "majority",
        roster_guards: RosterSafeguards = ROSTER_ALL,
    ) -> None:
        self.roster_guards = roster_guards
        self.drops: Drops = lambda sender, receiver, data: False
        super().__init__(seed, n, policy)
        self.serializers = tuple(NodeNo(number) for number in range(1, min(n, 7) + 1))
        self.operator = Operator(self)
        self.epoch_judge = EpochJudge(self)
        self.dice = random.Random(f"{seed}/epochs")

    def members(self) -> list[EpochNode]:
        return [node for node in self.nodes if isinstance(node, EpochNode)]

    def master(self) -> EpochNode | None:
        masters = [node for node in self.members() if node.is_master]
        return max(
            masters, key=lambda n: n.machine.state.promised if n.machine else 0, default=None
        )

    # --- frames ---------------------------------------------------------------------------------
    def send_log(self, sender: EpochNode, number: NodeNo, data: bytes) -> None:
        for node_id, known in self.record.numbers.items():
            if known == number:
                self.send(sender, node_id, LOG_HEAD + data)

    def _deliver(self, receiver: int, sender: int, data: bytes) -> None:
        if not data.startswith(LOG_HEAD):
            super()._deliver(receiver, sender, data)
            return
        node, other = self.nodes[receiver], self.nodes[sender]
        if node.up and isinstance(node, EpochNode):
            number = NodeNo(self.record.numbers[other.key.node_id])
            node.receive_log(number, data[len(LOG_HEAD) :])

    def send(self, sender: SimNode, peer: NodeId, data: bytes) -> None:
        if not self.drops(sender, peer, data):
            super().send(sender, peer, data)
