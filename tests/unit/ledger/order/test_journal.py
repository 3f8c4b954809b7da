"""What is applied of the log: events in their order, once; a base in place of entries."""

import pytest

from quipu.ledger.canonical import encode
from quipu.ledger.event import EventMeta
from quipu.ledger.log.entry import LogEntry
from quipu.ledger.log.words import Index
from quipu.ledger.order.client_items import AccessList, AddClient, encode_client_item
from quipu.ledger.order.clients import ClientId
from quipu.ledger.order.extension import JournalGate
from quipu.ledger.order.items import EventReference, LockAndPublish, encode_item
from quipu.ledger.order.journal import Applied, Journal, JournalRecord, Part, decode_record
from quipu.ledger.order.registry import Listed, Registered
from quipu.ledger.order.sequences import Published
from quipu.ledger.refusals import Refused
from quipu.ledger.words import BranchKey, EventId, Seq
from tests.made_events import MadeCluster


class Held:
    """A Model that grows as the test says."""

    def __init__(self) -> None:
        self.metas: dict[EventId, EventMeta] = {}
        self.forks: dict[BranchKey, list[tuple[BranchKey, Seq, EventId]]] = {}
        self.gone: dict[tuple[int, int], int] = {}
        self.gone_ids: set[EventId] = set()

    def read_meta(self, identity: EventId) -> EventMeta | None:
        return self.metas.get(identity)

    def still_held(self, identities: tuple[EventId, ...]) -> tuple[EventId, ...]:
        return tuple(one for one in identities if one not in self.gone_ids)

    def is_gone(self, node_no: int, journal: int, seq: int) -> bool:
        return seq <= self.gone.get((node_no, journal), 0)

    def forks_of(self, branch: BranchKey) -> list[tuple[BranchKey, Seq, EventId]]:
        return self.forks.get(branch, [])

    def learn(self, *metas: EventMeta) -> None:
        self.metas |= {meta.id: meta for meta in metas}


def reference(meta: EventMeta) -> bytes:
    slot = meta.slot
    return encode_item(EventReference(slot.author_no, slot.journal, slot.seq, meta.id))


def entry(index: int, *items: bytes) -> LogEntry:
    return LogEntry(1, 1, index, 1, False, list(items))


def applied(journal: Journal) -> list[Applied]:
    return list(journal.advance())


def chain(count: int) -> list[EventMeta]:
    cluster = MadeCluster()
    return [cluster.write(1).meta for _ in range(count)]


def test_events_are_ordered_once_and_only_when_they_are_in_the_model() -> None:
    held = Held()
    journal, (one, two, three) = Journal(held), chain(3)
    held.learn(one)
    journal.choose(entry(1))
    journal.choose(entry(2, reference(one)))
    journal.choose(entry(3, reference(two), reference(one)))
    assert [one.entry.index for one in applied(journal)] == [1, 2]
    assert (journal.applied, journal.events, journal.waits) == (2, 1, True)
    assert journal.is_ordered(one)
    assert not journal.is_ordered(two)
    held.learn(two, three)
    [last] = applied(journal)
    assert [(number, meta.id) for number, meta in last.events] == [(0, two.id)]
    assert (journal.applied, journal.events, journal.waits) == (3, 2, False)
    assert not journal.is_ordered(three)


def test_sequence_operations_have_their_outcome_by_number() -> None:
    journal = Journal(Held())
    item = encode_item(LockAndPublish("orders", 2, bytes(32)))
    journal.choose(entry(1, b"what nobody reads", item))
    [one] = applied(journal)
    [(number, outcome)] = one.outcomes
    assert number == 1
    assert isinstance(outcome, Published)
    assert outcome.number == 1


def test_base_waits_for_what_it_rests_on_and_stands_for_all_below() -> None:
    held, other = Held(), Held()
    metas = chain(4)
    other.learn(*metas)
    theirs = Journal(other)
    theirs.choose(entry(1, *map(reference, metas[:3])))
    theirs.choose(entry(2, encode_item(LockAndPublish("orders", 2, bytes(32)))))
    applied(theirs)

    journal = Journal(held)
    held.learn(metas[0])
    journal.choose(entry(1, *map(reference, metas[:3])))
    journal.take_base(Index(2), decode_record(theirs.record()))
    journal.choose(entry(3, reference(metas[3])))
    assert applied(journal) == []
    assert journal.applied == 0
    held.learn(*metas)
    assert [one.entry.index for one in applied(journal)] == [3]
    assert (journal.applied, journal.events) == (3, 4)
    assert [journal.is_ordered(meta) for meta in metas] == [True] * 4
    assert journal.sequences.of("orders").number == 1
    applied(theirs)
    theirs.choose(entry(3, reference(metas[3])))
    applied(theirs)
    assert journal.record() == theirs.record()


