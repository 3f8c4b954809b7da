"""What a node signs, and what never: one core n1, the others are hands."""

from dataclasses import replace

import pytest

from quipu.ledger import limits
from quipu.ledger.effects import SendMessage, StoreInv
from quipu.ledger.event import SignedEvent
from quipu.ledger.inv import Inv, decode_inv
from quipu.ledger.messages import Answer, GetData, InvMessage, InvWant, decode_message
from quipu.ledger.refusals import Reason
from quipu.ledger.safeguards import ALL
from quipu.ledger.words import HLC_SHIFT, Cord, EventId, hlc_at
from tests.conformance.hand import Hand, alone_with, greet, hands
from tests.conformance.roster import change
from tests.conformance.table import Seat, Table


def signed(seat: Seat) -> list[Inv]:
    """All Invs of its own, in order."""
    return [effect.inv for effect in seat.durable(StoreInv) if effect.signer_no == seat.number]


def last_rows(seat: Seat) -> dict[Cord, EventId]:
    return {row.cord: EventId(row.id) for row in signed(seat)[-1].rows}


def signed_seq(seat: Seat, event: SignedEvent) -> int:
    return seat.branch(event.id).signed_seq


# --- when -------------------------------------------------------------------------------------
def test_it_signs_at_once_when_idle_and_then_keeps_its_pace() -> None:
    table, n1, (n2, _) = alone_with(2)
    start_ms = table.wall_ms
    for number in range(12):
        n2.push("n1", n2.event(journal=number + 1))
        table.run(1)
    assert [(inv.number >> HLC_SHIFT) - start_ms for inv in signed(n1)] == [0, 5, 10]
    assert [len(inv.rows) for inv in signed(n1)] == [1, 5, 10]  # what came meanwhile goes together
    table.run(5)
    assert len(signed(n1)[-1].rows) == 12


def test_one_event_after_a_silence_is_acknowledged_at_once() -> None:
    table, n1, (n2, n3) = alone_with(2)
    start_ms = table.wall_ms
    events = n2.chain(5)
    for event in events[:3]:
        n2.push("n1", event)
        table.run(2)
    assert [(inv.number >> HLC_SHIFT) - start_ms for inv in signed(n1)] == [0, 2, 4]
    n2.push("n1", events[3])
    n3.push("n1", n3.event(journal=9))  # two at once: that is load
    table.run(2)
    n2.push("n1", events[4])  # after a silence, and others still wait
    table.run(2)
    assert [(inv.number >> HLC_SHIFT) - start_ms for inv in signed(n1)] == [0, 2, 4, 9]
    assert signed_seq(n1, events[4]) == 5


def test_in_a_large_roster_it_takes_a_longer_silence() -> None:
    table, n1, (n2, *_) = alone_with(11)
    start_ms = table.wall_ms
    for event in n2.chain(4):
        n2.push("n1", event)
        table.run(6)
    assert [(inv.number >> HLC_SHIFT) - start_ms for inv in signed(n1)] == [0, 11, 22]


def test_a_large_roster_signs_at_a_slower_pace() -> None:
    table, n1, (n2, *_) = alone_with(11)
    start_ms = table.wall_ms
    for number in range(30):
        n2.push("n1", n2.event(journal=number + 1))
        table.run(1)
    assert [(inv.number >> HLC_SHIFT) - start_ms for inv in signed(n1)] == [0, 11, 22]


def test_an_event_that_waits_for_its_time_slows_no_other() -> None:
    table, n1, (n2, n3) = alone_with(2)
    n2.push("n1", n2.event(hlc=table.hlc + hlc_at(60_000)))
    table.run(10)
    events = n3.chain(2)
    n3.push("n1", events[0])
    table.run(1)
    n3.push("n1", events[1])
    table.run(5)
    assert signed_seq(n1, events[1]) == 2


