"""What is heard and counts: one core n1 (or a few), the others are hands."""

from dataclasses import replace

import pytest

from quipu.ledger import limits
from quipu.ledger.effects import NodeConvicted, SendMessage, StoreInv, StoreProof
from quipu.ledger.event import SignedEvent
from quipu.ledger.evidence import prove_author
from quipu.ledger.inv import build_inv
from quipu.ledger.messages import (
    Answer,
    EvidenceMessage,
    InvMessage,
    SyncEvent,
    bytes_of,
    decode_message,
)
from quipu.ledger.refusals import Reason
from quipu.ledger.safeguards import ALL
from quipu.ledger.words import EpochNo, EventId, InvNumber, Seq, hlc_at
from tests.conformance.hand import Hand, alone_with, greet, hands
from tests.conformance.roster import change, close, document, open_epoch, seals
from tests.conformance.table import Table, key_of


def proof_of(one: SignedEvent, other: SignedEvent) -> bytes:
    return prove_author(
        (one.header_bytes, one.signature, one.id), (other.header_bytes, other.signature, other.id)
    )


# --- waiting for ancestors --------------------------------------------------------------------
def test_five_thousand_generations_come_in_when_the_first_one_does() -> None:
    table, n1, players = alone_with(6)
    line: list[SignedEvent] = []
    tips: dict[str, SignedEvent] = {}
    for number in range(5_000):  # six cords, none over its room of a thousand
        hand = players[number % 6]
        parents = [line[-1]] if line else []
        line.append(hand.event(prev=tips.get(hand.name), parents=parents))
        tips[hand.name] = line[-1]
    for number, event in enumerate(line[1:], start=1):
        players[number % 6].push("n1", event)
    table.run(0)
    assert len(n1.core.intake.waiting) == 4_999
    assert not n1.holds(line[1].id)
    players[0].push("n1", line[0])
    table.run(0)
    assert len(n1.core.intake.waiting) == 0
    assert n1.holds(line[-1].id)
    assert n1.core.dag.branches.keys() == {n1.meta(tip.id).branch for tip in tips.values()}


def test_what_waits_is_asked_for_once_and_taken_once() -> None:
    table, n1, (n2, n3) = alone_with(2)
    line = n2.chain(3)
    n2.push("n1", line[2])
    n3.push("n1", line[2])  # the same one by another way
    n3.push("n1", line[1])
    table.run(0)
    assert n2.requests() == []  # what it sent waits for what n3 has sent as well
    assert [(request.ids) for request in n3.requests()] == [[line[0].id]]
    assert len(n1.core.intake.waiting) == 2
    n3.push("n1", line[0])
    table.run(0)
    assert all(n1.holds(event.id) for event in line)
    assert n1.core.fetch.wanted == {}


def test_what_lies_far_above_is_asked_for_as_a_line() -> None:
    table, n1, (n2, _) = alone_with(2)
    line = n2.chain(300)
    n2.push("n1", line[299])
    table.run(0)
    (request,) = n2.requests()
    assert [(want.last_seq, want.last) for want in request.ranges] == [(299, line[298].id[:16])]
    n2.answer("n1", request, *line[:299])
    table.run(0)
    assert n1.holds(line[299].id)


def test_far_behind_nothing_is_spent_on_what_cannot_be_placed() -> None:
    """It comes with the range, or SyncEvent shows it."""
    table, n1, (n2, n3) = alone_with(2)
    line = n2.chain(10)
    n2.sync("n1", line[7])
    table.run(limits.SYNC_DIFFERENCE_AGE_MS)
    part = [bytes_of(event) for event in line[:3]]
    n2.say("n1", Answer(n2.requests()[-1].request_id, [], part, [], True))
    table.run(0)
    assert n1.core.fetch.is_far_behind(table.now(n1))
    n2.push("n1", line[8], line[3])
    n3.confirm("n1", line[9])
    n2.sync("n1", line[9], leaves=[line[9].id])
    table.run(limits.SYNC_DIFFERENCE_AGE_MS)
    assert n1.holds(line[3].id)  # what can be placed is taken
    assert len(n1.core.intake.waiting) == 0
    assert not any(request.ids for request in n2.requests() + n3.requests())
    n2.answer("n1", n2.requests()[-1], *line[4:8])
    table.run(0)
    n2.push("n1", line[9])
    table.run(0)
    assert len(n1.core.intake.waiting) == 1
    n2.answer("n1", n2.requests()[-1], line[8])
    table.run(0)
    assert n1.holds(line[9].id)
    assert n1.read_confirms(line[9].id) >= 1  # of n3, whose receipt came too early


