"""`ingest` of both clients: receipts, refusals, back-pressure, and lines that break."""

import asyncio
import base64
import contextlib
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import quipu
from quipu.api import limits
from quipu.api.server import serve
from quipu.api.settings import Settings
from quipu.api.tokens import new_token
from quipu.client import AsyncClient, Client
from quipu.client import ingest as ingest_module
from quipu.client import transport as transport_module
from quipu.node.service import Draining, OutcomeUnknown, StoreIsFull
from tests.api.feeding import entries_of
from tests.api.one_node import OneNode
from tests.api.talk import FREE, Talk, talking, until
from tests.api.test_commands import Threaded
from tests.api.test_connections import certificate

NOWHERE = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport_module, "PAUSE_S", 0.001)
    monkeypatch.setattr(transport_module, "PAUSE_S_MAX", 0.01)


async def test_entries_in_and_a_receipt_each() -> None:
    async with talking() as api, AsyncClient(api.running.url) as ledger:
        async with ledger.ingest() as feed:
            order = await feed.submit({"order": 7}, stream="orders", key="k")
            raw = await feed.submit(b"\x00", content_type="image/png", time_ms=1_790_000_000_000)
            plain = await feed.submit(b"\xff")
            await feed.flush()
            assert (order.done(), feed.counts.stored) == (True, 3)
            again = await feed.submit({"order": 7}, stream="orders", key="k")
        assert (again.result().id, again.result().duplicate) == (order.result().id, True)
        assert (feed.counts.stored, feed.counts.duplicates) == (3, 1)
        entry = await ledger.get(order.result().id)
        assert (entry.data, entry.stream, entry.raw) == ({"order": 7}, "orders", b'{"order":7}')
        assert await order.result().wait("read", timeout=5)
        assert order.result().time == entry.time
        typed = await ledger.get(raw.result().id)
        assert (typed.content_type, typed.time) == ("image/png", "2026-09-21T14:13:20.000Z")
        assert (await ledger.get(plain.result().id)).content_type == "application/octet-stream"


async def test_wait_for_read() -> None:
    async with talking() as api, AsyncClient(api.running.url) as ledger:
        async with ledger.ingest(wait="read", timeout=5) as feed:
            future = await feed.submit(1)
        assert future.result().state == "read"


async def test_many_are_each_there_once_and_the_producer_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ingest_module, "WAITING_ENTRIES_MAX", 100)
    async with talking() as api, AsyncClient(api.running.url) as ledger:
        api.node.paused = asyncio.Event()
        async with ledger.ingest() as feed:
            made = 0

            async def produce() -> None:
                nonlocal made
                for number in range(2_000):
                    await feed.submit(number)
                    made += 1

            producing = asyncio.create_task(produce())
            await until(lambda: api.node.submissions > 0)
            await until(lambda: made == 100)
            api.node.paused.set()
            await producing
        assert [entry["data"] for entry in await entries_of(api)] == list(range(2_000))


async def test_the_window_of_the_node_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "INGEST_WINDOW_ENTRIES", 10)
    monkeypatch.setattr(limits, "INGEST_WINDOW_BYTES", 400)
    async with talking() as api, AsyncClient(api.running.url) as ledger:
        async with ledger.ingest() as feed:
            for number in range(300):
                await feed.submit(number)
        assert feed.counts.stored == 300
        assert api.node.submissions >= 30


async def test_refusals_are_those_of_the_entry_alone() -> None:
    async with talking() as api, AsyncClient(api.running.url) as ledger:
        async with ledger.ingest() as feed:
            first = await feed.submit(1, key="k")
            await first
            wrong = await feed.submit(1, stream="NO")
            reused = await feed.submit(2, key="k")
            large = await feed.submit(bytes(limits.INGEST_FRAME_BYTES_MAX))
            fine = await feed.submit(3)
        for future, family, code in (
            (wrong, quipu.Rejected, "invalid-field"),
            (reused, quipu.Conflict, "key-reused"),
            (large, quipu.Rejected, "too-large"),
        ):
            error = future.exception()
            assert isinstance(error, family)
            assert error.code == code
        conflict = reused.exception()
        assert isinstance(conflict, quipu.Conflict)
        assert conflict.problem is not None
        assert conflict.problem.entry_id == first.result().id
        assert (fine.result().state, feed.counts.refused) == ("stored", 3)
        api.node.fault = StoreIsFull("full")
        async with ledger.ingest() as feed:
            full = await feed.submit(1)
        assert isinstance(full.exception(), quipu.Unavailable)
        api.node.fault = OutcomeUnknown(())
        async with ledger.ingest() as feed:
            unknown = await feed.submit(1, key="mine", stream="s")
        error = unknown.exception()
        assert isinstance(error, quipu.Undecided)
        assert (error.key, error.stream, error.node) == ("mine", "s", api.running.url)
        assert feed.counts.undecided == 1