def test_all_that_is_held_goes_into_one_inv_and_the_last_alone_is_sent() -> None:
    table, n1, (n2, n3) = alone_with(2)
    turns = len(n1.turns)
    n2.push("n1", *n2.chain(2 * limits.INV_STRIDE + 88))
    table.run(0)
    (turn,) = n1.turns[turns:]
    kept = [effect.inv for effect in turn.durable if isinstance(effect, StoreInv)]
    assert [row.seq for inv in kept for row in inv.rows] == [256, 512, 600]
    assert kept[0].number < kept[1].number < kept[2].number
    sent = [
        decode_inv(message.inv)
        for effect in turn.spoken
        if isinstance(effect, SendMessage)
        and isinstance(message := decode_message(effect.data), InvMessage)
    ]
    assert [inv.id for inv in sent] == [kept[2].id] * 2
    want = [InvWant(n1.number, kept[0].number)]
    n3.say("n1", GetData(1, [], [], want, [], limits.ANSWER_BYTES_MAX))
    table.run(0)
    (answer,) = table.messages(Answer, "n1", "n3")
    assert answer.invs == [kept[0].data, kept[2].data]  # by its number, and the newest


def test_a_rise_of_one_stride_needs_no_inv_in_between() -> None:
    table, n1, (n2, _) = alone_with(2)
    n2.push("n1", *n2.chain(limits.INV_STRIDE))
    table.run(0)
    assert [[row.seq for row in inv.rows] for inv in signed(n1)] == [[limits.INV_STRIDE]]


def test_strides_of_several_cords_go_together() -> None:
    table, n1, (n2, n3) = alone_with(2)
    n2.push("n1", *n2.chain(limits.INV_STRIDE + 1))
    n3.push("n1", *n3.chain(3))
    table.run(0)
    assert [[row.seq for row in inv.rows] for inv in signed(n1)] == [[256], [257, 3]]


def test_numbers_rise_though_the_clock_is_set_back() -> None:
    table, n1, (n2, _) = alone_with(2)
    line = n2.chain(4)
    for number, event in enumerate(line):
        n2.push("n1", event)
        table.run(10)
        if number == 1:
            n1.clock_offset_ms = -60_000
            table.kill("n1")
            table.start("n1")
            greet(*hands(table))
    numbers = [inv.number for inv in signed(n1)]
    assert numbers[0] >> HLC_SHIFT == numbers[1] >> HLC_SHIFT == 0 or numbers[0] < numbers[1]
    assert [later - numbers[1] for later in numbers[2:]] == [1, 2]


def test_without_the_safeguard_numbers_go_back_with_the_clock() -> None:
    table, n1, (n2, _) = alone_with(2, guards=replace(ALL, inv_numbers_rise=False))
    for event in n2.chain(2):
        n2.push("n1", event)
        table.run(10)
        n1.clock_offset_ms = -60_000
    assert signed(n1)[0].number > signed(n1)[1].number


# --- rows -------------------------------------------------------------------------------------
def test_a_row_for_each_open_cord_its_own_included() -> None:
    table, n1, (n2, n3) = alone_with(2)
    old, new, other = n2.event(journal=1), n2.event(journal=2), n3.event(journal=1)
    n2.push("n1", old, new)
    n3.push("n1", other)
    own = n1.event(table.write("n1"))
    table.run(10)
    assert set(last_rows(n1).values()) == {old.id, new.id, other.id, own.id}

    for hand in (n2, n3):
        hand.confirm("n1", *([old, new] if hand is n2 else [old, new, other]))
    table.run(limits.CORD_OPEN_MS)
    n3.push("n1", n3.event("next", prev=other))
    table.run(10)
    rows = last_rows(n1)
    assert n1.is_read(old.id)
    assert cord_of(n2, old) not in rows  # Read, and at rest for ten seconds
    assert cord_of(n2, new) in rows  # the newest journal of its author
    assert cord_of(n3, other) in rows
    assert own.id in rows.values()  # not Read yet
    assert signed_seq(n1, old) == 1  # a row left out takes nothing back


def cord_of(hand: Hand, event: SignedEvent) -> Cord:
    return hand.table.cord_of(event.header)


def test_a_row_stays_open_while_its_event_is_not_read() -> None:
    table, n1, (n2, n3) = alone_with(2)
    old, new = n2.event(journal=1), n2.event(journal=2)
    n2.push("n1", old, new)
    table.run(2 * limits.CORD_OPEN_MS)
    n3.push("n1", n3.event())
    table.run(10)
    assert old.id in last_rows(n1).values()


def test_a_row_stays_open_for_ten_seconds_after_it_moved() -> None:
    table, n1, (n2, n3) = alone_with(2)
    old, new = n2.event(journal=1), n2.event(journal=2)
    n2.push("n1", old, new)
    n2.confirm("n1", old, new)
    table.run(limits.CORD_OPEN_MS - 20)
    assert n1.is_read(old.id)
    n3.push("n1", n3.event())
    table.run(10)
    assert old.id in last_rows(n1).values()


