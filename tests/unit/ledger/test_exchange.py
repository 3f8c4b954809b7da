"""What a node says on its own account: one core n1, the others are hands."""

from collections import Counter
from dataclasses import replace

import pytest

from quipu.ledger import limits
from quipu.ledger.event import SignedEvent
from quipu.ledger.evidence import prove_author
from quipu.ledger.inputs import PeerConnected
from quipu.ledger.inv import decode_inv
from quipu.ledger.messages import (
    Answer,
    EventMessage,
    GetData,
    InvMessage,
    InvWant,
    SyncEvent,
    bytes_of,
)
from quipu.ledger.recovery import State
from quipu.ledger.safeguards import ALL
from quipu.ledger.words import NodeId, hlc_at
from tests.conformance.hand import Hand, alone_with, hands
from tests.conformance.table import Table

AGE_MS = limits.SYNC_DIFFERENCE_AGE_MS


def pushed(table: Table, since_ms: int = 0) -> list[tuple[str, bytes]]:
    return [
        (s.receiver, s.message.event.header)
        for s in table.sent
        if isinstance(s.message, EventMessage) and s.at_ms >= since_ms
    ]


# --- peers ------------------------------------------------------------------------------------
def test_so_many_peers_are_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PEERS_MAX", 3)
    table, n1, _ = alone_with(2)
    for number in range(5):
        n1.inbox.append(PeerConnected(NodeId(bytes([number]) * 32)))
    n1.inbox.append(PeerConnected(n1.key.node_id))  # never itself
    for number in range(5):
        table.names[NodeId(bytes([number]) * 32)] = f"observer {number}"
    table.run(0)
    assert len(n1.core.sync.views) == 3
    assert n1.key.node_id not in n1.core.sync.views


def test_a_lost_peer_is_forgotten() -> None:
    table, n1, (n2, n3) = alone_with(2)
    n3.sync("n1", n2.event())
    table.run(AGE_MS)
    assert n1.core.fetch.is_waiting_for(n3.key.node_id)
    table.part("n1", "n3")
    table.run(0)
    since_ms = table.now_ms
    assert not n1.core.fetch.is_waiting_for(n3.key.node_id)
    table.run(10_000)
    assert [s for s in table.sent if s.receiver == "n3" and s.at_ms > since_ms] == []


def test_a_node_without_peers_sleeps() -> None:
    table, n1, (n2, n3) = alone_with(2)
    n2.push("n1", n2.chain(2)[1])
    for name in ("n2", "n3"):
        table.part("n1", name)
    table.run(10_000)
    turns = len(n1.turns)
    table.run(60_000)
    assert len(n1.turns) - turns <= 1
    assert n3.requests() == []


# --- the own Inv again ------------------------------------------------------------------------
def test_who_sends_what_is_held_is_told_so_at_most_twice_a_second() -> None:
    table, n1, (n2, n3) = alone_with(2)
    event = n2.event()
    n3.push("n1", event)
    n3.sync("n1", event)
    table.run(10)
    since_ms = table.now_ms
    for _ in range(10):
        n2.push("n1", event)
        table.run(100)
    told = table.messages(InvMessage, "n1", "n2", since_ms)
    assert len(told) == 2
    assert {decode_inv(message.inv).number for message in told} == {
        n1.core.receipts.newest[n1.number].number
    }
    sent_on = table.messages(EventMessage, "n1", "n3", since_ms)  # with the receipt, in case
    assert len(table.messages(InvMessage, "n1", "n3", since_ms)) == len(sent_on)


def test_with_what_is_sent_on_goes_the_own_receipt_that_may_have_been_lost_with_it() -> None:
    table, n1, (n2, n3) = alone_with(2, "all")
    event = n2.event()
    n2.push("n1", event)
    table.run(10)
    since_ms = table.now_ms
    table.run(limits.RELAY_AFTER_MS)
    assert pushed(table) == [("n3", event.header_bytes)]
    (again,) = table.messages(InvMessage, receiver="n3", since_ms=since_ms)
    assert decode_inv(again.inv).id == n1.core.receipts.newest[n1.number].inv_id
    assert table.messages(InvMessage, receiver="n2", since_ms=since_ms) == []
    assert n3.requests() == []