def test_base_orders_what_lies_below_a_fork() -> None:
    """The branch that is ordered may be the second one here, and the first one elsewhere."""
    cluster = MadeCluster()
    first, second = cluster.write(1).meta, cluster.write(1).meta
    fork = cluster.fork(first, 1, 1, "another second").meta
    theirs_held = Held()
    theirs_held.learn(first, fork._replace(branch=first.branch))
    theirs = Journal(theirs_held)
    theirs.choose(entry(1, reference(first), reference(fork)))
    applied(theirs)

    held = Held()
    held.learn(first, second, fork)
    held.forks[fork.branch] = [(first.branch, first.seq, first.id)]
    journal = Journal(held)
    journal.take_base(Index(1), decode_record(theirs.record()))
    applied(journal)
    assert [journal.is_ordered(meta) for meta in (first, second, fork)] == [True, False, True]


def test_gate_admits_what_follows_in_the_dag() -> None:
    held = Held()
    metas = chain(3)
    held.learn(*metas)
    journal = Journal(held)
    gate = JournalGate(journal)
    assert not gate.after([]).admits([reference(metas[1])])
    journal.choose(entry(1, reference(metas[0])))
    applied(journal)
    gate.applied = journal.applied
    assert gate.after([]).admits([reference(metas[1]), reference(metas[2])])
    assert not gate.after([]).admits([reference(metas[0])])


@pytest.mark.parametrize("data", [b"\x94\x02\x00\x90\x90", b"junk", b"\x94\x01\x00\x90\x90\x00"])
def test_state_that_no_base_comes_with_is_refused(data: bytes) -> None:
    with pytest.raises(Refused):
        decode_record(data)


def test_clients_go_with_a_base_and_an_older_state_is_read() -> None:
    journal = Journal(Held())
    before = journal.record()
    assert before[:2] == b"\x94\x01"  # as older programs wrote and read it
    rules = encode_client_item(AccessList(b"rules"))
    journal.choose(entry(1, rules))
    [listed] = applied(journal)
    [(_, outcome)] = listed.outcomes
    assert isinstance(outcome, Listed)
    add = encode_client_item(AddClient(outcome.acl, 1, bytes(32)))
    journal.choose(entry(2, add))
    [added] = applied(journal)
    assert added.outcomes == ((0, Registered(ClientId(1), outcome.acl)),)
    other = Journal(Held())
    other.take_base(Index(2), decode_record(journal.record()))
    assert applied(other) == []
    assert other.registry == journal.registry
    assert decode_record(before).parts == []


@pytest.mark.parametrize("names", [["nobody-knows"], ["clients", "clients"]])
def test_parts_that_nobody_knows_are_refused(names: list[str]) -> None:
    parts = [Part(name, b"\x01") for name in names]
    with pytest.raises(Refused):
        decode_record(encode(JournalRecord(2, 0, [], [], parts)))


def test_what_was_pruned_here_counts_as_ordered_and_nobody_reads_it() -> None:
    held = Held()
    journal, (one, two, three) = Journal(held), chain(3)
    held.learn(two, three)
    held.gone[one.slot.author_no, one.slot.journal] = 1
    journal.choose(entry(1, reference(one), reference(two)))
    ((_, events, _),) = applied(journal)
    assert [meta for _, meta in events] == [two]
    assert (journal.events, journal.ordered_seq(two.branch)) == (2, 2)
    journal.choose(entry(2, reference(three)))
    assert [meta for done in applied(journal) for _, meta in done.events] == [three]


def test_a_base_that_names_what_was_pruned_here_is_taken_over() -> None:
    held, metas = Held(), chain(3)
    elder = Journal(held)
    held.learn(*metas)
    elder.choose(entry(1, *map(reference, metas[:2])))
    applied(elder)
    late = Held()
    late.gone[metas[0].slot.author_no, metas[0].slot.journal] = 2
    late.learn(metas[2])
    journal = Journal(late)
    journal.take_base(Index(1), decode_record(elder.record()))
    journal.choose(entry(2, reference(metas[2])))
    assert [meta for done in applied(journal) for _, meta in done.events] == [metas[2]]
    assert journal.events == 3


def test_a_voter_that_comes_late_accepts_what_it_has_pruned() -> None:
    held, metas = Held(), chain(3)
    held.gone[metas[0].slot.author_no, metas[0].slot.journal] = 1
    held.gone_ids.add(metas[0].id)
    held.learn(*metas[1:])
    gate = JournalGate(Journal(held))
    assert gate.after([]).admits([reference(metas[0])])
    assert gate.after([]).admits([reference(metas[1])])  # what it rests on is gone
    assert not gate.after([]).admits([reference(metas[2])])  # prev is held, and not ordered
