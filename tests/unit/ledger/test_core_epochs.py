"""Changes of roster, with CLOSE and OPEN ordered by the test."""

from dataclasses import replace

import msgspec
import pytest

from quipu.ledger import limits
from quipu.ledger.canonical import encode
from quipu.ledger.effects import StoreEpoch, StoreInv
from quipu.ledger.epochs import Member, close_hash
from quipu.ledger.event import SignedEvent
from quipu.ledger.inputs import EpochClosed, EpochOpened
from quipu.ledger.inv import Inv, decode_inv
from quipu.ledger.messages import InvMessage
from quipu.ledger.refusals import Reason
from quipu.ledger.safeguards import ALL
from quipu.ledger.words import EpochNo, hlc_at
from tests.conformance.hand import Hand, alone_with, greet, hands
from tests.conformance.roster import change, close, document, open_epoch, seal_of, seals
from tests.conformance.state import differing, state_of
from tests.conformance.table import Seat, Table

ALL_THREE = ["n1", "n2", "n3"]


def own(seat: Seat) -> list[Inv]:
    return [e.inv for e in seat.durable(StoreInv) if e.signer_no == seat.number]


def push(hand: Hand, *events: SignedEvent) -> None:
    hand.push("n1", *events)
    hand.table.run(10)


# --- SEAL -------------------------------------------------------------------------------------
def test_a_seal_is_one_last_inv_with_a_row_for_all_that_was_acknowledged_above_the_cut() -> None:
    table, n1, (n2, n3) = alone_with(2)
    old = n2.event(journal=1)
    push(n2, old, n2.event(journal=2))
    n2.confirm("n1", old)
    table.run(limits.CORD_OPEN_MS + 1)
    push(n3, n3.event())
    assert old.id not in [row.id for row in own(n1)[-1].rows]  # Read, at rest, not the newest
    count = len(own(n1))
    following = document(table, ALL_THREE)
    close(table, following)
    (seal,) = own(n1)[count:]
    assert seal.array.close == close_hash(following)
    assert old.id in [row.id for row in seal.rows]
    assert len(seal.rows) == 3
    assert [decode_inv(m.inv).id for m in table.messages(InvMessage, "n1", "n2")][-1] == seal.id


def test_after_its_seal_a_node_signs_nothing_and_writes_on_in_the_old_epoch() -> None:
    table, n1, (n2, _) = alone_with(2)
    following = document(table, ALL_THREE)
    close(table, following)
    count = len(own(n1))
    event = n2.event()
    push(n2, event)
    written = n1.event(table.write("n1"))
    n2.confirm("n1", written)
    table.run(1_000)
    assert len(own(n1)) == count
    assert n1.holds(event.id)
    assert written.header.epoch == 1
    assert not n1.is_read(written.id)
    assert n1.core.next_deadline() is not None
    table.kill("n1")
    table.start("n1")
    greet(*hands(table))
    push(n2, n2.event(prev=event))
    table.run(1_000)
    assert len(own(n1)) == count  # nor after a restart


def test_the_same_close_is_sealed_once_and_a_later_attempt_again_with_the_same_rows() -> None:
    table, n1, (n2, _) = alone_with(2)
    push(n2, n2.event())
    first = document(table, ALL_THREE)
    close(table, first)
    close(table, first)
    second = document(table, ["n1", "n2"], attempt=2)
    close(table, second)
    one, two = own(n1)[-2:]
    assert (one.array.close, two.array.close) == (close_hash(first), close_hash(second))
    assert one.rows == two.rows
    assert len(own(n1)) == 3
    assert seal_of(n1, first) is None
    assert seal_of(n1, second) == two.data


def test_who_may_not_sign_yet_seals_when_it_may() -> None:
    table = Table(1, played=["n2", "n3"])
    n1 = table["n1"]
    following = document(table, ALL_THREE)
    close(table, following)
    assert own(n1) == []
    greet(*hands(table))
    assert seal_of(n1, following) is not None


def test_who_is_no_member_seals_nothing() -> None:
    table = Table(2, outsiders=1)
    table.run(100)
    close(table, document(table, ALL_THREE))
    table.run(100)
    assert own(table["n3"]) == []
    assert len(own(table["n1"])) == 1


def test_a_cord_that_ends_at_the_cut_has_no_row_in_the_next_seal() -> None:
    table, n1, (n2, _) = alone_with(2)
    at_rest, rising = n2.event(journal=1), n2.event(journal=2)
    push(n2, at_rest, rising, n2.event(journal=3))
    change(table, ALL_THREE, cut=[at_rest, rising])
    push(n2, n2.event(prev=rising, epoch=2))
    table.run(limits.CORD_OPEN_MS + 1)
    following = document(table, ALL_THREE)
    close(table, following)
    assert [row.journal for row in own(n1)[-1].rows] == [2, 3]


