"""A producer that speaks the frames of stream ingest by hand."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import aiohttp
import msgspec

from tests.api.talk import Talk

WELCOME, STORED, REFUSED, GOODBYE = range(4)


class Said(NamedTuple):
    kind: int
    fields: list[Any]


class Producer:
    """Keeps what was answered by number: `stored` has (entry id, state, duplicate), `refused` has
    (status, code, detail, entry id)."""

    def __init__(self, line: aiohttp.ClientWebSocketResponse) -> None:
        self.line = line
        self.welcome: list[Any] = []
        self.stored: dict[int, tuple[str, str, bool]] = {}
        self.refused: dict[int, tuple[int, str, str, str]] = {}
        self.frames = 0  # of answers

    @property
    def answered(self) -> int:
        return len(self.stored) + len(self.refused)

    async def send(self, first: int, *items: list[Any]) -> None:
        await self.line.send_bytes(msgspec.msgpack.encode([first, items]))

    async def next(self) -> Said:
        message = await self.line.receive()
        assert message.type is aiohttp.WSMsgType.BINARY, message
        kind, *fields = msgspec.msgpack.decode(message.data)
        said = Said(kind, fields)
        self._note(said)
        return said

    def _note(self, said: Said) -> None:
        self.frames += said.kind in {STORED, REFUSED}
        for first, count, *told in said.fields[0] if said.kind in {STORED, REFUSED} else ():
            for offset in range(count):
                number = first + offset
                assert number not in self.stored | self.refused, "answered once"
                if said.kind == STORED:
                    event, index, _, state, duplicate = told
                    self.stored[number] = (f"{event.hex()}:{index + offset}", state, duplicate)
                else:
                    status, code, retryable, detail, entry_id = told
                    assert type(retryable) is bool
                    self.refused[number] = (status, code, detail, entry_id)

    async def until_answered(self, count: int) -> None:
        while self.answered < count:
            assert (await self.next()).kind in {STORED, REFUSED}

    async def code_of(self, number: int) -> str:
        while number not in self.refused:
            await self.next()
        return self.refused[number][1]

    async def goodbye(self) -> list[Any]:
        """Its fields, and that nothing but the close comes after it."""
        while True:
            said = await self.next()
            if said.kind == GOODBYE:
                break
        message = await self.line.receive()
        assert message.type in {aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED}, message
        return said.fields


@asynccontextmanager
async def producing(api: Talk, query: str = "", **options: Any) -> AsyncIterator[Producer]:
    url = f"{api.running.url}/v1/ingest?{query}"
    async with api.session.ws_connect(url, headers=api.headers, **options) as line:
        producer = Producer(line)
        said = await producer.next()
        assert said.kind == WELCOME
        producer.welcome = said.fields
        yield producer


async def entries_of(api: Talk, query: str = "") -> list[dict[str, Any]]:
    """All of it in order, once it is final: receipts leave at most one in 5 ms."""
    for entry in (await api.get("/v1/entries?state=stored&limit=1000")).json["items"]:
        await api.get(f"/v1/entries/{entry['id']}/status?wait=30s")
    found: list[dict[str, Any]] = []
    after = ""
    while True:
        page = (await api.get(f"/v1/entries?limit=1000&{query}{after}")).json
        found += page["items"]
        if not page["more"]:
            return found
        after = f"&after={page['next']}"
