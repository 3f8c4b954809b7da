"""What a peer shows that is lacking here: one core n1, the others are hands."""

import pytest

from quipu.ledger import limits
from quipu.ledger.event import SignedEvent
from quipu.ledger.messages import Answer, CoverWant, GetData, InvWant, SyncEvent, SyncRow
from tests.conformance.hand import Hand, alone_with, greet, hands
from tests.conformance.roster import change
from tests.conformance.table import Table

AGE_MS = limits.SYNC_DIFFERENCE_AGE_MS


def wants(hand: Hand) -> GetData:
    """What n1 asks this hand for."""
    before = len(hand.requests())
    hand.table.run(AGE_MS)
    (request,) = hand.requests()[before:]
    return request


def push(hand: Hand, *events: SignedEvent) -> None:
    hand.push("n1", *events)
    hand.table.run(10)


def settled(count: int = 2) -> tuple[Table, list[Hand]]:
    """Nobody is waited for any more."""
    table, _, players = alone_with(count)
    table.run(AGE_MS)
    return table, players


def test_anchors_lie_at_doubling_distances() -> None:
    table, (n2, n3) = settled()
    line = n2.chain(40)
    push(n2, *line)
    n3.sync("n1", n2.event("above", prev=line[-1]))
    (wanted,) = wants(n3).ranges
    assert [seq for seq, _ in wanted.anchors] == [40, 39, 37, 33, 25, 9]
    assert [prefix for _, prefix in wanted.anchors] == [
        line[seq - 1].id[:16] for seq, _ in wanted.anchors
    ]
    assert (wanted.author_no, wanted.last_seq) == (n2.number, 41)
    assert len(table.messages(GetData)) == 1


def test_of_a_cord_that_is_not_held_there_are_no_anchors() -> None:
    _, (n2, n3) = settled()
    n3.sync("n1", *n2.chain(3)[2:])
    (wanted,) = wants(n3).ranges
    assert (wanted.anchors, wanted.last_seq) == ([], 3)


def test_anchors_come_from_each_of_the_first_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    table, (n2, n3) = settled()
    line = n2.chain(6)
    side = n2.chain(3, line[1], text="side")
    push(n2, *line)
    n3.sync("n1", side[-1])
    n3.answer("n1", wants(n3), *side)
    table.run(10)
    unseen = n2.event("unseen", prev=side[0])
    n3.sync("n1", unseen)
    (wanted,) = wants(n3).ranges
    seqs = {event.id[:16]: event.header.seq for event in (*line, *side)}
    assert [seqs[prefix] for _, prefix in wanted.anchors] == [6, 5, 5, 4, 3]
    assert [seq for seq, _ in wanted.anchors] == [6, 5, 5, 4, 3]
    n3.answer("n1", table.messages(GetData, receiver="n3")[-1])
    table.run(10)
    monkeypatch.setattr(limits, "GET_ANCHOR_BRANCHES", 1)
    monkeypatch.setattr(limits, "GET_ANCHORS_MAX", 2)
    n3.sync("n1", unseen)
    (wanted,) = wants(n3).ranges
    assert [seq for seq, _ in wanted.anchors] == [6, 5]


def test_a_fork_however_deep_is_found_in_one_round_trip() -> None:
    table = Table(2, played=["n3"])
    (n3,) = hands(table)
    greet(n3)
    table.run(50)
    line = n3.chain(700)
    side = n3.chain(300, line[399], text="side")
    table.cut("n1", "n2")
    n3.push("n1", *line)
    n3.push("n2", *line[:400], *side)
    table.run(50)
    table.part("n1", "n3")
    table.part("n2", "n3")
    table.run(2_000)
    table.heal()
    table.may_pass = lambda s: isinstance(s.message, SyncEvent | GetData | Answer)
    table.run(4_000)
    for name in ("n1", "n2"):
        assert table[name].holds(line[-1].id)
        assert table[name].holds(side[-1].id)
    for asker, server, count in (("n1", "n2", 300), ("n2", "n1", 300)):
        answers = table.messages(Answer, server, asker)
        events = [event for answer in answers for event in answer.events]
        assert [len(answer.events) > 0 for answer in answers].count(True) == 1
        assert count <= len(events) <= 2 * count  # the nearest anchor lies at most so far below