# --- OPEN -------------------------------------------------------------------------------------
def test_the_first_inv_of_an_epoch_covers_all_that_is_held() -> None:
    table, n1, (n2, n3) = alone_with(2)
    old, late = n2.event(journal=1), n3.event("late")
    push(n2, old, n2.event(journal=2))
    n2.confirm("n1", old)
    table.run(limits.CORD_OPEN_MS + 1)
    following = document(table, ALL_THREE)
    close(table, following)
    push(n3, late)
    open_epoch(table, following, seals(table, following))
    table.run(10)
    first = own(n1)[-1]
    assert first.epoch == 2
    assert {row.id for row in first.rows} >= {old.id, late.id}
    assert len(first.rows) == 3
    assert first.number > own(n1)[-2].number


def test_a_node_that_holds_nothing_says_so_in_its_first_inv() -> None:
    table, n1, _ = alone_with(2)
    change(table, ALL_THREE)
    table.run(10)
    assert [(inv.epoch, inv.rows) for inv in own(n1)][-1] == (2, [])
    table.run(10_000)
    assert len(own(n1)) == 2  # its SEAL and this


def test_certificates_are_of_one_epoch() -> None:
    table, n1, (n2, n3) = alone_with(2, "all")
    event = n2.event()
    push(n2, event)
    n2.confirm("n1", event)
    change(table, ALL_THREE, policy="all")
    table.run(10)
    n3.confirm("n1", event)  # of the epoch that is over
    table.run(10)
    assert n1.branch(event.id).receipts.keys() == {n1.number}
    for hand in (n2, n3):
        assert not n1.is_read(event.id)
        hand.confirm("n1", event, epoch=2)
        table.run(10)
    assert n1.is_read(event.id)


def test_without_the_safeguard_receipts_of_two_epochs_go_together() -> None:
    guards = replace(ALL, one_epoch_certificate=False)
    table, n1, (n2, n3) = alone_with(2, "all", guards)
    event = n2.event()
    push(n2, event)
    n2.confirm("n1", event)
    table.run(10)
    change(table, ALL_THREE, policy="all")
    n3.confirm("n1", event, epoch=2)
    table.run(10)
    assert n1.is_read(event.id)


def test_a_parked_row_of_a_past_epoch_counts_no_more() -> None:
    table, n1, (n2, n3) = alone_with(2)
    event = n2.event()
    n2.confirm("n1", event)
    n3.confirm("n1", event)
    table.run(10)
    change(table, ALL_THREE)
    push(n2, event)
    assert n1.branch(event.id).receipts.keys() == {n1.number}


def test_max_confirms_is_that_of_the_newest_epoch() -> None:
    table, n1, (n2, n3) = alone_with(2)
    event = n2.event()
    change(table, ALL_THREE, policy="all")
    push(n2, event)
    n2.confirm("n1", event, epoch=2)
    table.run(10)
    assert not n1.is_read(event.id)
    n3.confirm("n1", event, epoch=2)
    table.run(10)
    assert n1.is_read(event.id)


def test_invs_that_come_before_open_count_when_it_comes() -> None:
    table, n1, (n2, n3) = alone_with(2)
    event = n2.event()
    push(n2, event)
    following = document(table, ALL_THREE)
    close(table, following)
    sealed = seals(table, following)
    for hand in (n2, n3):
        hand.confirm("n1", n2.event("unknown", journal=9), epoch=2)
        hand.confirm("n1", event, epoch=2)  # the newest a member is kept
    table.run(10)
    assert not n1.is_read(event.id)
    open_epoch(table, following, sealed)
    assert n1.is_read(event.id)


def test_an_epoch_outlives_a_restart() -> None:
    table, n1, (n2, n3) = alone_with(2)
    line = n2.chain(3)
    push(n2, line[0])
    following = change(table, ALL_THREE, cut=[line[1]], policy="all")
    table.run(10)
    (stored,) = n1.durable(StoreEpoch)
    assert (stored.number, stored.document) == (2, encode(following))
    digest = n1.digest()
    table.kill("n1")
    table.start("n1")
    greet(n2, n3)
    assert n1.core.epochs.newest.number == 2
    assert n1.core.epochs.newest.max_confirms == 2
    assert n1.digest() == digest
    assert n1.core.known.cut_wanted.keys() == {line[1].id}
    assert n1.event(table.write("n1")).header.epoch == 1  # the cut is not in its Model yet
    push(n2, line[1])
    assert n1.is_read(line[1].id)
    assert n1.event(table.write("n1")).header.epoch == 2


