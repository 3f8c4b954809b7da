"""The service of a running node of one: what `quipu.node.service.Ledger` promises."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from quipu.ledger.entry import decode_entry
from quipu.ledger.refusals import Reason, Refused
from quipu.ledger.words import EventId
from quipu.node.service import (
    Backlogged,
    Draining,
    EventRead,
    EventState,
    EventStored,
    Gap,
    Goodbye,
    Ledger,
    Overloaded,
    ReadBy,
)
from quipu.verify import verify
from tests.small_node import entry_of, read, running, small_node, submitted

NOWHERE = EventId(bytes(32))


@pytest.mark.parametrize("writer", ["thread", "inline"])
def test_an_entry_is_stored_read_and_proven(writer: str, tmp_path: Path) -> None:
    async def test() -> None:
        async with small_node(tmp_path, writer) as node:
            ledger: Ledger = node.ledger
            stored = await ledger.submit([entry_of("one"), entry_of("two")])
            await read(ledger, stored.event_id)
            assert (stored.index, stored.seq, stored.journal) == (0, 1, ledger.journal)
            data = ledger.entry(stored.event_id, 1)
            assert data is not None
            assert decode_entry(data).data == b"two"
            proof = verify(ledger.proof(stored.event_id, 1), ledger.genesis)
            assert (proof.event_id, proof.index) == (stored.event_id, 1)
            status = ledger.status(stored.event_id)
            assert status is not None
            assert (status.state, status.read_by) == (EventState.READ, ReadBy.RECEIPTS)
            assert status.first_seen_ms is not None
            assert status.read_ms is not None
            assert (status.required, status.confirmed_by, status.author_receipt) == (0, (), True)

    running(test)


def test_what_comes_at_once_becomes_one_event(tmp_path: Path) -> None:
    async def test() -> None:
        async with small_node(tmp_path) as node:
            stored = await submitted(node.ledger, [str(i) for i in range(500)])
            assert len({s.event_id for s in stored}) <= 3
            assert len({(s.event_id, s.index) for s in stored}) == 500
            events = {s.event_id for s in stored}
            counts = [m.entry_count for e in events if (m := node.ledger.meta(e)) is not None]
            assert sum(counts) == 500

    running(test)


def test_the_dag_is_read_from_what_is_committed(tmp_path: Path) -> None:
    async def test() -> None:
        async with small_node(tmp_path) as node:
            ledger = node.ledger
            ids = [(await submitted(ledger, [text]))[0].event_id for text in ("a", "b", "c")]
            await read(ledger, ids[2])
            assert ledger.leaves() == [ids[2]]
            assert [m.id for m in ledger.ancestors(ids[2], depth=9, limit=9)] == [ids[1], ids[0]]
            assert [m.id for m in ledger.ancestors(ids[2], depth=1, limit=9)] == [ids[1]]
            assert len(ledger.ancestors(ids[2], depth=9, limit=1)) == 1
            assert ledger.children(ids[0]) == [ids[1]]
            assert ledger.feed(0, 9) == [(1, ids[0]), (2, ids[1]), (3, ids[2])]
            assert ledger.feed_number == 3
            (row,) = ledger.frontier()
            assert (row.held_seq, row.read_seq, row.read_id) == (3, 3, ids[2])
            assert ledger.unread(9) == []
            found = ledger.find_event(ids[1][:16])
            assert found is not None
            assert found.id == ids[1]
            event = ledger.event(ids[0])
            assert event is not None
            assert event.id == ids[0]
            explained = ledger.explain(ids[0])
            assert explained is not None
            assert explained.obstacles == ()

    running(test)


def test_what_is_not_held_is_nothing(tmp_path: Path) -> None:
    async def test() -> None:
        async with small_node(tmp_path) as node:
            ledger = node.ledger
            assert ledger.journal is None
            found: list[Any] = [ledger.status(NOWHERE), ledger.event(NOWHERE)]
            found += [ledger.entry(NOWHERE, 0), ledger.explain(NOWHERE), ledger.meta(NOWHERE)]
            assert found == [None] * 5
            assert ledger.children(NOWHERE) == []
            assert ledger.ancestors(NOWHERE, 3, 3) == []
            assert not await ledger.wait_read(NOWHERE, 0.01)
            with pytest.raises(Refused) as caught:
                ledger.proof(NOWHERE, 0)
            assert caught.value.reason is Reason.NOT_READ
            assert ledger.convictions() == ()

    running(test)


def test_refusals_of_the_core_come_through(tmp_path: Path) -> None:
    async def test() -> None:
        async with small_node(tmp_path) as node:
            for entries, reason in (
                ([b"\xc1"], Reason.MALFORMED),
                ([], Reason.BAD_BODY),
                ([entry_of("x" * 1_000_000)] * 5, Reason.TOO_LARGE),
            ):
                with pytest.raises(Refused) as caught:
                    await node.ledger.submit(entries)
                assert caught.value.reason is reason
                with pytest.raises(Refused) as caught:
                    node.ledger.check(entries)
                assert caught.value.reason is reason
            node.ledger.check([entry_of("fine")])
            assert node.ledger.metrics().refused == {"bad-body": 1, "malformed": 1, "too-large": 1}
            assert await submitted(node.ledger, ["still taken"])

    running(test)


def test_a_caller_that_goes_takes_nothing_back(tmp_path: Path) -> None:
    async def test() -> None:
        async with small_node(tmp_path) as node:
            going = asyncio.ensure_future(node.ledger.submit([entry_of("gone")]))
            staying = asyncio.ensure_future(node.ledger.submit([entry_of("here")]))
            await asyncio.sleep(0)
            going.cancel()
            stored = await staying
            event = node.ledger.event(stored.event_id)
            assert event is not None
            assert event.header.entry_count == 2

    running(test)


def test_a_key_finds_what_it_was_used_for(tmp_path: Path) -> None:
    async def test() -> None:
        async with small_node(tmp_path) as node:
            ledger = node.ledger
            assert ledger.find_key("app", "orders", "k1") is None
            twice = [entry_of("x", stream="orders", submitter="app", idempotency_key="k1")] * 2
            stored = await ledger.submit(twice)
            found = ledger.find_key("app", "orders", "k1")
            assert found is not None
            assert (found.entry.event, found.entry.index) == (stored.event_id, 0)
            assert [entry.index for entry in found.duplicates] == [1]
            assert ledger.find_key(None, "orders", "k1") is None

    running(test)


def test_room_is_held_from_before_the_body_to_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quipu.node.limits.SUBMISSIONS_WAITING_MAX", 2)
    monkeypatch.setattr("quipu.node.limits.BYTES_WAITING_MAX", 100)

    async def test() -> None:
        async with small_node(tmp_path) as node:
            ledger = node.ledger
            with pytest.raises(Overloaded) as caught:
                ledger.admit(101)
            assert caught.value.retry_after_s > 0
            with ledger.admit(60):
                with pytest.raises(Overloaded):
                    ledger.admit(41)
                with pytest.raises(Overloaded):
                    ledger.admit(41, is_again=True)  # not counted once more
                with ledger.admit(40), pytest.raises(Overloaded):
                    ledger.admit(0)
            ledger.admit(100)
            assert ledger.metrics().counters["overloaded_total"] == 3
            results = await asyncio.gather(
                *(ledger.submit([entry_of(str(i))]) for i in range(3)), return_exceptions=True
            )
            assert isinstance(results[2], Overloaded)

    running(test)


def test_a_backlog_of_unread_is_said_before_the_body_is_read(tmp_path: Path) -> None:
    async def test() -> None:
        async with small_node(tmp_path) as node:
            node.ledger.machine.core.author.unread_entries = 1_000_000
            with pytest.raises(Backlogged):
                node.ledger.admit(1)
            assert not node.ledger.health().is_ready
            node.ledger.machine.core.author.unread_entries = 0

    running(test)


def test_subscribers_hear_in_order_and_of_gaps(tmp_path: Path) -> None:
    async def test() -> None:
        async with small_node(tmp_path) as node:
            ledger = node.ledger
            fast, slow = ledger.subscribe(), ledger.subscribe(queue_max=1)
            ids = [(await submitted(ledger, [str(i)]))[0].event_id for i in range(3)]
            await read(ledger, ids[2])
            heard = [await anext(fast) for _ in range(6)]
            assert [n.event_id for n in heard if isinstance(n, EventStored)] == ids
            assert [n for n in heard if isinstance(n, EventRead)] == [
                EventRead(i + 1, identity) for i, identity in enumerate(ids)
            ]
            assert await anext(slow) == EventStored(ids[0])
            assert await anext(slow) == Gap(missed=5, after=0, upto=3)
            (last,) = await submitted(ledger, ["last"])
            assert await anext(slow) == EventStored(last.event_id)
            fast.close()
            assert [item async for item in fast] == []
            assert ledger.metrics().gauges["subscriptions"] == 1

    running(test)


def test_draining_says_goodbye_and_finishes_what_was_taken(tmp_path: Path) -> None:
    async def test() -> None:
        async with small_node(tmp_path) as node:
            ledger = node.ledger
            news = ledger.subscribe()
            taken = asyncio.ensure_future(ledger.submit([entry_of("taken")]))
            waiting = asyncio.create_task(ledger.wait_read(NOWHERE, 30))
            await asyncio.sleep(0)
            await node.drain()
            assert taken.done()
            assert (await taken).seq == 1
            assert not await waiting
            assert [item async for item in news][-1] == Goodbye("draining")
            with pytest.raises(Draining):
                ledger.admit(1)
            with pytest.raises(Draining):
                await ledger.submit([entry_of("too late")])
            assert not await ledger.wait_read(NOWHERE, 30)
            health = ledger.health()
            assert health.is_live
            assert not health.is_ready
            assert health.is_readable

    running(test)


def test_a_second_start_has_everything_and_a_new_journal(tmp_path: Path) -> None:
    async def test() -> None:
        journals, ids = [], []
        for number in range(3):
            async with small_node(tmp_path) as node:
                assert node.ledger.feed_number == number
                (stored,) = await submitted(node.ledger, [f"{number}"])
                await read(node.ledger, stored.event_id)
                journals.append(stored.journal)
                ids.append(stored.event_id)
        assert journals == sorted(set(journals))
        async with small_node(tmp_path) as node:
            assert [identity for _, identity in node.ledger.feed(0, 9)] == ids
            status = node.ledger.status(ids[0])
            assert status is not None
            assert status.first_seen_ms is not None, "a node stamps its own events"
            assert status.read_ms is None, "not remembered"

    running(test)


def test_many_starts_with_writes_make_checkpoints(tmp_path: Path) -> None:
    async def test() -> None:
        first: EventId | None = None
        for number in range(20):
            async with small_node(tmp_path) as node:
                (stored,) = await submitted(node.ledger, [f"{number}"])
                first = first or stored.event_id
                await read(node.ledger, stored.event_id)
        assert first is not None
        async with small_node(tmp_path) as node:
            ledger = node.ledger
            assert ledger.epoch.number > 1
            assert ledger.unread(99) == []
            status = ledger.status(first)
            assert status is not None
            assert status.read_by is ReadBy.CUT
            assert verify(ledger.proof(first, 0), ledger.genesis).event_id == first
            assert [member.name for member in ledger.members()] == ["n1"]

    running(test)


def test_who_it_is_and_what_it_counts(tmp_path: Path) -> None:
    async def test() -> None:
        async with small_node(tmp_path) as node:
            ledger = node.ledger
            assert (ledger.name, ledger.cluster_name) == ("n1", "quipu")
            assert list(ledger.epoch.members.values()) == [ledger.node_id]
            assert len(ledger.cluster_id) == len(ledger.node_id) == 32
            await submitted(ledger, ["a", "b"])
            metrics = ledger.metrics()
            assert metrics.counters["entries_stored_total"] == 2
            assert metrics.gauges["store_events"] == metrics.counters["events_stored_total"]
            commits = metrics.histograms["commit_seconds"].counts
            assert commits == sorted(commits)
            assert commits[-1] == metrics.counters["commits_total"]
            health = ledger.health()
            assert (health.is_live, health.is_ready, health.is_readable) == (True, True, True)

    running(test)
