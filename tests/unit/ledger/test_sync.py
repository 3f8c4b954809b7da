"""SyncEvents: what is said to a peer and what of it is taken. One core n1 and hands, or two cores
whose links the test cuts."""

import msgspec
import pytest

from quipu.ledger import limits
from quipu.ledger.event import SignedEvent
from quipu.ledger.messages import GetData, SyncEvent
from quipu.ledger.sync import PeerView
from quipu.ledger.words import NodeNo
from tests.conformance.hand import Hand, alone_with, greet, hands
from tests.conformance.roster import change
from tests.conformance.table import Seat, Table

PERIOD_MS = limits.SYNC_INTERVAL_MS


def told(table: Table, hand: Hand) -> SyncEvent:
    """The next SyncEvent to this hand."""
    count = len(table.messages(SyncEvent, "n1", hand.name))
    table.run_until(lambda: len(table.messages(SyncEvent, "n1", hand.name)) > count, 3_000)
    return table.messages(SyncEvent, "n1", hand.name)[-1]


def tips(message: SyncEvent) -> list[tuple[int, int, int]]:
    return [(row.author_no, row.seq, row.read_seq) for row in message.rows]


def view_of(seat: Seat, hand: Hand) -> PeerView:
    return seat.core.sync.views[hand.key.node_id]


def push(hand: Hand, *events: SignedEvent) -> None:
    hand.push("n1", *events)
    hand.table.run(10)


# --- what is said -----------------------------------------------------------------------------
def test_a_new_link_is_told_everything_and_then_only_what_changed() -> None:
    table, _, (n2, n3) = alone_with(2)
    one, other = n2.event(), n3.event()
    push(n2, one)
    push(n3, other)
    first = told(table, n2)
    assert (first.base, first.heard) == (0, n2.table.wall_ms - PERIOD_MS + 1)
    assert tips(first) == [(2, 1, 0), (3, 1, 0)]
    n2.sync("n1", heard=first.number)
    second = told(table, n2)
    assert second.base == first.number
    assert (second.rows, second.receipts, second.leaves) == ([], [], [])
    assert second.number > first.number
    push(n3, n3.event(prev=other))
    n2.sync("n1", heard=second.number)
    third = told(table, n2)
    assert third.base == second.number
    assert tips(third) == [(3, 2, 0)]
    assert [row.signer_no for row in third.receipts] == [1]


def test_a_receipt_that_was_said_is_not_said_again() -> None:
    table, _, (n2, n3) = alone_with(2)
    n3.confirm("n1")  # the last thing that changes
    table.run(0)
    message = told(table, n2)
    assert [row.signer_no for row in message.receipts] == [3]
    n2.sync("n1", heard=message.number)
    assert told(table, n2).receipts == []


def test_what_a_peer_has_not_acknowledged_is_said_again() -> None:
    table, _, (n2, n3) = alone_with(2)
    first = told(table, n2)
    n2.sync("n1", heard=first.number)
    push(n3, n3.event())
    lost = told(table, n2)
    assert tips(lost) == [(3, 1, 0)]
    again = told(table, n2)  # it still stands at the first
    assert again.base == first.number
    assert tips(again) == [(3, 1, 0)]
    n2.sync("n1", heard=lost.number)  # the lost one came after all
    assert tips(told(table, n2)) == []


def test_leaves_are_said_when_they_changed_and_their_count_always() -> None:
    table, n1, (n2, n3) = alone_with(2)
    event = n3.event()
    push(n3, event)
    n3.confirm("n1", event)
    table.run(10)
    assert n1.is_read(event.id)
    first = told(table, n2)
    assert (first.leaves, first.leaf_count) == ([event.id], 1)
    n2.sync("n1", heard=first.number)
    second = told(table, n2)
    assert (second.leaves, second.leaf_count) == ([], 1)


def test_a_peer_that_knows_another_life_of_the_link_is_told_everything() -> None:
    table, _, (n2, _) = alone_with(2)
    push(n2, n2.event())
    first = told(table, n2)
    n2.sync("n1", heard=first.number)
    told(table, n2)
    n2.sync("n1", heard=0)  # it has started anew, and the link has not noticed
    again = told(table, n2)
    assert again.base == 0
    assert tips(again) == [(2, 1, 0)]


def test_a_peer_that_has_heard_more_than_was_said_is_said_more() -> None:
    """This node's clock was set back at its start: the peer takes only greater numbers."""
    table, _, (n2, _) = alone_with(2)
    ahead = table.wall_ms + 3_600_000
    n2.sync("n1", heard=ahead)
    message = told(table, n2)
    assert message.number == ahead + 1
    assert message.base == 0


