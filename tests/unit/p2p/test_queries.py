"""Queries under way, and questions that wait for this node's answer."""

from quipu.ledger.words import NodeId
from quipu.p2p import limits
from quipu.p2p.queries import Asked, Queries, Questions, Tally, Verdict, Vote
from quipu.p2p.words import GossipId

MEMBERS = [NodeId(bytes([n]) * 32) for n in range(1, 5)]


def identity(number: int) -> GossipId:
    return GossipId(number.to_bytes(16, "big"))


def vote(answer: bytes, number: int = 1) -> Vote:
    return Vote(identity(number), answer, b"signed " + answer)


def opened(now_ms: int = 0) -> tuple[Queries, Asked]:
    queries = Queries()
    asked = Asked(7, "what", b"", Tally(MEMBERS), now_ms + 5_000, now_ms + 1_000)
    queries.open(asked, identity(100))
    return queries, asked


def test_two_of_four_are_not_enough_while_two_are_silent() -> None:
    tally = Tally(MEMBERS)
    tally.count(MEMBERS[0], vote(b"a"))
    tally.count(MEMBERS[1], vote(b"a"))
    assert tally.outcome() is None
    assert tally.final() == (Verdict.AGREED, b"a")
    tally.count(MEMBERS[2], vote(b"b"))
    assert tally.outcome() is None  # the last one could make it two to two
    tally.count(MEMBERS[3], vote(b"c"))
    assert tally.outcome() == (Verdict.AGREED, b"a")


def test_votes_are_those_of_the_members_of_that_moment() -> None:
    """A node of the cluster that is no member could make a half of it."""
    tally, stranger = Tally(MEMBERS), NodeId(bytes([9]) * 32)
    assert not tally.count(stranger, vote(b"a"))
    assert tally.count(MEMBERS[0], vote(b"a"))
    assert tally.final() == (Verdict.TIMEOUT, None)


def test_of_the_answers_of_a_member_the_newest_counts() -> None:
    """They may come in another order than they were said in."""
    tally = Tally(MEMBERS)
    assert tally.count(MEMBERS[0], vote(b"new", 5))
    assert not tally.count(MEMBERS[0], vote(b"old", 3))
    assert not tally.count(MEMBERS[0], vote(b"again", 5))
    assert tally.votes[MEMBERS[0]].answer == b"new"


def test_two_halves_are_contested_at_once() -> None:
    tally = Tally(MEMBERS)
    for member, answer in zip(MEMBERS, (b"a", b"b", b"a", b"b"), strict=True):
        tally.count(member, vote(answer))
    assert tally.outcome() == (Verdict.CONTESTED, None)
    assert tally.final() == (Verdict.CONTESTED, None)


def test_a_query_ends_once_and_is_forgotten() -> None:
    queries, _ = opened()
    for member in MEMBERS[:3]:
        assert queries.answered(identity(100), member, vote(b"a"))
    (ended,) = queries.ended(10)
    assert (ended.asked.ticket, ended.outcome) == (7, (Verdict.AGREED, b"a"))
    assert queries.ended(10) == []
    assert not queries.answered(identity(100), MEMBERS[3], vote(b"a"))
    assert queries.next_deadline() is None


def test_the_silent_are_asked_again_under_another_id() -> None:
    queries, asked = opened()
    assert queries.due_again(999) == []
    assert queries.due_again(1_000) == [asked]
    assert queries.due_again(1_001) == []
    queries.name(asked, identity(101))
    assert queries.answered(identity(101), MEMBERS[0], vote(b"a"))
    assert asked.tally.silent() == MEMBERS[1:]


def test_it_ends_at_its_timeout() -> None:
    queries, _ = opened()
    queries.answered(identity(100), MEMBERS[0], vote(b"a"))
    assert queries.ended(4_999) == []
    (ended,) = queries.ended(5_000)
    assert ended.outcome == (Verdict.TIMEOUT, None)


def test_questions_are_bounded_and_the_oldest_goes_first() -> None:
    questions = Questions()
    first = questions.ask(MEMBERS[0], identity(1), 0)
    rest = [questions.ask(MEMBERS[0], identity(n), 1) for n in range(limits.QUESTIONS_OPEN_MAX)]
    assert questions.answer(first) is None
    assert all(questions.answer(ticket) is not None for ticket in rest)
    assert questions.answer(rest[0]) is None  # once


def test_old_questions_are_given_up() -> None:
    questions = Questions()
    old = questions.ask(MEMBERS[0], identity(1), 0)
    questions.ask(MEMBERS[0], identity(2), limits.QUESTION_AGE_MS)
    assert questions.answer(old) is None
