"""Commits that fail, a full disk, and mistakes of our own: what apps are told, and what stays."""

import asyncio
import dataclasses
from pathlib import Path
from typing import Any, Never

import pytest

from quipu.ledger.words import EventId
from quipu.node.exits import BadSetting
from quipu.node.failpoints import arm
from quipu.node.program import Node
from quipu.node.service import Draining, NodeFailed, OutcomeUnknown, StoreIsFull
from tests.small_node import armed, entry_of, read, running, small_node, submitted


async def first_and_journal(node: Node) -> tuple[EventId, int]:
    (stored,) = await submitted(node.ledger, ["before"])
    await read(node.ledger, stored.event_id)
    await node.ledger.order.when_ordered(stored.event_id)  # or that commit would be the one to fail
    return stored.event_id, stored.journal


def test_a_failed_commit_begins_a_new_journal(tmp_path: Path) -> None:
    async def test() -> None:
        async with small_node(tmp_path) as node:
            ledger = node.ledger
            before, journal = await first_and_journal(node)
            with armed("commit.begin=fail@1"), pytest.raises(OutcomeUnknown) as caught:
                await ledger.submit([entry_of("a"), entry_of("b")])
            assert [entry.index for entry in caught.value.ids] == [0, 1]
            assert ledger.event(caught.value.ids[0].event) is None
            (after,) = await submitted(ledger, ["after"])
            assert after.journal > journal
            await read(ledger, after.event_id)
            assert [identity for _, identity in ledger.feed(0, 9)] == [before, after.event_id]
            counters = ledger.metrics().counters
            assert (counters["commit_failures_total"], counters["core_rebuilds_total"]) == (1, 1)
            assert counters["outcomes_unknown_total"] == 1

    running(test)


def test_a_commit_that_came_through_after_all_is_found(tmp_path: Path) -> None:
    async def test() -> None:
        async with small_node(tmp_path) as node:
            ledger = node.ledger
            await first_and_journal(node)
            news = ledger.subscribe()
            with armed("commit.durable=unknown@1"), pytest.raises(OutcomeUnknown) as caught:
                await ledger.submit([entry_of("a")])
            (entry,) = caught.value.ids
            await read(ledger, entry.event)
            assert ledger.entry(entry.event, 0) == entry_of("a")
            heard: Any = await anext(news)
            assert heard.event_id == entry.event
            assert (await submitted(ledger, ["after"]))[0].seq == 1

    running(test)


def test_a_full_disk_refuses_reads_on_and_recovers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quipu.node.limits.FULL_PROBE_INTERVAL_S", 0.01)
    has_room = False

    async def test() -> None:
        nonlocal has_room
        async with small_node(tmp_path) as node:
            ledger = node.ledger
            before, _ = await first_and_journal(node)
            node.ledger.turns.outlets = _with_room(node, lambda: has_room)
            with armed("commit.begin=full"):
                with pytest.raises(StoreIsFull):
                    await ledger.submit([entry_of("no room")])
                with pytest.raises(StoreIsFull):
                    ledger.admit(1)
                with pytest.raises(StoreIsFull):
                    await ledger.submit([entry_of("no room either")])
                assert ledger.entry(before, 0) == entry_of("before")
                assert not ledger.health().is_ready
                assert ledger.health().is_live
                assert ledger.metrics().gauges["store_full"] == 1
            has_room = True
            while not ledger.health().is_ready:  # noqa: ASYNC110 - nothing else tells of it
                await asyncio.sleep(0)
            (after,) = await submitted(ledger, ["after"])
            await read(ledger, after.event_id)

    running(test)


def _with_room(node: Node, has_room: Any) -> Any:
    outlets = node.ledger.turns.outlets
    return dataclasses.replace(outlets, has_room=has_room)


def test_a_mistake_of_ours_costs_one_turn(tmp_path: Path) -> None:
    async def test() -> None:
        async with small_node(tmp_path) as node:
            ledger = node.ledger
            await first_and_journal(node)
            with armed("turn.decided=fail@1"), pytest.raises(NodeFailed):
                await ledger.submit([entry_of("x")])
            (after,) = await submitted(ledger, ["after"])
            await read(ledger, after.event_id)
            assert ledger.metrics().counters["step_failures_total"] == 1
            assert ledger.feed_number == 2

    running(test)


def test_a_node_that_only_fails_gives_up(tmp_path: Path) -> None:
    async def test() -> None:
        async with small_node(tmp_path) as node:
            with armed("commit.begin=fail"):
                for _ in range(30):
                    with pytest.raises((OutcomeUnknown, NodeFailed)):
                        await node.ledger.submit([entry_of("x")])
                    if node.stopping.is_set():
                        break
                assert "too many turns" in node.failure
            assert not node.ledger.health().is_live
            with pytest.raises(Draining):
                await node.ledger.submit([entry_of("x")])

    running(test)


def test_a_store_that_cannot_be_opened_again_ends_the_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        async with small_node(tmp_path) as node:
            await first_and_journal(node)

            def no_store(*given: object, **more: object) -> Never:
                from quipu.storage.store import DiskFailed

                raise DiskFailed("gone")

            monkeypatch.setattr("quipu.node.program.open_store", no_store)
            with armed("commit.begin=unknown@1"), pytest.raises(OutcomeUnknown):
                await node.ledger.submit([entry_of("x")])
            await node.stopping.wait()
            assert "cannot be read any more" in node.failure

    running(test)


@pytest.mark.parametrize("text", ["nowhere=kill", "commit.begin=explode", "commit.begin=fail@x"])
def test_failpoints_have_to_be_known(text: str) -> None:
    with pytest.raises(BadSetting):
        arm(text)
