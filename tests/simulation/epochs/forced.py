"""Members that are lost for ever, beyond the quorum: one that is left goes on by force."""

from __future__ import annotations

from quipu.ledger.order.safeguards import ALL
from tests.simulation.calm import START_MS, all_held, all_read, until, write
from tests.simulation.epochs.handmade import ELECTION_MS, OPEN_MS, started
from tests.simulation.epochs.node import EpochNode
from tests.simulation.epochs.world import EpochWorld
from tests.simulation.node import SimNode

FORCE_MS = 12_000
APART_MS = 20_000  # in which a majority of the old epoch would have elected a master
GROW_MS = 60_000


def two_of_three_are_lost(seed: str = "forced", amid_change: bool = False) -> EpochWorld:
    """n1 is left with what all had Read, and with what it alone holds; it restarts midway."""
    world = started(ALL, [EpochNode] * 3, seed)
    n1, n2, n3 = world.members()
    made = [*write(world, n1, 2), *write(world, n2, 2), *write(world, n3, 2)]
    until(world, lambda: all_read(made, world.nodes), OPEN_MS)
    n3.crash()
    if amid_change:
        world.operator.change([n1, n2])
        until(world, lambda: n1.book.state.pending is not None, OPEN_MS)
    n2.crash()
    world.run_ms(3_000)
    alone = write(world, n1, 2)
    world.run_ms(500)
    assert not any(one.stored in n1.shadow.read for one in alone)
    until(world, lambda: world.master() is None, ELECTION_MS)
    n1.force()
    until(world, lambda: n1.is_master, ELECTION_MS)
    n1.crash()
    n1.start()
    until(world, lambda: n1_opened(world, 2), FORCE_MS)
    until(world, lambda: all_read(alone, [n1]), OPEN_MS)
    more = write(world, n1, 2)
    until(world, lambda: all_read(more, [n1]), OPEN_MS)
    return world


def n1_opened(world: EpochWorld, number: int) -> bool:
    core = world.nodes[0].core
    return core is not None and core.epochs.newest.number == number


def the_lost_come_back(world: EpochWorld) -> None:
    """Both, and before they hear of the force they are a majority of the epoch that there was."""
    _, n2, n3 = world.members()
    n2.start()
    n3.start()
    until(world, lambda: is_overruled(n2) and is_overruled(n3), START_MS + OPEN_MS)


def is_overruled(node: SimNode) -> bool:
    return node.core is not None and node.core.is_overruled


def they_follow_and_are_members_again(world: EpochWorld) -> None:
    n1, n2, n3 = world.members()
    for node in (n2, n3):
        node.follow()
        until(world, lambda node=node: not is_overruled(node), ELECTION_MS)  # type: ignore[misc]
    world.operator.change([n1, n2, n3])
    until(world, lambda: not world.operator.busy, GROW_MS)
    made = [*write(world, n2, 2), *write(world, n3, 2)]
    until(world, lambda: all_read(made, world.nodes), OPEN_MS)
    voters = [1, 2, 3]
    until(world, lambda: [*_voters(n1)] == voters, GROW_MS)
    n1.crash()
    until(world, lambda: world.master() is not None, ELECTION_MS)
    late = write(world, n2, 2)
    until(world, lambda: all_held(late, [n2, n3]), OPEN_MS)
    until(world, lambda: all_read(late, [n2, n3]), OPEN_MS)


def _voters(node: EpochNode) -> tuple[int, ...]:
    machine = node.machine
    return () if machine is None else machine.state.log.voters.old