def test_no_claim_of_a_peer_exhausts_the_numbers() -> None:
    table, _, (n2, _) = alone_with(2)
    n2.sync("n1", heard=2**64 - 1)
    assert told(table, n2).number == limits.SYNC_NUMBER_TAKEN_MAX + 1
    assert told(table, n2).number == limits.SYNC_NUMBER_TAKEN_MAX + 2


def test_numbers_follow_the_wall_clock_so_that_a_restart_goes_on_above() -> None:
    table, _, players = alone_with(2)
    n2 = players[0]
    before = told(table, n2).number
    table.run(1)
    table.kill("n1")
    table.start("n1")
    greet(*players)
    after = table.messages(SyncEvent, "n1", "n2")[-1].number
    assert after > before


def test_only_the_last_few_numbers_may_still_be_acknowledged() -> None:
    table, n1, (n2, n3) = alone_with(2)
    first = told(table, n2)
    for _ in range(limits.SYNC_SENT_KEPT):
        told(table, n2)
    assert len(view_of(n1, n2).sent) == limits.SYNC_SENT_KEPT
    n2.sync("n1", heard=first.number)
    assert told(table, n2).base == 0
    assert n3.requests() == []


def test_rows_and_receipts_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SYNC_ROWS_MAX", 2)
    monkeypatch.setattr(limits, "SYNC_RECEIPTS_MAX", 1)
    table, n1, (n2, n3) = alone_with(2)
    events = [n2.event(journal=number) for number in (1, 2, 3)]
    push(n2, *events)
    n3.confirm("n1", *events)
    message = told(table, n2)
    assert len(message.rows) == 2
    assert len(message.receipts) == 1
    n2.sync("n1", *events, receipts=[(1, 1), (2, 2), (3, 3)])
    table.run(0)
    assert len(view_of(n1, n2).rows) == 2
    assert list(view_of(n1, n2).receipts) == [NodeNo(3)]


def test_each_branch_of_a_cord_has_its_row_but_for_what_is_lent() -> None:
    table, _, (n2, n3) = alone_with(2)
    base = n2.event("base")
    one, other = n2.event("one", prev=base), n2.event("other", prev=base)
    push(n2, base, one)
    n3.sync("n1", other)
    table.run(limits.SYNC_DIFFERENCE_AGE_MS)
    n3.answer("n1", n3.requests()[-1], other)
    table.run(0)
    assert [row.id for row in told(table, n2).rows] == [one.id[:16]]
    n3.confirm("n1", other)
    table.run(0)
    assert {row.id for row in told(table, n2).rows} == {one.id[:16], other.id[:16]}


def test_cords_at_rest_in_the_cut_have_no_rows_and_stand_in_the_digest_as_its_hash() -> None:
    table, n1, (n2, n3) = alone_with(2)
    old, newest, going_on = n2.event(journal=1), n2.event(journal=2), n3.event(journal=1)
    push(n2, old, newest)
    push(n3, going_on, n3.event(journal=2))
    above = n3.event("above", prev=going_on)
    push(n3, above)
    change(table, ["n1", "n2", "n3"], cut=[old, newest, going_on])
    table.run(0)
    n2.sync("n1", heard=0)
    message = told(table, n2)
    assert [(row.author_no, row.journal) for row in message.rows] == [(2, 2), (3, 1), (3, 2)]
    assert message.digest == n1.digest()
    assert message.digest != n1.core.sync.digest(table.cluster_id)


# --- the digest -------------------------------------------------------------------------------
def test_digests_are_equal_where_rows_are_and_only_there() -> None:
    def after(*steps: str) -> bytes:
        table, n1, (n2, n3) = alone_with(2)
        one, other = n2.event("one"), n2.event("other", journal=2)
        side = n2.event("side")
        for step in steps:
            match step:
                case "one":
                    push(n2, one)
                case "other":
                    push(n2, other)
                case "side":
                    n3.confirm("n1", side)
                    table.run(0)
                    push(n3, side)
                case "read":
                    n2.confirm("n1", one)
                    table.run(10)
        return n1.digest()

    assert after("one", "other") == after("other", "one")
    kinds = [(), ("one",), ("one", "other"), ("one", "read"), ("one", "side"), ("side",)]
    assert len({after(*steps) for steps in kinds}) == len(kinds)


# --- what is heard ----------------------------------------------------------------------------
def test_a_sync_event_that_came_late_or_twice_is_not_taken() -> None:
    table, n1, (n2, _) = alone_with(2)
    event = n2.event()
    new = n2.sync("n1", event)
    table.run(0)
    view = view_of(n1, n2)
    assert list(view.rows) == [table.cord_of(event.header)]
    n2.say("n1", new)
    n2.say("n1", msgspec.structs.replace(new, number=new.number - 1, rows=[]))
    table.run(0)
    assert view.heard == new.number
    assert list(view.rows) == [table.cord_of(event.header)]


