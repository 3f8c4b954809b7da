"""Signatures that a range spares, and what becomes of them: one core n1, the others are hands."""

import pytest

from quipu.ledger import limits
from quipu.ledger.effects import AskEarly, StoreEvent
from quipu.ledger.event import SignedEvent, has_valid_signature
from quipu.ledger.messages import Answer, GetData, RangeWant, bytes_of, decode_message
from quipu.ledger.refusals import Reason
from quipu.ledger.signing import verify
from tests.conformance.hand import Hand, alone_with
from tests.conformance.table import Seat, Table

NOISE = bytes(64)


def junk(events: list[SignedEvent]) -> list[SignedEvent]:
    return [event._replace(signature=NOISE) for event in events]


def bring(hand: Hand, *events: SignedEvent) -> None:
    """As an answer: n1 is told of the last one, asks, and gets them all."""
    hand.sync("n1", events[-1])
    hand.table.run(limits.SYNC_DIFFERENCE_AGE_MS)
    hand.answer("n1", hand.requests()[-1], *events)
    hand.table.run(0)


def is_signed(seat: Seat, event: SignedEvent) -> bool:
    return has_valid_signature(seat.event(event.id), verify)


def spared(seat: Seat, event: SignedEvent) -> tuple[int, int]:
    branch = seat.branch(event.id)
    return branch.spared_from, branch.spared_upto


# --- what is spared ---------------------------------------------------------------------------
def test_the_newest_signature_of_a_cord_is_enough_to_hold_what_lies_below() -> None:
    _, n1, (n2, _) = alone_with(2)
    line = n2.chain(5)
    bring(n2, *junk(line[:-1]), line[-1])
    assert all(n1.holds(event.id) for event in line)
    assert spared(n1, line[0]) == (1, 4)


def test_good_signatures_are_found_good_later_and_nothing_is_left_to_do() -> None:
    table, n1, (n2, _) = alone_with(2)
    line = n2.chain(limits.PROVED_MAX + 5)
    bring(n2, *line)
    table.run(2 * limits.PROVE_PACE_MS)
    assert spared(n1, line[0]) == (0, 0)
    assert n1.store.saved().branches[0].spared_upto == 0


def test_they_give_way_to_entries_of_clients() -> None:
    table, n1, (n2, _) = alone_with(2)
    line = n2.chain(limits.PROVED_MAX + 10)
    bring(n2, *line)
    table.write("n1", "a client's")
    begun_ms, first = table.now_ms, spared(n1, line[0])[0]
    while table.now_ms < begun_ms + limits.PROVE_PACE_PRESSED_MS:
        table.run(1)
        table.write("n1", "another one")  # a turn each millisecond, and few of them prove
    assert spared(n1, line[0])[0] - first <= 2 * limits.PROVED_PRESSED_MAX
    table.run(limits.PRESSED_MS)
    assert spared(n1, line[0]) == (0, 0)


def test_far_behind_they_are_left_for_later() -> None:
    table, n1, (n2, _) = alone_with(2)
    line = n2.chain(8)
    n2.sync("n1", line[-1])
    table.run(limits.SYNC_DIFFERENCE_AGE_MS)
    part = [bytes_of(event) for event in line[:5]]
    n2.say("n1", Answer(n2.requests()[-1].request_id, [], part, [], True))
    table.run(limits.REQUEST_RETRY_MS - 1)
    assert spared(n1, line[0]) == (1, 4)
    n2.answer("n1", n2.requests()[-1], *line[5:])
    table.run(2 * limits.PROVE_PACE_MS)
    assert spared(n1, line[0]) == (0, 0)


def test_a_run_whose_newest_signature_is_wrong_is_judged_one_by_one() -> None:
    _, n1, (n2, _) = alone_with(2)
    line = n2.chain(3)
    bring(n2, line[0], *junk(line[1:]))
    assert [n1.holds(event.id) for event in line] == [True, False, False]
    assert Reason.BAD_SIGNATURE in n1.refusals()


def test_a_run_that_would_not_be_held_to_its_end_vouches_for_nothing() -> None:
    table, n1, (n2, _) = alone_with(2)
    first = n2.event("a")
    second = n2.event("b", prev=first)
    crooked = n2.event("c", prev=second, depth=9)
    bring(n2, *junk([first, second]), crooked)
    assert not n1.holds(first.id)
    ahead = n2.event("d", prev=first, hlc=table.hlc + (2 * limits.CLOCK_AHEAD_MS << 16))
    bring(n2, *junk([first]), ahead)
    assert not n1.holds(first.id)


def test_a_run_that_rests_on_a_failed_run_fails_with_it() -> None:
    _, n1, (n2, n3) = alone_with(2)
    forged = junk([n3.event("forged")])[0]
    low = n2.event("low")
    high = n2.event("high", prev=low, parents=[forged])
    bring(n2, forged, *junk([low]), high)
    assert not any(n1.holds(event.id) for event in (forged, low, high))


def test_runs_that_rest_on_each_other_are_spared_together() -> None:
    _, n1, (n2, n3) = alone_with(2)
    a1, b1 = n2.event("a1"), n3.event("b1")
    a2 = n2.event("a2", prev=a1, parents=[b1])
    b2 = n3.event("b2", prev=b1, parents=[a1])
    bring(n2, *junk([a1, b1]), a2, b2)
    assert all(n1.holds(event.id) for event in (a1, b1, a2, b2))


def test_another_authors_event_cannot_be_vouched_for() -> None:
    _, n1, (n2, n3) = alone_with(2)
    forged = junk([n3.event("forged")])[0]
    above = n2.signed_header(n2.event("x", prev=n2.event("y")), prev=forged.id, seq=2)
    bring(n2, forged, above)
    assert not n1.holds(forged.id)