def test_who_has_signed_nothing_repeats_nothing() -> None:
    table = Table(1, played=["n2", "n3"])
    (n2, _) = hands(table)
    event = n2.event()
    for _ in range(2):
        n2.push("n1", event)
        table.run(600)
    assert table.messages(InvMessage) == []


def test_a_receipt_from_before_a_loss_is_not_repeated_while_it_names_what_is_not_held() -> None:
    table, n1, (n2, n3) = alone_with(2)
    held, lost = n2.event(journal=1), n2.event(journal=2)
    n2.push("n1", held)
    table.run(10)
    myself = Hand(table, "n1")
    inv = myself.inv(held, lost, number=table.hlc + hlc_at(1_000))
    n3.say("n1", InvMessage(inv.data))
    table.run(1)
    since_ms = table.now_ms
    n2.push("n1", held)
    table.run(600)
    assert table.messages(InvMessage, "n1", "n2", since_ms) == []
    n2.push("n1", lost, held)
    table.run(10)
    assert len(table.messages(InvMessage, "n1", "n2", since_ms)) == 1
    assert n1.holds(lost.id)


# --- requests ---------------------------------------------------------------------------------
def test_an_unknown_leaf_is_asked_for_when_it_is_old_enough() -> None:
    table, n1, (n2, n3) = alone_with(2)
    held, unknown = n2.event(journal=1), n2.event(journal=2)
    n2.push("n1", held)
    table.run(10)
    n3.sync("n1", leaves=[held.id, unknown.id])
    table.run(AGE_MS - 1)
    assert n3.requests() == []
    table.run(1)
    assert [request.ids for request in n3.requests()] == [[unknown.id]]
    n3.answer("n1", n3.requests()[0], unknown)
    table.run(10)
    assert n1.holds(unknown.id)
    assert len(n2.requests()) == 0


def test_one_request_at_a_time_goes_to_a_peer() -> None:
    table, _, (n2, n3) = alone_with(2)
    n3.sync("n1", n2.event(journal=1))
    table.run(AGE_MS)
    n3.sync("n1", n2.event(journal=1), n2.event(journal=2))
    table.run(AGE_MS - 10)
    assert len(n3.requests()) == 1
    n3.answer("n1", n3.requests()[0])
    table.run(AGE_MS)
    assert len(n3.requests()) == 2


def test_progress_asks_on_at_once_and_its_lack_does_not() -> None:
    table, _, (n2, n3) = alone_with(2)
    line = n2.chain(4)
    n3.sync("n1", line[3])
    table.run(AGE_MS)
    for event in line[:2]:
        n3.answer("n1", n3.requests()[-1], event)
        table.run(0)
    assert len(n3.requests()) == 3
    n3.answer("n1", n3.requests()[-1], line[0])  # nothing new
    table.run(1_000)
    assert len(n3.requests()) == 3


def test_answers_that_bring_no_news_are_not_asked_for_for_ever() -> None:
    table, _, (n2, liar) = alone_with(2)
    liar.sync("n1", n2.event("ghost"), receipts=[(2, 1 << 60)])
    table.run(AGE_MS)
    inv = liar.inv()
    for _ in range(20):
        liar.answer("n1", liar.requests()[-1], invs=[inv])
        table.run(1)
    assert len(liar.requests()) == 2  # once it was news


@pytest.mark.parametrize("off", ["behind_asks", "receipts_reconciled"])
def test_without_the_safeguards_nobody_asks(off: str) -> None:
    guards = replace(ALL, **{off: False})
    table, _, (n2, n3) = alone_with(2, guards=guards)
    held, unknown = n2.event(journal=1), n2.event(journal=2)
    n2.push("n1", held)
    table.run(10)
    n3.sync("n1", held, unknown, read_seq=1, receipts=[(2, 9)], leaves=[unknown.id])
    table.run(AGE_MS)
    (request,) = [request for request in n3.requests() if request.ranges or request.invs]
    assert bool(request.ranges) == bool(request.ids) == guards.behind_asks
    assert bool(request.invs) == bool(request.covers) == guards.receipts_reconciled


