"""A lone node orders all that it holds: in the order of the DAG, over restarts and failures."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from quipu.ledger.log.effects import LogEffects
from quipu.ledger.log.inputs import LogInput, ModelGrew
from quipu.ledger.log.machine import LogMachine
from quipu.ledger.log.roles import Role
from quipu.ledger.order.extension import references_of
from quipu.ledger.words import EventId, Now
from quipu.node import limits
from quipu.node.order_service import JournalGone, OrderedEntry
from quipu.node.program import Node
from quipu.node.service import EventOrdered
from quipu.storage.backup import copy_store
from tests.process.cluster import wait_until_async
from tests.small_node import WAIT_S, armed, running, small_node, submitted


async def ordered(node: Node, *texts: str) -> list[EventId]:
    """Each in an event of its own."""
    found = []
    for text in texts:
        [stored] = await submitted(node.ledger, [text])
        assert await node.ledger.order.when_ordered(stored.event_id)
        found.append(stored.event_id)
    return found


def journal_of(node: Node) -> list[OrderedEntry]:
    return node.ledger.order.entries(node.ledger.order.status().base, 10_000)


def events_in(entries: list[OrderedEntry]) -> list[EventId]:
    return [EventId(one.id) for entry in entries for one in references_of(entry.items)]


def test_lone_node_is_master_at_once_and_orders_what_it_reads(tmp_path: Path) -> None:
    async def test() -> None:
        async with small_node(tmp_path) as node:
            news = node.ledger.subscribe(hears_order=True)
            ids = await ordered(node, "a", "b", "c")
            status = node.ledger.order.status()
            assert (status.role, status.master, status.regime) == (Role.MASTER, 1, 1)
            assert (status.events, status.events_behind) == (3, 0)
            assert events_in(journal_of(node)) == ids
            assert all(found and found.ordered for found in map(node.ledger.status, ids))
            told: list[EventOrdered] = []
            while len(told) < 3:
                item = await anext(news)
                if isinstance(item, EventOrdered):
                    told.append(item)
            assert [item.event_id for item in told] == ids
            assert [item.log_index for item in told] == [
                entry.log_index for entry in journal_of(node) if entry.items
            ]

    running(test)


def test_what_becomes_read_is_proposed_in_the_same_transaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "ORDER_PACE_MS", 0)

    async def test() -> None:
        async with small_node(tmp_path) as node:
            await ordered(node, "the first")
            await node.ledger.turns.idle()
            before = node.ledger.measures.commits
            await ordered(node, "a")
            assert node.ledger.measures.commits == before + 1

    running(test)


def test_order_goes_on_after_a_restart(tmp_path: Path) -> None:
    async def test() -> None:
        async with small_node(tmp_path) as node:
            before = await ordered(node, "a", "b")
            held = journal_of(node)
        async with small_node(tmp_path) as node:
            assert journal_of(node)[: len(held)] == held
            assert all(found and found.ordered for found in map(node.ledger.status, before))
            after = await ordered(node, "c")
            assert events_in(journal_of(node)) == before + after
            assert node.ledger.order.status().regime == 2

    running(test)


def test_what_was_read_and_not_ordered_is_ordered_by_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        monkeypatch.setattr(limits, "ORDER_PROPOSALS_MAX", 0)
        async with small_node(tmp_path) as node:
            stored = await submitted(node.ledger, ["a", "b"])
            assert await node.ledger.wait_read(stored[0].event_id, WAIT_S)
            assert node.ledger.order.status().events == 0
        monkeypatch.undo()
        async with small_node(tmp_path) as node:
            assert await node.ledger.order.when_ordered(stored[0].event_id)
            assert node.ledger.order.status().events_behind == 0

    running(test)


def test_log_begins_above_a_base_that_it_keeps_moving(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LOG_KEPT_ENTRIES", 4)

    async def test() -> None:
        async with small_node(tmp_path) as node:
            ids = await ordered(node, *map(str, range(20)))
            status = node.ledger.order.status()
            assert status.base >= 10
            assert status.last - status.base <= 9
            with pytest.raises(JournalGone) as gone:
                node.ledger.order.entries(0, 10)
            assert gone.value.oldest == status.base + 1
            assert node.ledger.machine.store.stats().log == status.last - status.base
        async with small_node(tmp_path) as node:
            assert node.ledger.order.status().events == 20
            assert all(found and found.ordered for found in map(node.ledger.status, ids))
            await ordered(node, "one more")

    running(test)


def test_references_come_in_the_order_of_the_dag_though_few_fit_an_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "ORDER_REFERENCES_MAX", 2)

    async def test() -> None:
        monkeypatch.setattr(limits, "ORDER_PROPOSALS_MAX", 0)
        ids = []
        for start in range(3):
            async with small_node(tmp_path) as node:
                for text in "abc":
                    [stored] = await submitted(node.ledger, [f"{start}{text}"])
                    assert await node.ledger.wait_read(stored.event_id, WAIT_S)
                    ids.append(stored.event_id)
        monkeypatch.setattr(limits, "ORDER_PROPOSALS_MAX", 4)
        async with small_node(tmp_path) as node:
            assert await node.ledger.order.when_ordered(ids[-1])
            entries = journal_of(node)
            assert events_in(entries) == ids  # of one author, one after the other
            assert max(len(entry.items) for entry in entries) == 2

    running(test)


def test_what_is_parked_is_judged_again_when_its_ancestors_are_applied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An entry rests on what is ordered as much as on what is Read. Its voter was asked while the
    ones before it were chosen and not applied; where the Model grew no more it waited for ever."""
    judged: list[int] = []  # how far the journal was when a voter was to look again
    step = LogMachine.step

    async def test() -> None:
        async with small_node(tmp_path) as node:
            ordering = node.ledger.machine.ordering

            def noted(machine: LogMachine, inputs: Sequence[LogInput], now: Now) -> LogEffects:
                if any(isinstance(one, ModelGrew) for one in inputs):
                    judged.append(ordering.journal.applied)
                return step(machine, inputs, now)

            monkeypatch.setattr(LogMachine, "step", noted)
            monkeypatch.setattr(LogMachine, "waits_for_model", True)
            await ordered(node, "a")
            applied = node.ledger.order.status().applied
            await wait_until_async(lambda: applied in judged, "it is judged again")

    running(test)


