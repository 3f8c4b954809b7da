"""Answers to GetData: one core n1, the others are hands."""

import pytest

from quipu.ledger import limits
from quipu.ledger.effects import SendMessage
from quipu.ledger.event import SignedEvent
from quipu.ledger.inv import Inv, decode_inv
from quipu.ledger.messages import (
    Answer,
    CoverWant,
    GetData,
    InvWant,
    RangeWant,
    encode_message,
)
from quipu.ledger.refusals import Reason
from tests.conformance.hand import Hand, alone_with
from tests.conformance.table import Seat

BIG = 300_000  # bytes


def asked(
    hand: Hand,
    ids: list[SignedEvent] | None = None,
    ranges: list[RangeWant] | None = None,
    invs: list[InvWant] | None = None,
    covers: list[CoverWant] | None = None,
    bytes_max: int = limits.ANSWER_BYTES_MAX,
) -> Answer:
    """Of a core that has been left in peace for a while."""
    hand.table.run(limits.PRESSED_MS)
    wanted: list[bytes] = [event.id for event in ids or []]
    hand.say("n1", GetData(1, wanted, ranges or [], invs or [], covers or [], bytes_max))
    hand.table.run(0)
    return hand.table.messages(Answer, "n1", hand.name)[-1]


def headers(answer: Answer) -> list[bytes]:
    return [event.header for event in answer.events]


def range_to(hand: Hand, tip: SignedEvent, *anchors: SignedEvent) -> RangeWant:
    cord = hand.table.cord_of(tip.header)
    places = [(event.header.seq, event.id[:16]) for event in anchors]
    return RangeWant(*cord, places, tip.header.seq, tip.id[:16])


def confirmed(seat: Seat, hand: Hand, *events: SignedEvent) -> Inv:
    inv = hand.confirm(seat.name, *events)
    hand.table.run(10)
    return inv


# --- how much ---------------------------------------------------------------------------------
def test_an_answer_holds_at_most_a_mebibyte_and_says_that_there_is_more() -> None:
    _, _, (n2, n3) = alone_with(2)
    line = [n2.event("0", size=BIG)]
    for number in range(1, 6):
        line.append(n2.event(str(number), prev=line[-1], size=BIG))
    n2.push("n1", *line)
    n2.table.run(10)
    answer = asked(n3, line)
    assert len(answer.events) == 3
    assert answer.more
    assert len(encode_message(answer)) <= limits.ANSWER_BYTES_MAX + 1_000
    rest = asked(n3, line[3:])
    assert headers(rest) == [event.header_bytes for event in line[3:]]
    assert not rest.more


def test_one_event_is_sent_however_large_it_is() -> None:
    _, _, (n2, n3) = alone_with(2)
    small, large = n2.event("small"), n2.event("large", journal=2, size=1_048_000)
    above = n2.event("above", prev=large)
    n2.push("n1", small, large, above)
    n2.table.run(10)
    answer = asked(n3, [large, above], bytes_max=0)
    assert headers(answer) == [large.header_bytes]
    assert answer.more
    answer = asked(n3, [small, large], bytes_max=5_000)
    assert headers(answer) == [min((small, large), key=lambda e: (e.header.hlc, e.id)).header_bytes]


def test_the_asker_may_ask_for_less_and_never_for_more() -> None:
    _, _, (n2, n3) = alone_with(2)
    line = [n2.event("0", size=BIG)]
    for number in range(1, 6):
        line.append(n2.event(str(number), prev=line[-1], size=BIG))
    n2.push("n1", *line)
    n2.table.run(10)
    assert len(asked(n3, line, bytes_max=2 * BIG + 1_000).events) == 2
    assert len(asked(n3, line, bytes_max=1 << 62).events) == 3


def test_an_answer_holds_so_many_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ANSWER_EVENTS_USUAL", 4)
    _, _, (n2, n3) = alone_with(2)
    line = n2.chain(6)
    n2.push("n1", *line)
    n2.table.run(10)
    answer = asked(n3, ranges=[range_to(n3, line[-1])])
    assert headers(answer) == [event.header_bytes for event in line[:4]]
    assert answer.more


