"""GET /v1/stream: entries as they become final, gaps said and read again."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import aiohttp

from quipu.api.bodies import NDJSON
from quipu.api.cursors import read_cursor
from quipu.api.settings import Settings
from quipu.ledger.words import NodeId
from tests.api.talk import Talk, talking, until


class Told(NamedTuple):
    event: str
    id: str
    data: Any


class Sse:
    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def next(self) -> Told:
        fields: dict[str, str] = {}
        while True:
            line = (await self._response.content.readuntil(b"\n")).decode().rstrip("\n")
            if not line and fields:
                data = fields.get("data")
                told = json.loads(data) if data else None
                return Told(fields["event"], fields.get("id", ""), told)
            if line.startswith(":"):
                name, value = "event", line[1:].strip()
            else:
                name, _, value = line.partition(": ")
            if name:
                fields[name] = value

    async def of(self, event: str) -> Told:
        while True:
            told = await self.next()
            if told.event == event:
                return told


@asynccontextmanager
async def listening(api: Talk, query: str = "", **headers: str) -> AsyncIterator[Sse]:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    url = f"{api.running.url}/v1/stream?{query}"
    async with api.session.get(url, headers=api.headers | given) as response:
        assert response.status == 200
        assert response.headers["Content-Type"] == "text/event-stream"
        yield Sse(response)


async def test_entries_come_as_they_become_final() -> None:
    async with talking() as api:
        before = await api.stored("before")
        async with listening(api) as sse:
            await until(lambda: api.node.listeners == 1)
            identity = await api.stored({"n": 1})
            told = await sse.of("entry")
            assert (told.data["id"], told.data["data"]) == (identity, {"n": 1})
        async with listening(api, "from=start") as sse:
            assert (await sse.of("entry")).data["id"] == before
            assert (await sse.of("entry")).data["id"] == identity
        await until(lambda: api.node.listeners == 0)


async def test_last_event_id_goes_on_where_it_ended() -> None:
    async with talking() as api:
        items = [{"data": n} for n in range(4)]
        ids = (await api.post("/v1/entries:batch?wait=read&atomic=true", items)).json["results"]
        async with listening(api, "from=start") as sse:
            second = [await sse.of("entry") for _ in range(2)][1]
        async with listening(api, Last_Event_ID=second.id) as sse:
            assert (await sse.of("entry")).data["id"] == ids[2]["id"]
        page = (await api.get(f"/v1/entries?after={second.id}")).json
        assert [item["data"] for item in page["items"]] == [2, 3]


async def test_cursor_of_another_node_leads_on_in_the_stream() -> None:
    """The other node had numbered differently, and was further on."""
    async with talking() as api:
        ids = [await api.stored(n) for n in range(6)]
        text = (await api.get("/v1/entries?limit=4")).json["next"]
        cursor = read_cursor(text, api.node.node_id, "after")
        cursor.number = 10_000
        elsewhere = cursor.text(NodeId(bytes(32)))
        async with listening(api, f"from={elsewhere}") as sse:
            assert (await sse.of("entry")).data["id"] == ids[4]
        async with listening(api, Last_Event_ID=elsewhere) as sse:
            assert [(await sse.of("entry")).data["id"] for _ in range(2)] == ids[4:]


async def test_stream_of_one_stream_with_status() -> None:
    async with talking() as api:
        query = "stream=a&events=entries,status"
        async with listening(api, query) as sse:
            await until(lambda: api.node.listeners == 1)
            await api.stored(1, stream="b")
            identity = await api.stored(2, stream="a")
            assert (await sse.of("entry")).data["id"] == identity
            status = await sse.of("status")
            assert (status.data["state"], status.data["event_id"]) == ("read", identity[:64])


async def test_receipts_come_whole_and_then_as_they_move() -> None:
    async with talking() as api:
        await api.stored("before")
        shown = (await api.get("/v1/cluster/receipts")).json["items"]
        async with listening(api, "events=receipts") as sse:
            assert (await sse.of("receipts")).data["receipts"] == shown
            await api.stored("after")
            (row,) = (await sse.of("receipts")).data["receipts"]
            while row["read_seq"] != "2":  # it is told as it is held, and again as it is signed
                (row,) = (await sse.of("receipts")).data["receipts"]
            assert [(one["number"], one["seq"]) for one in row["signed"]] == [(1, "2")]
            assert (row["journal"], row["held_seq"]) == (shown[0]["journal"], "2")


async def test_open_streams_are_a_figure() -> None:
    async with talking() as api:

        async def shown() -> bytes:
            reply = await api.ops("/metrics")
            return next(x for x in reply.body.splitlines() if x.startswith(b"quipu_http_streams "))

        assert await shown() == b"quipu_http_streams 0.0"
        async with listening(api), listening(api):
            await until(lambda: api.node.listeners == 2)
            assert await shown() == b"quipu_http_streams 2.0"
        await until(lambda: api.node.listeners == 0)
        assert await shown() == b"quipu_http_streams 0.0"


async def test_stream_has_no_head() -> None:
    async with talking() as api:
        reply = await api.ask("HEAD", "/v1/stream")
        assert (reply.status, reply.headers["Allow"]) == (405, "GET")


async def test_heartbeat() -> None:
    settings = Settings(port=0, ops_port=0, heartbeat_s=0.01)
    async with talking(settings) as api, listening(api) as sse:
        assert (await sse.of("heartbeat")).data is None


async def test_stream_of_a_caller_that_left_ends_at_once() -> None:
    settings = Settings(port=0, ops_port=0, heartbeat_s=3_600)
    async with talking(settings) as api:
        async with listening(api):
            await until(lambda: api.node.listeners == 1)
        await until(lambda: api.node.listeners == 0)
        assert api.running.face.counters.streams == 0


async def test_ndjson_stream() -> None:
    settings = Settings(port=0, ops_port=0, heartbeat_s=0.01)
    async with talking(settings) as api:
        await api.stored({"a": 1})
        url = f"{api.running.url}/v1/stream?from=start"
        async with api.session.get(url, headers={"Accept": NDJSON}) as response:
            lines = [json.loads(await response.content.readline()) for _ in range(2)]
        assert [line["type"] for line in lines] == ["entry", "heartbeat"]
        assert lines[0]["entry"]["data"] == {"a": 1}
        page = (await api.get(f"/v1/entries?after={lines[0]['cursor']}")).json
        assert page["items"] == []


async def test_goodbye_when_the_node_stops() -> None:
    async with talking() as api:
        async with listening(api) as sse:
            await until(lambda: api.node.listeners == 1)
            stopping = asyncio.create_task(api.running.stop(5))
            assert (await sse.of("goodbye")).data["reason"] == "the node is stopping"
            await stopping
        assert api.running.face.under_way == 0


async def test_goodbye_of_the_ledger() -> None:
    async with talking() as api, listening(api) as sse:
        await until(lambda: api.node.listeners == 1)
        api.node.drain()
        assert (await sse.of("goodbye")).data["reason"] == "the node is stopping"


async def test_slow_reader_is_told_of_a_gap_and_reads_exactly_that_again() -> None:
    """The reader stops; the node goes on. What it was not told, the feed gives."""
    settings = Settings(port=0, ops_port=0, stream_queue_items=4, stream_write_bytes=4_096)
    async with talking(settings) as api:
        slow = socket.socket()
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        host, port = api.running.url.removeprefix("http://").split(":")
        slow.connect((host, int(port)))
        reader, writer = await asyncio.open_connection(sock=slow, limit=1 << 16)
        writer.write(b"GET /v1/stream HTTP/1.1\r\nHost: x\r\n\r\n")
        await until(lambda: api.node.listeners == 1)
        # Nobody reads: what fits the buffers is a small part of this.
        ids = [await api.stored({"n": n, "wide": "x" * 20_000}) for n in range(60)]
        told: list[str] = []
        gaps: list[dict[str, str]] = []
        reading = asyncio.create_task(_read(reader, told, gaps))
        while ids[-1] not in told:
            ids.append(await api.stored("mark"))
            known = len(gaps)  # a mark comes, or the gap in which it was dropped
            await until(lambda known=known: ids[-1] in told or len(gaps) > known)
        reading.cancel()
        writer.close()
        assert gaps
        for gap in gaps:
            missed = await _all(api, gap["after"])
            told += missed[: len(missed) - len(await _all(api, gap["upto"]))]
        assert sorted(told) == sorted(ids)
        assert api.running.face.counters.stream_gaps == len(gaps)


async def _read(reader: asyncio.StreamReader, told: list[str], gaps: list[dict[str, str]]) -> None:
    while True:
        line = await reader.readuntil(b"\n")
        if line.startswith(b"data: "):
            data = json.loads(line[6:])
            if data.get("type") == "gap":
                gaps.append(data)
            else:
                told.append(data["id"])


async def _all(api: Talk, after: str) -> list[str]:
    page = (await api.get(f"/v1/entries?limit=1000&after={after}")).json
    assert not page["more"]
    return [item["id"] for item in page["items"]]