@pytest.mark.parametrize("fault", ["commit.begin=fail@6", "commit.begin=unknown@6"])
def test_order_survives_a_commit_that_failed(tmp_path: Path, fault: str) -> None:
    async def test() -> None:
        async with small_node(tmp_path) as node:
            before = await ordered(node, "a")
            with armed(fault):
                for number in range(12):
                    try:
                        await submitted(node.ledger, [str(number)])
                    except Exception:  # noqa: BLE001 - which of them fails is chance
                        continue
            after = await ordered(node, "b")
            found = events_in(journal_of(node))
            assert len(set(found)) == len(found)
            assert (found[0], found[-1]) == (before[0], after[0])
            assert node.ledger.measures.rebuilds == 1

    running(test)


def test_lone_node_with_a_restored_disk_waits_for_an_operator(tmp_path: Path) -> None:
    async def test() -> None:
        async with small_node(tmp_path / "n1") as node:
            await ordered(node, "a")
        store = tmp_path / "n1" / "store"
        copy_store(store, tmp_path / "copy")
        store.rename(tmp_path / "before")
        (tmp_path / "copy").rename(store)
        async with small_node(tmp_path / "n1") as node:
            order = node.ledger.order
            assert order.status().role == Role.RECOVERING
            [stored] = await submitted(node.ledger, ["b"])
            assert await node.ledger.wait_read(stored.event_id, WAIT_S)
            assert order.status().role == Role.RECOVERING
            order.force_recovery()
            assert await order.when_ordered(stored.event_id)
        async with small_node(tmp_path / "n1") as node:
            await wait_until_async(
                lambda: node.ledger.order.status().role == Role.MASTER, "it votes for good"
            )

    running(test)
