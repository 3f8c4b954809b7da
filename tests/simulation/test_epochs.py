"""Epochs: 1 -> 3 -> 5 members, and one in the place of a dead one. Read stays Read."""

from tests.simulation.calm import START_MS, all_read, calm_world, until, write
from tests.simulation.convergence import Convergence
from tests.simulation.keys import key_pair
from tests.simulation.node import SimNode
from tests.simulation.workload import Submission
from tests.simulation.world import World

OPEN_MS = 12_000


def join(world: World, count: int) -> list[SimNode]:
    fresh = []
    for _ in range(count):
        name = f"n{len(world.nodes) + 1}"
        fresh.append(world.add_node(key_pair(name), name))
        fresh[-1].start()
    world.run_ms(START_MS)
    return fresh


def open_epoch(world: World, members: list[SimNode]) -> None:
    number = world.record.newest.number + 1
    world.registrar.change(members)
    until(world, lambda: all(node.shadow.epoch == number for node in members), OPEN_MS)


def check_all(world: World, made: list[Submission]) -> None:
    until(world, lambda: all_read(made, world.honest()), 6_000)
    judge = Convergence(world)
    until(world, lambda: not judge.differences(), 6_000)
    judge.final()


def test_one_three_five() -> None:
    world = calm_world(1)
    made = write(world, world.nodes[0], 5)
    assert all_read(made, world.nodes)
    for count in (2, 2):
        join(world, count)
        read_before = list(world.nodes[0].shadow.read)
        open_epoch(world, world.nodes)
        assert all(identity in world.nodes[0].shadow.read for identity in read_before)
        made += [s for node in world.nodes for s in write(world, node, 2)]
        check_all(world, made)
    roster = world.record.newest
    assert (roster.number, len(roster.members), roster.confirms) == (3, 5, 2)


def test_writes_go_on_while_an_epoch_changes() -> None:
    world = calm_world(3)
    made = write(world, world.nodes[0], 5)
    join(world, 2)
    world.registrar.change(world.nodes)
    while world.registrar.busy:
        made += [s for node in world.nodes[:3] for s in write(world, node)]
    made += write(world, world.nodes[0], 5)
    check_all(world, made)


def test_a_dead_member_is_replaced() -> None:
    world = calm_world(3)
    n1, n2, n3 = world.nodes
    made = [s for node in world.nodes for s in write(world, node, 3)]
    until(world, lambda: all_read(made, world.nodes), 1_000)
    n3.crash()
    world.dead[n3.index] = None
    made += write(world, n1, 3)
    (n4,) = join(world, 1)
    open_epoch(world, [n1, n2, n4])
    made += write(world, n4, 3)
    check_all(world, made)


def test_the_unread_of_one_who_does_not_come_back_is_decided_by_the_cut() -> None:
    """n3's last event lacks its own receipt for ever; both others hold it, so it may have been
    certified, and the cut makes it Read."""
    world = calm_world(3)
    n1, n2, n3 = world.nodes
    world.network.cut(n3.index, n2.index)  # n1 alone hears the event and no receipt comes back
    world.network.cut(n1.index, n3.index)
    world.network.cut(n2.index, n3.index)
    pushed = world.workload.submit(n3, 1)
    until(world, lambda: len(n1.shadow.held) == 1, 500)
    n3.crash()
    world.dead[n3.index] = None
    (n4,) = join(world, 1)
    open_epoch(world, [n1, n2, n4])
    check_all(world, [])
    held = [len(node.shadow.held) for node in (n1, n2, n4)]
    read = [len(node.shadow.read) for node in (n1, n2, n4)]
    assert held == read
    assert pushed.refused is None


def test_a_restart_in_the_middle_of_a_change() -> None:
    world = calm_world(3)
    n1 = world.nodes[0]
    made = [s for node in world.nodes for s in write(world, node, 3)]
    join(world, 2)
    world.registrar.change(world.nodes)
    world.run_ms(300)
    for node in world.nodes[:3]:
        node.crash()
        node.start()
    until(world, lambda: all(node.shadow.epoch == 2 for node in world.nodes), OPEN_MS)
    made += write(world, n1)
    check_all(world, made)
