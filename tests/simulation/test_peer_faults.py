"""Seeded worlds of peer machines under all faults at once, and then healed."""

import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest

from quipu.p2p.words import PeerState
from tests.simulation.network import FAIR
from tests.simulation.peers_world import PeersWorld, SimPeer

FAULTS_MS = 60_000
HEALED_MS_MAX = 6_000
WEATHERS = (
    FAIR,
    replace(FAIR, loss=0.3),
    replace(FAIR, base_us=2_000_000),
    replace(FAIR, duplicate=0.3, spike=0.1, spike_us=500_000),
)


class Faults:
    def __init__(self, world: PeersWorld) -> None:
        self._world = world
        self._rng = random.Random(f"{world.seed}/faults")

    def run(self) -> None:
        kinds: tuple[Callable[[], None], ...] = (
            self._pause,
            self._crash,
            self._cut_one_way,
            self._cut_off,
            self._change_weather,
        )
        while self._world.now_ms < FAULTS_MS:
            self._rng.choice(kinds)()
            self._world.run_ms(self._rng.randrange(200, 8_000))

    def heal(self) -> None:
        self._world.heal()
        for node in self._world.nodes:
            self._revive(node)

    def _any(self) -> SimPeer:
        return self._rng.choice(self._world.nodes)

    def _pause(self) -> None:
        node = self._any()
        node.pause()
        span_us = self._rng.randrange(1_000_000, 30_000_000)
        self._world.scheduler.after(span_us, self._revive, node)

    def _crash(self) -> None:
        node = self._any()
        node.crash()
        self._world.scheduler.after(self._rng.randrange(100_000, 20_000_000), self._revive, node)

    def _revive(self, node: SimPeer) -> None:
        if node.peers is None:
            node.start(self._world["n1"])
        elif node.paused:
            node.resume()

    def _cut_one_way(self) -> None:
        self._world.network.cut(self._any().index, self._any().index)

    def _cut_off(self) -> None:
        count = self._rng.randrange(1, len(self._world.nodes))
        self._world.partition(*self._rng.sample(self._world.nodes, count))
        if self._rng.random() < 0.7:
            self._world.scheduler.after(
                self._rng.randrange(500_000, 15_000_000), self._world.network.heal
            )

    def _change_weather(self) -> None:
        is_ordered = self._rng.random() < 0.5
        weather = self._rng.choice(WEATHERS)
        self._world.network.weather = replace(weather, ordered=is_ordered)


def stands(world: PeersWorld) -> bool:
    """Every way between members, and three members for each observer."""
    roster = [node for node in world.nodes if node.node_id in world.members]
    observers = world.nodes[len(roster) :]
    attached = min(3, len(roster))
    return all(a.is_up(b) for a in roster for b in roster if a is not b) and all(
        sum(member.node_id in observer.up for member in roster) >= attached
        for observer in observers
    )


def run(seed: int) -> PeersWorld:
    rng = random.Random(seed)
    world = PeersWorld(seed, rng.randrange(2, 8), rng.randrange(3))
    for node in world.nodes:
        node.clock.offset_ms = rng.choice((0, 0, 3_600_000, -3_600_000))
        node.start(world["n1"])
    faults = Faults(world)
    faults.run()
    faults.heal()
    world.run_until(lambda: stands(world), HEALED_MS_MAX)
    return world


@pytest.mark.parametrize("seed", range(1, 31))
def test_whatever_happened_all_find_each_other_again(seed: int) -> None:
    world = run(seed)
    world.run_ms(12_000)
    assert stands(world)
    after = {move.after for node in world.nodes for _, move in node.moves}
    assert PeerState.LEFT not in after  # nobody has said farewell
    causes = {cause for node in world.nodes for cause in node.refusals}
    # Honest nodes never say what is not well-formed, signed and their own.
    assert causes <= {
        "duplicate",
        "not-hello",
        "repeated-sequence",
        "not-up",
        "not-asked",
        "older-start",
    }


def test_a_world_follows_from_its_seed_in_every_process() -> None:
    program = "from tests.simulation.test_peer_faults import run; print(run(5).digest)"
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(digests) == 1
