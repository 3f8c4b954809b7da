"""Receipts that nobody waits for ride with another commit."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from quipu.devnet.founding import found
from quipu.ledger.effects import (
    AppendFeed,
    Effects,
    EventsRead,
    PutBranch,
    SendMessage,
    StoreInv,
)
from quipu.ledger.entry import data_entry, encode_entry
from quipu.ledger.history import BranchRecord
from quipu.ledger.inputs import MessageReceived, PeerConnected
from quipu.ledger.inv import Inv, build_inv
from quipu.ledger.messages import InvMessage, SyncEvent, encode_message
from quipu.ledger.signing import KeyPair
from quipu.ledger.words import (
    BranchKey,
    Cord,
    EpochNo,
    EventId,
    Hlc,
    InvNumber,
    Journal,
    NodeNo,
    Seq,
)
from quipu.node.data_directory import open_directory
from quipu.node.holding import joined, may_wait
from quipu.node.program import Node
from quipu.node.service import EventRead, EventState, Stored
from tests.small_node import running, small_node

OWN, OTHER = KeyPair.from_seed(bytes(32)), KeyPair.from_seed(bytes(31) + b"1")
EVENT = EventId(bytes(32))
BRANCH = PutBranch(
    BranchRecord(BranchKey(NodeNo(1), Journal(1), 0), Seq(0), 0, Seq(1), EVENT, Hlc(1))
)


def inv_of(key: KeyPair, close: bytes | None = None) -> StoreInv:
    inv: Inv = build_inv(key, bytes(32), EpochNo(1), InvNumber(1), [], close)
    return StoreInv(NodeNo(1), inv, True)


def waits(durable: list[object], spoken: list[object], awaited: tuple[EventId, ...] = ()) -> bool:
    effects = Effects(durable, spoken)  # type: ignore[arg-type]
    return may_wait(effects, OWN.node_id, lambda ids: any(i in awaited for i in ids))


def test_receipts_of_others_wait_and_what_they_make_read_too() -> None:
    durable = [inv_of(OTHER), AppendFeed((EVENT,)), BRANCH]
    assert waits(durable, [EventsRead((EVENT,))])


def test_nothing_waits_that_somebody_here_waits_for() -> None:
    assert not waits([inv_of(OTHER), AppendFeed((EVENT,))], [EventsRead((EVENT,))], (EVENT,))


def test_what_is_spoken_never_waits() -> None:
    assert not waits([inv_of(OTHER)], [SendMessage(OTHER.node_id, b"")])


def test_own_receipts_and_seals_are_not_held() -> None:
    assert not waits([inv_of(OWN)], [])
    assert not waits([inv_of(OTHER, bytes(32))], [])


def test_what_was_held_goes_first() -> None:
    first, then = Effects([inv_of(OTHER)], [EventsRead((EVENT,))]), Effects([BRANCH], [])
    both = joined(first, then)
    assert both.durable == [*first.durable, BRANCH]
    assert both.spoken == first.spoken
    assert joined(None, then) is then


# --- in a node ----------------------------------------------------------------------------------
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


def test_a_receipt_that_nobody_waits_for_takes_no_commit_of_its_own(tmp_path: Path) -> None:
    async def test() -> None:
        async with node_of_two(tmp_path) as (node, n2):
            first = await stored_at(node, "first")
            await node.ledger.turns.idle()
            commits, turns = node.ledger.measures.commits, node.ledger.measures.turns
            confirm(node, n2, first)
            await until(lambda: node.ledger.measures.turns > turns)
            await stored_at(node, "second")
            assert node.ledger.measures.commits == commits + 1
            assert state_of(node, first) is EventState.READ

    running(test)


def test_it_is_durable_soon_in_any_case(tmp_path: Path) -> None:
    async def test() -> None:
        async with node_of_two(tmp_path) as (node, n2):
            first = await stored_at(node, "first")
            await node.ledger.turns.idle()
            confirm(node, n2, first)
            await until(lambda: state_of(node, first) is EventState.READ)

    running(test)


def test_whoever_begins_to_wait_ends_the_holding(tmp_path: Path) -> None:
    async def test() -> None:
        async with node_of_two(tmp_path) as (node, n2):
            first = await stored_at(node, "first")
            await node.ledger.turns.idle()
            turns = node.ledger.measures.turns
            confirm(node, n2, first)
            await until(lambda: node.ledger.measures.turns > turns)
            assert state_of(node, first) is EventState.STORED
            assert await node.ledger.wait_read(first.event_id, 20.0)

    running(test)


def test_a_listener_is_told_at_once(tmp_path: Path) -> None:
    async def test() -> None:
        async with node_of_two(tmp_path) as (node, n2):
            first = await stored_at(node, "first")
            await node.ledger.turns.idle()
            news = node.ledger.subscribe()
            commits = node.ledger.measures.commits
            confirm(node, n2, first)
            async for item in news:
                if isinstance(item, EventRead):
                    assert item.event_id == first.event_id
                    break
            assert node.ledger.measures.commits == commits + 1

    running(test)