def test_a_forged_copy_of_what_waits_changes_nothing() -> None:
    table, n1, (n2, n3) = alone_with(2)
    line = n2.chain(2)
    n2.push("n1", line[1])
    table.run(0)
    n3.push("n1", line[1]._replace(signature=bytes(64)))
    n2.push("n1", line[0])
    table.run(0)
    assert n1.event(line[1].id).signature == line[1].signature


def test_a_signature_is_checked_before_an_event_may_wait() -> None:
    table, n1, (n2, _) = alone_with(2)
    line = n2.chain(2)
    n2.push("n1", line[1]._replace(signature=bytes(64)))
    table.run(0)
    assert n1.refusals() == [Reason.BAD_SIGNATURE]
    assert len(n1.core.intake.waiting) == 0
    n2.push("n1", *line)  # the real one is not refused for it
    table.run(0)
    assert n1.holds(line[1].id)


def test_what_waits_for_something_refused_for_good_is_dropped() -> None:
    table, n1, (n2, n3) = alone_with(2)
    base = n2.event("base")
    bad = n2.event("bad", prev=base, depth=7)
    above = n2.event("above", prev=bad)
    on_top = n3.event("on top", parents=[above])
    n2.push("n1", on_top, above, bad)
    table.run(0)
    assert len(n1.core.intake.waiting) == 3
    n2.push("n1", base)
    table.run(0)
    assert n1.refusals() == [Reason.BAD_DEPTH]
    assert len(n1.core.intake.waiting) == 0
    assert n1.holds(base.id)
    n3.push("n1", bad)  # known: it is not looked at again
    table.run(0)
    assert n1.refused[-1].detail == "refused before"
    n3.push("n1", above)
    table.run(0)
    assert len(n1.core.intake.waiting) == 1  # it asks for what it misses, in vain


def test_a_fetched_ancestor_that_is_refused_is_wanted_no_more() -> None:
    table, n1, (n2, _) = alone_with(2)
    bad = n2.event("bad", depth=7)
    n2.push("n1", n2.event("above", prev=bad))
    table.run(0)
    n2.answer("n1", n2.requests()[-1], bad)
    table.run(0)
    assert n1.refusals() == [Reason.BAD_DEPTH]
    assert n1.core.fetch.wanted == {}
    assert len(n1.core.intake.waiting) == 0


def test_of_the_refused_the_last_ones_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "REFUSED_RECENT_MAX", 2)
    table, n1, (n2, _) = alone_with(2)
    bad = [n2.event("bad", depth=7 + number) for number in range(3)]
    n2.push("n1", *bad)
    table.run(0)
    assert list(n1.core.intake.refused) == [event.id for event in bad[1:]]


def test_where_there_is_no_room_to_wait_the_peer_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WAITING_PER_CORD_MAX", 1)
    table, n1, (n2, _) = alone_with(2)
    line = n2.chain(3)
    n2.push("n1", line[1], line[2])
    table.run(0)
    assert n1.refusals() == [Reason.ROOM_FULL]
    assert [request.ids for request in n2.requests()] == [[line[0].id]]


def test_without_the_safeguard_only_one_child_a_parent_is_freed() -> None:
    table, n1, (n2, n3) = alone_with(2, guards=replace(ALL, release_all_waiting=False))
    parent = n2.event()
    children = [n3.event(parents=[parent], journal=number) for number in (1, 2)]
    n3.push("n1", *children)
    n2.push("n1", parent)
    table.run(0)
    assert [n1.holds(event.id) for event in children] == [True, False]


