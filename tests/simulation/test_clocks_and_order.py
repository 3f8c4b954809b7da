"""Wrong clocks, refused events, receipts that come before their events: no cord is ever stuck."""

import pytest

from tests.simulation.calm import all_read, calm_world, heal, isolate, until, write
from tests.simulation.scenario import HOUR_MS, YEAR_2099_MS

SOON_MS = 4_000


@pytest.mark.parametrize("offset_ms", [YEAR_2099_MS, HOUR_MS, -HOUR_MS, 60_000, -60_000])
@pytest.mark.parametrize("n", [2, 3, 5])
def test_one_wrong_clock_holds_up_nobody(n: int, offset_ms: int) -> None:
    world = calm_world(n)
    wrong = world.nodes[-1]
    world.set_clock(wrong, offset_ms, 0)
    world.run_ms(6_000)  # everybody has heard of it
    made = [s for node in world.nodes for s in write(world, node, 3)]
    until(world, lambda: all_read(made, world.nodes), SOON_MS)


@pytest.mark.parametrize("offset_ms", [YEAR_2099_MS, HOUR_MS])
def test_a_clock_that_ran_ahead_alone(offset_ms: int) -> None:
    """What was stamped meanwhile waits for its time; the cords of all go on."""
    world = calm_world(3)
    _n1, _n2, n3 = world.nodes
    isolate(world, n3)
    world.set_clock(n3, offset_ms, 0)
    world.run_ms(6_000)
    early = write(world, n3, 3)
    heal(world)
    world.run_ms(4_000)
    made = [s for node in world.nodes for s in write(world, node, 3)]
    until(world, lambda: all_read(made, world.nodes), SOON_MS)
    assert not any(s.stored in world.history.read_us for s in early)
    world.set_clock(n3, 0, 0)
    more = write(world, n3, 3)
    until(world, lambda: all_read(more, world.nodes), SOON_MS)


def test_all_clocks_jump_while_one_is_away() -> None:
    """History may be as old as it likes: the window is for what nobody asked for."""
    world = calm_world(3)
    n1, n2, n3 = world.nodes
    isolate(world, n3)
    world.run_ms(6_000)
    made = write(world, n1, 5) + write(world, n2, 5)
    for node in world.nodes:
        world.set_clock(node, 20 * 60_000, 0)
    heal(world)
    until(world, lambda: all_read(made, world.nodes), SOON_MS)


def test_a_receipt_that_comes_before_its_event_counts() -> None:
    world = calm_world(3)
    n1, n2, n3 = world.nodes
    world.network.cut(n1.index, n3.index)  # n3 hears of it from n2's receipt alone
    made = write(world, n1)
    until(world, lambda: all_read(made, [n1, n2]), 500)
    until(world, lambda: all_read(made, [n3]), SOON_MS)


def test_a_one_way_link_is_worked_around() -> None:
    world = calm_world(3)
    n1, n2, n3 = world.nodes
    for receiver in (n2, n3):
        world.network.cut(n1.index, receiver.index)
    made = write(world, n2, 3)
    until(world, lambda: all_read(made, [n1, n2, n3]), SOON_MS)
    world.network.mend(n1.index, n2.index)
    made = write(world, n1, 3)
    until(world, lambda: all_read(made, [n1, n2, n3]), SOON_MS)
