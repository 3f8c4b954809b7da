"""What becomes of an event from outside: one core n1, the others are hands."""

from dataclasses import replace

import pytest

from quipu.ledger import limits
from quipu.ledger.event import SignedEvent
from quipu.ledger.evidence import prove_author
from quipu.ledger.inv import build_inv
from quipu.ledger.messages import InvMessage
from quipu.ledger.refusals import Reason
from quipu.ledger.safeguards import ALL
from quipu.ledger.words import EpochNo, InvNumber, Seq, hlc_at
from tests.conformance.hand import Hand, alone_with
from tests.conformance.roster import change
from tests.conformance.table import Seat, key_of


def fork(liar: Hand, count: int = 2) -> list[SignedEvent]:
    """That many events for the first slot of one cord."""
    return [liar.event(f"branch {number}") for number in range(count)]


def bring(hand: Hand, *events: SignedEvent) -> None:
    """As an answer: n1 is told of the last one, asks, and gets them all."""
    hand.sync("n1", events[-1])
    hand.table.run(limits.SYNC_DIFFERENCE_AGE_MS)
    hand.answer("n1", hand.requests()[-1], *events)
    hand.table.run(0)


def branches_of(seat: Seat, event: SignedEvent) -> list[tuple[int, bytes]]:
    cord = seat.meta(event.id).branch.cord
    return [(record.key.number, record.lender) for record in seat.core.dag.cords[cord]]


# --- age --------------------------------------------------------------------------------------
def test_age_is_a_reason_to_wait_for_sync_event_and_no_rule_of_validity() -> None:
    table, n1, (n2, n3) = alone_with(2)
    old = n2.event(hlc=table.hlc - hlc_at(limits.EVENT_AGE_MS_MAX) - 1)
    on_the_edge = n3.event(hlc=table.hlc - hlc_at(limits.EVENT_AGE_MS_MAX))
    n2.push("n1", old)
    n3.push("n1", on_the_edge)
    table.run(0)
    assert n1.refusals() == [Reason.TOO_OLD]
    assert n1.holds(on_the_edge.id)
    bring(n3, old)
    assert n1.holds(old.id)


def test_an_old_event_that_waited_for_its_parent_is_not_asked_for_its_age_again() -> None:
    table, n1, (n2, n3) = alone_with(2)
    age = table.hlc - hlc_at(limits.EVENT_AGE_MS_MAX - 1_000)
    parent = n3.event(hlc=age - 10)
    child = n2.event(parents=[parent], hlc=age)
    n2.push("n1", child)
    table.run(3_000)
    n2.answer("n1", n2.requests()[0], parent)
    table.run(0)
    assert n1.holds(child.id)


def test_without_the_safeguard_history_is_refused_for_its_age() -> None:
    guards = replace(ALL, window_only_on_admission=False)
    table, n1, (n2, _) = alone_with(2, guards=guards)
    bring(n2, n2.event(hlc=table.hlc - hlc_at(limits.EVENT_AGE_MS_MAX) - 1))
    assert n1.refusals() == [Reason.TOO_OLD]


# --- who --------------------------------------------------------------------------------------
def test_without_the_safeguards_strangers_and_forgeries_come_in() -> None:
    guards = replace(ALL, author_is_member=False, event_signature=False, cluster_id=False)
    table, n1, (n2, _) = alone_with(2, guards=guards)
    good = n2.event()
    stranger = n2.signed_header(good, author=key_of("stranger").node_id)
    elsewhere = n2.signed_header(good, cluster_id=bytes(32), prev=bytes(32), journal=5)
    for event in (stranger, elsewhere, good._replace(signature=bytes(64))):
        n2.push("n1", event)
    table.run(0)
    assert n1.refusals() == []
    assert all(n1.holds(event.id) for event in (stranger, elsewhere, good))


def test_a_stranger_counts_where_the_safeguard_is_off() -> None:
    for guards, expected in ((ALL, False), (replace(ALL, signer_is_member=False), True)):
        table, n1, (n2, _) = alone_with(2, guards=guards)
        event = n2.event()
        n2.push("n1", event)
        table.run(0)
        row = (table.cord_of(event.header), Seq(1), event.id)
        stranger = key_of("stranger")
        inv = build_inv(stranger, table.cluster_id, EpochNo(1), InvNumber(1), [row])
        n2.say("n1", InvMessage(inv.data))
        table.run(0)
        assert (n1.read_confirms(event.id) == 2) == expected
        assert (Reason.NOT_A_MEMBER in n1.refusals()) == (not expected)