def test_receipts_are_part_of_the_mebibyte(monkeypatch: pytest.MonkeyPatch) -> None:
    _, n1, (n2, n3) = alone_with(2)
    line = n2.chain(3)
    n2.push("n1", *line)
    n2.table.run(10)
    invs = [confirmed(n1, hand, line[-1]) for hand in (n2, n3)]
    size = sum(len(inv.data) for inv in invs)
    want = [InvWant(n2.number, 0), InvWant(n3.number, 0)]
    answer = asked(n3, line[:1], invs=want, bytes_max=size)
    assert answer.invs == [inv.data for inv in invs]
    assert answer.events == []
    assert answer.more
    answer = asked(n3, line[:1], invs=want, bytes_max=size - 1)
    assert answer.invs == [invs[0].data]
    assert answer.more
    monkeypatch.setattr(limits, "GET_RECEIPTS_MAX", 1)
    assert asked(n3, invs=want).invs == [invs[0].data]


# --- when -------------------------------------------------------------------------------------
def wants(hand: Hand, number: int, *tips: SignedEvent) -> None:
    ranges = [range_to(hand, tip) for tip in tips]
    hand.say("n1", GetData(number, [], ranges, [], [], limits.ANSWER_BYTES_MAX))


def answers(hand: Hand) -> list[tuple[int, int]]:
    """When, and how many events."""
    return [
        (sent.at_ms, len(sent.message.events))
        for sent in hand.table.sent
        if isinstance(sent.message, Answer) and sent.receiver == hand.name
    ]


def with_a_line(count: int) -> tuple[Seat, Hand, Hand, list[SignedEvent]]:
    """One core that holds it, and has been left in peace since."""
    _, n1, (n2, n3) = alone_with(2)
    line = n2.chain(count)
    n2.push("n1", *line)
    n2.table.run(limits.PRESSED_MS)
    return n1, n2, n3, line


def test_a_turn_answers_one_request_for_history() -> None:
    n1, n2, n3, line = with_a_line(3)
    for hand in (n2, n3):
        wants(hand, 1, line[-1])
    turns = len(n1.turns)
    n2.table.run(1)
    assert [count for _, count in answers(n2) + answers(n3)] == [3, 3]
    told = [[e for e in turn.spoken if isinstance(e, SendMessage)] for turn in n1.turns[turns:]]
    assert [len(spoken) for spoken in told if spoken] == [1, 1]


def test_while_entries_of_clients_come_history_is_given_in_slices_with_pauses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "ANSWER_EVENTS_PRESSED", 2)
    _, n2, n3, line = with_a_line(8)
    table, begun_ms = n2.table, n2.table.now_ms
    table.write("n1", "a client's")
    wants(n3, 1, line[-1])
    table.run(0)
    wants(n3, 2, line[-1])
    wants(n2, 3, line[-1])
    table.run(2 * limits.SERVE_PACE_MS)
    assert answers(n3) == [(begun_ms, 2), (begun_ms + limits.SERVE_PACE_MS, 2)]
    assert answers(n2) == [(begun_ms + 2 * limits.SERVE_PACE_MS, 2)]
    table.run(limits.PRESSED_MS)  # nothing more came
    wants(n3, 4, line[-1])
    table.run(0)
    assert answers(n3)[-1] == (table.now_ms, 8)


def test_whoever_is_behind_gets_twice_what_comes_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ANSWER_EVENTS_PRESSED", 1)
    _, n2, n3, line = with_a_line(40)
    table, live = n2.table, n2.chain(6, journal=2)
    n2.push("n1", *live[:3])
    wants(n3, 1, line[-1])
    table.run(0)
    n2.push("n1", *live[3:])
    wants(n3, 2, line[-1])
    table.run(limits.SERVE_PACE_MS)
    assert [count for _, count in answers(n3)] == [1, 6]  # nobody was asking before
    table.run(2 * limits.PRESSED_MS)
    n2.push("n1", *n2.chain(6, prev=live[-1]))
    wants(n3, 3, line[-1])
    table.run(0)
    assert answers(n3)[-1][1] == 1


