"""Starts, restarts, lost disks and set-back ones; and every corner where a policy is dead."""

import pytest

from tests.simulation.calm import all_read, calm_world, is_read, until, write
from tests.simulation.convergence import Convergence
from tests.simulation.node import CrashPoint

BACK_MS = 10_000


def test_all_restarted_at_once() -> None:
    world = calm_world(3)
    made = [s for node in world.nodes for s in write(world, node, 5)]
    for node in world.nodes:
        node.crash()
    world.run_ms(500)
    for node in world.nodes:
        node.start()
    more = write(world, world.nodes[0])
    until(world, lambda: all_read(made + more, world.nodes), BACK_MS)


def test_two_of_three_restarted_and_the_third_is_dead() -> None:
    world = calm_world(3)
    n1, n2, n3 = world.nodes
    made = write(world, n1, 5)
    until(world, lambda: all_read(made, world.nodes), 1_000)
    for node in world.nodes:
        node.crash()
    n1.start()
    n2.start()
    made += write(world, n1, 3) + write(world, n2, 3)
    until(world, lambda: all_read(made, [n1, n2]), BACK_MS)
    assert not n3.up


def test_what_was_in_flight_at_a_crash_becomes_read() -> None:
    """A past journal is a cord like any other: its author signs what peers hold of it."""
    world = calm_world(3)
    n1, n2, n3 = world.nodes
    n1.arm(CrashPoint.BEFORE_SYNC, down_us=700_000, loss="")
    world.workload.submit(n1, 3)
    until(world, lambda: not n1.up, 100)
    until(world, lambda: n1.up, 2_000)
    judge = Convergence(world)
    until(world, lambda: not judge.differences(), BACK_MS)
    assert all(len(node.shadow.held) == len(node.shadow.read) for node in (n1, n2, n3))


def test_a_lost_disk_comes_back() -> None:
    world = calm_world(3)
    n1, _n2, n3 = world.nodes
    made = [s for node in world.nodes for s in write(world, node, 10)]
    until(world, lambda: all_read(made, world.nodes), 1_000)
    n3.crash()
    n3.wipe()
    n3.start()
    assert n3.core is not None
    more = write(world, n1, 3)
    until(world, lambda: all_read(made + more, world.nodes), BACK_MS)
    later = write(world, n3)
    until(world, lambda: all_read(later, world.nodes), 2_000)
    assert not n3.disk.is_recovering


def test_a_lost_disk_waits_for_its_witnesses() -> None:
    """Alone it must not sign: nobody has told it what it signed before."""
    world = calm_world(3)
    n1, n2, n3 = world.nodes
    made = write(world, n3, 3)
    until(world, lambda: all_read(made, world.nodes), 1_000)
    n3.crash()
    n3.wipe()
    n1.crash()  # one of two witnesses is missing, and both are needed
    n3.start()
    later = write(world, n2)
    world.run_ms(8_000)
    assert not is_read(later[0], [n2])
    n1.start()
    until(world, lambda: all_read(made + later, world.nodes), BACK_MS)


def test_a_roll_back_is_noticed() -> None:
    world = calm_world(3)
    n1, n2, n3 = world.nodes
    first = write(world, n3, 3)
    until(world, lambda: all_read(first, world.nodes), 1_000)
    image = n3.image()
    later = write(world, n3, 5) + write(world, n1, 5)
    until(world, lambda: all_read(later, world.nodes), 1_000)
    n3.crash()
    n3.roll_back(image)
    n3.start()
    until(world, lambda: world.judge.signers.by_key[n3.key.node_id].contradicted, 4_000)
    more = write(world, n3)
    until(world, lambda: all_read(first + later + more, world.nodes), BACK_MS)
    assert n2.disk.proofs == []


@pytest.mark.parametrize(
    ("n", "policy", "down", "goes_on"),
    [
        (1, "majority", 0, True),
        (2, "majority", 1, False),
        (3, "majority", 1, True),
        (3, "majority", 2, False),
        (3, "two-thirds", 1, False),
        (3, "all", 1, False),
        (4, "two-thirds", 1, True),
        (4, "1", 2, True),
        (5, "all", 1, False),
        (5, "majority", 2, True),
        (7, "two-thirds", 2, True),
        (7, "two-thirds", 3, False),
    ],
)
def test_policy_corners(n: int, policy: str, down: int, goes_on: bool) -> None:
    """Too few members: nothing becomes Read, nothing is lost, and it goes on when they are back."""
    world = calm_world(n, policy)
    lost, left = world.nodes[:down], world.nodes[down:]
    for node in lost:
        node.crash()
    made = write(world, left[0], 3)
    world.run_ms(8_000)
    assert all_read(made, left) is goes_on
    for node in lost:
        node.start()
    until(world, lambda: all_read(made, world.nodes), BACK_MS)