def test_the_author_is_judged_by_the_epoch_of_the_event() -> None:
    table, n1, (n2, n3) = alone_with(2)
    last = n3.event("last")
    change(table, ["n1", "n2"], cut=[last])
    early = n3.event("early", prev=None, journal=3)
    later = n3.event("later", epoch=2)
    n3.push("n1", later, early, last)
    table.run(0)
    assert n1.refusals() == [Reason.NOT_A_MEMBER, Reason.CORD_ENDED]
    assert n1.is_read(last.id)
    n2.push("n1", n2.event("fallen", parents=[n1.event(last.id)]))
    table.run(0)
    above = n3.event("above", prev=last)
    n3.push("n1", above)
    table.run(0)
    assert n1.refusals()[2:] == [Reason.CORD_ENDED]


def test_up_to_the_cut_the_cord_of_who_left_is_taken() -> None:
    table, n1, (n2, n3) = alone_with(2)
    line = n3.chain(4)
    change(table, ["n1", "n2"], cut=[line[2]])
    table.run(limits.SYNC_DIFFERENCE_AGE_MS)
    (request,) = n2.requests() + n3.requests()  # the cut names what is missing
    assert [wanted.last for wanted in request.ranges] == [line[2].id[:16]]
    n3.push("n1", *line)
    table.run(0)
    assert n1.refusals() == [Reason.CORD_ENDED]
    assert [n1.is_read(event.id) for event in line[:3]] == [True] * 3
    assert not n1.holds(line[3].id)


def test_an_event_of_an_epoch_not_open_here_is_refused_until_it_is() -> None:
    table, n1, (n2, _) = alone_with(2)
    event = n2.event(epoch=2)
    n2.push("n1", event)
    table.run(0)
    assert n1.refusals() == [Reason.EPOCH_UNKNOWN]
    change(table, ["n1", "n2", "n3"])
    n2.push("n1", event)
    table.run(0)
    assert n1.holds(event.id)


# --- how many wait for their time -------------------------------------------------------------
def test_a_cord_has_so_many_events_ahead_of_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert limits.EVENTS_NOT_DUE_PER_CORD_MAX == 1_000
    monkeypatch.setattr(limits, "EVENTS_NOT_DUE_PER_CORD_MAX", 3)
    table, n1, (n2, n3) = alone_with(2)
    line = [n2.event("due")]
    for number in range(5):
        line.append(n2.event(prev=line[-1], hlc=table.hlc + hlc_at(10_000 + number)))
    other = n3.event(hlc=table.hlc + hlc_at(10_000))
    n2.push("n1", line[0])
    table.run(10)
    n2.push("n1", *line[1:])
    n3.push("n1", other)
    table.run(10)
    assert [n1.holds(event.id) for event in line] == [True] * 4 + [False] * 2
    assert n1.holds(other.id)  # another cord has its own room
    assert n1.refusals() == [Reason.NOT_DUE]
    table.run(9_000)
    n2.push("n1", *line[4:])  # they are due now
    table.run(10)
    assert n1.holds(line[5].id)


# --- forks ------------------------------------------------------------------------------------
def test_a_second_branch_that_nobody_vouches_for_is_a_proof_and_no_more() -> None:
    table, n1, (liar, _) = alone_with(2)
    one, other = fork(liar)
    liar.push("n1", one, other)
    table.run(0)
    assert n1.refusals() == [Reason.FORKED]
    assert not n1.holds(other.id)
    assert n1.convicted[0].conviction.culprit == liar.key.node_id


def test_a_second_branch_that_a_receipt_names_is_stored() -> None:
    table, n1, (liar, n3) = alone_with(2)
    one, other = fork(liar)
    liar.push("n1", one)
    liar.confirm("n1", other)  # the author itself vouches for nothing
    table.run(0)
    liar.push("n1", other)
    table.run(0)
    assert not n1.holds(other.id)
    n3.confirm("n1", other)
    table.run(0)
    liar.push("n1", other)
    table.run(0)
    assert n1.holds(other.id)
    assert branches_of(n1, other) == [(0, b""), (1, b"")]