def test_what_waits_for_a_pause_is_answered_at_once_when_no_more_entries_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "SERVE_PACE_MS", 10 * limits.PRESSED_MS)
    _, n2, n3, line = with_a_line(8)
    begun_ms = n2.table.now_ms
    n2.push("n1", n2.event(prev=line[-1]))  # a live event of another member counts as well
    for number in (1, 2):
        wants(n3, number, line[-1])
    n2.table.run(2 * limits.PRESSED_MS)
    assert answers(n3) == [(begun_ms, 8), (begun_ms + limits.PRESSED_MS, 8)]


def test_a_slice_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ANSWER_BYTES_PRESSED", 2 * BIG + 1_000)
    _, _, (n2, n3) = alone_with(2)
    line = [n2.event("0", size=BIG)]
    for number in range(1, 5):
        line.append(n2.event(str(number), prev=line[-1], size=BIG))
    n2.table.run(2 * limits.PRESSED_MS)
    n2.push("n1", *line)
    wants(n3, 1, line[-1])
    n2.table.run(0)
    assert answers(n3) == [(n2.table.now_ms, 2)]


def test_single_events_and_receipts_do_not_wait() -> None:
    _, n2, n3, line = with_a_line(3)
    n2.table.write("n1", "a client's")
    for number in range(1, 4):
        wants(n3, number, line[-1])
    single = [event.id for event in line[:1]]
    n2.say("n1", GetData(1, list(single), [], [], [], limits.ANSWER_BYTES_MAX))
    n2.table.run(0)
    assert (len(answers(n2)), len(answers(n3))) == (1, 1)


def test_requests_that_wait_are_bounded_and_end_with_their_link() -> None:
    n1, n2, n3, line = with_a_line(3)
    table = n2.table
    table.write("n1", "a client's")
    for number in range(limits.REQUESTS_PER_PEER_MAX + 2):
        wants(n3, number, line[-1])
    wants(n2, 1, line[-1])
    table.run(0)
    assert n1.refusals() == [Reason.ROOM_FULL] * 2
    table.part("n1", "n3")
    table.run(1_000)
    assert (len(answers(n3)), len(answers(n2))) == (1, 1)


# --- which events -----------------------------------------------------------------------------
def test_parents_come_before_children_and_each_once() -> None:
    _, _, (n2, n3) = alone_with(2)
    one = n2.event("one")
    two = n3.event("two", parents=[one])
    three = n2.event("three", prev=one, parents=[two])
    four = n3.event("four", prev=two, parents=[three])
    n2.push("n1", one, two, three, four)
    n2.table.run(10)
    answer = asked(n3, [four, two, one], [range_to(n3, three), range_to(n3, four)])
    assert headers(answer) == [event.header_bytes for event in (one, two, three, four)]


def test_a_range_begins_above_the_newest_anchor_on_the_same_line() -> None:
    _, _, (n2, n3) = alone_with(2)
    line = n2.chain(6)
    unknown = n2.event("unknown", prev=line[4])
    n2.push("n1", *line)
    n2.table.run(10)
    answer = asked(n3, ranges=[range_to(n3, line[5], unknown, line[3], line[1])])
    assert headers(answer) == [event.header_bytes for event in line[4:]]
    moved = RangeWant(*n2.table.cord_of(line[0].header), [(9, line[3].id[:16])], 6, line[5].id[:16])
    assert len(asked(n3, ranges=[moved]).events) == 6  # an anchor at another seq is none
    assert len(asked(n3, ranges=[range_to(n3, line[5])]).events) == 6


def test_an_anchor_on_another_branch_is_none() -> None:
    _, _, (n2, n3) = alone_with(2)
    line = n2.chain(4)
    side = [n2.event("side", prev=line[1])]
    side.append(n2.event("above", prev=side[0]))
    n2.push("n1", *line)
    n3.confirm("n1", side[0])
    n2.table.run(10)
    n3.push("n1", side[0])
    n3.table.run(10)
    assert headers(asked(n3, ranges=[range_to(n3, side[0], line[3], line[2], line[1])])) == [
        side[0].header_bytes
    ]
    answer = asked(n3, ranges=[range_to(n3, side[0], line[3])])
    assert headers(answer) == [event.header_bytes for event in (*line[:2], side[0])]