def test_the_rows_of_an_inv_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "INV_ROWS_MAX", 3)
    table, n1, (n2, n3) = alone_with(2)
    n2.push("n1", *(n2.event(journal=number) for number in range(1, 4)))
    n3.push("n1", *(n3.event(journal=number) for number in range(1, 4)))
    table.run(10)
    assert len(signed(n1)[-1].rows) == 3


def test_sixteen_journals_of_an_author_above_the_cut_get_receipts() -> None:
    table, n1, (n2, n3) = alone_with(2)
    events = [n2.event(journal=number) for number in range(1, 21)]
    n2.push("n1", *events[:10])
    table.run(10)
    n2.push("n1", *events[10:])  # more than there is room for, in one turn
    n3.push("n1", n3.event())
    table.run(1_000)
    assert [signed_seq(n1, event) for event in events] == [1] * 16 + [0] * 4
    above = n2.event("above", prev=events[3])
    n2.push("n1", above)
    table.run(10)
    assert signed_seq(n1, above) == 2  # a journal that has receipts goes on
    assert limits.JOURNALS_SIGNED_MAX == 16

    change(table, ["n1", "n2", "n3"], cut=[events[0], events[1]])
    table.run(10)
    assert [signed_seq(n1, event) for event in events[16:]] == [1, 1, 0, 0]  # two more above it


# --- one id a slot ----------------------------------------------------------------------------
def test_of_two_branches_it_acknowledges_the_one_it_stored_first() -> None:
    table, n1, (n2, n3) = alone_with(2)
    base = n2.event("base")
    one, other = n2.event("one", prev=base), n2.event("other", prev=base)
    n2.push("n1", base, one)
    table.run(10)
    n3.confirm("n1", other)
    table.run(0)
    n3.push("n1", other, n2.event("above", prev=other))
    table.run(10)
    assert signed_seq(n1, one) == 2
    assert signed_seq(n1, other) == 0
    assert [row.id for inv in signed(n1) for row in inv.rows] == [one.id]


def test_of_two_branches_that_come_in_one_turn_it_acknowledges_neither() -> None:
    table, n1, (n2, n3) = alone_with(2)
    base = n2.event("base")
    one, other = n2.event("one", prev=base), n2.event("other", prev=base)
    n3.confirm("n1", one)
    table.run(0)
    n2.push("n1", base, other, one)  # the proof is there before anything is signed
    table.run(10)
    assert n1.holds(one.id)
    assert n1.holds(other.id)
    assert [signed_seq(n1, event) for event in (one, other)] == [0, 1]  # as far as the base


def test_without_a_proof_it_would_acknowledge_the_one_stored_first() -> None:
    table, n1, (n2, n3) = alone_with(2, guards=replace(ALL, conviction_ends_cord=False))
    one, other = n2.event("one"), n2.event("other")
    n3.confirm("n1", one)
    table.run(0)
    n2.push("n1", other, one)
    table.run(100)
    assert [signed_seq(n1, event) for event in (one, other)] == [0, 1]


def test_without_the_safeguard_it_signs_both() -> None:
    guards = replace(ALL, one_id_per_slot=False, conviction_ends_cord=False)
    table, n1, (n2, n3) = alone_with(2, guards=guards)
    one, other = n2.event("one"), n2.event("other")
    n3.confirm("n1", one)
    n3.confirm("n1", other)
    table.run(0)
    n2.push("n1", one, other)
    table.run(20)
    assert [signed_seq(n1, event) for event in (one, other)] == [1, 1]


def test_an_own_receipt_for_what_is_not_held_closes_the_cord_to_it() -> None:
    table, n1, (n2, n3) = alone_with(2)
    one, other = n2.event("one"), n2.event("other")
    myself = Hand(table, "n1")
    n3.say("n1", InvMessage(myself.inv(one).data))  # from before a loss: "I hold this one"
    table.run(0)
    n2.push("n1", other)
    table.run(10)
    greet_all(n2, n3)
    assert signed_seq(n1, other) == 0
    n2.push("n1", one)
    table.run(10)
    assert signed_seq(n1, other) == 0
    assert signed_seq(n1, one) == 1


