from dataclasses import replace

import pytest

from quipu.ledger import limits
from quipu.ledger.event import SignedEvent
from quipu.ledger.history import SignerRecord
from quipu.ledger.inv import Inv
from quipu.ledger.receipts import ParkedRow, Receipts
from quipu.ledger.safeguards import ALL
from quipu.ledger.words import EpochNo, NodeNo
from tests.small_ledger import SmallLedger

N1, N2, N3 = NodeNo(1), NodeNo(2), NodeNo(3)


def chain(ledger: SmallLedger, count: int, author: int = 1) -> list[SignedEvent]:
    return [ledger.write(author) for _ in range(count)]


def park(receipts: Receipts, signer: NodeNo, inv: Inv) -> list[bool]:
    return [receipts.park(signer, row, inv) for row in inv.rows]


def unparked(receipts: Receipts, ledger: SmallLedger, event: SignedEvent) -> list[NodeNo]:
    return [signer for signer, _ in receipts.unpark(ledger.metas[event.id])]


def test_the_newest_inv_of_a_signer_is_known() -> None:
    ledger, receipts = SmallLedger(), Receipts([], ALL)
    (event,) = chain(ledger, 1)
    old, new = ledger.sign(2, event), ledger.sign(2, event)
    assert receipts.is_newest(N2, old)
    assert receipts.take(N2, new)
    assert receipts.is_known(N2, new)
    assert not receipts.is_known(N2, old)
    assert not receipts.is_known(N3, new)
    assert not receipts.take(N2, old)
    assert receipts.newest[N2] == SignerRecord(N2, new.number, new.id, EpochNo(1))
    assert not Receipts(list(receipts.newest.values()), ALL).take(N2, new)


def test_only_rows_that_say_something_new_are_looked_at() -> None:
    ledger, receipts = SmallLedger(), Receipts([], ALL)
    one, two = ledger.write(1), ledger.write(2)
    first = ledger.sign(3, one, two)
    assert receipts.fresh_rows(N3, first) == first.rows
    three = ledger.write(2)
    second = ledger.sign(3, one, three)
    assert [row.id for row in receipts.fresh_rows(N3, second)] == [three.id]
    assert receipts.fresh_rows(N3, second) == []
    assert receipts.fresh_rows(N2, second) == second.rows
    receipts.of_opened(EpochNo(2))  # all rows count anew
    assert receipts.fresh_rows(N3, second) == second.rows


def test_a_parked_row_is_due_when_its_event_is_held() -> None:
    ledger, receipts = SmallLedger(), Receipts([], ALL)
    one, two = chain(ledger, 2)
    inv = ledger.sign(3, two)
    assert park(receipts, N3, inv) == [True]
    assert park(receipts, N2, ledger.sign(2, two)) == [True]
    assert receipts.parked_count(N3) == 1
    assert receipts.names(two.id, N1)
    assert not receipts.names(one.id, N1)
    assert unparked(receipts, ledger, one) == []
    assert receipts.unpark(ledger.metas[two.id])[0] == (
        N3,
        ParkedRow(ledger.metas[two.id].seq, two.id, inv.number, EpochNo(1)),
    )
    assert receipts.parked_count(N3) == receipts.parked_count(N2) == 0
    assert unparked(receipts, ledger, two) == []


def test_the_author_vouches_for_nothing_of_its_own() -> None:
    ledger, receipts = SmallLedger(), Receipts([], ALL)
    (event,) = chain(ledger, 1)
    park(receipts, N1, ledger.sign(1, event))
    assert not receipts.names(event.id, besides=N1)
    assert receipts.names(event.id, besides=N2)


def test_of_a_signer_and_cord_the_longest_waiting_row_and_the_newest_are_parked() -> None:
    ledger, receipts = SmallLedger(), Receipts([], ALL)
    events = chain(ledger, 4)
    for event in events:
        park(receipts, N3, ledger.sign(3, event))
    assert receipts.parked_count(N3) == 2
    assert [unparked(receipts, ledger, event) for event in events] == [[N3], [], [], [N3]]


def test_an_old_row_that_was_asked_for_does_not_push_out_the_newest() -> None:
    ledger, receipts = SmallLedger(), Receipts([], ALL)
    events = chain(ledger, 3)
    invs = [ledger.sign(3, event) for event in events]
    for inv in (invs[0], invs[2], invs[1]):
        assert park(receipts, N3, inv) == [True]
    assert [unparked(receipts, ledger, event) for event in events] == [[N3], [], [N3]]


def test_the_same_row_again_is_parked_once_with_its_newest_inv() -> None:
    ledger, receipts = SmallLedger(), Receipts([], ALL)
    (event,) = chain(ledger, 1)
    old, new = ledger.sign(3, event), ledger.sign(3, event, epoch=2)
    for inv in (old, new, old):
        assert park(receipts, N3, inv) == [True]
    assert receipts.parked_count(N3) == 1
    ((_, row),) = receipts.unpark(ledger.metas[event.id])
    assert (row.epoch, row.number) == (EpochNo(2), new.number)


def test_the_rows_of_a_signer_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PARKED_ROWS_PER_SIGNER_MAX", 2)
    ledger, receipts = SmallLedger(), Receipts([], ALL)
    events = [ledger.write(author) for author in (1, 2, 3)]
    assert park(receipts, N3, ledger.sign(3, *events)) == [True, True, False]
    assert park(receipts, N2, ledger.sign(2, *events)) == [True, True, False]
    assert limits.INV_ROWS_MAX == 1024