def test_a_node_that_stops_between_open_and_its_first_inv_owes_it() -> None:
    table, n1, (n2, n3) = alone_with(2)
    event = n2.event()
    push(n2, event)
    following = document(table, ALL_THREE)
    close(table, following)
    sealed = seals(table, following)
    n1.inbox.append(EpochOpened(encode(following), sealed))
    effects = n1.core.step(n1.inbox, table.now(n1))  # OPEN is durable, its first Inv is not
    n1.store.commit([e for e in effects.durable if not isinstance(e, StoreInv)])
    table.kill("n1")
    table.start("n1")
    greet(n2, n3)
    table.run(10)
    assert (own(n1)[-1].epoch, [row.id for row in own(n1)[-1].rows]) == (2, [event.id])


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("noise", Reason.MALFORMED),
        ("cluster", Reason.WRONG_CLUSTER),
        ("gap", Reason.EPOCH_UNKNOWN),
        ("previous", Reason.EPOCH_UNKNOWN),
        ("numbers", Reason.MALFORMED),
        ("few seals", Reason.NO_PROOF),
        ("other roster", Reason.NO_PROOF),
    ],
)
def test_a_document_that_does_not_follow_is_refused_and_changes_nothing(
    fault: str, reason: Reason
) -> None:
    table, n1, _ = alone_with(2)
    following = document(table, ALL_THREE)
    changes: dict[str, dict[str, object]] = {
        "cluster": {"cluster_id": bytes(32)},
        "gap": {"number": 3},
        "previous": {"previous": bytes(32)},
        "numbers": {"members": [*following.members[:2], _renumbered(following.members[2])]},
        "other roster": {},
    }
    wrong = msgspec.structs.replace(following, **changes.get(fault, {}))
    close(table, following if fault == "other roster" else wrong)
    sealed = seals(table, following if fault == "other roster" else wrong)
    if fault == "other roster":
        wrong = document(table, ["n1", "n2"])
    data = b"\x90" if fault == "noise" else encode(wrong)
    n1.core.step([], table.now(n1))
    before, turns = state_of(n1.core), len(n1.turns)
    n1.inbox.append(EpochOpened(data, sealed[:1] if fault == "few seals" else sealed))
    table.run(0)
    assert n1.refusals() == [reason]
    assert [turn.durable for turn in n1.turns[turns:]] == [[]]
    assert differing(before, state_of(n1.core)) == []


def _renumbered(member: Member) -> Member:
    return msgspec.structs.replace(member, node_no=9)


def test_a_document_that_is_open_already_is_passed_over() -> None:
    table, n1, _ = alone_with(2)
    following = document(table, ALL_THREE)
    close(table, following)
    sealed = seals(table, following)
    open_epoch(table, following, sealed)
    turns = len(n1.turns)
    table.run(5)
    open_epoch(table, following, sealed)
    assert [e for t in n1.turns[turns:] for e in t.durable if isinstance(e, StoreEpoch)] == []
    assert n1.refusals() == []


# --- the cut ----------------------------------------------------------------------------------
def test_everything_in_the_cut_is_read() -> None:
    table, n1, (n2, n3) = alone_with(2)
    parent = n3.event("parent")
    line = [n2.event("first", parents=[parent])]
    line += n2.chain(3, line[0])
    push(n2, parent, *line)
    assert n1.feed() == []
    change(table, ALL_THREE, cut=[parent, line[2]])
    assert n1.feed() == [parent.id, *(event.id for event in line[:3])]
    assert not n1.is_read(line[3].id)


def test_a_row_for_each_branch_that_the_cut_took_in() -> None:
    table, n1, (n2, n3) = alone_with(2)
    one, other = n2.event("one"), n2.event("other")
    push(n2, one)
    n3.confirm("n1", other)
    table.run(0)
    push(n2, other)
    change(table, ALL_THREE, cut=[one, other])
    assert sorted(n1.feed()) == sorted([one.id, other.id])


def test_the_cut_brings_due_what_it_contains() -> None:
    """Its greatest hlc counts as a clock: what lies just above it does not wait."""
    table, n1, (n2, _) = alone_with(2)
    ahead = n2.event(hlc=table.hlc + hlc_at(60_000))
    above = n2.event(prev=ahead, hlc=ahead.header.hlc + hlc_at(limits.CLOCK_AHEAD_MS))
    beyond = n2.event(prev=above)
    push(n2, ahead, above, beyond)
    assert n1.branch(ahead.id).signed_seq == 0
    change(table, ALL_THREE, cut=[ahead])
    table.run(limits.SYNC_DIFFERENCE_AGE_MS)  # it looks again at what is not due
    assert n1.branch(ahead.id).signed_seq == 2


def test_the_cord_of_who_left_ends_at_the_cut() -> None:
    table, n1, (n2, n3) = alone_with(2)
    line = n3.chain(3)
    push(n3, *line)
    assert n1.branch(line[2].id).signed_seq == 3
    change(table, ["n1", "n2"], cut=[line[1]])
    table.run(10)
    above = n3.event(prev=line[2])
    n2.push("n1", above)
    table.run(10)
    assert n1.refusals() == [Reason.CORD_ENDED]
    assert [n1.is_read(event.id) for event in line] == [True, True, False]
    n3.confirm("n1", line[2], epoch=2)  # nor does its receipt count any more
    n2.confirm("n1", line[2], epoch=2)
    table.run(10)
    assert Reason.NOT_A_MEMBER in n1.refusals()
    assert not n1.is_read(line[2].id)


