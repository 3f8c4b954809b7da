"""Parts of the peer machine against slow, obvious twins."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quipu.ledger.words import NodeId
from quipu.p2p import limits
from quipu.p2p.links import Link
from quipu.p2p.pools import PoolList
from quipu.p2p.queries import Outcome, Tally, Verdict, Vote
from quipu.p2p.spread import SeenSet
from quipu.p2p.words import GossipId, PoolName, Start

ME = NodeId(bytes(32))
SENDERS = [NodeId(bytes([n]) * 32) for n in (1, 2, 3)]


class SeenTwin:
    """Keeps everything for ever."""

    def __init__(self) -> None:
        self.marked: list[tuple[NodeId, int, int]] = []

    def is_new(self, sender: NodeId, start: int, number: int) -> bool:
        of_sender = [(s, n) for who, s, n in self.marked if who == sender]
        newest = max((s for s, _ in of_sender), default=0)
        numbers = [n for s, n in of_sender if s == newest]
        if start != newest:
            return start > newest
        is_below = number <= max(numbers) - limits.SEEN_WINDOW
        return number not in numbers and not is_below

    def mark(self, sender: NodeId, start: int, number: int) -> None:
        self.marked.append((sender, start, number))


numbers = st.one_of(st.integers(0, 40), st.integers(1_000, 1_060), st.integers(2_000, 2**40))


@settings(max_examples=300)
@given(st.lists(st.tuples(st.sampled_from(SENDERS), st.integers(1, 3), numbers), max_size=60))
def test_the_seen_set_forgets_nothing(messages: list[tuple[NodeId, int, int]]) -> None:
    seen, twin = SeenSet(ME), SeenTwin()
    for sender, start, number in messages:
        is_new = seen.is_new(sender, Start(start), number)
        assert is_new == twin.is_new(sender, start, number)
        if is_new:
            seen.mark(sender, Start(start), number, ())
            twin.mark(sender, start, number)


ANSWERS = (b"a", b"b", b"c")
FRESH = (b"x", b"y", b"z", b"v", b"w")  # what nobody has said yet


def members_of(count: int) -> list[NodeId]:
    return [NodeId(bytes([n]) * 32) for n in range(count)]


def tally_of(answers: tuple[bytes | None, ...]) -> Tally:
    tally = Tally(members_of(len(answers)))
    for member, answer in zip(tally.members, answers, strict=True):
        if answer is not None:
            tally.count(member, Vote(GossipId(bytes(16)), answer, b""))
    return tally


def final_by_hand(answers: tuple[bytes | None, ...]) -> Outcome:
    given = [answer for answer in answers if answer is not None]
    at_half = sorted({a for a in given if given.count(a) * 2 >= len(answers)})
    if len(at_half) == 1:
        return Outcome(Verdict.AGREED, at_half[0])
    return Outcome(Verdict.CONTESTED if at_half else Verdict.TIMEOUT, None)


@pytest.mark.parametrize("count", range(1, 6))
def test_a_tally_ends_early_exactly_when_nothing_can_change_it(count: int) -> None:
    """All states of up to five members, and of each all continuations."""
    for answers in product((None, *ANSWERS), repeat=count):
        missing = [n for n, answer in enumerate(answers) if answer is None]
        ends = set()
        for said in product((None, *ANSWERS, *FRESH[:2]), repeat=len(missing)):
            filled = list(answers)
            for place, answer in zip(missing, said, strict=True):
                filled[place] = answer
            ends.add(final_by_hand(tuple(filled)))
        tally = tally_of(answers)
        assert tally.final() == final_by_hand(answers)
        is_decided = len(ends) == 1 and ends != {Outcome(Verdict.TIMEOUT, None)}
        assert tally.outcome() == (ends.pop() if is_decided else None)


votes = st.tuples(st.integers(0, 5), st.integers(0, 9), st.sampled_from(ANSWERS))


@given(st.lists(votes, max_size=30))
def test_of_each_member_the_newest_answer_counts(said: list[tuple[int, int, bytes]]) -> None:
    tally = Tally(members_of(4))
    newest: dict[int, tuple[int, bytes]] = {}
    for member, number, answer in said:
        vote = Vote(GossipId(number.to_bytes(16, "big")), answer, b"")
        tally.count(NodeId(bytes([member]) * 32), vote)
        if member < 4 and (member not in newest or number > newest[member][0]):
            newest[member] = (number, answer)
    counted = {bytes(member)[0]: vote.answer for member, vote in tally.votes.items()}
    assert counted == {member: answer for member, (_, answer) in newest.items()}


@given(st.integers(0, 2**16 - 1), st.lists(st.integers(0, 40), max_size=80))
def test_a_link_counts_what_it_misses(first: int, lost: list[int]) -> None:
    """A sender that numbers without end, and frames of it that get lost."""
    link = Link(SENDERS[0], expected=first)
    sent = first
    for gap in lost:
        sent += gap
        assert link.take(sent % 2**16) == gap
        assert link.take(sent % 2**16) is None
        sent += 1
    assert link.missed == sum(lost)


changes = st.lists(st.tuples(st.booleans(), st.sampled_from(["a", "A", "b"])), max_size=600)


@given(changes, st.sets(st.integers(0, 600)))
def test_a_missed_change_of_pools_is_noticed(said: list[tuple[bool, str]], lost: set[int]) -> None:
    own, known = PoolList(), PoolList()
    is_whole = True
    for number, (is_join, name) in enumerate(said):
        pool = PoolName(name)
        if not (own.join(pool) if is_join else own.leave(pool)):
            continue
        if number in lost:
            is_whole = False
            continue
        is_next = known.joined(pool, own.status) if is_join else known.left(pool, own.status)
        assert is_next == is_whole
        known.greeted(*own.pools)  # the HELLO that is asked for
        is_whole = True
        assert known.pools == own.pools
