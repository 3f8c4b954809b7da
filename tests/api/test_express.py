"""The short way of single entries: the same answers as the long one, and nothing overtakes."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from quipu.api import limits
from quipu.api.express import Express
from quipu.api.server import Settings
from quipu.api.tokens import ENTRIES_WRITE, new_token
from quipu.node.service import Overloaded
from tests.api.one_node import OneNode
from tests.api.talk import FREE, Talk, talking, until

JSON = "Content-Type: application/json\r\n"
ENTRY = b'{"data":{"order":7},"stream":"orders"}'
VARYING = {"date", "x-request-id", "location", "content-length", "etag"}


class Line:
    """A connection whose requests are written byte by byte as the test wants."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def write(self, data: bytes) -> None:
        self.writer.write(data)

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.rstrip().split("\r\n")
        headers = {name.lower(): text for name, text in (line.split(": ", 1) for line in lines)}
        body = await self.reader.readexactly(int(headers["content-length"]))
        return int(first.split()[1]), headers, body

    async def ask(self, data: bytes) -> tuple[int, dict[str, str], bytes]:
        self.write(data)
        return await self.answer()

    async def ask_the_long_way(self, data: bytes) -> tuple[int, dict[str, str], bytes]:
        """With a query, though an empty one."""
        return await self.ask(data.replace(b" HTTP/1.1", b"? HTTP/1.1", 1))


def post(body: bytes = ENTRY, headers: str = JSON) -> bytes:
    head = f"POST /v1/entries HTTP/1.1\r\nHost: n1\r\n{headers}Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def post_to_read(query: str = "?wait=read") -> bytes:
    return post().replace(b"/v1/entries ", b"/v1/entries" + query.encode() + b" ")


def batch(body: bytes, query: str = "", headers: str = JSON) -> bytes:
    return post(body, headers).replace(
        b"/v1/entries ", b"/v1/entries:batch" + query.encode() + b" "
    )


