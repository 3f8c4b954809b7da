"""The DAG on drawings small enough to see: n1, n2, n3 write, and liar forks."""

from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest

from quipu.ledger import limits
from quipu.ledger.dag import Dag
from quipu.ledger.event import EventMeta, SignedEvent, meta_of
from quipu.ledger.history import BranchRecord
from quipu.ledger.past import Past
from quipu.ledger.refusals import Reason, Refused
from quipu.ledger.safeguards import ALL, Safeguards
from quipu.ledger.words import BranchKey, Cord, EventId, InvNumber, Journal, NodeNo, Seq
from tests.small_ledger import SmallLedger

N1, N2, N3 = NodeNo(1), NodeNo(2), NodeNo(3)
FIRST = InvNumber(1)


class Drawing:
    """A DAG, and the hands that write into it."""

    def __init__(self, members: int = 3, guards: Safeguards = ALL) -> None:
        self.ledger = SmallLedger(members)
        self.past = Past(SmallLedger())  # nothing is committed but what this DAG has been told
        self.dag = Dag(self.past, [], self.ledger.cluster_id, guards)

    def write(
        self,
        author: int,
        *,
        prev: SignedEvent | None = None,
        parents: tuple[SignedEvent, ...] = (),
        journal: int = 7,
    ) -> SignedEvent:
        return self.ledger.write(author, prev=prev, parents=parents, journal=journal)

    def chain(self, author: int, count: int) -> list[SignedEvent]:
        return [self.hold(self.write(author)) for _ in range(count)]

    def hold(self, event: SignedEvent, lender: bytes = b"") -> SignedEvent:
        cord = self.ledger.cord_of(event)
        assert self.dag.missing_ancestors(event.header) == []
        self.dag.check_ancestors(event.header, cord)
        key, base, parent = self.dag.branch_for(event.header, cord)
        meta = meta_of(event, cord.author_no, key.number)
        self.past.remember(event, meta)
        self.dag.hold(meta, base, parent, lender, 1_000)
        return event

    def meta(self, event: SignedEvent) -> EventMeta:
        return self.past.held(event.id)

    def branch(self, event: SignedEvent) -> BranchRecord:
        return self.dag.branches[self.meta(event).branch]

    def say(self, signer: int, event: SignedEvent, number: int = FIRST) -> bool:
        return self.dag.acknowledge(NodeNo(signer), self.meta(event), InvNumber(number))

    def settle(self) -> list[EventId]:
        return [meta.id for meta in self.dag.settle(self.ledger.epoch)]

    def is_read(self, *events: SignedEvent) -> list[bool]:
        return [self.dag.is_read(self.meta(event)) for event in events]

    def forked(self) -> tuple[list[SignedEvent], list[SignedEvent], list[SignedEvent]]:
        """      2a - 3a - 4a        branch 0
               /
            1 <- 2b - 3b            branch 1
                   \
                    3c              branch 2, of branch 1
        """  # fmt: skip
        main = self.chain(1, 4)
        side = [self.hold(self.write(1, prev=main[0]))]
        side.append(self.hold(self.write(1, prev=side[0])))
        far = [self.hold(self.write(1, prev=side[0]))]
        return main, side, far

    def restarted(self) -> Dag:
        records = [record.copy() for record in self.dag.branches.values()]
        return Dag(self.past, records, self.ledger.cluster_id, ALL)


def refused(check: Callable[[], object]) -> Reason:
    with pytest.raises(Refused) as caught:
        check()
    return caught.value.reason


# --- ancestors --------------------------------------------------------------------------------
def test_prev_and_parents_are_missing_until_held() -> None:
    drawing = Drawing()
    one, parent = drawing.write(1), drawing.write(2)
    event = drawing.write(1, parents=(parent,))
    assert drawing.dag.missing_ancestors(one.header) == []
    assert drawing.dag.missing_ancestors(event.header) == [parent.id, one.id]
    drawing.hold(parent)
    assert drawing.dag.missing_ancestors(event.header) == [one.id]
    drawing.hold(one)
    assert drawing.dag.missing_ancestors(event.header) == []


