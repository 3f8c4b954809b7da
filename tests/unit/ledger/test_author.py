"""One's own events: one core n1 that writes, the others are hands."""

from dataclasses import replace

import pytest

from quipu.ledger import limits
from quipu.ledger.effects import EntriesStored
from quipu.ledger.entry import data_entry, encode_entry
from quipu.ledger.event import SignedEvent, decode_body
from quipu.ledger.evidence import prove_author
from quipu.ledger.inputs import EntriesSubmitted
from quipu.ledger.messages import EventMessage
from quipu.ledger.refusals import Reason
from quipu.ledger.safeguards import ALL
from quipu.ledger.words import EventId, Ticket, hlc_at
from tests.conformance.hand import Hand, alone_with, greet, hands
from tests.conformance.roster import change
from tests.conformance.table import START_MS, Seat, Table


def entry_of(size: int) -> bytes:
    return encode_entry(data_entry(bytes(size)))


def submit(seat: Seat, ticket: int, *entries: bytes) -> None:
    seat.inbox.append(EntriesSubmitted(Ticket(ticket), entries))


def written(table: Table, name: str, *texts: str) -> SignedEvent:
    return table[name].event(table.write(name, *texts))


# --- journals ---------------------------------------------------------------------------------
def test_a_journal_begins_with_its_first_event_and_goes_on() -> None:
    table, n1, _ = alone_with(2)
    assert n1.core.author.journal is None
    first, second = written(table, "n1"), written(table, "n1")
    assert first.header.journal == second.header.journal
    assert (first.header.seq, first.header.prev) == (1, table.cluster_id)
    assert (second.header.seq, second.header.prev) == (2, first.id)
    assert first.header.journal >> limits.JOURNAL_RANDOM_BITS == START_MS + table.now_ms


def test_every_start_opens_a_new_journal_above_the_others() -> None:
    table, n1, players = alone_with(2)
    journals = [written(table, "n1").header.journal]
    for offset_ms in (0, -3_600_000, -7_200_000):  # the clock is set back twice
        n1.clock_offset_ms = offset_ms
        table.kill("n1")
        table.start("n1")
        greet(*players)
        event = written(table, "n1")
        assert event.header.seq == 1
        journals.append(event.header.journal)
    assert journals == sorted(set(journals))


def test_a_journal_is_above_those_that_came_from_peers_after_the_start() -> None:
    table, _, (n2, n3) = alone_with(2)
    myself = Hand(table, "n1")
    ahead = (table.wall_ms + 60_000) << limits.JOURNAL_RANDOM_BITS
    n2.push("n1", myself.event("from an earlier life", journal=ahead))
    table.run(0)
    assert written(table, "n1").header.journal > ahead
    assert n3.requests() == []


def test_without_the_safeguard_an_old_journal_goes_on_after_a_start() -> None:
    table, _, players = alone_with(2, guards=replace(ALL, new_journal_at_start=False))
    first = written(table, "n1")
    table.kill("n1")
    table.start("n1")
    greet(*players)
    second = written(table, "n1")
    assert (second.header.journal, second.header.seq) == (first.header.journal, 2)


def test_a_cord_that_has_run_ahead_of_the_clusters_clock_ends() -> None:
    table, n1, (n2, n3) = alone_with(2)
    n1.clock_offset_ms = 3_600_000
    table.run(10_000)  # nobody else is heard: cluster now is its own clock
    ahead = written(table, "n1")
    n1.clock_offset_ms = 0
    event = written(table, "n1")
    assert event.header.journal > ahead.header.journal
    assert event.header.hlc < ahead.header.hlc
    n2.confirm("n1", event)
    table.run(10)
    assert n1.is_read(event.id)  # not stuck behind the other
    assert not n1.is_read(ahead.id)
    assert n3.requests() == []


def test_at_the_sight_of_a_proof_against_itself_a_node_opens_a_new_journal() -> None:
    table, _, (n2, n3) = alone_with(2)
    first = written(table, "n1")
    clone = Hand(table, "n1").event("clone", journal=first.header.journal)
    n3.accuse(
        "n1",
        prove_author(
            (first.header_bytes, first.signature, first.id),
            (clone.header_bytes, clone.signature, clone.id),
        ),
    )
    table.run(0)
    second, third = written(table, "n1"), written(table, "n1")
    assert second.header.journal > first.header.journal
    assert third.header.journal == second.header.journal
    assert n2.requests() == []