def test_a_child_freed_by_its_parent_may_lack_another_that_was_refused_meanwhile() -> None:
    """The parent of two waiting events frees both; the first of them is refused, and the other
    one names it."""
    table, n1, (n2, n3) = alone_with(2, guards=replace(ALL, release_all_waiting=False))
    parent = n2.event("parent")
    first = n3.event("first", parents=[parent])
    second = n2.event("second", prev=parent, parents=[first])
    n3.push("n1", second)
    table.run(0)
    n3.push("n1", first)
    table.run(0)
    n2.push("n1", parent)
    table.run(0)
    assert n1.holds(parent.id)
    assert not (n1.holds(first.id) and n1.holds(second.id))


# --- receipts ---------------------------------------------------------------------------------
def test_a_row_counts_once_its_event_is_held_and_the_last_one_goes_on_counting() -> None:
    table, n1, (n2, n3) = alone_with(2, "all")
    line = n2.chain(4)
    n2.push("n1", *line[:2])
    n3.confirm("n1", line[1])
    table.run(0)
    n3.confirm("n1", line[3])
    table.run(0)
    assert n1.branch(line[1].id).receipts[n3.number][0] == 2  # parked
    n2.push("n1", line[2])
    table.run(0)
    assert n1.branch(line[1].id).receipts[n3.number][0] == 2
    n2.push("n1", line[3])
    table.run(0)
    assert n1.branch(line[1].id).receipts[n3.number][0] == 4  # resolved


def test_a_row_with_another_place_than_its_event_counts_nothing_whenever_it_comes() -> None:
    def lie(hand: Hand, event: SignedEvent, seq: int, journal: int) -> None:
        cord = hand.table.cord_of(event.header)._replace(journal=journal)  # type: ignore[arg-type]
        inv = build_inv(
            hand.key,
            hand.table.cluster_id,
            EpochNo(1),
            InvNumber(hand.table.hlc + seq + journal),
            [(cord, Seq(seq), event.id)],
        )
        hand.say("n1", InvMessage(inv.data))

    for is_first in (True, False):
        table, n1, (n2, n3) = alone_with(2)
        line = n2.chain(2)
        for seq, journal in ((1, 1), (2, 2)):
            if is_first:
                lie(n3, line[1], seq, journal)
                table.run(0)
                n2.push("n1", *line)
            else:
                n2.push("n1", *line)
                table.run(0)
                lie(n3, line[1], seq, journal)
            table.run(0)
            assert n3.number not in n1.branch(line[1].id).receipts


def test_without_the_safeguard_a_row_counts_by_its_position() -> None:
    table, n1, (n2, n3) = alone_with(2, guards=replace(ALL, rows_need_held_id=False))
    held, other = n2.event("held"), n2.event("other")
    n2.push("n1", held)
    table.run(10)
    n3.confirm("n1", other)
    n2.confirm("n1", n2.event("nothing of it is held", journal=5))
    table.run(0)
    assert n1.read_confirms(held.id) == 2


def test_what_is_said_again_or_late_is_not_looked_at() -> None:
    table, n1, (n2, n3) = alone_with(2)
    events = [n2.event(journal=number) for number in (1, 2)]
    n2.push("n1", *events)
    table.run(10)
    old, new = n3.inv(events[0]), n3.inv(events[1])
    for inv in (new, new, old):
        n3.say("n1", InvMessage(inv.data))
        table.run(0)
    assert [e.inv.number for e in n1.durable(StoreInv) if e.signer_no == n3.number] == [new.number]
    assert n3.number not in n1.branch(events[0].id).receipts
    assert n1.refusals() == []


def test_an_inv_that_was_asked_for_counts_again_where_its_rows_were_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "PARKED_ROWS_PER_SIGNER_MAX", 1)
    table, n1, (n2, n3) = alone_with(2)
    events = [n2.event(journal=number) for number in (1, 2)]
    older, inv = n3.inv(), n3.inv(*events)
    n3.say("n1", InvMessage(inv.data))  # the second row finds no room
    table.run(0)
    n2.push("n1", *events)
    table.run(10)
    assert [n3.number in n1.branch(event.id).receipts for event in events] == [True, False]
    n2.confirm("n1", events[0])
    table.run(0)
    n2.sync("n1", events[1], read_seq=1)
    table.run(limits.SYNC_DIFFERENCE_AGE_MS)
    n2.answer("n1", n2.requests()[-1], invs=[inv, older])
    table.run(0)
    assert [n3.number in n1.branch(event.id).receipts for event in events] == [True, True]
    stored = [effect.inv.number for effect in n1.durable(StoreInv) if effect.signer_no == 3]
    assert stored == [inv.number, older.number]
    n2.sync("n1", read_seq=1, receipts=[(3, inv.number + 1)])
    table.run(limits.SYNC_DIFFERENCE_AGE_MS)
    n2.answer("n1", n2.requests()[-1], invs=[older])  # kept already: not stored again
    table.run(0)
    assert len([e for e in n1.durable(StoreInv) if e.signer_no == 3]) == 2