def test_an_answer_that_was_full_is_asked_on_with_the_same_peer() -> None:
    table, n1, (n2, n3) = alone_with(2)
    table.part("n1", "n2")
    events = [n2.event(journal=number) for number in (1, 2, 3)]
    n3.sync("n1", leaves=[event.id for event in events])
    table.run(AGE_MS)
    for count, event in enumerate(events, start=1):
        request = n3.requests()[-1]
        assert len(n3.requests()) == count
        n3.say(
            "n1",
            _full_answer(request, event),
        )
        table.run(0)
    assert all(n1.holds(event.id) for event in events)


def _full_answer(request: GetData, event: SignedEvent) -> Answer:
    return Answer(request.request_id, [], [bytes_of(event)], [], True)


# --- sending on -------------------------------------------------------------------------------
def test_a_members_row_or_receipt_shows_that_it_has_an_event() -> None:
    table, _, (n2, n3, n4, n5) = alone_with(4, "all")
    event = n2.event()
    n2.push("n1", event)
    table.run(10)
    n3.sync("n1", event)
    n4.sync("n1", n2.event(prev=event))  # or one above it
    table.run(limits.RELAY_AFTER_MS)
    assert pushed(table) == [("n5", event.header_bytes)]
    assert n5.requests() == []


def test_where_another_holder_is_chosen_nothing_is_sent_on() -> None:
    sent = []
    for length in range(1, 9):  # who is chosen depends on the member and on the seq
        table, _, (n2, n3, _) = alone_with(3, "all")
        line = n2.chain(length)
        n2.push("n1", *line)
        table.run(10)
        n3.confirm("n1", line[-1])
        table.run(limits.RELAY_AFTER_MS)
        sent.append({name for name, _ in pushed(table)})
    assert all(names <= {"n4"} for names in sent)
    assert 0 < sent.count({"n4"}) < len(sent)


def test_resending_begins_above_what_a_member_has_acknowledged_and_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "RESEND_EVENTS_MAX", 3)
    table, n1, (n2, n3) = alone_with(2, "all")
    events = [n1.event(table.write("n1", str(number))) for number in range(6)]
    n2.confirm("n1", events[1])
    n3.confirm("n1", events[5])
    since_ms = table.now_ms + 1
    table.run(1_200)
    assert pushed(table, since_ms) == [("n2", event.header_bytes) for event in events[2:5]]
    monkeypatch.setattr(limits, "RESEND_BYTES_MAX", events[2].size + 1)
    since_ms = table.now_ms
    table.run(2_500)
    assert pushed(table, since_ms) == [("n2", event.header_bytes) for event in events[2:4]]


def test_without_the_safeguard_nothing_is_sent_again() -> None:
    table, _, _ = alone_with(2, guards=replace(ALL, resend_unread=False))
    table.write("n1")
    table.run(60_000)
    assert Counter(name for name, _ in pushed(table)) == {"n2": 1, "n3": 1}


def test_what_waits_for_its_time_or_is_of_a_proven_forker_is_not_sent_on() -> None:
    table, n1, (n2, n3) = alone_with(2, "all")
    ahead = n3.event(hlc=table.hlc + hlc_at(20_000))
    forked, other = n2.event("one"), n2.event("other")
    n3.push("n1", ahead)
    n2.push("n1", forked)
    table.run(10)
    n3.accuse(
        "n1",
        prove_author(
            (forked.header_bytes, forked.signature, forked.id),
            (other.header_bytes, other.signature, other.id),
        ),
    )
    table.run(15_000)
    assert n1.holds(ahead.id)
    assert n1.holds(forked.id)
    assert pushed(table) == []


def test_an_event_that_cannot_be_read_any_more_is_not_sent_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table, n1, (n2, _) = alone_with(2, "all")
    n2.push("n1", n2.event())
    table.run(10)
    monkeypatch.setattr(n1.store, "event", lambda identity: None)
    table.run(limits.RELAY_AFTER_MS)
    assert pushed(table) == []


