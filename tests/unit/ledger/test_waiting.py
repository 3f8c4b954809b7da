from dataclasses import replace

import pytest

from quipu.ledger import limits
from quipu.ledger.event import SignedEvent
from quipu.ledger.safeguards import ALL
from quipu.ledger.waiting import Waiting, WaitingRoom
from quipu.ledger.words import Cord, EventId, Journal, NodeNo
from tests.small_ledger import SmallLedger, node_id

CORD, OTHER = Cord(NodeNo(1), Journal(7)), Cord(NodeNo(2), Journal(7))


def chain(count: int, author: int = 1) -> list[SignedEvent]:
    ledger = SmallLedger()
    return [ledger.write(author, journal=7) for _ in range(count)]


def parked(event: SignedEvent, *missing: EventId, cord: Cord = CORD) -> Waiting:
    wanted = missing or (EventId(event.header.prev),)
    return Waiting(event, cord, node_id(1), False, dict.fromkeys(wanted))


def test_an_event_waits_for_its_ancestor_and_is_freed_by_it() -> None:
    below, event = chain(2)
    room = WaitingRoom(ALL)
    assert room.park(parked(event))
    assert event.id in room
    assert below.id not in room
    assert room.wanted() == [below.id]
    assert room.size_bytes == event.size
    assert [waiting.event for waiting in room.release(below.id)] == [event]
    assert (len(room), room.size_bytes, room.wanted()) == (0, 0, [])
    assert room.release(below.id) == []


def test_an_event_is_freed_by_the_last_ancestor_it_misses() -> None:
    one, two, event = chain(3)
    room = WaitingRoom(ALL)
    room.park(parked(event, one.id, two.id))
    assert room.release(one.id) == []
    assert event.id in room
    assert [waiting.event for waiting in room.release(two.id)] == [event]


def test_every_child_is_freed() -> None:
    parent, *children = chain(5)
    room = WaitingRoom(ALL)
    for child in children:
        room.park(parked(child, parent.id))
    assert [waiting.event for waiting in room.release(parent.id)] == children


def test_without_the_safeguard_one_child_alone_is_freed() -> None:
    parent, *children = chain(5)
    room = WaitingRoom(replace(ALL, release_all_waiting=False))
    for child in children:
        room.park(parked(child, parent.id))
    assert [waiting.event for waiting in room.release(parent.id)] == children[:1]


def test_what_waits_itself_is_not_wanted() -> None:
    root, low, high = chain(3)
    room = WaitingRoom(ALL)
    room.park(parked(high))
    room.park(parked(low))
    assert room.wanted() == [root.id]


def test_of_a_cord_the_highest_seq_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WAITING_PER_CORD_MAX", 3)
    events = chain(6)
    room = WaitingRoom(ALL)
    for event in (events[5], events[2], events[4]):
        assert room.park(parked(event))
    assert room.park(parked(events[3]))  # in place of the highest
    assert events[5].id not in room
    assert not room.park(parked(events[5]))  # it would be the highest again
    assert room.park(parked(chain(1, author=2)[0], EventId(b"x" * 32), cord=OTHER))
    assert len(room) == 4


def test_without_the_safeguard_there_is_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WAITING_PER_CORD_MAX", 3)
    room = WaitingRoom(replace(ALL, waiting_room_bounded=False))
    assert all(room.park(parked(event)) for event in chain(6)[1:])


def test_the_room_is_bounded_in_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WAITING_EVENTS_MAX", 4)
    room = WaitingRoom(ALL)
    first, second = chain(4), chain(4, author=2)
    for event in first[1:]:
        assert room.park(parked(event))
    assert room.park(parked(second[1], cord=OTHER))
    assert room.park(parked(second[2], cord=OTHER))
    assert first[3].id not in room  # who takes the most room pays, and first with the highest
    assert all(event.id in room for event in (*first[1:3], *second[1:3]))


def test_the_room_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    events = chain(4)
    monkeypatch.setattr(limits, "WAITING_BYTES_MAX", events[1].size + events[2].size)
    room = WaitingRoom(ALL)
    assert room.park(parked(events[1]))
    assert room.park(parked(events[2]))
    assert not room.park(parked(events[3]))
    assert room.size_bytes == events[1].size + events[2].size


def test_the_bounds_are_those_of_the_design() -> None:
    assert limits.WAITING_EVENTS_MAX == 10_000
    assert limits.WAITING_BYTES_MAX == 64 * 1024 * 1024
    assert limits.WAITING_PER_CORD_MAX == 1_000


def test_a_dropped_event_is_no_longer_listed_under_its_ancestors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "WAITING_PER_CORD_MAX", 1)
    root, low, high = chain(3)
    room = WaitingRoom(ALL)
    room.park(parked(high, root.id, low.id))
    room.park(parked(low, root.id))
    assert room.wanted() == [root.id]  # and not what the dropped one missed
    assert [waiting.event for waiting in room.release(root.id)] == [low]


def test_with_an_ancestor_refused_for_good_its_descendants_go_at_any_distance() -> None:
    refused, *descendants = chain(6)
    stranger = chain(2, author=2)[1]
    room = WaitingRoom(ALL)
    for event in descendants:
        room.park(parked(event))
    both = SmallLedger().write(3)
    room.park(parked(both, descendants[0].id, descendants[1].id, cord=OTHER))
    room.park(parked(stranger, cord=OTHER))
    assert room.drop_below(refused.id) == 6
    assert len(room) == 1
    assert stranger.id in room
    assert room.drop_below(refused.id) == 0


def test_a_child_of_two_that_were_refused_goes_once() -> None:
    one, two, child = chain(3)
    room = WaitingRoom(ALL)
    room.park(parked(two))
    room.park(parked(child, one.id, two.id))
    assert room.drop_below(one.id) == 2
    assert (len(room), room.size_bytes, room.wanted()) == (0, 0, [])
