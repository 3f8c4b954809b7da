"""Letting history go behind a checkpoint, and beginning with one that the others have kept."""

from quipu.ledger.effects import DropEvents
from quipu.ledger.event import SignedEvent
from quipu.ledger.inputs import HistoryPruned
from quipu.ledger.messages import EventMessage, Pruned, bytes_of, encode_message
from quipu.ledger.refusals import Reason
from quipu.ledger.words import BranchKey, EpochNo, EventId, Seq
from tests.conformance.roster import change
from tests.conformance.table import Seat, Table

ALL_THREE = ["n1", "n2", "n3"]
FAR_MS = 60_000


def tips(table: Table, at: str = "n1") -> list[SignedEvent]:
    """The last event of each cord: all of it is in the cut that names them."""
    seat = table[at]
    return [seat.event(record.read_id) for record in seat.core.dag.branches.values()]


def checkpoint(table: Table) -> None:
    table.run(2_000)
    change(table, ALL_THREE, tips(table))
    table.run(2_000)


def history(writes: int = 12, epochs: int = 3) -> tuple[Table, list[EventId]]:
    """Some epochs, in each of which n1 and n2 wrote."""
    table, written = Table(3), list[EventId]()
    table.run(100)
    for _ in range(epochs):
        for number in range(writes):
            written.append(table.write(f"n{1 + number % 2}"))
            table.run(20)
        checkpoint(table)
    return table, written


def prune(table: Table, *names: str, epoch: int) -> None:
    """All below the cut of that epoch but its tips."""
    for name in names:
        seat = table[name]
        tops: dict[BranchKey, Seq] = {}
        for record in seat.core.dag.branches.values():
            events = (
                seat.meta(seat.core.dag.id_on(record, Seq(s))) for s in kept(seat, record.key)
            )
            below = [meta.seq for meta in events if meta.epoch < epoch]
            tops[record.key] = Seq(max(below, default=1) - 1)
        rows = tuple(sorted(tops.items()))
        seat.inbox.append(HistoryPruned(EpochNo(epoch), rows, 0))
    table.run(100)


def kept(seat: Seat, key: BranchKey) -> range:
    record = seat.core.dag.branches[key]
    return range(record.gone_upto + 1, record.held_seq + 1)


def test_what_lies_below_the_cut_goes_and_its_tip_stays() -> None:
    table, written = history()
    before = table["n1"].digest()
    prune(table, "n1", epoch=2)
    n1 = table["n1"]
    assert sum(not n1.holds(one) for one in written) == 10  # 12 of the first epoch, two are tips
    assert n1.digest() == before
    assert table.are_equal()
    assert n1.store.was_pruned(written[0])
    assert n1.store.saved().pruned_to == 2


def test_neither_above_a_cut_nor_below_the_newest_one_does_anything_go() -> None:
    table, written = history()
    n1 = table["n1"]
    (key,) = (k for k in n1.core.dag.branches if k.author_no == 1)
    for epoch in (1, n1.core.epochs.newest.number, 99):
        n1.inbox.append(HistoryPruned(EpochNo(epoch), ((key, Seq(4)),), 0))
    above = n1.core.dag.branches[key].held_seq + 5
    table.run(10)
    assert not n1.durable(DropEvents)
    n1.inbox.append(HistoryPruned(EpochNo(2), ((key, Seq(above)),), 0))
    table.run(10)
    record = n1.core.dag.branches[key]
    assert record.gone_upto == record.cut_seq - 1  # bounded by the core, whatever it is told
    assert n1.holds(n1.core.dag.id_on(record, record.cut_seq))
    assert n1.is_read(written[-1]) or not n1.holds(written[-1])


def test_a_cluster_goes_on_over_pruned_history_and_over_a_restart() -> None:
    table, _ = history()
    prune(table, *ALL_THREE, epoch=3)
    later = [table.write(name) for name in ALL_THREE]
    checkpoint(table)
    table.kill("n2")
    table.start("n2")
    later += [table.write(name) for name in ("n1", "n3", "n2")]
    checkpoint(table)
    assert all(table[name].is_read(one) for name in ALL_THREE for one in later)
    assert table.are_equal()
    assert not any(seat.core.known.cut_wanted for seat in table.seats.values())


def test_a_wiped_node_begins_with_the_checkpoint_and_comes_up_to_date() -> None:
    table, written = history(writes=30)
    prune(table, "n1", "n2", epoch=3)
    table.kill("n3")
    table.start("n3", wiped=True)
    table.run_until(lambda: table.are_equal() and not table["n3"].core.known.entry_points, FAR_MS)
    n3 = table["n3"]
    assert table.messages(Pruned, receiver="n3")
    assert not n3.holds(written[0])
    assert n3.store.saved().pruned_to == 3
    assert n3.core.dag.leaves.keys() >= table["n1"].core.dag.leaves.keys()
    fresh = [table.write(name) for name in ALL_THREE]
    table.run_until(lambda: all(n3.is_read(one) for one in fresh), FAR_MS)
    table.kill("n3")
    table.start("n3")
    fresh.append(table.write("n3"))
    checkpoint(table)
    assert all(table[name].is_read(one) for name in ALL_THREE for one in fresh)
    assert table.are_equal()


def test_who_was_away_too_long_drops_what_it_had_and_says_so_to_its_readers() -> None:
    table, written = history(writes=12, epochs=1)
    table.kill("n3")
    for _ in range(3):
        for number in range(12):
            written.append(table.write(f"n{1 + number % 2}"))
            table.run(20)
        table.run(2_000)
        change(table, ALL_THREE, tips(table))
        table.run(2_000)
    prune(table, "n1", "n2", epoch=4)
    table.start("n3")
    n3 = table["n3"]
    last = n3.store.stats().feed
    table.run_until(lambda: table.are_equal() and not n3.core.known.entry_points, FAR_MS)
    assert n3.store.stats().feed_first > last  # a cursor of before is told of the gap
    assert not n3.holds(written[0])
    assert n3.store.was_pruned(written[0])
    fresh = [table.write(name) for name in ALL_THREE]
    table.run_until(lambda: all(n3.is_read(one) for one in fresh), FAR_MS)


def test_a_node_that_kept_all_still_serves_all() -> None:
    table, written = history()
    prune(table, "n1", epoch=3)
    table.kill("n3")
    table.cut("n1", "n3")
    table.start("n3", wiped=True)
    table.run_until(lambda: table["n3"].digest() == table["n2"].digest(), FAR_MS)
    assert all(table["n3"].is_read(one) for one in written)


def test_a_second_event_for_a_pruned_slot_is_refused() -> None:
    table, written = history()
    again = table["n2"].event(written[0])
    prune(table, "n1", epoch=3)
    table.tell("n2", "n1", encode_message(EventMessage(bytes_of(again))))
    table.run(10)
    assert table["n1"].refusals()[-1] in {Reason.PRUNED, Reason.TOO_OLD}
    assert not table["n1"].holds(written[0])


def test_a_word_about_a_checkpoint_counts_from_who_was_asked_alone() -> None:
    table, _ = history()
    table.tell("n2", "n1", encode_message(Pruned(77, 3)))
    table.run(10)
    assert not table["n1"].core.known.entry_points
    assert table["n1"].core.known.checkpoint_told == 0
