"""Client and AsyncClient against real listeners: names, retries, failover, gaps."""

import asyncio
import contextlib
import inspect
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

import quipu
from quipu.api.admin_table import ADMIN
from quipu.api.problems import Problem as Refusal
from quipu.api.server import Running, serve
from quipu.api.settings import Settings
from quipu.api.table import API
from quipu.api.tokens import new_token
from quipu.client import AsyncClient, Client, Entry, Gap
from quipu.client import transport as transport_module
from quipu.client.asynchronous import reached
from quipu.client.operating import AsyncOperator, Operator
from quipu.node.service import OutcomeUnknown, Overloaded
from tests.api.administered import administration_in
from tests.api.one_node import OneNode
from tests.api.talk import FREE, Talk, talking, until

NOWHERE = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport_module, "PAUSE_S", 0.001)
    monkeypatch.setattr(transport_module, "PAUSE_S_MAX", 0.01)


@asynccontextmanager
async def connected(*urls: str) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(urls) as client:
        yield client


def test_every_operation_is_a_method_of_both() -> None:
    for endpoint in (*API, *ADMIN):
        if endpoint.path == "/":
            continue
        if endpoint.name == "ingest":  # a context manager: see test_ingest_client.py
            assert callable(AsyncClient.ingest)
            assert callable(Client.ingest)
            continue
        assert inspect.iscoroutinefunction(getattr(AsyncClient, endpoint.name)) or (
            inspect.isasyncgenfunction(getattr(AsyncClient, endpoint.name))
        )
        assert callable(getattr(Client, endpoint.name))


def test_both_have_the_same_names_and_parameters() -> None:
    def shown(owner: type) -> dict[str, list[str]]:
        return {
            name: list(inspect.signature(member).parameters)
            for name, member in vars(owner).items()
            if inspect.isfunction(member) and not name.startswith("_")
        }

    assert shown(Client) == shown(AsyncClient)
    assert shown(Operator) == shown(AsyncOperator)


