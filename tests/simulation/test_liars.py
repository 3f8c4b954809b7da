"""Each liar by itself, among three honest members of four, under `two-thirds`."""

import pytest

from tests.simulation.calm import all_read, calm_world, until, write
from tests.simulation.convergence import Convergence, quiet
from tests.simulation.liars import LIARS, Liar

WITHIN_MS = 8_000


@pytest.mark.parametrize("liar", LIARS)
def test_honest_events_become_read_and_no_branch_wins(liar: type[Liar]) -> None:
    world = calm_world(4, "two-thirds", [liar])
    world.one_branch_judged = True
    honest = [node for node in world.nodes if node.honest]
    made = []
    for _ in range(10):
        for node in honest:
            made += write(world, node)
        world.run_ms(150)
    until(world, lambda: all_read(made, honest), WITHIN_MS)  # while it is still lying
    world.faults.active = False
    judge = Convergence(world)
    until(world, lambda: not judge.differences(), WITHIN_MS)
    judge.final()
    quiet(world)


def test_there_are_enough_of_them() -> None:
    assert len(LIARS) >= 10