def greet_all(*players: Hand) -> None:
    """Tells a recovering core all there is of its own: nothing but what it has heard."""
    table = players[0].table
    for hand in players:
        hand.sync("n1", receipts=[(1, 1)])
    for _ in range(3):
        table.run(10)
        for hand in players:
            for request in hand.requests(table.now_ms - 10):
                hand.answer("n1", request)
    table.run(10)
    assert table["n1"].core.recovery.may_sign


# --- whom -------------------------------------------------------------------------------------
def test_nothing_new_is_signed_of_a_proven_forker_but_what_lies_below_the_fork() -> None:
    table, n1, (n2, n3) = alone_with(2)
    line = n2.chain(4)
    fork = n2.event("fork", prev=line[1])
    elsewhere = n2.event("elsewhere", journal=9)
    n2.push("n1", line[0])
    table.run(10)
    n3.accuse("n1", proof_of(line[2], fork))
    n2.push("n1", *line[1:2])
    table.run(10)
    assert n1.convicted[0].conviction.seq == 3
    n3.confirm("n1", line[3], elsewhere)  # vouched for, so they are taken
    table.run(0)
    n2.push("n1", line[3], elsewhere)
    table.run(10)
    n2.answer("n1", n2.requests()[-1], line[2])
    table.run(1_000)
    assert signed_seq(n1, line[3]) == 2  # up to the fork
    assert signed_seq(n1, elsewhere) == 0  # until it is admitted again


def test_receipts_that_were_signed_before_the_proof_count() -> None:
    table, n1, (n2, n3) = alone_with(2)
    line = n2.chain(3)
    n2.push("n1", *line)
    table.run(10)
    n3.accuse("n1", proof_of(line[1], n2.event("fork", prev=line[0])))
    n2.confirm("n1", line[2])
    table.run(10)
    assert signed_seq(n1, line[2]) == 3
    assert n1.is_read(line[2].id)


def proof_of(one: SignedEvent, other: SignedEvent) -> bytes:
    from quipu.ledger.evidence import prove_author

    return prove_author(
        (one.header_bytes, one.signature, one.id), (other.header_bytes, other.signature, other.id)
    )


def test_who_is_no_member_signs_nothing() -> None:
    table = Table(2, outsiders=1)
    table.run(3_100)
    event = table.write("n1")
    table.run(1_000)
    assert table["n3"].is_read(event)
    assert signed(table["n3"]) == []
    table.submit("n3")
    table.run(0)
    assert [notice.reason for notice in table["n3"].not_stored] == [Reason.NOT_A_MEMBER]


# --- what is not due --------------------------------------------------------------------------
def test_of_a_cord_what_is_due_gets_its_receipt_and_the_rest_waits() -> None:
    table, n1, (n2, n3) = alone_with(2)
    line: list[SignedEvent] = []
    for seconds in range(10):  # the last ones 3, 4 ... 9 s ahead
        prev = line[-1] if line else None
        line.append(n2.event(prev=prev, hlc=table.hlc + hlc_at(seconds * 1_000)))
    n2.push("n1", *line)
    for seconds in range(2, 10):
        table.run(10)
        assert signed_seq(n1, line[0]) == seconds + 1
        table.run(990)
    assert all(n1.holds(event.id) for event in line)
    assert n3.requests() == []


def test_nothing_above_an_event_that_waits_gets_a_receipt_whatever_way_it_came() -> None:
    table, n1, (n2, n3) = alone_with(2)
    ahead = n2.event(hlc=table.hlc + hlc_at(30_000))
    above = n2.event(prev=ahead)
    n3.sync("n1", above)
    table.run(limits.SYNC_DIFFERENCE_AGE_MS)
    n3.answer("n1", n3.requests()[-1], ahead, above)
    table.run(20_000)
    assert n1.holds(above.id)
    assert signed_seq(n1, above) == 0
    table.run(9_000)
    assert signed_seq(n1, above) == 2


def test_without_the_safeguard_the_future_gets_its_receipt() -> None:
    table, n1, (n2, _) = alone_with(2, guards=replace(ALL, receipts_wait_due=False))
    event = n2.event(hlc=table.hlc + hlc_at(30_000))
    n2.push("n1", event)
    table.run(0)
    assert signed_seq(n1, event) == 1