def test_a_large_roster_gets_the_rest_from_the_holders() -> None:
    table, n1, players = alone_with(17, "all")
    for hand in players:
        hand.sync("n1")
    event = n1.event(table.write("n1"))
    first = [name for name, _ in pushed(table)]
    assert len(first) == limits.FANOUT_ABOVE
    since_ms = table.now_ms + 1
    for hand in players:
        if hand.name in first:
            hand.confirm("n1", event)
    table.run(1_200)
    again = [name for name, _ in pushed(table, since_ms)]  # who is missing still after a second
    assert sorted([*first, *again]) == sorted(hand.name for hand in players)


# --- listening and recovering -----------------------------------------------------------------
def test_a_start_listens_to_members_that_hold_nothing_newer_of_it() -> None:
    table = Table(1, played=["n2", "n3", "n4"])
    n2, n3, n4 = hands(table)
    recovery = table["n1"].core.recovery
    needed = table["n1"].core.epochs.newest.witnesses_needed
    assert needed == 2
    n2.sync("n1", recovering=True)
    n3.sync("n1")
    table.run(0)
    assert recovery.state is State.LISTENING  # one of them does not know itself
    n4.sync("n1", base=5)  # rows above something not heard: nothing is known yet
    table.run(0)
    assert recovery.state is State.LISTENING
    n4.sync("n1")
    table.run(0)
    assert recovery.may_sign


def test_an_observer_is_no_witness() -> None:
    table = Table(1, outsiders=2, played=["n2", "n3"])
    n1 = table["n1"]
    greeted = [Hand(table, name) for name in ("n4", "n5")]
    for hand in greeted:
        hand.sync("n1")
    table.run(0)
    assert n1.core.recovery.state is State.LISTENING


def test_who_shows_a_newer_inv_of_this_node_is_asked_for_it_at_once() -> None:
    table = Table(1, played=["n2", "n3"])
    n2, n3 = hands(table)
    n1 = table["n1"]
    event = n2.event()
    inv = Hand(table, "n1").inv(event)
    n2.sync("n1", event, receipts=[(1, inv.number)])
    table.run(0)
    (request,) = n2.requests()
    assert request.invs == [InvWant(1, inv.number)]
    n2.answer("n1", request, invs=[inv])
    table.run(0)
    assert n1.core.recovery.state is State.RECOVERING
    assert list(n1.core.recovery.told) == []  # the newest one is not all that it has
    assert n2.requests()[-1].invs == [InvWant(1, 0)]
    table.run(10_000)
    assert n1.core.recovery.state is State.RECOVERING
    n2.sync("n1", event, receipts=[(1, inv.number)])
    n3.sync("n1")
    table.run(0)
    for hand in (n2, n3):
        assert InvWant(1, 0) in hand.requests()[-1].invs
        hand.answer("n1", hand.requests()[-1], event, invs=[inv])
        table.run(0)
    assert n1.core.recovery.may_sign
    assert n1.branch(event.id).signed_seq == 1


def test_a_newer_inv_that_turns_out_to_be_known_is_enough_while_listening() -> None:
    table = Table(1, played=["n2", "n3"])
    n2, n3 = hands(table)
    n2.sync("n1", receipts=[(1, 5)])
    table.run(0)
    n2.answer("n1", n2.requests()[-1])  # it has not got it after all
    n3.sync("n1")
    table.run(0)
    assert table["n1"].core.recovery.may_sign


def test_who_is_recovering_says_so_and_asks_no_other_who_is() -> None:
    table, n1, players = alone_with(2)
    table.kill("n1")
    table.start("n1", wiped=True)
    n2, n3 = players
    n2.sync("n1", recovering=True)
    n3.sync("n1")
    table.run(limits.SYNC_INTERVAL_MS)
    assert table.messages(SyncEvent, "n1", "n2")[-1].recovering
    assert [want for request in n2.requests() for want in request.invs] == []
    assert InvWant(1, 0) in n3.requests()[0].invs
    assert not n1.core.recovery.may_sign


def test_a_node_that_is_no_member_needs_no_witnesses_of_its_receipts() -> None:
    table = Table(2, outsiders=1)
    table.run(100)
    table.kill("n3")
    table.start("n3", wiped=True)
    event = table.write("n1")
    table.run(10_000)
    assert table["n3"].is_read(event)
    wanted = [want for request in table.messages(GetData, "n3") for want in request.invs]
    assert all(want.signer_no != 0 for want in wanted)
