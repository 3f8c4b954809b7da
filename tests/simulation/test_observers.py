"""Observers hear of events at once, each of one member; and by SyncEvent where that one fails."""

import pytest

from quipu.ledger.messages import EventMessage, InvMessage
from quipu.ledger.observers import ranking
from tests.simulation.calm import START_MS, all_read, until, write
from tests.simulation.keys import key_pair
from tests.simulation.node import SimNode
from tests.simulation.world import World

SOON_MS = 200  # a turn and an fsync at author, members and observer; SyncEvents are 2 s apart


def observed(members: int, observers: int) -> World:
    world = World(f"observed/{members}", members)
    world.add_founders([SimNode] * members)
    for number in range(1, observers + 1):
        node = world.add_node(key_pair(f"o{number}"), f"o{number}")
        world.observers[node.index] = None
    for node in world.nodes:
        node.start()
    world.run_ms(START_MS)
    return world


def sent_to(world: World, watched: SimNode, kind: type[EventMessage | InvMessage]) -> list[int]:
    """From now on, who has sent such a message to it."""
    found: list[int] = []
    carry = world.network.send

    def counting(sender: int, receiver: int, data: bytes) -> None:
        if receiver == watched.index and isinstance(world.judge.speech.decoded(data), kind):
            found.append(sender)
        carry(sender, receiver, data)

    world.network.send = counting  # type: ignore[method-assign]
    return found


@pytest.mark.parametrize("members", [1, 3, 7, 17])
def test_what_is_read_is_soon_read_at_observers_too(members: int) -> None:
    world = observed(members, 5)
    watching = [node for node in world.nodes if node.index in world.observers]
    for author in world.nodes[:3]:
        if author.index not in world.observers:
            made = write(world, author)
            until(world, lambda made=made: all_read(made, world.members_up()), 3_000)  # type: ignore[misc]
            assert until(world, lambda made=made: all_read(made, watching), SOON_MS) < SOON_MS  # type: ignore[misc]


def test_each_observer_gets_each_event_once() -> None:
    world = observed(7, 4)
    watched = world.nodes[-1]
    events = sent_to(world, watched, EventMessage)
    made = [s for author in world.nodes[:7] for s in write(world, author, 3, pause_ms=60)]
    until(world, lambda: all_read(made, world.nodes), SOON_MS)
    assert len(events) == len(made)
    assert len(set(events)) == 1
    first = ranking(watched.key.node_id, [key.node_id for key in world.founders])[0]
    assert world.nodes[events[0]].key.node_id == first


def test_each_observer_gets_each_receipt_once() -> None:
    world = observed(7, 4)
    receipts = sent_to(world, world.nodes[-1], InvMessage)
    made = write(world, world.nodes[0])
    until(world, lambda: all_read(made, world.nodes), SOON_MS)
    assert len(receipts) <= 7 + 2  # one of each member; some sign in two steps


def test_the_next_member_takes_the_place_of_one_that_is_down() -> None:
    world = observed(7, 2)
    watched = world.nodes[-1]
    order = ranking(watched.key.node_id, [key.node_id for key in world.founders])
    places = {node.key.node_id: node for node in world.nodes}
    places[order[0]].crash()
    world.run_ms(7_000)  # it is missed
    events = sent_to(world, watched, EventMessage)
    made = write(world, places[order[-1]])
    alive = [node for node in world.nodes if node.up]
    until(world, lambda: all_read(made, alive), SOON_MS)
    assert [world.nodes[sender].key.node_id for sender in events] == [order[1]]


def test_what_is_lost_on_the_way_comes_all_the_same() -> None:
    world = observed(5, 1)
    watched = world.nodes[-1]
    first = ranking(watched.key.node_id, [key.node_id for key in world.founders])[0]
    (node,) = (node for node in world.nodes if node.key.node_id == first)
    world.network.cut(node.index, watched.index)
    made = write(world, world.nodes[0 if node.index else 1])
    until(world, lambda: all_read(made, world.nodes), 4_500)