def test_a_row_with_another_seq_than_its_event_counts_nothing() -> None:
    ledger, receipts = SmallLedger(), Receipts([], ALL)
    one, two = chain(ledger, 2)
    inv = ledger.sign(3, two)
    lie = inv._replace(array=ledger.sign(3, one).array)
    (row,) = inv.rows
    assert receipts.park(N3, type(row)(row.author_no, row.journal, 1, row.id), lie)
    assert unparked(receipts, ledger, two) == []
    assert receipts.parked_count(N3) == 0


def test_whether_a_signer_stands_parked_in_a_cord() -> None:
    ledger, receipts = SmallLedger(), Receipts([], ALL)
    (event,) = chain(ledger, 1)
    cord = ledger.cord_of(event)
    assert not receipts.names_cord(cord, N3)
    park(receipts, N3, ledger.sign(3, event))
    assert receipts.names_cord(cord, N3)
    assert not receipts.names_cord(cord, N2)
    unparked(receipts, ledger, event)
    assert not receipts.names_cord(cord, N3)


def test_without_the_safeguard_parked_rows_are_lost() -> None:
    ledger, receipts = SmallLedger(), Receipts([], replace(ALL, parked_rows_kept=False))
    (event,) = chain(ledger, 1)
    park(receipts, N3, ledger.sign(3, event))
    assert unparked(receipts, ledger, event) == []


def test_of_an_epoch_not_open_here_the_newest_inv_of_a_signer_is_kept() -> None:
    ledger, receipts = SmallLedger(), Receipts([], ALL)
    (event,) = chain(ledger, 1)
    old, new = ledger.sign(3, event, epoch=2), ledger.sign(3, event, epoch=2)
    later = ledger.sign(2, event, epoch=3)
    for signer, inv in ((N3, new), (N3, old), (N2, later)):
        receipts.keep_for_later(signer, inv)
    assert receipts.of_opened(EpochNo(2)) == [(N3, new)]
    assert receipts.of_opened(EpochNo(2)) == []
    assert receipts.of_opened(EpochNo(3)) == [(N2, later)]


def test_a_row_that_is_pushed_out_leaves_those_of_others_for_the_same_event() -> None:
    ledger, receipts = SmallLedger(), Receipts([], ALL)
    events = chain(ledger, 3)
    for signer in (N2, N3):
        park(receipts, signer, ledger.sign(signer, events[0]))
        park(receipts, signer, ledger.sign(signer, events[1]))
    park(receipts, N3, ledger.sign(3, events[2]))
    assert unparked(receipts, ledger, events[1]) == [N2]
    assert unparked(receipts, ledger, events[0]) == [N2, N3]
    assert receipts.names_cord(ledger.cord_of(events[2]), N3)  # one row is left there
    assert not receipts.names_cord(ledger.cord_of(events[2]), N2)
    assert unparked(receipts, ledger, events[2]) == [N3]


def test_a_row_parked_under_a_wrong_cord_goes_when_another_takes_its_room() -> None:
    ledger, receipts = SmallLedger(), Receipts([], ALL)
    mine, other = ledger.write(1), ledger.write(2)
    inv = ledger.sign(3, mine)
    (row,) = inv.rows
    wrong = type(row)(2, row.journal, row.seq, row.id)
    assert receipts.park(N3, wrong, inv)
    assert unparked(receipts, ledger, mine) == []  # it is in no row of its own cord
    for event in (other, ledger.write(2), ledger.write(2)):
        park(receipts, N3, ledger.sign(3, event))
    assert receipts.parked_count(N3) == 2


def test_rows_of_what_is_gone_are_forgotten_up_to_there() -> None:
    ledger, receipts = SmallLedger(), Receipts([], ALL)
    events = chain(ledger, 3)
    cord = ledger.cord_of(events[0])
    for signer in (N2, N3):
        park(receipts, signer, ledger.sign(signer, events[0]))
        park(receipts, signer, ledger.sign(signer, events[2]))
    receipts.forget_below(cord, ledger.metas[events[1].id].seq)
    assert [receipts.parked_count(signer) for signer in (N2, N3)] == [1, 1]
    assert not receipts.names(events[0].id, N1)
    assert receipts.names(events[2].id, N1)
    receipts.forget_below(cord, ledger.metas[events[2].id].seq)
    assert [receipts.parked_count(signer) for signer in (N2, N3)] == [0, 0]
    assert receipts._parked == {N2: {}, N3: {}}, "nothing of the cord takes room any more"
    assert receipts._waiting_for == {}


def test_what_is_pushed_out_takes_no_room() -> None:
    ledger, receipts = SmallLedger(), Receipts([], ALL)
    events = chain(ledger, 3)
    for event in events:
        park(receipts, N3, ledger.sign(3, event))
    assert sorted(receipts._waiting_for) == sorted([events[0].id, events[2].id])


def test_of_two_invs_with_one_number_the_first_is_kept() -> None:
    """They are a lie of their signer; none of the two is better."""
    ledger, receipts = SmallLedger(), Receipts([], ALL)
    one, two, three = chain(ledger, 3)
    first = ledger.sign(3, one, epoch=2)
    second = ledger.sign(3, two, epoch=2)._replace(array=first.array)
    assert (first.number, first.epoch) == (second.number, second.epoch)
    receipts.keep_for_later(N3, first)
    receipts.keep_for_later(N3, second)
    assert receipts.of_coming(EpochNo(3)) == []
    assert receipts.of_coming(EpochNo(2))[0][1] is first
    newest = ledger.sign(3, three)
    rival = ledger.sign(3, two)._replace(array=newest.array)
    for inv in (ledger.sign(3, one), newest):
        park(receipts, N3, inv)
    (row,) = ledger.sign(3, two).rows
    assert receipts.park(N3, row, rival)
    assert unparked(receipts, ledger, two) == [N3], (
        "of two with one number the later takes the room"
    )
