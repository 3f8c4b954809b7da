"""The cut of an epoch: what seals cover, nothing at forks, nothing late, all ancestors with it."""

from collections.abc import Mapping, Sequence

from quipu.ledger import limits
from quipu.ledger.event import SignedEvent
from quipu.ledger.inv import Inv, InvRow
from quipu.ledger.order.cut import Cut, CutTerms, compute_cut, unresolved
from quipu.ledger.words import HLC_SHIFT, Cord, EventId, Journal, NodeNo, Seq, hlc_at
from tests.conformance.hand import Hand, alone_with
from tests.conformance.roster import change
from tests.conformance.table import Seat, Table

FAR_MS = 1 << 43


def seals(*said: tuple[Hand, Sequence[SignedEvent]]) -> dict[NodeNo, Inv]:
    return {hand.number: hand.inv(*events, close=bytes(32)) for hand, events in said}


def cut_of(
    n1: Seat,
    sealed: Mapping[NodeNo, Inv],
    due_ms: int = FAR_MS,
    forks: Mapping[Cord, Seq] | None = None,
    receipts: Sequence[tuple[NodeNo, Inv]] = (),
) -> Cut:
    known = n1.core.known
    terms = CutTerms(known.epochs.newest, sealed, due_ms, forks or {}, tuple(receipts))
    return compute_cut(terms, known)


def ends(cut: Cut) -> list[EventId]:
    return [EventId(row.id) for row in cut.rows]


def held(table: Table, hand: Hand, *events: SignedEvent) -> None:
    hand.push("n1", *events)
    table.run(10)
    assert all(table["n1"].holds(event.id) for event in events)


def test_an_event_is_in_it_if_a_certificate_was_possible() -> None:
    """Three members, one receipt of another needed: all have sealed, so two have to cover it;
    where one is silent, its receipt may be the one that nobody shows."""
    table, n1, (n2, n3) = alone_with(2)
    one, two = n2.chain(2)
    held(table, n2, one, two)
    me = Hand(table, "n1")
    assert ends(cut_of(n1, seals((n2, [two]), (n3, [one]), (me, [])))) == [one.id]
    assert ends(cut_of(n1, seals((n2, [two]), (n3, []), (me, [])))) == []
    assert ends(cut_of(n1, seals((n2, [two]), (n3, [])))) == [two.id]
    assert ends(cut_of(n1, seals((n2, [two]), (n3, [two]), (me, [one])))) == [two.id]
    assert ends(cut_of(n1, seals((n2, []), (n3, [])))) == []


def test_of_five_with_two_liars_borne_by_nobody_the_third_highest_row_decides() -> None:
    table, n1, (n2, n3, n4, n5) = alone_with(4)
    line = n2.chain(4)
    held(table, n2, *line)
    told = seals((n2, [line[3]]), (n3, [line[2]]), (n4, [line[1]]), (n5, [line[0]]))
    assert ends(cut_of(n1, told)) == [line[2].id]  # one is silent: two of them are enough
    all_told = told | seals((Hand(table, "n1"), [line[0]]))
    assert ends(cut_of(n1, all_told)) == [line[1].id]


def test_rows_of_strangers_and_of_other_places_say_nothing() -> None:
    table, n1, (n2, n3) = alone_with(2)
    one, two = n2.chain(2)
    held(table, n2, one, two)
    wrong = n2.inv(two, close=bytes(32))
    row = wrong.rows[0]
    misplaced = InvRow(row.author_no, row.journal, 1, row.id)
    wrong.array.rows[:] = [misplaced]
    assert ends(cut_of(n1, {n2.number: wrong, n3.number: wrong})) == []
    unknown = n3.event("never pushed")
    sealed = [n2.inv(unknown), n3.inv(one)]
    lacking = unresolved(sealed, n1.core.known.epochs.newest, n1.core.known)
    assert [EventId(row.id) for row in lacking] == [unknown.id]
    foreign = InvRow(NodeNo(9), row.journal, 1, bytes(32))
    sealed[0].array.rows[:] = [foreign]
    assert unresolved(sealed, n1.core.known.epochs.newest, n1.core.known) == []


def test_at_and_above_a_fork_only_what_is_certified_by_itself() -> None:
    table, n1, (n2, n3) = alone_with(2)
    root = n2.event("root")
    left, right = n2.event("left", prev=root), n2.event("right", prev=root)
    held(table, n2, root, left)
    n3.push("n1", right)
    n3.confirm("n1", right)
    table.run(10)
    told = seals((n2, [left]), (n3, [left]))
    cord = table.cord_of(left.header)
    assert ends(cut_of(n1, told)) == [left.id]
    certified = cut_of(n1, told, forks={cord: Seq(2)})
    assert ends(certified) == [left.id]  # n2's own and n3's are a certificate
    silent = seals((n3, [left]), (Hand(table, "n1"), []))
    assert ends(cut_of(n1, silent)) == [left.id]
    assert ends(cut_of(n1, silent, forks={cord: Seq(2)})) == [root.id]
    assert ends(cut_of(n1, silent, forks={cord: Seq(1)})) == []
    more = [(n2.number, n2.inv(left))]
    assert ends(cut_of(n1, silent, forks={cord: Seq(2)}, receipts=more)) == [left.id]
    assert ends(cut_of(n1, silent, forks={cord: Seq(2)}, receipts=[(n3.number, n3.inv(left))])) == [
        root.id
    ]