def test_above_the_cut_nothing_new_is_signed_of_who_left() -> None:
    table, n1, (_, n3) = alone_with(2)
    line = n3.chain(3)
    following = document(table, ["n1", "n2"], [line[1]])
    close(table, following)
    push(n3, *line)  # held, and not signed: this node has sealed
    open_epoch(table, following, seals(table, following))
    table.run(10)
    assert n1.branch(line[0].id).signed_seq == 2
    assert n1.holds(line[2].id)


# --- who may write ----------------------------------------------------------------------------
def test_a_member_writes_in_the_new_epoch_once_its_model_contains_the_cut() -> None:
    table, n1, (n2, n3) = alone_with(2)
    line = n3.chain(2)
    change(table, ALL_THREE, cut=[line[1]])
    assert n1.event(table.write("n1")).header.epoch == 1
    push(n2, *line)
    assert n1.event(table.write("n1")).header.epoch == 2


def test_a_new_member_catches_up_before_it_writes() -> None:
    table = Table(1, outsiders=1, played=["n2"])
    n3 = table["n3"]
    (n2,) = [Hand(table, "n2")]
    greet(n2)
    table.run(10)
    event = n2.event()
    table.submit("n3")
    table.run(0)
    assert [notice.reason for notice in n3.not_stored] == [Reason.NOT_A_MEMBER]
    table.cut("n1", "n3")
    change(table, ALL_THREE, cut=[event])
    table.submit("n3")
    table.run(0)
    assert [notice.reason for notice in n3.not_stored][1:] == [Reason.CATCHING_UP]
    n2.push("n3", event)
    table.run(0)
    written = n3.event(table.write("n3"))
    assert (written.header.epoch, n3.number) == (2, 3)
    assert written.header.parents == [event.id]


def test_who_has_left_may_not_write() -> None:
    table, n1, _ = alone_with(2)
    table.write("n1")
    change(table, ["n2", "n3"])
    table.submit("n1")
    table.run(10)
    assert [notice.reason for notice in n1.not_stored] == [Reason.NOT_A_MEMBER]
    assert own(n1)[-1].epoch == 1
    assert n1.core.me == 1  # its number is never used again


def test_what_was_taken_in_the_turn_that_opened_an_epoch_is_written() -> None:
    table, n1, _ = alone_with(2)
    following = document(table, ["n2", "n3"])
    close(table, following)
    sealed = seals(table, following)
    ticket = table.submit("n1")
    n1.inbox.append(EpochOpened(encode(following), sealed))
    table.run(0)
    assert n1.event(table.event_of(ticket)).header.epoch == 1  # void, once that is known


# --- with real cores --------------------------------------------------------------------------
def test_one_grows_to_three_and_to_five_and_nothing_read_is_lost() -> None:
    table = Table(1, outsiders=4)
    table.run(10)
    events = [table.write("n1", "alone")]
    for members in (ALL_THREE, ["n1", "n2", "n3", "n4", "n5"]):
        table.run(5_000)
        cut = [table["n1"].event(identity) for identity in table["n1"].core.dag.leaves]
        change(table, members, cut=cut)
        table.run(5_000)
        for name in members:
            events.append(table.write(name, f"by {name}"))
            table.run(50)
    table.run(5_000)
    for seat in table.seats.values():
        assert all(seat.is_read(event) for event in events)
    assert table.are_equal()
    epochs = [table["n1"].event(event).header.epoch for event in events]
    assert epochs == [1, 2, 2, 2, 3, 3, 3, 3, 3]


def test_what_is_in_flight_is_confirmed_again_in_the_new_epoch() -> None:
    table = Table(3)
    table.run(50)
    table.may_pass = lambda s: not isinstance(s.message, InvMessage)
    event = table.write("n1")
    table.run(10)
    following = document(table, ALL_THREE)
    close(table, following)
    open_epoch(table, following, seals(table, following))
    table.heal()
    table.run(5_000)
    for seat in table.seats.values():
        assert seat.is_read(event)
        assert seat.core.epochs.newest.number == EpochNo(2)


def test_a_close_alone_is_no_reason_to_wake() -> None:
    table, n1, (n2, _) = alone_with(2)
    n1.inbox.append(EpochClosed(b"c" * 32))
    table.run(10)
    push(n2, n2.event())
    table.run(3_000)
    turns = len(n1.turns)
    table.run(10_000)
    assert len(n1.turns) - turns <= 12
