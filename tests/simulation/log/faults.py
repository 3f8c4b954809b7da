"""Faults that a seed draws, and their end. Disks are lost one at a time: two at once are no fault
that three serializers bear."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from quipu.ledger.log.roles import Role
from quipu.ledger.log.serializers import Stage
from quipu.ledger.words import NodeNo
from tests.simulation.clock import US_PER_MS
from tests.simulation.network import FAIR, Weather

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.log.disk import Tables
    from tests.simulation.log.node import SimLogNode
    from tests.simulation.log.world import LogWorld

STORMS = (
    FAIR,
    Weather(jitter_us=20_000),
    Weather(loss=0.1, duplicate=0.05, jitter_us=10_000),
    Weather(loss=0.3, duplicate=0.2, jitter_us=50_000),
    Weather(spike=0.05, spike_us=1_500_000),
)
KINDS = (
    "cut",
    "one_way",
    "isolate_master",
    "kill",
    "kill_master",
    "kill_all",
    "wipe",
    "set_back",
    "change",
    "compact",
    "storm",
)


class LogFaults:
    def __init__(self, world: LogWorld, kinds: tuple[str, ...] = KINDS) -> None:
        self._world = world
        self._rng = random.Random(f"{world.seed}/faults")
        self._kinds = kinds
        self._images: dict[NodeNo, Tables] = {}
        self._healed = False
        self.log: list[str] = []

    def unleash(self, until_ms: int, pace_ms: int) -> None:
        scheduler = self._world.scheduler
        if scheduler.now_ms >= until_ms:
            return
        kind = self._rng.choice(self._kinds)
        self.log.append(f"{scheduler.now_ms} {kind}")
        fault: Callable[[], None] = getattr(self, kind)
        fault()
        scheduler.after(
            self._rng.randint(1, 2 * pace_ms) * US_PER_MS, self.unleash, until_ms, pace_ms
        )

    def heal(self) -> None:
        self._healed = True
        self._world.network.heal()
        for node in self._world.nodes.values():
            if not node.up:
                node.start()

    # --- network --------------------------------------------------------------------------------
    def storm(self) -> None:
        self._world.network.weather = self._rng.choice(STORMS)

    def cut(self) -> None:
        """Two sides, for a while."""
        nodes = list(self._world.nodes)
        side = [n for n in nodes if self._rng.random() < 0.5]
        pairs = [(a, b) for a in nodes for b in nodes if (a in side) != (b in side)]
        self._cut_for(pairs, self._span_ms())

    def one_way(self) -> None:
        """One node is heard and hears nobody, or the other way round."""
        nodes = list(self._world.nodes)
        lone = self._rng.choice(nodes)
        pairs = [(lone, other) for other in nodes if other != lone]
        if self._rng.random() < 0.5:
            pairs = [(b, a) for a, b in pairs]
        self._cut_for(pairs, self._span_ms())

    def isolate_master(self) -> None:
        master = self._world.master()
        if master is not None:
            others = [n for n in self._world.nodes if n != master.number]
            pairs = [(master.number, n) for n in others] + [(n, master.number) for n in others]
            self._cut_for(pairs, self._span_ms())

    def _cut_for(self, pairs: list[tuple[NodeNo, NodeNo]], span_ms: int) -> None:
        network = self._world.network
        for a, b in pairs:
            network.cut(a, b)
        self._world.scheduler.after(span_ms * US_PER_MS, self._mend, pairs)

    def _mend(self, pairs: list[tuple[NodeNo, NodeNo]]) -> None:
        for a, b in pairs:
            if not self._healed:
                self._world.network.mend(a, b)

    def _span_ms(self) -> int:
        return self._rng.choice((50, 300, 1_500, 4_000))

    # --- machines -------------------------------------------------------------------------------
    def kill(self) -> None:
        nodes = self._world.up()
        if nodes:
            self._kill_for(self._rng.choice(nodes))

    def kill_master(self) -> None:
        master = self._world.master()
        if master is not None:
            self._kill_for(master)

    def kill_all(self) -> None:
        for node in self._world.up():
            self._kill_for(node)

    def _kill_for(self, node: SimLogNode) -> None:
        node.kill()
        span_ms = self._rng.choice((10, 500, 2_500))
        self._world.scheduler.after(span_ms * US_PER_MS, self._restart, node)

    def _restart(self, node: SimLogNode) -> None:
        if not node.up:
            node.start()

    # --- disks ----------------------------------------------------------------------------------
    def wipe(self) -> None:
        node = self._may_lose_its_disk()
        if node is not None:
            node.kill()
            node.wipe()
            node.start()

    def set_back(self) -> None:
        """To an image taken a while ago."""
        node = self._may_lose_its_disk()
        if node is not None and node.number in self._images:
            node.kill()
            node.set_back(self._images[node.number])
            node.start()
        self._images = {n.number: n.disk.image() for n in self._world.nodes.values()}

    def _may_lose_its_disk(self) -> SimLogNode | None:
        nodes = list(self._world.nodes.values())
        if any(not n.up or n.machine.state.role is Role.RECOVERING for n in nodes):
            return None
        changes = [n.machine.state.log.newest_change for n in nodes]
        if any(c is not None and c.stage in (Stage.NOMINATE, Stage.IMPLEMENT) for c in changes):
            return None
        sets = [members for n in nodes for members in n.machine.state.log.voters.sets]
        if min(map(len, sets)) < 3 or any(n.disk.recovering for n in nodes):
            return None  # of two, the other alone makes no master: an operator has to force it
        return self._rng.choice(nodes)

    # --- the log itself -------------------------------------------------------------------------
    def change(self) -> None:
        master = self._world.master()
        if master is not None:
            numbers = list(self._world.nodes)
            loses = "wipe" in self._kinds or "set_back" in self._kinds
            least = min(3, len(numbers)) if loses else 1
            count = self._rng.randint(least, len(numbers))
            master.change(tuple(sorted(self._rng.sample(numbers, count))))

    def compact(self) -> None:
        for node in self._world.up():
            node.compact(self._rng.randint(0, 30))