def test_what_a_header_says_of_its_ancestors_is_checked() -> None:
    drawing = Drawing()
    one, parent = drawing.hold(drawing.write(1)), drawing.hold(drawing.write(2))
    older = drawing.hold(drawing.write(1, journal=6))
    event = drawing.write(1, prev=one, parents=(parent, older))
    cord = drawing.ledger.cord_of(event)

    def check(**changes: object) -> Callable[[], None]:
        header = msgspec.structs.replace(event.header, **changes)
        return lambda: drawing.dag.check_ancestors(header, Cord(cord.author_no, Journal(7)))

    check()()  # a parent in an older journal of one's own is another cord
    assert refused(check(parents=[one.id])) == Reason.BAD_PARENTS
    assert refused(check(prev=parent.id)) == Reason.BAD_PREV
    assert refused(check(seq=3)) == Reason.BAD_PREV
    assert refused(check(epoch=0)) == Reason.EPOCH_FALLS
    assert refused(check(hlc=one.header.hlc)) == Reason.BAD_HLC
    assert refused(check(prev=one.id, hlc=parent.header.hlc)) == Reason.BAD_HLC
    assert refused(check(depth=event.header.depth + 1)) == Reason.BAD_DEPTH
    assert refused(check(depth=event.header.depth - 1)) == Reason.BAD_DEPTH
    check(hlc=max(one.header.hlc, parent.header.hlc, older.header.hlc) + 1)()


def test_the_hlc_of_the_youngest_ancestor_counts_whichever_it_is() -> None:
    drawing = Drawing()
    one = drawing.hold(drawing.write(1))
    parent = drawing.hold(drawing.write(2, parents=(one,)))
    event = drawing.write(1, prev=one, parents=(parent,))
    cord = drawing.ledger.cord_of(event)
    equal = msgspec.structs.replace(event.header, hlc=parent.header.hlc)
    assert refused(lambda: drawing.dag.check_ancestors(equal, cord)) == Reason.BAD_HLC
    assert event.header.depth == 3


def test_without_the_safeguards_hlc_and_depth_are_not_checked() -> None:
    for guards, changes in (
        (replace(ALL, hlc_rises=False), {"hlc": 0}),
        (replace(ALL, depth_certified=False), {"depth": 9}),
    ):
        drawing = Drawing(guards=guards)
        one = drawing.hold(drawing.write(1))
        event = drawing.write(1, prev=one)
        header = msgspec.structs.replace(event.header, **changes)
        drawing.dag.check_ancestors(header, drawing.ledger.cord_of(event))


# --- lines ------------------------------------------------------------------------------------
def test_an_event_extends_its_line_or_begins_a_branch() -> None:
    drawing = Drawing()
    main, side, far = drawing.forked()
    keys = [drawing.meta(event).slot.number for event in (*main, *side, *far)]
    assert keys == [0, 0, 0, 0, 1, 1, 2]
    first, second, third = (drawing.branch(event) for event in (main[0], side[0], far[0]))
    assert (first.base_seq, first.held_seq, first.held_id) == (0, 4, main[3].id)
    assert (second.base_seq, second.parent, second.held_seq) == (1, 0, 3)
    assert (third.base_seq, third.parent, third.held_seq) == (2, 1, 3)


def test_a_line_goes_through_the_branches_below() -> None:
    drawing = Drawing()
    main, side, far = drawing.forked()
    line = [(record.key.number, upto) for record, upto in drawing.dag.line(drawing.branch(far[0]))]
    assert line == [(2, 3), (1, 2), (0, 1)]
    ids = [drawing.dag.id_on(drawing.branch(far[0]), Seq(seq)) for seq in (1, 2, 3)]
    assert ids == [main[0].id, side[0].id, far[0].id]
    assert drawing.dag.is_on_line(drawing.meta(side[0]), drawing.branch(far[0]))
    assert not drawing.dag.is_on_line(drawing.meta(side[1]), drawing.branch(far[0]))
    assert not drawing.dag.is_on_line(drawing.meta(main[1]), drawing.branch(side[1]))