def test_two_branches_that_are_sealed_are_a_fork_by_themselves() -> None:
    table, n1, (n2, n3) = alone_with(2)
    root = n2.event("root")
    left, right = n2.event("left", prev=root), n2.event("right", prev=root)
    held(table, n2, root, left)
    n3.confirm("n1", right)  # only what a member vouches for is taken beside the first
    table.run(10)
    held(table, n2, right)
    me = Hand(table, "n1")
    found = cut_of(n1, seals((n3, [right]), (me, [left])))
    assert ends(found) == [root.id]
    assert [row.seq for row in found.rows] == [1]


def test_nothing_later_than_due_but_up_to_it_all_of_it() -> None:
    table, n1, (n2, n3) = alone_with(2)
    start = table.hlc
    line: list[SignedEvent] = []
    for number in range(9):
        prev = line[-1] if line else None
        line.append(n2.event(str(number), prev=prev, hlc=start + (number * 100 << HLC_SHIFT)))
    n2.push("n1", *line)
    table.run(2_000)
    table.run(10)
    assert n1.holds(line[-1].id)
    start_ms = start >> HLC_SHIFT
    told = seals((n3, [line[-1]]), (Hand(table, "n1"), [line[-1]]))
    for upto in range(9):
        due_ms = start_ms + upto * 100
        assert ends(cut_of(n1, told, due_ms)) == [line[upto].id]
        assert ends(cut_of(n1, told, due_ms + 99)) == [line[upto].id]
    assert ends(cut_of(n1, told, start_ms - 1)) == []


def test_due_is_never_earlier_than_two_seconds_after_the_last_cut() -> None:
    table, n1, (n2, n3) = alone_with(2)
    first = n2.event("first")
    held(table, n2, first)
    n2.confirm("n1", first)
    table.run(50)
    change(table, ["n1", "n2", "n3"], [first])
    base_ms = first.header.hlc >> HLC_SHIFT
    last_ms = base_ms + limits.CLOCK_AHEAD_MS
    for shift, is_in in ((0, True), (1, False)):
        journal = 5 + shift
        late = n2.event("late", journal=journal, hlc=hlc_at(last_ms + shift), epoch=2)
        n2.push("n1", late)
        table.run(3_000)
        told = {
            hand.number: hand.inv(late, epoch=2, close=bytes(32))
            for hand in (n3, Hand(table, "n1"))
        }
        found = ends(cut_of(n1, told, due_ms=0))
        assert (late.id in found) is is_in


def test_it_is_lowered_until_all_ancestors_are_in_it() -> None:
    table, n1, (n2, n3) = alone_with(2)
    parent = n3.event("parent")
    below = n2.event("below")
    child = n2.event("child", prev=below, parents=[parent])
    above = n2.event("above", prev=child)
    grandchild = n3.event("grandchild", parents=[above], journal=7)
    held(table, n3, parent)
    held(table, n2, below, child, above)
    held(table, n3, grandchild)
    me = Hand(table, "n1")
    without = cut_of(n1, seals((n2, [above, grandchild]), (me, [above, grandchild])))
    assert ends(without) == [below.id]
    whole = cut_of(n1, seals((n2, [above, grandchild, parent]), (me, [above, grandchild, parent])))
    assert set(ends(whole)) == {above.id, grandchild.id, parent.id}
    assert whole.hlc == max(e.header.hlc for e in (above, grandchild, parent))


def test_only_cords_that_rose_are_rows_and_its_time_never_falls() -> None:
    table, n1, (n2, n3) = alone_with(2)
    first, second = n2.chain(2)
    other = n3.event("other")
    held(table, n2, first)
    held(table, n3, other)
    for hand in (n2, n3):
        hand.confirm("n1", first, other)
    table.run(50)
    change(table, ["n1", "n2", "n3"], [first, other])
    known = n1.core.known
    both = {hand.number: hand.inv(first, other, epoch=2) for hand in (n2, n3)}
    nothing = cut_of(n1, both)
    assert (nothing.rows, nothing.hlc) == ((), known.epochs.cut_hlc)
    n2.push("n1", second)
    table.run(10)
    risen = {hand.number: hand.inv(second, other, epoch=2) for hand in (n2, n3)}
    found = cut_of(n1, risen)
    assert ends(found) == [second.id]
    assert found.hlc == max(known.epochs.cut_hlc, second.header.hlc)
    assert found.rows[0].journal == Journal(second.header.journal)