def get(path: str, headers: str = "") -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: n1\r\n{headers}\r\n".encode()


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The operations that went the short way."""
    names: list[str] = []
    run = Express.run

    def noted(self: Express, errand: Any, *rest: Any) -> None:
        names.append(errand.endpoint.name)
        run(self, errand, *rest)

    monkeypatch.setattr(Express, "run", noted)
    return names


@asynccontextmanager
async def line(api: Talk, expected: int = 200) -> AsyncIterator[Line]:
    host, port = api.running.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    found = Line(reader, writer)
    assert (await found.ask(get("/v1/node")))[0] == expected  # aiohttp's own loop runs by now
    try:
        yield found
    finally:
        writer.close()


def alike(answer: tuple[int, dict[str, str], bytes]) -> tuple[int, dict[str, str], Any]:
    """Without what differs from one request to the next."""
    status, headers, body = answer
    decode = msgspec.json.decode if "json" in headers["content-type"] else msgspec.msgpack.decode
    found = decode(body)
    for name in ("id", "time", "hlc", "request_id"):
        if isinstance(found, dict) and name in found:
            assert found.pop(name)
    assert VARYING - {"location", "etag"} <= set(headers)
    return status, {n: t for n, t in headers.items() if n not in VARYING}, found


POSTS = {
    "stored": post(),
    "msgpack": post(b"\x81\xa4data\x07", "Content-Type: application/msgpack\r\n"),
    "answered in msgpack": post(headers=JSON + "Accept: application/msgpack\r\n"),
    "own request id": post(headers=JSON + "X-Request-Id: mine\r\n"),
    "malformed": post(b'{"data":'),
    "unknown field": post(b'{"data":1,"strem":"x"}'),
    "wrong stream": post(b'{"data":1,"stream":"NO"}'),
    "not read here": post(headers="Content-Type: text/html\r\n"),
    "encoded": post(headers=JSON + "Content-Encoding: gzip\r\n"),
    "not acceptable": post(headers=JSON + "Accept: text/html\r\n"),
    "wrong key": post(headers=JSON + "Idempotency-Key: " + "k" * 300 + "\r\n"),
    "no entry": get(f"/v1/entries/{'ab' * 32}:0"),
}


@pytest.mark.parametrize("request_bytes", POSTS.values(), ids=POSTS)
async def test_both_ways_answer_alike(request_bytes: bytes, ran: list[str]) -> None:
    async with talking() as api, line(api) as asked:
        short = await asked.ask(request_bytes)
        assert len(ran) == 1
        long = await asked.ask_the_long_way(request_bytes)
        assert len(ran) == 1
        assert alike(short) == alike(long)


BATCHES = {
    "plain": batch(b'[{"data":1},{"data":"x","stream":"orders"}]'),
    "waits for Read": batch(b'[{"data":1},{"data":2}]', "?wait=read"),
    "not plain": batch(b'[{"data":1,"idempotency_key":"once"},{"data":2}]'),
    "one is wrong": batch(b'[{"data":1},{"data":1,"stream":"NO"}]', "?wait=read"),
    "none": batch(b"[]"),
    "malformed": batch(b'[{"data":'),
    "answered in msgpack": batch(b'[{"data":1}]', headers=JSON + "Accept: application/msgpack\r\n"),
    "encoded": batch(b"[]", headers=JSON + "Content-Encoding: gzip\r\n"),
    "a key for all": batch(b'[{"data":1}]', headers=JSON + "Idempotency-Key: k\r\n"),
}


@pytest.mark.parametrize("request_bytes", BATCHES.values(), ids=BATCHES)
async def test_batches_are_answered_alike_on_both_ways(
    request_bytes: bytes, ran: list[str]
) -> None:
    def nameless(answer: tuple[int, dict[str, str], Any]) -> tuple[int, dict[str, str], Any]:
        for result in answer[2].get("results", ()):
            result.pop("id", None)
            result.get("problem", {}).pop("request_id", None)
        return answer

    long_way = request_bytes.replace(b" HTTP/1.1", b"&timeout=30s HTTP/1.1", 1)
    if b"?" not in request_bytes.split(b"\r\n", 1)[0]:
        long_way = long_way.replace(b"&timeout", b"?timeout", 1)
    async with talking() as api, line(api) as asked:
        short = nameless(alike(await asked.ask(request_bytes)))
        assert ran == ["submit_batch"]
        async with talking() as other, line(other) as slowly:
            long = nameless(alike(await slowly.ask(long_way)))
        assert ran == ["submit_batch"]
        assert short == long
        assert api.running.face.under_way == 0
        assert api.running.face.pressure.total == 0


async def test_lines_go_the_long_way(ran: list[str]) -> None:
    async with talking() as api, line(api) as asked:
        lines = "Content-Type: application/x-ndjson\r\n"
        asked.write(batch(b'{"data":1}\n{"data":2}\n', headers=lines))
        assert b" 200 " in await asked.reader.readuntil(b"\r\n\r\n")
        assert ran == []


async def test_a_batch_too_many_is_refused_and_its_caller_rests(ran: list[str]) -> None:
    async with talking() as api, line(api) as asked:
        api.running.face.pressure.in_flight_max = 0
        status, headers, body = await asked.ask(batch(b'[{"data":1}]'))
        assert (status, json.loads(body)["code"]) == (503, "node-full")
        assert headers["retry-after"] == "1"
        assert ran == ["submit_batch"]


async def test_who_waits_for_read_is_answered_alike(ran: list[str]) -> None:
    async with talking() as api, line(api) as asked:
        short = await asked.ask(post_to_read())
        assert ran == ["submit"]
        long = await asked.ask(post_to_read("?wait=read&timeout=5s"))
        assert ran == ["submit"]
        assert alike(short) == alike(long)
        assert (short[0], json.loads(short[2])["state"]) == (201, "read")


async def test_who_waits_for_read_is_answered_when_others_have_confirmed(ran: list[str]) -> None:
    node = OneNode(size=3)
    async with talking(FREE, node) as api, line(api) as asked:
        asked.write(post_to_read())
        await until(lambda: len(node.unread(1)) == 1 and api.running.face.under_way == 1)
        assert (await api.get("/v1/node")).status == 200  # others are answered meanwhile
        node.confirm(node.unread(1)[0])
        status, _, body = await asked.answer()
        assert (status, json.loads(body)["state"]) == (201, "read")
        assert api.running.face.under_way == 0
        assert ran == ["submit"]


async def test_who_waits_for_read_is_answered_when_the_node_stops(ran: list[str]) -> None:
    node = OneNode(size=3)
    async with talking(FREE, node) as api, line(api) as asked:
        asked.write(post_to_read())
        await until(lambda: len(node.unread(1)) == 1 and api.running.face.under_way == 1)
        stopping = asyncio.create_task(api.running.stop(drain_s=5))
        status, _, body = await asked.answer()
        assert (status, json.loads(body)["state"]) == (202, "stored")
        await stopping
        assert ran == ["submit"]


async def test_who_waits_for_read_is_not_kept_longer_than_it_was_said(
    ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quipu.api.express._WAIT_S", 0.05)
    async with talking(FREE, OneNode(size=3)) as api, line(api) as asked:
        status, _, body = await asked.ask(post_to_read())
        assert (status, json.loads(body)["state"]) == (202, "stored")
        api.node.wait_fault = Overloaded(1, "too many wait")
        status, _, body = await asked.ask(post_to_read())
        assert (status, json.loads(body)["state"]) == (202, "stored")
        assert ran == ["submit"] * 2


async def test_an_entry_is_read_back_alike(ran: list[str]) -> None:
    async with talking() as api, line(api) as asked:
        status, headers, body = await asked.ask(post())
        assert status == 201
        path = headers["location"]
        assert path.endswith(json.loads(body)["id"])
        short = await asked.ask(get(path))
        assert ran == ["submit", "get"]
        long = await asked.ask_the_long_way(get(path))
        assert ran == ["submit", "get"]
        assert alike(short) == alike(long)
        assert short[2] == long[2]
        assert short[1]["etag"] == long[1]["etag"]
        again = get(path, f"If-None-Match: {short[1]['etag']}\r\n")
        asked.write(again)
        assert b" 304 " in await asked.reader.readuntil(b"\r\n\r\n")


async def test_a_key_counts_on_both_ways(ran: list[str]) -> None:
    async with talking() as api, line(api) as asked:
        keyed = post(headers=JSON + "Idempotency-Key: once\r\n")
        first = await asked.ask(keyed)
        again = await asked.ask(keyed)
        slowly = await asked.ask_the_long_way(keyed)
        assert [one[0] for one in (first, again, slowly)] == [201, 200, 200]
        assert len({json.loads(one[2])["id"] for one in (first, again, slowly)}) == 1
        other = await asked.ask(post(b'{"data":8}', JSON + "Idempotency-Key: once\r\n"))
        assert other[0] == 201  # another stream is another scope
        status, _, body = await asked.ask(
            post(ENTRY.replace(b"7", b"8"), JSON + "Idempotency-Key: once\r\n")
        )
        assert (status, json.loads(body)["code"]) == (422, "key-reused")
        assert ran == ["submit"] * 4


async def test_tokens_are_asked_for_on_both_ways(tmp_path: Path, ran: list[str]) -> None:
    path = tmp_path / "tokens"
    secret = new_token(path, "shop", [f"{ENTRIES_WRITE}:orders"])
    settings = Settings(port=0, ops_port=0, tokens_file=path)
    async with talking(settings) as api, line(api, 401) as asked:
        bearer = JSON + f"Authorization: Bearer {secret}\r\n"
        answers = [
            (await asked.ask(post()))[0],
            (await asked.ask(post(headers=bearer)))[0],
            (await asked.ask(post(b'{"data":1}', bearer)))[0],
        ]
        assert answers == [401, 201, 403]
        assert ran == ["submit"] * 3


async def test_pipelined_requests_are_answered_in_their_order() -> None:
    async with talking() as api, line(api) as asked:
        asked.write(post() + get("/v1/node") + post(b'{"data":') + post() + get("/nowhere"))
        assert [(await asked.answer())[0] for _ in range(5)] == [201, 200, 400, 201, 404]
        assert api.running.face.under_way == 0


async def test_what_comes_behind_one_under_way_waits_for_its_answer(ran: list[str]) -> None:
    node = OneNode()
    node.paused = asyncio.Event()
    async with talking(FREE, node) as api, line(api) as asked:
        asked.write(post())
        await until(lambda: node.submissions == 1)
        asked.write(get("/v1/node"))
        asked.write(post())
        await until(lambda: api.running.face.under_way == 1)
        assert (await api.get("/v1/node")).status == 200  # others are answered meanwhile
        assert node.submissions == 1
        node.paused.set()
        assert [(await asked.answer())[0] for _ in range(3)] == [201, 200, 201]
        assert ran == ["submit"]


async def test_a_caller_that_goes_away_leaves_nothing_behind(ran: list[str]) -> None:
    node = OneNode()
    node.paused = asyncio.Event()
    async with talking(FREE, node) as api:
        async with line(api) as asked:
            asked.write(post())
            await until(lambda: node.submissions == 1)
        counters = api.running.face.counters
        await until(lambda: counters.connections == 0)
        node.paused.set()
        await until(lambda: api.running.face.under_way == 0)
        assert counters.requests["submit", 201] == 1
        assert api.running.face.pressure.total == 0


async def test_one_under_way_is_answered_before_the_node_stops() -> None:
    node = OneNode()
    node.paused = asyncio.Event()
    async with talking(FREE, node) as api, line(api) as asked:
        asked.write(post())
        await until(lambda: node.submissions == 1)
        stopping = asyncio.create_task(api.running.stop(drain_s=5))
        await until(lambda: api.running.face.draining)
        node.paused.set()
        assert (await asked.answer())[0] == 201
        await stopping
        assert await asked.reader.read() == b""


async def test_a_short_body_that_is_still_on_its_way_is_waited_for(ran: list[str]) -> None:
    async with talking() as api, line(api) as asked:
        for request, status in (
            (post(), 201),
            (batch(b"[" + ENTRY + b"]"), 201),
            (post(b"x"), 400),
        ):
            asked.write(request[:-1])
            await until(lambda: api.running.face.under_way == 1)
            done = len(ran)
            asked.write(request[-1:])
            assert (await asked.answer())[0] == status
            assert len(ran) == done + 1
            assert api.running.face.under_way == 0


async def test_a_request_that_comes_with_its_connection_goes_the_short_way(ran: list[str]) -> None:
    async with talking() as api:
        host, port = api.running.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(post())
        assert (await Line(reader, writer).answer())[0] == 201
        writer.close()
    assert ran == ["submit"]


@pytest.mark.parametrize("length", [100, limits.BODY_AWAITED_BYTES_MAX + 1])
async def test_a_body_that_does_not_come_is_a_problem(length: int, ran: list[str]) -> None:
    head = f"POST /v1/entries HTTP/1.1\r\nHost: n1\r\nContent-Length: {length}\r\n\r\n{{"
    settings = Settings(port=0, ops_port=0, body_s=0.05)
    async with talking(settings) as api, line(api) as asked:
        status, _, body = await asked.ask(head.encode())
        found = json.loads(body)
        assert (status, found["code"]) == (408, "body-timeout")
        assert found["detail"] == "1 bytes came within 0.05 s"
        assert await asked.reader.read() == b""
    assert ran == []


async def test_a_body_that_is_waited_for_is_answered_before_the_node_stops() -> None:
    settings = Settings(port=0, ops_port=0, keepalive_s=0.05)
    async with talking(settings) as api, line(api) as asked:
        asked.write(post()[:-1])
        await until(lambda: api.running.face.under_way == 1)
        stopping = asyncio.create_task(api.running.stop(drain_s=5))
        loop = asyncio.get_running_loop()
        ends = loop.time() + 0.2
        await until(lambda: loop.time() > ends)  # it is not closed for its silence
        asked.write(post()[-1:])
        assert (await asked.answer())[0] == 503
        await stopping


async def test_silence_counts_from_the_last_answer_and_not_while_one_is_under_way() -> None:
    node = OneNode()
    node.paused = asyncio.Event()
    settings = Settings(port=0, ops_port=0, keepalive_s=0.05)
    async with talking(settings, node) as api, line(api) as asked:
        asked.write(post())
        loop = asyncio.get_running_loop()
        ends = loop.time() + 0.2
        await until(lambda: loop.time() > ends)
        node.paused.set()
        assert (await asked.answer())[0] == 201
        assert await asked.reader.read() == b""  # closed for its silence, at last


def _has(node: OneNode, submissions: int) -> bool:
    return node.submissions == submissions


async def test_a_burst_is_queued_and_a_flood_is_refused() -> None:
    node = OneNode()
    node.paused = asyncio.Event()
    now_s = 100.0
    async with talking(FREE, node) as api, AsyncExitStack() as stack:
        pressure = api.running.face.pressure
        pressure.standing_max, pressure.clock = 2, lambda: now_s
        lines = [await stack.enter_async_context(line(api)) for _ in range(5)]
        for count, asked in enumerate(lines[:4], start=1):  # a burst goes beyond the bound
            asked.write(post())
            await until(partial(_has, node, count))
        now_s += limits.BURST_S
        status, headers, body = await lines[4].ask(post())
        assert (status, json.loads(body)["code"]) == (503, "node-full")
        assert headers["retry-after"] == "1"
        assert node.submissions == 4
        node.paused.set()
        assert [(await asked.answer())[0] for asked in lines[:4]] == [201] * 4
        now_s += limits.CALM_S + 1
        assert pressure.total == 0
        assert (await lines[0].ask(post()))[0] == 201


async def test_one_that_does_not_wait_is_not_read_and_refused_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "REST_SHARE", 0.1)
    monkeypatch.setattr(limits, "EARLY_S", 0.1)
    async with talking() as api, line(api) as asked:
        pressure = api.running.face.pressure
        pressure.in_flight_max = 0
        assert (await asked.ask(post()))[0] == 503
        pressure.in_flight_max = 100
        begun = asyncio.get_running_loop().time()
        status, _, body = await asked.ask(post())
        assert asyncio.get_running_loop().time() - begun > 0.05
        assert (status, json.loads(body)["code"]) == (429, "too-many-requests")
        ends = asyncio.get_running_loop().time() + 0.4
        await until(lambda: asyncio.get_running_loop().time() > ends)
        assert (await asked.ask(post()))[0] == 201