def test_rows_above_something_that_was_not_heard_are_not_taken() -> None:
    table, n1, (n2, _) = alone_with(2)
    one, two = n2.event(journal=1), n2.event(journal=2)
    first = n2.sync("n1", one)
    table.run(0)
    n2.sync("n1", two, base=first.number + 5)
    table.run(0)
    view = view_of(n1, n2)
    assert view.heard == first.number  # and so the next one brings all
    assert list(view.rows) == [table.cord_of(one.header)]
    second = n2.sync("n1", two, base=first.number)
    table.run(0)
    assert list(view.rows) == [table.cord_of(event.header) for event in (one, two)]
    n2.sync("n1", two, base=0)
    table.run(0)
    assert list(view.rows) == [table.cord_of(two.header)]  # from nothing: the old ones go
    assert view.heard > second.number


def test_leaves_are_kept_until_others_are_named() -> None:
    table, n1, (n2, _) = alone_with(2)
    leaf = n2.event()
    push(n2, leaf)
    n2.sync("n1", leaves=[leaf.id])
    n2.sync("n1", leaf_count=1)
    table.run(0)
    assert view_of(n1, n2).leaves == [leaf.id]
    n2.sync("n1")
    table.run(0)
    assert view_of(n1, n2).leaves == []


def test_a_receipt_that_is_lacking_is_asked_for_though_digests_are_equal() -> None:
    table, n1, (n2, n3) = alone_with(2)
    table.run(PERIOD_MS)
    for receipts in ([(3, 5)], [(3, 4)]):
        before = len(n2.requests())
        n2.sync("n1", receipts=receipts, digest=n1.digest())
        table.run(limits.SYNC_DIFFERENCE_AGE_MS)
        assert len(n2.requests()) == before + 1
        n2.answer("n1", n2.requests()[-1])
        table.run(0)
    event = n2.event()
    n3.confirm("n1", event)
    table.run(0)
    inv = n1.core.receipts.newest[n3.number]
    before = len(n2.requests())
    n2.sync("n1", receipts=[(3, inv.number)], digest=n1.digest())
    table.run(limits.SYNC_DIFFERENCE_AGE_MS)
    assert [want for request in n2.requests()[before:] for want in request.invs] == []


# --- two cores --------------------------------------------------------------------------------
def two_cores() -> Table:
    table = Table(2, played=["n3"])
    greet(*hands(table))
    table.run(50)
    return table


def test_lost_sync_events_cost_a_period_and_no_more() -> None:
    table = two_cores()
    (n3,) = hands(table)
    table.may_pass = lambda sent: False
    n3.push("n1", *n3.chain(5))
    table.run(4 * PERIOD_MS)
    assert not table.are_equal()
    table.heal()
    took_ms = table.run_until(table.are_equal, 2 * PERIOD_MS)
    assert took_ms <= PERIOD_MS + limits.SYNC_DIFFERENCE_AGE_MS + 10


def test_a_restart_of_one_side_that_the_link_does_not_notice() -> None:
    table = two_cores()
    (n3,) = hands(table)
    n3.push("n1", *n3.chain(5))
    table.run(3 * PERIOD_MS)
    assert table.are_equal()
    n2 = table["n2"]
    n2.is_up = False
    n2.store = n2.store.crash()
    table.start("n2")
    table["n1"].inbox.clear()  # n1 is not told that the link was new
    n3.push("n1", n3.event(journal=2))
    table.may_pass = lambda s: isinstance(s.message, SyncEvent | GetData) or s.sender == "n1"
    table.run_until(table.are_equal, 2 * PERIOD_MS)
    table.run(2 * PERIOD_MS)
    for sender, receiver in (("n1", "n2"), ("n2", "n1")):
        sent = table.messages(SyncEvent, sender, receiver)
        assert sent[-1].rows == []  # they go on from each other again
        assert sent[-1].base == sent[-2].number


def test_in_a_steady_state_a_sync_event_is_a_hundred_bytes() -> None:
    table = Table(5)
    table.run(50)
    for number in range(20):
        table.submit(f"n{number % 5 + 1}")
        table.run(10)
    table.run(5 * PERIOD_MS)
    since_ms = table.now_ms
    table.run(3 * PERIOD_MS)
    sizes = [sent.size for sent in table.sent if sent.at_ms > since_ms]
    assert len(sizes) == 3 * 5 * 4
    assert max(sizes) <= 128
