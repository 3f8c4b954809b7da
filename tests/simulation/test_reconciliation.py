"""What naive exchange of leaves cannot repair, in counted round trips; and what idling costs."""

import pytest

from quipu.ledger.messages import GetData
from tests.simulation.calm import all_held, all_read, calm_world, heal, isolate, until, write
from tests.simulation.convergence import quiet
from tests.simulation.cost import measure
from tests.simulation.node import SimNode
from tests.simulation.workload import Submission
from tests.simulation.world import World

SYNC_MS = 2_000
HEAL_MS = 6_000


def round_trips(world: World, node: SimNode, wanted: list[Submission]) -> int:
    """Requests for events that a node makes until it holds what it lacked."""
    asked = 0
    transmit = node._transmit

    def counting(peer: bytes, data: bytes, early: bool) -> None:
        nonlocal asked
        message = world.judge.speech.decoded(data)
        if isinstance(message, GetData) and (message.ranges or message.ids):
            asked += 1
        transmit(peer, data, early)  # type: ignore[arg-type]

    node._transmit = counting  # type: ignore[method-assign]
    until(world, lambda: all_held(wanted, [node]), HEAL_MS)
    return asked


def test_a_side_branch_is_repaired() -> None:
    """n1 holds X and its child Y; the others hold X -> Y and X -> Z: Y has no children there."""
    world = calm_world(3)
    n1, n2, n3 = world.nodes
    root = write(world, n2)
    until(world, lambda: all_read(root, world.nodes), 1_000)
    child = write(world, n2)
    until(world, lambda: all_read(child, world.nodes), 1_000)
    isolate(world, n1)
    side = write(world, n3)
    until(world, lambda: all_read(side, [n2, n3]), 1_000)
    heal(world)
    assert round_trips(world, n1, side) <= 2


def test_the_side_that_is_behind_asks() -> None:
    world = calm_world(3)
    n1, n2, n3 = world.nodes
    isolate(world, n1)
    made = write(world, n2, 5) + write(world, n3, 5)
    until(world, lambda: all_read(made, [n2, n3]), 1_000)
    heal(world)
    assert round_trips(world, n1, made) <= 2


def test_a_chain_a_thousand_deep() -> None:
    world = calm_world(3)
    n1, n2, n3 = world.nodes
    isolate(world, n1)
    world.run_ms(6_000)  # n1 is out of the live view: nothing is sent to it
    made = write(world, n2, 1_000, pause_ms=10)
    until(world, lambda: all_read(made, [n2, n3]), 2_000)
    heal(world)
    assert round_trips(world, n1, made) <= 2
    until(world, lambda: all_read(made, world.nodes), HEAL_MS)


def test_both_sides_are_behind() -> None:
    world = calm_world(4)
    left, right = world.nodes[:2], world.nodes[2:]
    world.faults.active = True
    for one in left:
        for other in right:
            world.network.cut(one.index, other.index)
            world.network.cut(other.index, one.index)
    made = write(world, left[0], 50) + write(world, right[1], 50)
    assert not any(submission.stored in world.history.read_us for submission in made)
    heal(world)
    until(world, lambda: all_read(made, world.nodes), HEAL_MS)


@pytest.mark.parametrize("n", [2, 3, 7])
def test_nothing_to_do_costs_little(n: int) -> None:
    world = calm_world(n)
    made = [s for node in world.nodes for s in write(world, node, 3)]
    until(world, lambda: all_read(made, world.nodes), 2_000)
    quiet(world)  # at most 512 bytes a peer and period, else a violation


@pytest.mark.parametrize("members", [3, 5, 10])
def test_the_cost_of_agreement(members: int) -> None:
    cost = measure(members)
    assert cost.event_ratio <= 1.3
    assert cost.invs_a_turn <= cost.invs_bound
    assert cost.idle_bytes <= 512


def test_observers_pay_for_themselves() -> None:
    cost = measure(4, observers=6, bursts=8)
    assert cost.idle_bytes <= 512