def test_the_event_of_a_clone_is_a_proof_too() -> None:
    table, n1, (n2, _) = alone_with(2)
    first = written(table, "n1")
    n2.push("n1", Hand(table, "n1").event("clone", journal=first.header.journal))
    table.run(0)
    assert n1.convicted[0].conviction.culprit == n1.key.node_id
    assert written(table, "n1").header.journal > first.header.journal


def test_a_proof_about_an_older_journal_leaves_the_present_one() -> None:
    table, n1, (n2, n3) = alone_with(2)
    present = written(table, "n1")
    myself = Hand(table, "n1")
    one, other = myself.event("one", journal=5), myself.event("other", journal=5)
    n3.accuse(
        "n1",
        prove_author(
            (one.header_bytes, one.signature, one.id),
            (other.header_bytes, other.signature, other.id),
        ),
    )
    table.run(0)
    assert len(n1.convicted) == 1
    assert written(table, "n1").header.journal == present.header.journal
    assert n2.requests() == []


# --- what goes into an event ------------------------------------------------------------------
def test_the_entries_that_wait_become_one_event_in_order() -> None:
    table, n1, _ = alone_with(2)
    tickets = [table.submit("n1", "a", "b"), table.submit("n1", "c"), table.submit("n1", "d")]
    table.run(0)
    notices = {notice.ticket: notice for notice in n1.stored}
    assert [notices[ticket].index for ticket in tickets] == [0, 2, 3]
    assert len({notices[ticket].event for ticket in tickets}) == 1
    event = n1.event(notices[tickets[0]].event)
    assert [
        entry[entry.index(text) :][:1]
        for entry, text in zip(
            decode_body(event.header, event.body), [b"a", b"b", b"c", b"d"], strict=True
        )
    ] == [b"a", b"b", b"c", b"d"]


def test_a_submission_is_never_divided() -> None:
    table, n1, _ = alone_with(2)
    half = limits.EVENT_ENTRIES_MAX // 2 + 1
    for ticket in (1, 2, 3):
        submit(n1, ticket, *[entry_of(1)] * half)
    table.run(0)
    events = [notice.event for notice in n1.stored]
    assert len(set(events)) == 3
    assert [n1.event(event).header.seq for event in events] == [1, 2, 3]
    assert all(notice.index == 0 for notice in n1.stored)


def test_an_event_holds_four_mebibytes_of_entries() -> None:
    table, n1, (n2, _) = alone_with(2)
    for ticket in (1, 2):
        submit(n1, ticket, *[entry_of(1_000_000)] * 3)
    table.run(0)
    assert len({notice.event for notice in n1.stored}) == 2
    submit(n1, 3, *[entry_of(1_040_000)] * 4)
    submit(n1, 4, *[entry_of(1_048_550)] * 4)  # with their heads they are over it
    table.run(0)
    assert [notice.ticket for notice in n1.stored] == [1, 2, 3]
    assert [(notice.ticket, notice.reason) for notice in n1.not_stored] == [(4, Reason.TOO_LARGE)]
    sent = [message.event for message in n2.events_heard()]
    assert all(len(event.body) <= limits.EVENT_BYTES_MAX for event in sent)


def test_a_submission_that_no_event_holds_is_refused_alone() -> None:
    table, n1, _ = alone_with(2)
    submit(n1, 1)
    submit(n1, 2, *[entry_of(1)] * (limits.EVENT_ENTRIES_MAX + 1))
    submit(n1, 3, b"\xc0")
    submit(n1, 4, entry_of(1))
    table.run(0)
    assert [(notice.ticket, notice.reason) for notice in n1.not_stored] == [
        (1, Reason.BAD_BODY),
        (2, Reason.BAD_BODY),
        (3, Reason.MALFORMED),
    ]
    assert [notice.ticket for notice in n1.stored] == [4]


@pytest.mark.parametrize(
    ("limit", "most"), [("UNREAD_ENTRIES_OWN_MAX", 3), ("UNREAD_BYTES_OWN_MAX", 700)]
)
def test_above_its_backlog_of_unread_events_it_takes_no_more(
    monkeypatch: pytest.MonkeyPatch, limit: str, most: int
) -> None:
    monkeypatch.setattr(limits, limit, most)
    table, n1, (n2, _) = alone_with(2)
    events = []
    while not n1.not_stored:
        table.submit("n1", "x" * 50, "y" * 50)
        table.run(5)
        events = [notice.event for notice in n1.stored]
    assert n1.not_stored[0].reason == Reason.UNREAD_BACKLOG
    assert len(events) == 2
    n2.confirm("n1", n1.event(events[-1]))
    table.run(5)
    assert all(n1.is_read(event) for event in events)  # nothing accepted is dropped
    table.submit("n1")
    table.run(5)
    assert len(n1.stored) == 3