def test_what_two_branches_share() -> None:
    drawing = Drawing()
    main, side, far = drawing.forked()
    shared = drawing.dag.shared_seq
    assert shared(drawing.branch(main[3]), drawing.branch(side[1])) == 1
    assert shared(drawing.branch(main[3]), drawing.branch(far[0])) == 1
    assert shared(drawing.branch(side[1]), drawing.branch(far[0])) == 2
    assert shared(drawing.branch(far[0]), drawing.branch(side[1])) == 2
    other = drawing.hold(drawing.ledger.write(1, texts=("first again",), prev=None, journal=9))
    drawing.ledger.tips.clear()
    rival = drawing.hold(drawing.write(1, journal=9))  # seq 1 of the cord a second time
    assert shared(drawing.branch(other), drawing.branch(rival)) == 0
    assert drawing.branch(rival).base_seq == 0
    assert [r.key.number for r, _ in drawing.dag.line(drawing.branch(rival))] == [1]


def test_the_rival_of_an_event_is_what_its_branch_holds_at_that_slot() -> None:
    drawing = Drawing()
    main, side, _ = drawing.forked()
    cord = drawing.ledger.cord_of(main[0])
    rival_of = drawing.dag.rival_of
    assert rival_of(drawing.write(1, prev=main[3]).header, cord) is None
    assert rival_of(drawing.write(1, prev=main[2]).header, cord) == main[3].id
    assert rival_of(drawing.write(1, prev=side[0]).header, cord) == side[1].id
    drawing.ledger.tips.clear()
    assert rival_of(drawing.write(1).header, cord) == main[0].id
    assert rival_of(drawing.write(2).header, Cord(N2, Journal(7))) is None


# --- receipts ---------------------------------------------------------------------------------
def test_a_receipt_covers_its_event_and_all_below_it_on_its_line_alone() -> None:
    drawing = Drawing()
    main, side, far = drawing.forked()
    assert drawing.say(2, far[0])
    confirms = drawing.dag.read_confirms
    assert [confirms(drawing.meta(event)) for event in (*main, *side, *far)] == [
        1, 0, 0, 0, 1, 0, 1,
    ]  # fmt: skip
    assert drawing.say(3, main[2])
    assert [confirms(drawing.meta(event)) for event in main] == [2, 1, 1, 0]


def test_what_was_acknowledged_stays_acknowledged() -> None:
    drawing = Drawing()
    main, side, _ = drawing.forked()
    assert drawing.say(2, main[2], 5)
    assert not drawing.say(2, main[1], 6)
    assert not drawing.say(2, main[2], 7)
    assert drawing.branch(main[0]).receipts == {N2: (3, 5)}
    assert drawing.say(2, side[0], 8)  # a conflicting row takes nothing back either
    assert drawing.branch(main[0]).receipts == {N2: (3, 5)}
    assert drawing.say(2, main[3], 9)
    assert drawing.branch(main[0]).receipts == {N2: (4, 9)}


def test_the_author_is_not_among_read_confirms() -> None:
    drawing = Drawing()
    (event,) = drawing.chain(1, 1)
    drawing.say(1, event)
    assert drawing.dag.read_confirms(drawing.meta(event)) == 0


def test_a_receipt_of_another_member_makes_a_lent_branch_vouched_for() -> None:
    drawing = Drawing()
    main = drawing.chain(1, 2)
    side = drawing.hold(drawing.write(1, prev=main[0]), lender=b"n3")
    drawing.dag.rows_changed.clear()
    drawing.say(1, side)
    assert drawing.branch(side).lender == b"n3"  # the author does not vouch
    assert drawing.dag.rows_changed == {}
    drawing.say(2, side)
    assert drawing.branch(side).lender == b""
    assert list(drawing.dag.rows_changed) == [drawing.ledger.cord_of(side)]