def test_an_older_inv_that_is_kept_counts_again_when_it_was_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "PARKED_ROWS_PER_SIGNER_MAX", 1)
    table, n1, (n2, n3) = alone_with(2)
    events = [n2.event(journal=number) for number in (1, 2)]
    older = n3.confirm("n1", *events)
    table.run(0)
    n3.confirm("n1")
    n2.push("n1", *events)
    table.run(10)
    assert n3.number not in n1.branch(events[1].id).receipts  # its row had found no room
    n2.sync("n1", events[1], read_seq=1)
    table.run(limits.SYNC_DIFFERENCE_AGE_MS)
    n2.answer("n1", n2.requests()[-1], invs=[older])
    table.run(0)
    assert n3.number in n1.branch(events[1].id).receipts


def test_of_several_invs_of_a_signer_in_a_turn_the_last_alone_is_looked_at() -> None:
    table, n1, (n2, n3) = alone_with(2)
    line = n2.chain(3)
    n2.push("n1", *line)
    table.run(10)
    invs = [n3.inv(event) for event in line]
    broken = invs[1].data[:-1] + bytes([invs[1].data[-1] ^ 1])
    for data in (invs[0].data, broken, invs[2].data):
        n3.say("n1", InvMessage(data))
    table.run(0)
    assert n1.refusals() == []  # the broken one was never verified
    assert n1.branch(line[0].id).receipts[n3.number] == (3, invs[2].number)


def test_what_a_stranger_makes_up_hides_no_receipt() -> None:
    table, n1, (n2, n3) = alone_with(2)
    event = n2.event()
    n2.push("n1", event)
    table.run(10)
    made_up = n3.inv(event, number=1 << 63).data
    n2.say("n1", InvMessage(made_up[:-1] + bytes([made_up[-1] ^ 1])))
    n3.confirm("n1", event)
    table.run(0)
    assert n1.refusals() == [Reason.BAD_SIGNATURE]
    assert n3.number in n1.branch(event.id).receipts


def test_an_inv_of_another_cluster_or_of_nobody_is_refused() -> None:
    table, n1, (n2, n3) = alone_with(2)
    event = n2.event()
    n2.push("n1", event)
    table.run(0)
    row = (table.cord_of(event.header), Seq(1), event.id)
    for key, cluster_id, epoch in (
        (n3.key, bytes(32), 1),
        (key_of("stranger"), table.cluster_id, 1),
        (key_of("stranger"), table.cluster_id, 2),
        (n3.key, table.cluster_id, 0),
    ):
        inv = build_inv(key, cluster_id, EpochNo(epoch), InvNumber(1), [row])
        n3.say("n1", InvMessage(inv.data))
        table.run(0)
    assert n1.refusals() == [
        Reason.WRONG_CLUSTER,
        Reason.NOT_A_MEMBER,
        Reason.EPOCH_UNKNOWN,
        Reason.NOT_A_MEMBER,
    ]
    assert n1.read_confirms(event.id) == 1


def test_without_the_safeguards_forged_receipts_and_foreign_ones_count() -> None:
    for guards in (replace(ALL, inv_signature=False), replace(ALL, cluster_id=False)):
        table, n1, (n2, n3) = alone_with(2, guards=guards)
        event = n2.event()
        n2.push("n1", event)
        table.run(0)
        row = (table.cord_of(event.header), Seq(1), event.id)
        cluster_id = table.cluster_id if guards.cluster_id else bytes(32)
        data = build_inv(n3.key, cluster_id, EpochNo(1), InvNumber(1), [row]).data
        if guards.cluster_id:
            data = data[:-1] + bytes([data[-1] ^ 1])
        n3.say("n1", InvMessage(data))
        table.run(0)
        assert n1.read_confirms(event.id) == 2