@asynccontextmanager
async def breaking(api: Talk, times: int) -> AsyncIterator[str]:
    """A line that breaks in the place of the first answer."""
    host, port = api.running.url.removeprefix("http://").split(":")
    left = times

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal left
        there, back = await asyncio.open_connection(host, int(port))
        forth = asyncio.create_task(pump(reader, back))
        writer.write(await there.readuntil(b"\r\n\r\n"))
        head = await there.readexactly(2)
        writer.write(head + await there.readexactly(head[1]))  # the welcome
        if left and await there.read(1):
            left -= 1
        else:
            await pump(there, writer)
        forth.cancel()
        back.close()
        writer.close()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(pass_on, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def held(node: OneNode) -> int:
    """Entries in its store."""
    events = [identity for _, identity in node.feed(0, 10_000)] + node.unread(10_000)
    metas = [node.meta(identity) for identity in events]
    return sum(meta.entry_count for meta in metas if meta is not None)


async def test_with_keys_a_broken_line_stores_once() -> None:
    async with talking() as api, talking() as other, breaking(api, times=2) as url:
        async with AsyncClient([url, other.running.url]) as ledger:
            async with ledger.ingest() as feed:
                futures = [await feed.submit(n, key=f"k{n}") for n in range(50)]
            found = await entries_of(api)
        assert [entry["data"] for entry in found] == list(range(50))
        assert [future.result().id for future in futures] == [entry["id"] for entry in found]
        assert feed.counts.stored + feed.counts.duplicates == 50
        assert feed.counts.duplicates
        assert other.node.submissions == 0


async def test_without_keys_a_broken_line_leaves_undecided() -> None:
    async with talking() as api, breaking(api, times=1) as url, AsyncClient(url) as ledger:
        async with ledger.ingest() as feed:
            first = await feed.submit("first")
            await asyncio.wait((first,))
            second = await feed.submit("second")
        error = first.exception()
        assert isinstance(error, quipu.Undecided)
        assert (error.key, error.node) == ("", url)
        assert second.result().state == "stored"
        assert (feed.counts.undecided, feed.counts.stored) == (1, 1)
        assert [entry["data"] for entry in await entries_of(api)] == ["first", "second"]


async def test_at_least_once_may_go_elsewhere() -> None:
    async with talking() as api, talking() as other, breaking(api, times=1_000) as url:
        async with AsyncClient([url, other.running.url]) as ledger:
            async with ledger.ingest(at_least_once=True) as feed:
                future = await feed.submit(1)
            assert (await ledger.get(future.result().id)).data == 1
        assert (api.node.submissions, other.node.submissions) == (1, 1)


async def test_what_stays_unknown_is_said_and_the_rest_goes_on_elsewhere() -> None:
    async with talking() as api, talking() as other, breaking(api, times=1_000) as url:
        async with AsyncClient([url, other.running.url]) as ledger, ledger.ingest() as feed:
            doubtful = await feed.submit(1, key="mine", stream="s")
            await asyncio.wait((doubtful,))
            fine = await feed.submit(2, key="other")
            await fine
        error = doubtful.exception()
        assert isinstance(error, quipu.Undecided)
        assert (error.key, error.stream, error.node) == ("mine", "s", url)
        assert other.node.submissions == 1
        async with AsyncClient(api.running.url) as ledger:
            found = await ledger.list(idempotency_key="mine", stream="s")
            assert [entry.data for entry in found.items] == [1]


async def test_a_node_that_stops_hands_over_without_loss_and_without_keys() -> None:
    """What a goodbye leaves unanswered was not stored, so it goes to the next node."""
    async with talking() as first, talking() as second:
        urls = [first.running.url, second.running.url]
        async with AsyncClient(urls) as ledger, ledger.ingest() as feed:
            await (await feed.submit(0))
            stopping = asyncio.create_task(first.running.stop(5))
            futures = [await feed.submit(number) for number in range(1, 1_000)]
            await feed.flush()
            await stopping
        assert feed.counts.stored == 1_000
        assert all(future.result() for future in futures)
        assert held(first.node) + held(second.node) == 1_000
        assert second.node.submissions


async def test_what_a_draining_node_hands_back_goes_elsewhere() -> None:
    async with talking() as first, talking() as second:
        urls = [first.running.url, second.running.url]
        async with AsyncClient(urls) as ledger, ledger.ingest() as feed:
            first.node.fault = Draining("planted")
            futures = [await feed.submit(number) for number in range(3)]
            await until(lambda: first.running.face.counters.ingest_refused)
            await first.running.stop(5)
            await feed.flush()
        assert [entry["data"] for entry in await entries_of(second)] == [0, 1, 2]
        assert all(future.result() for future in futures)


async def test_over_tls(tmp_path: Path) -> None:
    files = certificate(tmp_path, "n1")
    settings = Settings(port=0, ops_port=None, tls_certificate=files[0], tls_key=files[1])
    running = await serve(OneNode(), settings)
    context = ssl.create_default_context(cafile=str(files[0]))
    async with AsyncClient(running.url, tls=context) as ledger:
        async with ledger.ingest() as feed:
            futures = [await feed.submit(bytes(10_000)) for _ in range(300)]
        assert len({future.result().id for future in futures}) == 300
    await running.stop(1)


async def test_no_node_and_no_right(tmp_path: Path) -> None:
    async with AsyncClient([NOWHERE]) as ledger:
        with pytest.raises(quipu.Unreachable):
            async with ledger.ingest() as feed:
                future = await feed.submit(1)
        assert isinstance(future.exception(), quipu.Unreachable)
        with pytest.raises(quipu.Unreachable):
            await feed.submit(2)
    path = tmp_path / "tokens.json"
    token = new_token(path, "reader", ["entries:read"])
    settings = Settings(port=0, ops_port=0, tokens_file=path)
    async with talking(settings) as api, AsyncClient(api.running.url, token=token) as ledger:
        with pytest.raises(quipu.Unauthorized) as caught:
            async with ledger.ingest() as feed:
                future = await feed.submit(1)
        assert caught.value.code == "forbidden"
        assert isinstance(future.exception(), quipu.Unauthorized)


async def test_a_node_that_has_no_room_for_producers_is_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with talking() as full, talking() as api:
        full.running.face.counters.ingests = limits.INGESTS_MAX
        async with AsyncClient([full.running.url, api.running.url]) as ledger:
            async with ledger.ingest() as feed:
                await feed.submit(1)
            assert (full.node.submissions, api.node.submissions) == (0, 1)
        async with AsyncClient([full.running.url]) as ledger:
            with pytest.raises(quipu.Unavailable) as caught:
                async with ledger.ingest() as feed:
                    future = await feed.submit(1)
            assert caught.value.code == "node-full"
            assert isinstance(future.exception(), quipu.Unavailable)


async def test_a_proxy_that_takes_no_websockets() -> None:
    answer = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno"

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, AsyncClient(url) as ledger:
        with pytest.raises(quipu.Unavailable, match="not-quipu"):
            async with ledger.ingest() as feed:
                future = await feed.submit(1)
        assert future.exception()


async def test_who_leaves_by_an_error_waits_for_nothing() -> None:
    async with talking() as api, AsyncClient(api.running.url) as ledger:
        api.node.paused = asyncio.Event()
        futures: list[asyncio.Future[quipu.AsyncReceipt]] = []

        async def leave() -> None:
            async with ledger.ingest() as feed:
                futures.append(await feed.submit(1))
                await until(lambda: api.node.submissions == 1)
                raise RuntimeError("mine")

        with pytest.raises(RuntimeError, match="mine"):
            await leave()
        assert futures[0].cancelled()
        api.node.paused.set()


async def test_an_idle_line_is_made_again_when_it_is_needed() -> None:
    async with talking() as api, AsyncClient(api.running.url) as ledger, ledger.ingest() as feed:
        await (await feed.submit(1))
        await api.running.stop(5)
        port = int(api.running.url.rpartition(":")[2])
        second = await serve(api.node, Settings(port=port, ops_port=None))
        await (await feed.submit(2))
        assert feed.counts.stored == 2
        await feed.flush()
        await second.stop(1)


# --- without a loop -------------------------------------------------------------------------------
@pytest.fixture
def threaded() -> Iterator[Threaded]:
    found = Threaded(FREE)
    yield found
    found.stop()


def test_without_a_loop(threaded: Threaded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest_module, "WAITING_ENTRIES_MAX", 100)
    with Client([threaded.node.url]) as ledger:
        with ledger.ingest(wait="read") as feed:
            futures = [feed.submit(number, key=f"k{number}") for number in range(1_000)]
            wrong = feed.submit(1, stream="NO")
            feed.flush()
            assert futures[-1].done()
        receipt = futures[7].result()
        assert (receipt.state, receipt.duplicate) == ("read", False)
        assert receipt.wait("read", timeout=5)
        assert ledger.get(receipt.id).data == 7
        assert isinstance(wrong.exception(), quipu.Rejected)
        assert (feed.counts.stored, feed.counts.refused) == (1_000, 1)

        def leave() -> None:
            with ledger.ingest() as feed:
                feed.submit(1)
                raise RuntimeError("mine")

        with pytest.raises(RuntimeError, match="mine"):
            leave()
    with Client([NOWHERE]) as ledger:
        with pytest.raises(quipu.Unreachable), ledger.ingest() as feed:
            feed.submit(1)
        with pytest.raises(quipu.Unreachable):
            feed.submit(2)


def test_bytes_stay_bytes() -> None:
    options = ingest_module.Options()
    waiting = ingest_module.waiting_of(bytearray(b"x"), options, None)
    assert waiting.item == (b"x", None, None, "application/octet-stream")
    assert base64.b64encode(b"x") == b"eA=="