def test_where_a_peer_has_read_more_the_receipts_are_asked_for() -> None:
    table, (n2, n3) = settled()
    line = n2.chain(3)
    push(n2, *line)
    n3.sync("n1", line[1], read_seq=2)
    request = wants(n3)
    cord = table.cord_of(line[0].header)
    assert request.covers == [CoverWant(*cord, 2, line[1].id[:16])]
    assert request.ranges == []
    n3.answer("n1", request, invs=[n2.inv(line[1])])
    table.run(10)
    assert [table["n1"].is_read(event.id) for event in line] == [True, True, False]
    n3.sync("n1", line[1], read_seq=2)
    table.run(AGE_MS)
    assert len(n3.requests()) == 1  # no more is lacking


def test_a_peer_cannot_have_read_more_than_the_row_names() -> None:
    table, (n2, n3) = settled()
    line = n2.chain(2)
    push(n2, *line)
    n2.confirm("n1", line[0])
    table.run(10)
    n3.sync("n1", line[0], read_seq=9)
    table.run(AGE_MS)
    assert n3.requests() == []


def test_a_newer_inv_is_asked_for_by_signer_and_number() -> None:
    table, (n2, n3) = settled()
    event = n2.event()
    push(n2, event)
    n3.confirm("n1", event)
    table.run(10)
    held = table["n1"].core.receipts.newest[n3.number].number
    n2.sync("n1", event, receipts=[(n3.number, held), (n2.number, 77), (99, 5)])
    assert wants(n2).invs == [InvWant(n2.number, 77)]
    n2.answer("n1", n2.requests()[-1])
    n2.sync("n1", event, receipts=[(n3.number, held + 1)])
    assert wants(n2).invs == [InvWant(n3.number, held + 1)]


def test_authors_that_never_were_are_passed_over() -> None:
    table, (_, n3) = settled()
    n3.sync("n1", rows=[SyncRow(99, 1, 1, b"g" * 16, 0)])
    table.run(AGE_MS)
    assert n3.requests() == []


def test_what_one_peer_is_asked_for_is_not_asked_of_another() -> None:
    table, (n2, n3) = settled()
    event, more = n2.event(), n2.event(journal=2)
    n2.sync("n1", event, receipts=[(3, 7)])
    n3.sync("n1", event, more, receipts=[(3, 7)])
    table.run(AGE_MS)
    asked = [*n2.requests(), *n3.requests()]
    assert sorted(wanted.last for request in asked for wanted in request.ranges) == sorted(
        [event.id[:16], more.id[:16]]
    )
    assert [want for request in asked for want in request.invs] == [InvWant(3, 7)]


def test_a_row_of_an_event_that_lies_in_another_cord_is_asked_for() -> None:
    table, (n2, n3) = settled()
    event = n2.event()
    push(n2, event)
    n3.sync("n1", rows=[SyncRow(n3.number, 5, 1, event.id[:16], 0)])
    (wanted,) = wants(n3).ranges
    assert (wanted.author_no, wanted.journal) == (n3.number, 5)
    assert len(table.messages(GetData)) == 1


def test_a_request_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "GET_RANGES_MAX", 2)
    monkeypatch.setattr(limits, "GET_RECEIPTS_MAX", 1)
    table, (n2, n3) = settled()
    held = [n2.event(journal=number) for number in (1, 2)]
    push(n2, *held)
    unseen = [n2.event(journal=number) for number in (3, 4, 5)]
    n3.sync("n1", *held, *unseen, read_seq=1, receipts=[(2, 5), (3, 5)])
    request = wants(n3)
    assert (len(request.ranges), len(request.invs), len(request.covers)) == (2, 1, 1)
    assert len(table.messages(GetData)) == 1


def test_the_cut_of_an_opened_epoch_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    table, (n2, n3) = settled()
    line, other = n2.chain(3), n2.event(journal=2)
    push(n2, line[0])
    change(table, ["n1", "n2", "n3"], cut=[line[2], other])
    n3.sync("n1")
    first = wants(n3)
    assert [(r.last_seq, r.last) for r in first.ranges] == [
        (3, line[2].id[:16]),
        (1, other.id[:16]),
    ]
    assert [seq for seq, _ in first.ranges[0].anchors] == [1]
    n2.sync("n1")
    table.run(AGE_MS)
    assert n2.requests() == []  # it is in flight
    n3.answer("n1", first)
    table.run(10)
    monkeypatch.setattr(limits, "GET_RANGES_MAX", 1)
    n2.sync("n1")
    assert len(wants(n2).ranges) == 1
