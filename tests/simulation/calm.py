"""Worlds for directed tests: everything is fine until the test says otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from quipu.ledger.words import EventId
from tests.simulation.clock import US_PER_MS
from tests.simulation.node import SimNode
from tests.simulation.workload import Submission
from tests.simulation.world import World

LOOK_MS = 20
START_MS = 3_600  # a start listens for 3 s before it signs


def calm_world(n: int, policy: str = "majority", kinds: Sequence[type[SimNode]] = ()) -> World:
    """All members up, connected, and past listening; `kinds` are the last of them."""
    world = World(0, n, policy)
    honest: list[type[SimNode]] = [SimNode] * (n - len(kinds))
    world.add_founders([*honest, *kinds])
    for node in world.nodes:
        node.start()
    world.run_ms(START_MS)
    return world


def until(world: World, condition: Callable[[], bool], within_ms: int) -> int:
    """Milliseconds until the condition held; a failure when it did not."""
    start_us = world.scheduler.now_us
    while not condition():
        waited_ms = (world.scheduler.now_us - start_us) // US_PER_MS
        assert waited_ms < within_ms, f"not within {within_ms} ms"
        world.run_ms(LOOK_MS)
    return (world.scheduler.now_us - start_us) // US_PER_MS


def write(world: World, node: SimNode, count: int = 1, pause_ms: int = 30) -> list[Submission]:
    """Submissions one after the other, each an event of its own."""
    made = []
    for _ in range(count):
        made.append(world.workload.submit(node, 1, 40))
        world.run_ms(pause_ms)
    return made


def is_read(submission: Submission, nodes: Sequence[SimNode]) -> bool:
    stored = submission.stored
    return stored is not None and all(stored in node.shadow.read for node in nodes)


def all_read(submissions: Sequence[Submission], nodes: Sequence[SimNode]) -> bool:
    return all(is_read(submission, nodes) for submission in submissions)


def all_held(submissions: Sequence[Submission], nodes: Sequence[SimNode]) -> bool:
    ids: list[EventId | None] = [submission.stored for submission in submissions]
    return all(i is not None and i in node.shadow.held for i in ids for node in nodes)


def isolate(world: World, node: SimNode) -> None:
    for other in world.nodes:
        if other is not node:
            world.network.cut(node.index, other.index)
            world.network.cut(other.index, node.index)


def heal(world: World) -> None:
    world.network.heal()