def test_rows_of_authors_that_never_were_are_passed_over() -> None:
    table, n1, (n2, n3) = alone_with(2)
    cord = table.cord_of(n2.event().header)._replace(author_no=99)  # type: ignore[arg-type]
    ghost = EventId(b"g" * 32)
    inv = build_inv(n3.key, table.cluster_id, EpochNo(1), InvNumber(1), [(cord, Seq(1), ghost)])
    n3.say("n1", InvMessage(inv.data))
    table.run(0)
    assert n1.core.fetch.wanted == {}
    assert n1.core.receipts.parked_count(n3.number) == 0


def test_a_ghost_that_only_an_inv_has_named_is_given_up() -> None:
    table, n1, (n2, n3) = alone_with(2)
    n3.confirm("n1", n2.event("never sent"))
    table.run(limits.WANT_AFTER_INV_MS)
    for hand in (n3, n2):
        hand.answer("n1", hand.requests()[-1])
        table.run(10)
    table.run(60_000)
    assert n1.core.fetch.wanted == {}
    assert len(n2.requests()) == len(n3.requests()) == 1


def test_a_receipt_of_an_epoch_not_open_here_waits_for_it() -> None:
    table, n1, (n2, n3) = alone_with(2, "all")
    event = n2.event()
    n2.push("n1", event)
    table.run(10)
    forged = n3.inv(event, epoch=2).data
    n3.say("n1", InvMessage(forged[:-1] + bytes([forged[-1] ^ 1])))
    table.run(0)
    assert n1.refusals() == [Reason.BAD_SIGNATURE]
    n3.confirm("n1", event, epoch=2)
    n2.confirm("n1", event, epoch=2)
    table.run(10)
    assert n1.read_confirms(event.id) == 1
    change(table, ["n1", "n2", "n3"], policy="all")
    table.run(10)
    assert n1.read_confirms(event.id) == 2
    assert n1.is_read(event.id)


# --- proofs -----------------------------------------------------------------------------------
def test_two_events_for_one_slot_are_a_proof_made_stored_and_told_to_all_first() -> None:
    table, n1, (liar, n3, n4) = alone_with(3)
    one, other = liar.event("one"), liar.event("other")
    liar.push("n1", one)
    table.run(10)
    turns = len(n1.turns)
    n3.push("n1", n3.event())
    liar.push("n1", other)
    table.run(0)
    (turn,) = n1.turns[turns:]
    (proof,) = [effect for effect in turn.durable if isinstance(effect, StoreProof)]
    assert proof.conviction.data == proof_of(one, other)
    assert (proof.conviction.culprit, proof.conviction.seq) == (liar.key.node_id, 1)
    assert NodeConvicted(proof.conviction) in turn.spoken
    sent = [e for e in turn.spoken if isinstance(e, SendMessage)]
    first = [(e.peer, decode_message(e.data)) for e in sent[:2]]
    message = EvidenceMessage(proof.conviction.data)
    assert first == [(n3.key.node_id, message), (n4.key.node_id, message)]


def test_the_least_proof_is_kept_and_told_on() -> None:
    table, n1, (liar, n3, _) = alone_with(3)
    events = [liar.event(str(number)) for number in range(4)]
    ordered = sorted(events, key=lambda event: event.id)
    high, low = proof_of(ordered[2], ordered[3]), proof_of(ordered[0], ordered[1])
    for proof in (high, low, high, low):
        n3.accuse("n1", proof)
        table.run(0)
    assert [held.data for held in n1.core.convictions.all()] == [low]
    assert [effect.conviction.data for effect in n1.durable(StoreProof)] == [high, low]
    assert [m.proof for m in table.messages(EvidenceMessage, receiver="n4")] == [high, low]
    assert table.messages(EvidenceMessage, receiver="n3") == []  # it has told us
    table.kill("n1")
    table.start("n1")
    assert [held.data for held in n1.core.convictions.all()] == [low]