def test_only_members_of_the_epoch_certify() -> None:
    drawing = Drawing(members=3)
    (event,) = drawing.chain(1, 1)
    drawing.say(1, event)
    drawing.say(9, event)
    assert drawing.settle() == []
    drawing.say(2, event)
    assert drawing.settle() == [event.id]


def test_an_epoch_forgets_the_receipts_of_the_one_before() -> None:
    drawing = Drawing()
    events = drawing.chain(1, 2)
    drawing.say(1, events[1])
    drawing.say(2, events[0])
    assert drawing.settle() == [events[0].id]
    drawing.dag.changed.clear()
    drawing.dag.forget_receipts()
    assert list(drawing.dag.changed) == [drawing.meta(events[0]).branch]
    drawing.say(2, events[1])
    assert drawing.settle() == []  # the author has not said so in this epoch
    assert drawing.is_read(*events) == [True, False]
    drawing.say(1, events[1])
    assert drawing.settle() == [events[1].id]


# --- Read -------------------------------------------------------------------------------------
def test_read_needs_the_author_and_max_confirms_others() -> None:
    drawing = Drawing(members=5)  # majority: two others
    events = drawing.chain(1, 3)
    drawing.say(1, events[2])
    drawing.say(2, events[2])
    drawing.say(3, events[1])
    assert drawing.settle() == [events[0].id, events[1].id]
    drawing.say(4, events[2])
    assert drawing.settle() == [events[2].id]
    assert drawing.settle() == []


def test_without_the_authors_receipt_nothing_is_read() -> None:
    for guards, expected in ((ALL, False), (replace(ALL, author_receipt=False), True)):
        drawing = Drawing(guards=guards)
        (event,) = drawing.chain(1, 1)
        for signer in (2, 3):
            drawing.say(signer, event)
        drawing.settle()
        assert drawing.is_read(event) == [expected]


def test_a_member_counts_once_unless_the_safeguard_is_off() -> None:
    for guards, expected in ((ALL, False), (replace(ALL, distinct_receipts=False), True)):
        drawing = Drawing(members=5, guards=guards)
        (event,) = drawing.chain(1, 1)
        drawing.say(1, event)
        for number in range(3):
            drawing.say(2, event, number)
        drawing.settle()
        assert drawing.is_read(event) == [expected]


def test_an_event_waits_for_its_parents_and_frees_its_children() -> None:
    drawing = Drawing()
    parent = drawing.hold(drawing.write(2))
    one = drawing.hold(drawing.write(1, parents=(parent,)))
    two = drawing.hold(drawing.write(1))
    child = drawing.hold(drawing.write(3, parents=(two,)))
    for signer in (1, 2, 3):
        drawing.say(signer, two)
        drawing.say(signer, child)
    assert drawing.settle() == []
    assert drawing.settle() == []
    for signer in (2, 3):
        drawing.say(signer, parent)
    assert drawing.settle() == [parent.id, one.id, two.id, child.id]


def test_without_the_safeguard_a_parent_does_not_hold_up() -> None:
    drawing = Drawing(guards=replace(ALL, parents_read=False))
    parent = drawing.hold(drawing.write(2))
    one = drawing.hold(drawing.write(1, parents=(parent,)))
    drawing.say(1, one)
    drawing.say(3, one)
    assert drawing.settle() == [one.id]


def test_two_parents_each_hold_up() -> None:
    drawing = Drawing(members=4)
    left, right = drawing.hold(drawing.write(2)), drawing.hold(drawing.write(3))
    event = drawing.hold(drawing.write(1, parents=(left, right)))
    for signer in (1, 2, 3):
        drawing.say(signer, event)
    for parent, expected in ((left, [left.id]), (right, [right.id, event.id])):
        for signer in (2, 3, 4):
            drawing.say(signer, parent)
        assert drawing.settle() == expected


def test_five_thousand_generations_become_read_at_once() -> None:
    drawing = Drawing()
    last: dict[int, SignedEvent] = {}
    events: list[SignedEvent] = []
    for number in range(5_000):
        author = 1 + number % 2
        parents = (events[-1],) if events else ()
        events.append(drawing.hold(drawing.write(author, parents=parents)))
        last[author] = events[-1]
    for signer in (2, 3):
        drawing.say(signer, last[2])
    drawing.say(3, last[1])
    assert drawing.settle() == []
    drawing.say(1, last[1])
    assert drawing.settle() == [event.id for event in events]