def test_client_needs_nothing_of_a_node() -> None:
    code = (
        "import sys, quipu; quipu.Client; quipu.verify; "
        "print([m for m in ('lmdb', 'zmq', 'pyspark', 'quipu.ledger', 'quipu.storage', "
        "'quipu.node', 'quipu.api') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    with pytest.raises(AttributeError):
        _ = quipu.nothing


async def test_what_a_program_does() -> None:
    async with talking() as api, connected(api.running.url) as ledger:
        receipt = await ledger.submit({"order": 7}, stream="orders", wait="read")
        assert (receipt.state, receipt.duplicate) == ("read", False)
        assert await receipt.wait("read", timeout=5)
        entry = await ledger.get(receipt.id)
        assert (entry.data, entry.raw, entry.stream) == ({"order": 7}, b'{"order":7}', "orders")
        assert reached((await ledger.status(receipt.id)).state, "read")
        verified = quipu.verify(await ledger.proof(receipt.id), api.node.genesis)
        assert verified.entry.data == entry.raw
        raw = await ledger.submit(b"\x00\xff", content_type="image/png", idempotency_key="k")
        again = await ledger.submit(b"\x00\xff", content_type="image/png", idempotency_key="k")
        assert (again.id, again.duplicate) == (raw.id, True)
        assert (await ledger.get(raw.id)).data == b"\x00\xff"
        batch = await ledger.submit_batch([1, 2, 3], atomic=True, wait="read")
        assert batch.stored == 3
        page = await ledger.list(limit=2)
        assert (len(page.items), page.more) == (2, True)
        assert len([entry async for entry in ledger.pages(limit=2)]) == 5
        assert (await ledger.validate(1)).valid
        event = receipt.id[:64]
        for told in (
            await ledger.node(),
            await ledger.streams(),
            await ledger.event(event),
            await ledger.parents(event),
            await ledger.children(event),
            await ledger.ancestors(event, depth=2),
            await ledger.explain(receipt.id),
            await ledger.leaves(),
            await ledger.window(event, before=1),
            await ledger.frontier(),
            await ledger.evidence(),
            await ledger.openapi(),
            await ledger.problem("not-found"),
        ):
            assert isinstance(told, dict)


async def test_wait_that_runs_out_is_no_exception() -> None:
    async with talking(node=OneNode(size=3)) as api, connected(api.running.url) as ledger:
        receipt = await ledger.submit(1, wait="read", timeout=0.001)
        assert receipt.state == "stored"
        assert await receipt.wait("read", timeout=0.001) is False
        assert await receipt.wait("stored") is True


FAMILIES = [
    ("submit", {"data": 1, "stream": "BAD"}, quipu.Rejected, "invalid-field"),
    ("get", {"entry_id": "ab" * 32 + ":0"}, quipu.NotFound, "entry-not-found"),
    ("get", {"entry_id": "x"}, quipu.Rejected, "invalid-id"),
]


@pytest.mark.parametrize(("name", "given", "family", "code"), FAMILIES)
async def test_families_of_errors(
    name: str, given: dict[str, object], family: type[quipu.QuipuError], code: str
) -> None:
    async with talking() as api, connected(api.running.url) as ledger:
        with pytest.raises(family) as caught:
            await getattr(ledger, name)(**given)
        assert caught.value.code == code
        assert caught.value.problem is not None
        assert caught.value.problem.request_id


async def test_conflict() -> None:
    async with talking() as api, connected(api.running.url) as ledger:
        first = await ledger.submit(1, idempotency_key="k")
        with pytest.raises(quipu.Conflict) as caught:
            await ledger.submit(2, idempotency_key="k")
        assert caught.value.problem is not None
        assert caught.value.problem.entry_id == first.id


async def test_token_is_sent(tmp_path: Path) -> None:
    from quipu.api.tokens import new_token

    path = tmp_path / "tokens.json"
    text = new_token(path, "app", ["cluster:read"])
    async with talking(Settings(port=0, ops_port=0, tokens_file=path)) as api:
        async with AsyncClient(api.running.url, token=text) as ledger:
            assert (await ledger.node())["name"] == "n1"
            with pytest.raises(quipu.Unauthorized):
                await ledger.list()
        async with AsyncClient(api.running.url) as ledger:
            with pytest.raises(quipu.Unauthorized):
                await ledger.node()


async def test_reads_go_to_another_node() -> None:
    async with talking() as api, connected(NOWHERE, api.running.url) as ledger:
        assert (await ledger.node())["name"] == "n1"
    async with connected(NOWHERE) as ledger:
        with pytest.raises(quipu.Unreachable, match=r"127\.0\.0\.1:9"):
            await ledger.node()


async def test_submit_goes_on_where_nothing_was_stored() -> None:
    async with talking() as full, talking() as api:
        full.node.full = Overloaded(0, "full")
        async with connected(NOWHERE, full.running.url, api.running.url) as ledger:
            receipt = await ledger.submit(1)
        assert api.node.find_event(bytes.fromhex(receipt.id[:32])) is not None
        async with connected(full.running.url) as ledger:
            with pytest.raises(quipu.Unavailable) as caught:
                await ledger.submit(1)
            assert caught.value.code == "node-full"


@asynccontextmanager
async def breaking(api: Talk, times: int) -> AsyncIterator[str]:
    """A line that breaks after the node was given the request and before it answers."""
    host, port = api.running.url.removeprefix("http://").split(":")
    left = times

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal left
        there, back = await asyncio.open_connection(host, int(port))
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while not reader.at_eof():
                data = await reader.read(1 << 16)
                back.write(data)
                if left and data:
                    await until(lambda: api.node.submissions > 0)
                    left -= 1
                    break
                if data:
                    writer.write(await there.read(1 << 16))
        back.close()
        writer.close()

    server = await asyncio.start_server(pass_on, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_broken_answer_is_asked_again_on_the_same_node_and_stored_once() -> None:
    async with talking() as api, talking() as other, breaking(api, times=2) as url:
        async with connected(url, other.running.url) as ledger:
            receipt = await ledger.submit({"n": 1}, wait="read")
        assert len((await api.get("/v1/entries")).json["items"]) == 1
        assert other.node.submissions == 0
        assert receipt.id


async def test_what_stays_unknown_is_said() -> None:
    async with talking() as api, breaking(api, times=1_000) as url:
        async with connected(url) as ledger:
            with pytest.raises(quipu.Undecided) as caught:
                await ledger.submit({"n": 1}, stream="s", idempotency_key="mine")
        assert (caught.value.key, caught.value.stream, caught.value.node) == ("mine", "s", url)
        async with connected(api.running.url) as ledger:
            found = await ledger.list(idempotency_key="mine", stream="s")
            assert [entry.data for entry in found.items] == [{"n": 1}]
    async with talking() as api, connected(api.running.url) as ledger:
        api.node.fault = OutcomeUnknown(())
        with pytest.raises(quipu.Undecided):
            await ledger.submit(1)


async def test_at_least_once_may_go_elsewhere() -> None:
    async with talking() as api, talking() as other, breaking(api, times=1_000) as url:
        async with connected(url, other.running.url) as ledger:
            await ledger.submit({"n": 1}, at_least_once=True)
        assert other.node.submissions == 1


async def test_follow_reconnects_and_goes_on_at_its_cursor() -> None:
    node = OneNode()
    seen: list[object] = []
    first = await serve(node, FREE)
    port = int(first.url.rpartition(":")[2])
    async with connected(first.url) as ledger:
        following = ledger.follow(start="start")
        receipt = await ledger.submit(1, wait="read")
        item = await anext(following)
        assert isinstance(item, Entry)
        assert (item.id, item.cursor is not None) == (receipt.id, True)
        await first.stop(1)
        second = await serve(node, Settings(port=port, ops_port=None))
        await ledger.submit(2, wait="read")
        item = await anext(following)
        assert isinstance(item, Entry)
        seen.append(item.data)
        assert seen == [2]
        await following.aclose()  # type: ignore[attr-defined]
    await second.stop(1)


async def test_missed_gives_exactly_what_a_gap_left_out() -> None:
    async with talking() as api, connected(api.running.url) as ledger:
        ids = [(await ledger.submit(n, wait="read")).id for n in range(6)]
        cursors = [(await ledger.list(limit=n)).next for n in (2, 5)]
        gap = Gap(3, cursors[0], cursors[1])
        assert [entry.id async for entry in ledger.missed(gap)] == ids[2:5]
        assert [entry.id async for entry in ledger.missed(gap, limit=1)] == ids[2:5]
        last = Gap(4, cursors[0], (await ledger.list()).next)
        missed = []
        async for entry in ledger.missed(last, limit=1):
            missed.append(entry.id)
            await ledger.submit("meanwhile", wait="read")
        assert missed == ids[2:]


# --- without a loop -------------------------------------------------------------------------------
@pytest.fixture
def running() -> Iterator[Running]:
    """A node on a loop of its own in another thread."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(daemon=True, target=loop.run_forever)
    thread.start()

    async def start() -> Running:
        return await serve(OneNode(), FREE)

    found = asyncio.run_coroutine_threadsafe(start(), loop).result(10)
    yield found
    asyncio.run_coroutine_threadsafe(found.stop(1), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def test_client_without_a_loop(running: Running) -> None:
    with Client([running.url]) as ledger:
        receipt = ledger.submit({"order": 7}, wait="read")
        assert receipt.wait("read", timeout=5)
        assert ledger.get(receipt.id).data == {"order": 7}
        assert ledger.submit_batch([1, 2], wait="read").stored == 2
        assert ledger.validate(1).valid
        assert len(list(ledger.pages(limit=1))) == 3
        assert ledger.list(limit=1).more
        assert reached(ledger.status(receipt.id, wait=1).state, "read")
        assert quipu.verify(ledger.proof(receipt.id)).by == "receipts"
        items = ledger.follow(start="start")
        assert next(items)
        del items
        event = receipt.id[:64]
        for told in (
            ledger.node(),
            ledger.streams(),
            ledger.event(event),
            ledger.parents(event),
            ledger.children(event),
            ledger.ancestors(event),
            ledger.explain(event),
            ledger.leaves(),
            ledger.window(),
            ledger.frontier(),
            ledger.evidence(),
            ledger.openapi(),
            ledger.problem("not-found"),
        ):
            assert isinstance(told, dict)
        gap = Gap(0, "", "")
        with pytest.raises(quipu.Rejected):
            list(ledger.missed(gap))
        ledger.close()
    with pytest.raises(ValueError, match="node"):
        Client([])


def test_problem_has_words_of_its_own() -> None:
    from quipu.api.codes import Code

    assert str(Refusal(Code.NOT_FOUND, "gone")) == "not-found: gone"


# --- admin verbs ----------------------------------------------------------------------------------
async def test_an_operator_asks_the_first_node(tmp_path: Path) -> None:
    root = new_token(tmp_path / "tokens.json", "root", ["admin"])
    administration, drained = administration_in(tmp_path)
    settings = replace(FREE, tokens_file=tmp_path / "tokens.json")
    async with (
        talking(settings, administration=administration) as api,
        AsyncClient([api.running.url, NOWHERE], token=root) as client,
    ):
        assert [key["name"] for key in (await client.keys())["items"]] == [
            "node",
            "cluster",
            "genesis",
        ]
        begun = await client.backup("monday")
        await administration.operations.ended(administration.operations.list()[0])
        assert (await client.operation(begun["id"]))["state"] == "done"
        assert (tmp_path / "backups" / "monday").is_dir()
        scrub = await client.scrub(signatures=True)
        await administration.operations.ended(administration.operations.list()[0])
        assert (await client.cancel(scrub["id"]))["state"] == "done"
        shown = (await client.operations())["items"]
        assert [one["id"] for one in shown] == [scrub["id"], begun["id"]]
        with pytest.raises(quipu.NotFound):
            await client.operation("0" * 16)
        with pytest.raises(quipu.NotFound):
            await client.report()
        await client.publish_report({"findings": []})
        assert await client.report() == {"findings": []}
        with pytest.raises(quipu.Rejected):
            await client.backup("../elsewhere")
        with pytest.raises(quipu.Rejected):
            await client.export("../elsewhere", entries="none")
        assert (await client.drain())["draining"] is True
        assert drained.count == 1


async def test_admin_verbs_need_the_scope(tmp_path: Path) -> None:
    app = new_token(tmp_path / "tokens.json", "app", ["cluster:read"])
    administration, _ = administration_in(tmp_path)
    settings = replace(FREE, tokens_file=tmp_path / "tokens.json")
    async with talking(settings, administration=administration) as api:
        with pytest.raises(quipu.Unauthorized):
            await asyncio.to_thread(_keys, api.running.url, app)


def _keys(url: str, token: str) -> object:
    with Client(url, token=token) as client:
        return client.keys()