def test_what_proves_nothing_is_refused() -> None:
    table, n1, (liar, n3) = alone_with(2)
    one, other = liar.event("one"), liar.event("other", journal=2)
    for proof in (b"\x90", proof_of(one, other), proof_of(one, one)):
        n3.accuse("n1", proof)
        table.run(0)
    assert n1.refusals() == [Reason.MALFORMED, Reason.NO_PROOF, Reason.NO_PROOF]
    stranger = Hand(Table(1, played=["liar"]), "liar")
    stranger.table.cluster_id = table.cluster_id
    n3.accuse("n1", proof_of(stranger.event("one"), stranger.event("other")))
    table.run(0)
    assert n1.refusals()[3:] == [Reason.NOT_A_MEMBER]
    assert n1.core.convictions.all() == []


def test_who_shows_other_proofs_is_told_those_that_are_held() -> None:
    table, n1, (liar, n3) = alone_with(2)
    proof = proof_of(liar.event("one"), liar.event("other"))
    n3.accuse("n1", proof)
    table.run(0)
    n3.sync("n1")
    table.run(0)
    assert [m.proof for m in table.messages(EvidenceMessage, receiver="n3")] == [proof]
    n3.sync("n1", proofs=n1.core.convictions.digest)
    table.run(0)
    assert len(table.messages(EvidenceMessage, receiver="n3")) == 1
    table.run(limits.SYNC_INTERVAL_MS)
    assert table.messages(SyncEvent, receiver="n3")[-1].proofs == n1.core.convictions.digest


def test_whatever_an_author_does_all_models_are_equal_and_nothing_read_is_lost() -> None:
    table = Table(2, played=["liar"])
    (liar,) = hands(table)
    greet(liar)
    table.run(50)
    table.cut("n1", "n2")
    one, other = liar.event("one"), liar.event("other")
    liar.push("n1", one)
    liar.confirm("n1", one)
    liar.push("n2", other)
    liar.confirm("n2", other)
    table.run(50)
    assert table["n1"].is_read(one.id)  # majority with three: one receipt besides the author's
    assert table["n2"].is_read(other.id)
    table.heal()
    table.run(10_000)
    assert table.are_equal()
    for seat in table.seats.values():
        assert seat.is_read(one.id)
        assert seat.is_read(other.id)
        assert {c.culprit for c in seat.core.convictions.all()} == {liar.key.node_id}
    held = [[c.data for c in seat.core.convictions.all()] for seat in table.seats.values()]
    assert held[0] == held[1]
    roles = {c.as_signer for c in table["n1"].core.convictions.all()}
    assert roles == {False, True}  # it has also signed for both


def test_an_own_receipt_of_a_past_epoch_still_binds() -> None:
    table, n1, (n2, n3) = alone_with(2)
    held, missing = n2.event("held"), n2.event("missing", journal=2)
    myself = Hand(table, "n1")
    inv = myself.inv(held, missing, number=table.hlc + hlc_at(1_000))
    following = document(table, ["n1", "n2", "n3"])
    close(table, following)
    open_epoch(table, following, seals(table, following))
    n2.push("n1", held)
    n3.sync("n1", receipts=[(n1.number, inv.number)])
    table.run(limits.SYNC_DIFFERENCE_AGE_MS)
    request = n3.requests()[-1]
    assert [want.signer_no for want in request.invs] == [n1.number]
    n3.answer("n1", request, invs=[inv])
    table.run(0)
    assert n1.core.recovery.is_recovering
    assert n1.branch(held.id).signed_seq == 1
    assert n1.core.receipts.names_cord(table.cord_of(missing.header), n1.number)
    n2.push("n1", missing)
    table.run(0)
    assert n1.branch(missing.id).signed_seq == 1
    assert n1.branch(missing.id).receipts == {}  # binds, and counts no more


def test_a_cut_that_is_not_held_makes_read_what_comes() -> None:
    table, n1, (n2, n3) = alone_with(2)
    line = n2.chain(3)
    change(table, ["n1", "n2", "n3"], cut=[line[1]])
    n3.push("n1", *line)
    table.run(0)
    assert [n1.is_read(event.id) for event in line] == [True, True, False]
    assert n1.core.known.cut_wanted == {}


def test_without_the_safeguard_the_cut_makes_nothing_read() -> None:
    table, n1, (n2, n3) = alone_with(2, guards=replace(ALL, cut_is_read=False))
    event = n2.event()
    change(table, ["n1", "n2", "n3"], cut=[event])
    n3.push("n1", event)
    table.run(0)
    assert not n1.is_read(event.id)