def test_so_many_become_read_in_a_turn_and_the_next_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "READ_PER_TURN_MAX", 4)
    drawing = Drawing()
    first, second = drawing.chain(1, 6), drawing.chain(2, 3)
    above = drawing.hold(drawing.write(3, parents=(first[-1],)))
    for signer in (1, 2, 3):
        for tip in (first[-1], second[-1], above):
            drawing.say(signer, tip)
    assert drawing.settle() == [event.id for event in first[:4]]
    assert not drawing.dag.is_settled
    found = drawing.settle()
    while not drawing.dag.is_settled:
        found += drawing.settle()
    assert sorted(found) == sorted(e.id for e in (*first[4:], *second, above))
    assert found.index(above.id) > found.index(first[-1].id)
    assert sorted(drawing.dag.leaves) == sorted((second[-1].id, above.id))


def test_what_waits_for_a_parent_asks_for_no_turn() -> None:
    drawing = Drawing()
    below = drawing.hold(drawing.write(2))
    above = drawing.hold(drawing.write(1, parents=(below,)))
    for signer in (1, 2):
        drawing.say(signer, above)
    assert drawing.settle() == []
    assert drawing.dag.is_settled


def test_each_branch_is_read_by_its_own_certificate() -> None:
    drawing = Drawing()
    main, side, far = drawing.forked()
    drawing.say(1, main[1])
    drawing.say(2, main[1])
    assert drawing.settle() == [main[0].id, main[1].id]
    drawing.say(1, far[0])
    drawing.say(3, far[0])
    assert drawing.settle() == [side[0].id, far[0].id]
    assert drawing.is_read(*main, *side, *far) == [True, True, False, False, True, False, True]


def test_a_branch_waits_for_the_event_it_left_from() -> None:
    drawing = Drawing()
    parent = drawing.hold(drawing.write(2))
    one = drawing.hold(drawing.write(1, parents=(parent,)))
    main = drawing.hold(drawing.write(1, prev=one))
    side = drawing.hold(drawing.write(1, prev=one))
    for signer in (1, 3):
        drawing.say(signer, side)
    assert drawing.settle() == []
    for signer in (2, 3):
        drawing.say(signer, parent)
    assert drawing.settle() == [parent.id, one.id, side.id]
    assert drawing.is_read(main) == [False]


def test_the_cut_makes_read_whatever_the_receipts_say() -> None:
    drawing = Drawing()
    main, side, far = drawing.forked()
    drawing.dag.cut_at(drawing.meta(far[0]))
    drawing.dag.cut_at(drawing.meta(main[1]))
    drawing.dag.cut_at(drawing.meta(main[0]))  # a lower one takes nothing back
    assert [drawing.branch(event).cut_seq for event in (main[0], side[0], far[0])] == [2, 2, 3]
    assert set(drawing.settle()) == {main[0].id, main[1].id, side[0].id, far[0].id}


# --- leaves -----------------------------------------------------------------------------------
def test_a_leaf_is_an_event_of_the_model_that_none_of_it_names() -> None:
    drawing = Drawing()
    one = drawing.hold(drawing.write(1))
    two = drawing.hold(drawing.write(2))
    for signer in (1, 2, 3):
        drawing.say(signer, one)
        drawing.say(signer, two)
    assert drawing.dag.leaves == {}
    drawing.settle()
    assert drawing.dag.oldest_leaves() == [one.id, two.id]
    assert drawing.dag.oldest_leaves(1) == [one.id]
    merge = drawing.hold(drawing.write(1, parents=(two,)))
    assert drawing.dag.oldest_leaves() == [one.id, two.id]  # it is not in the Model yet
    for signer in (1, 2):
        drawing.say(signer, merge)
    drawing.settle()
    assert drawing.dag.oldest_leaves() == [merge.id]
    assert [drawing.branch(event).leaf for event in (merge, two)] == [True, False]


