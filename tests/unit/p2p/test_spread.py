"""To whom a message goes, and the window of what was seen."""

from hashlib import sha256

import pytest

from quipu.ledger.words import NodeId
from quipu.p2p import limits
from quipu.p2p.spread import Floor, SeenSet, receivers
from quipu.p2p.words import GossipId, Start

ME = NodeId(bytes(32))
SENDER = NodeId(bytes([9]) * 32)
NOBODY: tuple[NodeId, ...] = ()


def node(number: int) -> NodeId:
    return NodeId(sha256(b"%d" % number).digest())


def reached(members: int, dead: frozenset[int], message: int) -> tuple[int, int]:
    """How many of the living have it in the end, and after how many hops."""
    ids = [node(n) for n in range(members)]
    living = [ids[n] for n in range(members) if n not in dead]
    identity = GossipId(message.to_bytes(16, "big"))
    have = {living[0]: 0}
    hop = 0
    front = [living[0]]
    while front and hop < limits.HOPS_MAX:
        hop += 1
        new = []
        for one in front:
            usable = [m for m in living if m != one]
            for other in receivers(identity, one, ids, usable):
                if other not in have:
                    have[other] = hop
                    new.append(other)
        front = new
    return len(have), max(have.values())


@pytest.mark.parametrize("members", [9, 10, 16, 27, 28, 32])
def test_above_eight_three_neighbours_reach_all(members: int) -> None:
    for message in range(20):
        count, hops = reached(members, frozenset(), message)
        assert count == members
        assert hops <= 8


@pytest.mark.parametrize("members", [10, 32])
def test_the_dead_are_stepped_over(members: int) -> None:
    for message in range(20):
        dead = frozenset((message * 7 + k * 3) % members for k in range(members // 3))
        count, hops = reached(members, dead, message)
        assert count == members - len(dead)
        assert hops <= 10


@pytest.mark.parametrize("members", range(2, 9))
def test_up_to_eight_it_goes_to_all(members: int) -> None:
    ids = [node(n) for n in range(members)]
    assert receivers(GossipId(bytes(16)), ids[0], ids, ids[1:]) == ids[1:]


def test_above_eight_it_goes_to_three_that_differ_by_message() -> None:
    ids = [node(n) for n in range(20)]
    chosen = [receivers(GossipId(bytes([n]) * 16), ids[0], ids, ids[1:]) for n in range(10)]
    assert {len(each) for each in chosen} == {3}
    assert len({tuple(each) for each in chosen}) > 5


def test_an_observer_tells_all_that_it_is_attached_to() -> None:
    ids = [node(n) for n in range(20)]
    assert receivers(GossipId(bytes(16)), ME, ids, ids[3:6]) == ids[3:6]


def test_new_once() -> None:
    seen = SeenSet(ME)
    assert seen.is_new(SENDER, Start(5), 7)
    seen.mark(SENDER, Start(5), 7, NOBODY)
    assert not seen.is_new(SENDER, Start(5), 7)
    assert seen.is_new(SENDER, Start(5), 6)  # overtaken
    assert seen.is_new(SENDER, Start(5), 8)


def test_ones_own_are_never_new() -> None:
    assert not SeenSet(ME).is_new(ME, Start(5), 7)


def test_an_older_start_is_a_duplicate_for_ever() -> None:
    seen = SeenSet(ME)
    seen.mark(SENDER, Start(5), 1, NOBODY)
    seen.mark(SENDER, Start(6), 1, NOBODY)
    assert not seen.is_new(SENDER, Start(5), 100)
    assert seen.is_new(SENDER, Start(6), 2)


def test_below_the_window_everything_was_seen() -> None:
    seen = SeenSet(ME)
    seen.mark(SENDER, Start(5), 10_000, NOBODY)
    assert seen.is_new(SENDER, Start(5), 10_000 - limits.SEEN_WINDOW + 1)
    assert not seen.is_new(SENDER, Start(5), 10_000 - limits.SEEN_WINDOW)


def test_floors_outlive_a_restart() -> None:
    seen = SeenSet(ME)
    seen.mark(SENDER, Start(5), 10, NOBODY)
    again = SeenSet(ME, seen.floors().items())
    assert not any(again.is_new(SENDER, Start(5), number) for number in range(11))
    assert again.is_new(SENDER, Start(5), 11)
    assert seen.floors() == {SENDER: Floor(Start(5), 10)}


def test_members_are_never_forgotten() -> None:
    seen = SeenSet(ME)
    seen.mark(SENDER, Start(5), 1, [SENDER])
    for number in range(limits.SEEN_SENDERS_MAX + 10):
        seen.mark(node(number), Start(1), 1, [SENDER])
    assert len(seen.floors()) == limits.SEEN_SENDERS_MAX
    assert not seen.is_new(SENDER, Start(5), 1)