def test_the_backlog_counts_every_journal_of_this_life() -> None:
    table, n1, (n2, _) = alone_with(2)
    old = written(table, "n1")
    n1.core.author.close_journal()
    new = written(table, "n1")
    assert n1.core.author.unread_entries == 2
    n2.confirm("n1", old)
    table.run(10)
    assert n1.is_read(old.id)
    assert n1.core.author.unread_entries == 1
    n2.confirm("n1", new)
    table.run(10)
    assert (n1.core.author.unread_entries, n1.core.author.unread_bytes) == (0, 0)


# --- time and parents -------------------------------------------------------------------------
def test_it_stamps_with_cluster_now_and_above_its_ancestors() -> None:
    table, _, (n2, n3) = alone_with(2)
    n2.sync("n1", wall_ms=table.wall_ms + 900)
    n3.sync("n1", wall_ms=table.wall_ms + 1_500)
    table.run(0)
    first = written(table, "n1")
    assert first.header.hlc == hlc_at(table.wall_ms + 900)  # the median of the three
    second = written(table, "n1")
    assert second.header.hlc == first.header.hlc + 1
    ahead = n2.event(hlc=second.header.hlc + hlc_at(300))
    n2.push("n1", ahead)
    n2.confirm("n1", ahead)
    table.run(10)
    third = written(table, "n1")
    assert third.header.parents == [ahead.id]
    assert third.header.hlc == ahead.header.hlc + 1
    assert third.header.depth == 3


def test_a_leaf_is_named_once() -> None:
    table, n1, (n2, n3) = alone_with(2)
    leaf, later = n2.event(), n3.event()
    n2.push("n1", leaf)
    n2.confirm("n1", leaf)
    table.run(10)
    first = written(table, "n1")
    n3.push("n1", later)
    n3.confirm("n1", later)
    table.run(10)
    second, third = written(table, "n1"), written(table, "n1")
    assert [event.header.parents for event in (first, second, third)] == [[leaf.id], [later.id], []]
    n2.confirm("n1", third)
    table.run(10)
    assert n1.core.dag.oldest_leaves() == [third.id]
    assert n1.core.author._named == {}


def test_a_leaf_is_named_again_where_a_new_journal_begins() -> None:
    table, n1, (n2, _) = alone_with(2)
    leaf = n2.event()
    n2.push("n1", leaf)
    n2.confirm("n1", leaf)
    table.run(10)
    first = written(table, "n1")
    n1.core.author.close_journal()
    second = written(table, "n1")
    assert first.header.parents == second.header.parents == [leaf.id]


def test_the_last_event_of_an_older_own_journal_may_be_a_parent() -> None:
    table, n1, (n2, _) = alone_with(2)
    old = written(table, "n1")
    n2.confirm("n1", old)
    table.run(10)
    n1.core.author.close_journal()
    first, second = written(table, "n1"), written(table, "n1")
    assert first.header.parents == [old.id]
    n2.confirm("n1", second)
    table.run(10)
    assert written(table, "n1").header.parents == []  # never of its own cord


def test_what_belongs_to_a_later_epoch_is_no_parent_yet() -> None:
    table, n1, (n2, n3) = alone_with(2)
    unseen = n3.event("of the cut, not held here")
    change(table, ["n1", "n2", "n3"], cut=[unseen])
    later = n2.event("later", epoch=2)
    n2.push("n1", later)
    n2.confirm("n1", later, epoch=2)
    table.run(50)
    assert n1.is_read(later.id)
    event = written(table, "n1")
    assert event.header.epoch == 1  # its Model does not contain the cut
    assert event.header.parents == []
    n3.push("n1", unseen)
    table.run(50)
    event = written(table, "n1")
    assert event.header.epoch == 2
    assert set(event.header.parents) == {unseen.id, later.id}


def test_a_pushed_event_is_stored_under_the_same_id_by_all() -> None:
    table = Table(3)
    table.run(50)
    ticket = table.submit("n1", "a")
    table.run(50)
    identity = table.event_of(ticket)
    (notice,) = [
        n for turn in table["n1"].turns for n in turn.spoken if isinstance(n, EntriesStored)
    ]
    assert notice.event == identity
    assert {EventId(seat.event(identity).id) for seat in table.seats.values()} == {identity}
    assert len(table.messages(EventMessage)) == 2
    assert hands(table) == []