def test_a_branch_takes_the_leaf_it_left_from() -> None:
    drawing = Drawing()
    one = drawing.hold(drawing.write(1))
    main = drawing.hold(drawing.write(1, prev=one))
    side = drawing.hold(drawing.write(1, prev=one))
    for signer in (1, 2):
        drawing.say(signer, side)
    drawing.settle()
    assert drawing.dag.oldest_leaves() == [side.id]
    assert not drawing.branch(one).leaf
    for signer in (1, 2):
        drawing.say(signer, main)
    drawing.settle()
    assert drawing.dag.oldest_leaves() == [main.id, side.id]


def test_after_a_restart_the_dag_is_as_it_was() -> None:
    drawing = Drawing()
    main, side, far = drawing.forked()
    other = drawing.hold(drawing.write(2))
    for signer in (1, 2):
        drawing.say(signer, main[3])
        drawing.say(signer, far[0])
        drawing.say(signer, other)
    drawing.settle()
    again = drawing.restarted()
    assert again.leaves == drawing.dag.leaves
    assert again.branches == drawing.dag.branches
    assert again.cords == drawing.dag.cords
    assert again.newest_journal == drawing.dag.newest_journal
    assert again.settle(drawing.ledger.epoch) == []
    assert again.id_on(again.branches[drawing.meta(far[0]).branch], Seq(2)) == side[0].id


def test_what_could_be_read_at_a_restart_is_found_again() -> None:
    drawing = Drawing()
    (event,) = drawing.chain(1, 1)
    drawing.say(1, event)
    drawing.say(2, event)
    again = drawing.restarted()
    assert [meta.id for meta in again.settle(drawing.ledger.epoch)] == [event.id]


def test_the_newest_journal_of_an_author_is_known() -> None:
    drawing = Drawing()
    for journal in (7, 9, 8):
        drawing.hold(drawing.write(1, journal=journal))
    assert drawing.dag.newest_journal == {N1: 9}


def test_what_changed_in_a_step_is_noted() -> None:
    drawing = Drawing()
    (event,) = drawing.chain(1, 1)
    key = BranchKey(N1, Journal(7), 0)
    assert list(drawing.dag.changed) == [key]
    assert list(drawing.dag.rows_changed) == [key.cord]
    drawing.dag.changed.clear()
    drawing.dag.rows_changed.clear()
    drawing.say(1, event)
    assert list(drawing.dag.changed) == [key]
    assert drawing.dag.rows_changed == {}  # of receipts the row does not tell
    drawing.say(2, event)
    drawing.dag.changed.clear()
    drawing.settle()
    assert list(drawing.dag.changed) == [key]
    assert list(drawing.dag.rows_changed) == [key.cord]
    assert N3 not in drawing.branch(event).receipts


def test_without_the_check_of_ancestors_events_hang_in_the_air() -> None:
    guards = replace(ALL, parents_held=False)
    drawing = Drawing(guards=guards)
    missing = drawing.write(1)
    event = drawing.write(1, parents=(drawing.write(2),))
    cord = drawing.ledger.cord_of(event)
    flat = msgspec.structs.replace(event.header, depth=1)  # of ancestors that it does not see
    drawing.dag.check_ancestors(flat, cord)
    key, base, parent = drawing.dag.branch_for(event.header, cord)
    meta = meta_of(event, cord.author_no, key.number)
    drawing.past.remember(event, meta)
    drawing.dag.hold(meta, base, parent, b"", 0)
    assert drawing.branch(event).base_seq == missing.header.seq
    for signer in (1, 2):
        drawing.say(signer, event)
    assert drawing.settle() == []  # its parent is not even held
    loose = Drawing(guards=replace(guards, parents_read=False))
    loose.past.remember(event, meta)
    loose.dag.hold(meta, base, parent, b"", 0)
    for signer in (1, 2):
        loose.say(signer, event)
    assert loose.settle() == [event.id]