def test_a_range_to_what_is_not_held_or_lies_elsewhere_is_empty() -> None:
    _, _, (n2, n3) = alone_with(2)
    line = n2.chain(3)
    n2.push("n1", *line[:2])
    n2.table.run(10)
    cord = n2.table.cord_of(line[0].header)
    lost = asked(n3, ranges=[range_to(n3, line[2])])
    elsewhere = asked(n3, ranges=[RangeWant(cord.author_no, 99, [], 2, line[1].id[:16])])
    for answer in (lost, elsewhere):
        assert (answer.events, answer.missing, answer.more) == ([], [], False)


def test_what_is_not_kept_any_more_is_said_to_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    _, n1, (n2, n3) = alone_with(2)
    line = n2.chain(2)
    n2.push("n1", *line)
    n2.table.run(10)
    whole = n1.store.event
    gone = line[0].id
    monkeypatch.setattr(n1.store, "event", lambda i: None if i == gone else whole(i))
    answer = asked(n3, line)
    assert answer.missing == [gone]
    assert headers(answer) == [line[1].header_bytes]


# --- which receipts ---------------------------------------------------------------------------
def test_of_a_signer_the_newest_or_the_one_of_that_number_or_all_that_anything_rests_on() -> None:
    _, n1, (n2, n3) = alone_with(2)
    one, two = n2.event(journal=1), n2.event(journal=2)
    n2.push("n1", one, two)
    n2.table.run(10)
    first, second = confirmed(n1, n3, one), confirmed(n1, n3, two)
    assert asked(n2, invs=[InvWant(n3.number, 0)]).invs == [first.data, second.data]
    assert asked(n2, invs=[InvWant(n3.number, second.number)]).invs == [second.data]
    assert asked(n2, invs=[InvWant(n3.number, first.number + 1)]).invs == [second.data]
    assert asked(n2, invs=[InvWant(n3.number, first.number)]).invs == [first.data, second.data]
    assert asked(n2, invs=[InvWant(n3.number, second.number + 1)]).invs == []
    assert asked(n2, invs=[InvWant(9, 0), InvWant(9, 5)]).invs == []


def test_the_receipts_that_made_an_event_read() -> None:
    _, n1, (n2, n3, n4) = alone_with(3)
    line = n2.chain(3)
    n2.push("n1", *line)
    n2.table.run(10)
    own = confirmed(n1, n2, line[2])
    far = confirmed(n1, n3, line[2])
    near = confirmed(n1, n4, line[0])
    (mine,) = [decode_inv(data) for data in asked(n4, invs=[InvWant(n1.number, 0)]).invs]
    cord = n2.table.cord_of(line[0].header)
    top = asked(n4, covers=[CoverWant(*cord, 3, line[2].id[:16])])
    assert top.invs == [mine.data, own.data, far.data]
    bottom = asked(n4, covers=[CoverWant(*cord, 1, line[2].id[:16])])
    assert bottom.invs == [mine.data, own.data, far.data, near.data]
    assert asked(n4, covers=[CoverWant(*cord, 1, b"?" * 16)]).invs == []
    assert top.events == []


def test_a_receipt_that_is_not_kept_any_more_is_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, n1, (n2, n3) = alone_with(2)
    one, two = n2.event(journal=1), n2.event(journal=2)
    n2.push("n1", one, two)
    n2.table.run(10)
    first, second = confirmed(n1, n3, one), confirmed(n1, n3, two)
    kept = n1.store.inv
    monkeypatch.setattr(
        n1.store, "inv", lambda no, number: None if number == first.number else kept(no, number)
    )
    assert asked(n2, invs=[InvWant(n3.number, 0)]).invs == [second.data]