def test_the_peer_that_was_asked_lends_one_branch_a_cord() -> None:
    table, n1, (liar, n3, n4) = alone_with(3)
    one, two, three, four = fork(liar, 4)
    liar.push("n1", one)
    table.run(0)
    bring(n3, two)
    bring(n3, three)  # its second one
    bring(n4, four)
    lenders = branches_of(n1, one)
    assert lenders == [(0, b""), (1, n3.key.node_id), (2, n4.key.node_id)]
    assert not n1.holds(three.id)
    assert n1.refusals() == [Reason.FORKED]
    shown = n1.core.sync.rows_of(n1.meta(one.id).branch.cord)
    assert [record.held_id for record in shown] == [one.id]  # what is lent is not told to others
    n4.confirm("n1", two)  # now somebody has a receipt for it, and n3 may lend again
    table.run(0)
    assert branches_of(n1, one)[1] == (1, b"")
    bring(n3, three)
    assert n1.holds(three.id)


def test_a_cord_has_so_many_branches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BRANCHES_PER_CORD_MAX", 2)
    table, n1, (liar, n3) = alone_with(2)
    events = fork(liar, 3)
    n3_invs = [n3.inv(event) for event in events]
    for event, inv in zip(events, n3_invs, strict=True):
        n3.say("n1", InvMessage(inv.data))
        table.run(0)
        liar.push("n1", event)
        table.run(0)
    assert [n1.holds(event.id) for event in events] == [True, True, False]


def test_the_branches_of_a_fork_go_on() -> None:
    table, n1, (liar, n3) = alone_with(2)
    one, other = fork(liar)
    above = liar.event("above", prev=other)
    liar.push("n1", one)
    table.run(0)
    bring(n3, other, above)
    assert n1.holds(above.id)
    assert n1.branch(above.id) is n1.branch(other.id)


def test_above_a_proven_fork_nothing_unasked_is_taken_that_nobody_vouches_for() -> None:
    table, n1, (liar, n3) = alone_with(2)
    base = liar.event("base")
    one, other = liar.event("one", prev=base), liar.event("other", prev=base)
    above = liar.event("above", prev=one)
    elsewhere = liar.event("elsewhere", journal=9)
    n3.accuse(
        "n1",
        prove_author(
            (one.header_bytes, one.signature, one.id),
            (other.header_bytes, other.signature, other.id),
        ),
    )
    liar.push("n1", base, one, elsewhere)
    table.run(0)
    assert n1.refusals() == [Reason.FORKED]
    assert n1.holds(base.id)  # below the fork
    assert n1.holds(elsewhere.id)  # another journal: it stays Unread
    n3.confirm("n1", one)
    table.run(0)
    liar.push("n1", one, above)
    table.run(0)
    assert n1.holds(one.id)
    assert not n1.holds(above.id)
    bring(n3, above)
    assert n1.holds(above.id)


def test_without_the_safeguards_every_branch_is_stored_or_none() -> None:
    table, n1, (liar, n3) = alone_with(2, guards=replace(ALL, vouched_branches_only=False))
    one, other = fork(liar)
    liar.push("n1", one, other)
    table.run(0)
    assert n1.holds(other.id)
    assert branches_of(n1, other) == [(0, b""), (1, b"")]

    table, n1, (liar, n3) = alone_with(2, guards=replace(ALL, certified_branches_kept=False))
    one, other = fork(liar)
    n3.confirm("n1", other)
    table.run(0)
    liar.push("n1", one, other)
    table.run(0)
    assert not n1.holds(other.id)


def test_without_the_check_an_event_comes_in_without_its_ancestors() -> None:
    table, n1, (n2, n3) = alone_with(2, guards=replace(ALL, parents_held=False))
    prev = n2.event()
    event = n2.event(prev=prev, depth=1)
    n2.push("n1", event)
    table.run(0)
    assert n1.holds(event.id)
    assert not n1.holds(prev.id)
    assert n3.requests() == []


def test_events_of_a_stranger_end_nowhere_without_the_safeguard() -> None:
    table, n1, (n2, n3) = alone_with(2, guards=replace(ALL, author_is_member=False))
    change(table, ["n1", "n2"])
    event = n3.event()
    n2.push("n1", event)
    table.run(0)
    assert n1.holds(event.id)