def test_a_second_branch_is_spared_nothing() -> None:
    table, n1, (n2, n3) = alone_with(2)
    n2.push("n1", n2.event("first"))
    table.run(0)
    other = n2.event("other")
    tip = n2.event("tip", prev=other)
    n3.confirm("n1", other, tip)
    bring(n3, *junk([other]), tip)
    assert not n1.holds(other.id)


# --- what is held without being judged again --------------------------------------------------
def test_what_waited_for_a_range_is_held_once_and_in_its_place() -> None:
    table, n1, (n2, n3) = alone_with(2)
    line = n2.chain(6)
    side = n3.event("side", parents=[line[2]])
    n2.push("n1", line[4])
    n3.push("n1", side)
    table.run(0)
    turns = len(n1.turns)
    bring(n2, *junk(line[:5]), line[5])
    stored = [e.event.id for t in n1.turns[turns:] for e in t.durable if isinstance(e, StoreEvent)]
    assert sorted(stored) == sorted(event.id for event in (*line, side))
    assert [i for i in stored if i != side.id] == [event.id for event in line]
    assert stored.index(side.id) > stored.index(line[2].id)


def test_an_event_that_comes_twice_in_an_answer_is_held_once() -> None:
    _, n1, (n2, _) = alone_with(2)
    line = n2.chain(3)
    bring(n2, line[0], line[0], *line[1:], line[1], line[2])
    stored = [e.event.id for t in n1.turns for e in t.durable if isinstance(e, StoreEvent)]
    assert stored == [event.id for event in line]


def test_the_next_range_is_asked_for_before_this_one_is_durable() -> None:
    table, n1, (n2, _) = alone_with(2)
    line = n2.chain(6)
    n2.sync("n1", line[-1])
    table.run(limits.SYNC_DIFFERENCE_AGE_MS)
    request = n2.requests()[-1]
    held = [bytes_of(event) for event in line[:3]]
    n2.say("n1", Answer(request.request_id, [], held, [], True))
    turns = len(n1.turns)
    table.run(0)
    (turn,) = [t for t in n1.turns[turns:] if t.durable]
    (early,) = [e for e in turn.spoken if isinstance(e, AskEarly)]
    asked = decode_message(early.data)
    assert isinstance(asked, GetData)
    assert asked.ranges[0].anchors[0] == (3, line[2].id[:16])


# --- what was wrong ---------------------------------------------------------------------------
def junked(count: int = 5) -> tuple[Table, Seat, Hand, Hand, list[SignedEvent]]:
    table, n1, (n2, n3) = alone_with(2)
    line = n2.chain(count)
    bring(n2, *junk(line[:-1]), line[-1])
    table.run(limits.PROVE_PACE_MS)
    return table, n1, n2, n3, line


def test_a_good_signature_is_asked_for_and_takes_the_place_of_a_wrong_one() -> None:
    table, n1, n2, n3, line = junked()
    asked = [hand for hand in (n2, n3) if hand.requests() and hand.requests()[-1].ids]
    asked[0].answer("n1", asked[0].requests()[-1], *line[:3])
    table.run(0)
    assert [is_signed(n1, event) for event in line] == [True, True, True, False, True]
    assert spared(n1, line[0]) == (4, 4)
    table.run(limits.RESIGN_INTERVAL_MS)
    for hand in (n2, n3):
        for request in hand.requests():
            hand.answer("n1", request, line[3])
    table.run(0)
    assert spared(n1, line[0]) == (0, 0)
    assert all(is_signed(n1, event) for event in line)


def test_another_wrong_signature_changes_nothing() -> None:
    table, n1, n2, n3, line = junked()
    for hand in (n2, n3):
        for request in hand.requests():
            hand.answer("n1", request, *junk(line[:3]))
    table.run(0)
    assert not is_signed(n1, line[0])
    assert spared(n1, line[0]) == (1, 4)


def test_a_start_looks_at_them_again() -> None:
    table, n1, _, _, line = junked()
    table.kill("n1")
    table.start("n1")
    table.run(10)
    assert n1.core.next_deadline() is not None
    assert spared(n1, line[0])[1] == 4
    assert not is_signed(n1, line[0])


# --- what is served ---------------------------------------------------------------------------
def served(hand: Hand, want: GetData) -> Answer:
    hand.say("n1", want)
    hand.table.run(0)
    return hand.table.messages(Answer, "n1", hand.name)[-1]


def test_what_is_asked_for_alone_is_not_given_with_a_wrong_signature() -> None:
    _, _, _, n3, line = junked()
    answer = served(n3, GetData(7, [line[1].id, line[4].id], [], [], [], 1 << 20))
    assert [event.header for event in answer.events] == [line[4].header_bytes]
    assert answer.missing == [line[1].id]


@pytest.mark.parametrize("usual", [2, 3])
def test_a_range_goes_on_to_a_good_signature(monkeypatch: pytest.MonkeyPatch, usual: int) -> None:
    monkeypatch.setattr(limits, "ANSWER_EVENTS_USUAL", usual)
    table, _, n2, n3, line = junked()
    more = n2.chain(3, prev=line[-1], text="more")
    n2.push("n1", *more)
    table.run(limits.PRESSED_MS)
    cord = table.cord_of(line[0].header)
    want = RangeWant(*cord, [], more[-1].header.seq, more[-1].id[:16])
    answer = served(n3, GetData(7, [], [want], [], [], 1 << 20))
    assert [event.header for event in answer.events] == [event.header_bytes for event in line]
    assert answer.more
