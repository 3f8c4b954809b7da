"""Following as a named consumer: at least once, over restarts, breaks and a second process."""

import asyncio
from pathlib import Path

import pytest

from quipu.api.server import serve
from quipu.api.settings import Settings
from quipu.client import AsyncClient, Client, Conflict, Entry, Gap, NotFound, consuming
from quipu.client import transport as transport_module
from quipu.testing import LocalNode
from tests.api.one_node import OneNode
from tests.api.talk import FREE, Talk, talking


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport_module, "PAUSE_S", 0.001)
    monkeypatch.setattr(transport_module, "PAUSE_S_MAX", 0.01)


async def ids(api: Talk, count: int, stream: str = "default") -> list[str]:
    return [await api.stored(n, stream=stream) for n in range(count)]


async def followed(client: AsyncClient, limit: int, name: str = "billing") -> list[str]:
    items = client.follow(consumer=name, start="start", limit=limit)
    return [item.id async for item in items if isinstance(item, Entry)]


async def test_it_goes_on_where_it_was() -> None:
    async with talking() as api, AsyncClient(api.running.url) as ledger:
        stored = await ids(api, 5)
        assert await followed(ledger, 2) == stored[:2]
        assert await followed(ledger, 3) == stored[2:]
        (kept,) = await ledger.consumers()
        assert (kept.name, kept.ttl, kept.stream) == ("billing", "7d", None)
        later = await ids(api, 1)
        assert await followed(ledger, 1) == later
        await ledger.forget_consumer("billing")
        with pytest.raises(NotFound):
            await ledger.consumer("billing")
        assert await followed(ledger, 1) == stored[:1]


async def test_what_was_not_dealt_with_is_given_again() -> None:
    async with talking() as api, AsyncClient(api.running.url) as ledger:
        stored = await ids(api, 3)
        items = ledger.follow(consumer="billing", start="start")
        seen = [await anext(items), await anext(items)]
        assert [item.id for item in seen if isinstance(item, Entry)] == stored[:2]
        await items.aclose()  # type: ignore[attr-defined] # the second was not finished
        assert await followed(ledger, 2) == stored[1:]


async def test_it_is_made_at_once_so_that_a_crash_misses_nothing() -> None:
    settings = Settings(port=0, ops_port=0, heartbeat_s=0.01)
    async with talking(settings) as api, AsyncClient(api.running.url) as ledger:
        await ids(api, 1)
        kept = await ledger.keep_consumer("late", "now", stream="orders", etag="")
        with pytest.raises(Conflict):
            await ledger.keep_consumer("late", "start", etag="")
        await ids(api, 1)
        orders = await ids(api, 2, "orders")
        assert await followed(ledger, 2, "late") == orders
        assert (await ledger.consumer("late")).stream == kept.stream == "orders"
        with pytest.raises(ValueError, match="follows orders"):
            await anext(ledger.follow(consumer="late", stream="cars"))


async def test_a_second_process_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consuming, "SAVE_ITEMS", 1)
    async with talking() as api, AsyncClient(api.running.url) as ledger:
        stored = await ids(api, 3)
        items = ledger.follow(consumer="billing", start="start")
        await anext(items)
        assert await followed(ledger, 2) == stored[:2]  # as another process does
        with pytest.raises(Conflict) as caught:
            await anext(items)
        assert caught.value.code == "consumer-changed"
        assert await followed(ledger, 1) == stored[2:]


async def test_a_node_that_is_away_is_no_reason_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consuming, "SAVE_ITEMS", 1)
    node = OneNode()
    home, other = await serve(node, FREE), await serve(node, FREE)
    async with AsyncClient([home.url, other.url]) as ledger:
        for n in range(3):
            await ledger.submit(n, wait="read")
        items = ledger.follow(consumer="billing", start="start")
        seen = [await anext(items)]
        await home.stop(1)
        seen += [await anext(items), await anext(items)]
        assert [item.data for item in seen if isinstance(item, Entry)] == [0, 1, 2]
        again = await serve(node, Settings(port=int(home.url.rpartition(":")[2]), ops_port=None))
        await items.aclose()  # type: ignore[attr-defined]
        kept = await ledger.consumer("billing")
        assert [item.data for item in (await ledger.list(after=kept.cursor)).items] == [2]
    await again.stop(1)
    await other.stop(1)


async def test_a_quiet_consumer_is_renewed() -> None:
    settings = Settings(port=0, ops_port=0, heartbeat_s=0.01)
    async with talking(settings) as api, AsyncClient(api.running.url) as ledger:
        first = await ledger.keep_consumer("quiet", "now", ttl="1s")
        items = ledger.follow(consumer="quiet", limit=1)
        task = asyncio.ensure_future(anext(items))
        while (await ledger.consumer("quiet")).etag == first.etag:
            pass  # each look is a request of its own
        stored = await ids(api, 1)
        item = await task
        assert isinstance(item, Entry)
        assert item.id == stored[0]
        await items.aclose()  # type: ignore[attr-defined]


def test_a_consumer_survives_kill(tmp_path: Path) -> None:
    with LocalNode(tmp_path) as node:
        ledger = node.client
        sent = [ledger.submit(n, wait="read").id for n in range(4)]
        given = ledger.follow(consumer="billing", start="start", limit=2)
        assert [item.id for item in given if not isinstance(item, Gap)] == sent[:2]
        kept = ledger.consumer("billing")
        node.kill()
        node.start()
        with Client(node.url) as after:
            assert after.consumer("billing") == kept
            rest = after.follow(consumer="billing", limit=2)
            assert [item.id for item in rest if not isinstance(item, Gap)] == sent[2:]
