"""Receipts that nobody here waits for do not ask for a turn."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from quipu.devnet.founding import found
from quipu.ledger.entry import data_entry, encode_entry
from quipu.ledger.inputs import MessageReceived, PeerConnected
from quipu.ledger.inv import build_inv
from quipu.ledger.messages import (
    EpochWant,
    InvMessage,
    SyncEvent,
    encode_message,
    is_receipt,
)
from quipu.ledger.signing import KeyPair
from quipu.ledger.words import Cord, InvNumber
from quipu.node import limits
from quipu.node.data_directory import open_directory
from quipu.node.program import Node
from quipu.node.service import EventRead, EventState, NodeFailed, Stored
from tests.small_node import running, small_node

WHEREVER_MS = 3_600_000  # longer than any test


def test_a_receipt_is_known_by_its_first_bytes() -> None:
    assert is_receipt(encode_message(InvMessage(b"anything")))
    assert not is_receipt(encode_message(EpochWant(2)))
    assert not is_receipt(b"")


@asynccontextmanager
async def node_of_two(folder: Path) -> AsyncIterator[tuple[Node, KeyPair]]:
    """A real node n1, and the key of n2, whose part the test plays."""
    found(folder, 2, 0, [0] * 6)
    other = open_directory(folder / "n2" / "data", None)
    other.close()
    async with small_node(folder / "n1" / "data") as node:
        node.ledger.inbox.push(PeerConnected(other.key.node_id), 0)
        told = SyncEvent(1, 0, 0, [], 0, [], [], 1, bytes(32), bytes(16), 0, recovering=False)
        node.ledger.inbox.push(MessageReceived(other.key.node_id, encode_message(told)), 0)
        await until(lambda: node.ledger.machine.core.recovery.may_sign)
        yield node, other.key


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():  # noqa: ASYNC110 - nothing else tells of it
        await asyncio.sleep(0)


async def stored_at(node: Node, text: str) -> Stored:
    return await node.ledger.submit([encode_entry(data_entry(text.encode()))])


def confirm(node: Node, key: KeyPair, stored: Stored) -> None:
    ledger = node.ledger
    row = (Cord(ledger.epoch.numbers[ledger.node_id], stored.journal), stored.seq, stored.event_id)
    number = InvNumber(int(stored.hlc) + stored.seq)
    inv = build_inv(key, ledger.cluster_id, ledger.epoch.number, number, [row])
    message = MessageReceived(key.node_id, encode_message(InvMessage(inv.data)))
    assert ledger.inbox.push(message, len(message.data))


def state_of(node: Node, stored: Stored) -> EventState:
    status = node.ledger.status(stored.event_id)
    assert status is not None
    return status.state


@pytest.fixture
def for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """They would wait until somebody asks for them."""
    monkeypatch.setattr(limits, "RECEIPTS_WAIT_MS", WHEREVER_MS)


@pytest.mark.usefixtures("for_ever")
def test_a_receipt_that_nobody_waits_for_costs_the_next_turn_nothing(tmp_path: Path) -> None:
    async def test() -> None:
        async with node_of_two(tmp_path) as (node, n2):
            first = await stored_at(node, "first")
            await node.ledger.turns.idle()
            commits = node.ledger.measures.commits
            confirm(node, n2, first)
            second = await stored_at(node, "second")
            confirm(node, n2, second)
            assert node.ledger.measures.commits == commits + 1
            assert state_of(node, first) is EventState.STORED
            checked = node.ledger.measures.signatures_checked
            await node.ledger.turns.idle()
            assert state_of(node, first) is state_of(node, second) is EventState.READ
            assert node.ledger.measures.signatures_checked == checked + 1

    running(test)


def test_it_is_taken_soon_in_any_case(tmp_path: Path) -> None:
    async def test() -> None:
        async with node_of_two(tmp_path) as (node, n2):
            first = await stored_at(node, "first")
            await node.ledger.turns.idle()
            confirm(node, n2, first)
            assert state_of(node, first) is EventState.STORED
            await until(lambda: state_of(node, first) is EventState.READ)

    running(test)


def test_the_time_runs_anew_after_what_waited_was_dropped(tmp_path: Path) -> None:
    async def test() -> None:
        async with node_of_two(tmp_path) as (node, n2):
            first = await stored_at(node, "first")
            ledger = node.ledger
            await ledger.turns.idle()
            confirm(node, n2, first)
            ledger.inbox.fail_all(NodeFailed("dropped"))
            await until(lambda: ledger.turns._later is None)
            confirm(node, n2, first)
            await until(lambda: state_of(node, first) is EventState.READ)

    running(test)


@pytest.mark.usefixtures("for_ever")
def test_whoever_begins_to_wait_has_it_taken(tmp_path: Path) -> None:
    async def test() -> None:
        async with node_of_two(tmp_path) as (node, n2):
            first = await stored_at(node, "first")
            await node.ledger.turns.idle()
            confirm(node, n2, first)
            assert await node.ledger.wait_read(first.event_id, 20.0)
            second = await stored_at(node, "second")
            waiting = asyncio.create_task(node.ledger.wait_read(second.event_id, 20.0))
            await asyncio.sleep(0)
            confirm(node, n2, second)
            assert await waiting

    running(test)


@pytest.mark.usefixtures("for_ever")
def test_one_that_came_during_a_commit_is_not_taken_when_its_waiter_was_served(
    tmp_path: Path,
) -> None:
    async def test() -> None:
        async with node_of_two(tmp_path) as (node, n2):
            first = await stored_at(node, "first")
            waiting = asyncio.create_task(node.ledger.wait_read(first.event_id, 20.0))
            await asyncio.sleep(0)
            confirm(node, n2, first)
            await until(lambda: node.ledger.turns.committing_since is not None)
            confirm(node, n2, first)
            assert await waiting
            turns = node.ledger.measures.turns
            assert node.ledger.inbox.has_inputs()
            await node.ledger.turns.idle()
            assert node.ledger.measures.turns == turns + 1

    running(test)


@pytest.mark.usefixtures("for_ever")
def test_a_listener_is_told_at_once(tmp_path: Path) -> None:
    async def test() -> None:
        async with node_of_two(tmp_path) as (node, n2):
            first = await stored_at(node, "first")
            second = await stored_at(node, "second")
            await node.ledger.turns.idle()
            confirm(node, n2, first)
            news = node.ledger.subscribe()  # what waited for nobody is taken
            read = []
            async for item in news:
                if isinstance(item, EventRead):
                    read.append(item.event_id)
                    if len(read) == 2:
                        break
                    confirm(node, n2, second)
            assert read == [first.event_id, second.event_id]

    running(test)


@pytest.mark.usefixtures("for_ever")
def test_a_node_that_stops_leaves_none_behind(tmp_path: Path) -> None:
    async def test() -> None:
        async with node_of_two(tmp_path) as (node, n2):
            first = await stored_at(node, "first")
            await node.ledger.turns.idle()
            confirm(node, n2, first)
            await node.drain()
            assert state_of(node, first) is EventState.READ

    running(test)


@pytest.mark.usefixtures("for_ever")
def test_a_receipt_of_no_use_to_who_waits_is_not_taken(tmp_path: Path) -> None:
    """It covers what is Read already."""

    async def test() -> None:
        async with node_of_two(tmp_path) as (node, n2):
            ledger = node.ledger
            first = await stored_at(node, "first")
            confirm(node, n2, first)
            assert await ledger.wait_read(first.event_id, 20.0)
            second = await stored_at(node, "second")
            await ledger.turns.idle()
            waiting = asyncio.create_task(ledger.wait_read(second.event_id, 20.0))
            await asyncio.sleep(0)
            turns = ledger.measures.turns
            confirm(node, n2, first)
            assert len(ledger.inbox.patience.receipts) == 1
            confirm(node, n2, second)
            assert await waiting
            assert ledger.measures.turns == turns + 1

    running(test)
