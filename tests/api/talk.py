"""A node with its listeners on free ports, and somebody who talks to it over real HTTP."""

import asyncio
import io
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import aiohttp

from quipu.api.bodies import JSON
from quipu.api.server import Running, Settings, serve
from quipu.node.administration import Administration
from tests.api.one_node import OneNode


class Reply(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """Of a problem, whose form is checked along the way."""
        assert self.headers["Content-Type"] == "application/problem+json", self.body
        found = self.json
        assert found["status"] == self.status
        assert found["type"] == f"/problems/{found['code']}"
        assert found["detail"]
        assert isinstance(found["retryable"], bool)
        return str(found["code"])

    @property
    def pointers(self) -> list[str]:
        return [error["pointer"] for error in self.json.get("errors", [])]


class Talk:
    def __init__(self, node: OneNode, running: Running, session: aiohttp.ClientSession) -> None:
        self.node = node
        self.running = running
        self.session = session
        self.headers: dict[str, str] = {}

    async def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Reply:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        url = path if path.startswith("http") else self.running.url + path
        data = None if body is None else io.BytesIO(body)  # large bytes would be a warning
        async with self.session.request(
            method, url, data=data, headers=self.headers | given, allow_redirects=False
        ) as response:
            return Reply(response.status, response.headers, await response.read())

    async def get(self, path: str, **headers: str) -> Reply:
        return await self.ask("GET", path, None, **headers)

    async def ops(self, path: str) -> Reply:
        assert self.running.ops_url is not None
        return await self.ask("GET", self.running.ops_url + path)

    async def post(self, path: str, body: object, kind: str = JSON, **headers: str) -> Reply:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await self.ask("POST", path, data, Content_Type=kind, **headers)

    async def submit(self, data: object, **fields: object) -> Reply:
        return await self.post("/v1/entries", {"data": data, **fields})

    async def stored(self, data: object, **fields: object) -> str:
        """The id of an entry that is final."""
        reply = await self.post("/v1/entries?wait=read", {"data": data, **fields})
        assert reply.status == 201, reply.body
        return str(reply.json["id"])


FREE = Settings(port=0, ops_port=0)


@asynccontextmanager
async def talking(
    settings: Settings = FREE,
    node: OneNode | None = None,
    administration: Administration | None = None,
) -> AsyncIterator[Talk]:
    ledger = node or OneNode()
    running = await serve(ledger, settings, administration)
    connector = aiohttp.TCPConnector(limit=0)
    skip = {"Content-Type"}
    async with aiohttp.ClientSession(connector=connector, skip_auto_headers=skip) as session:
        try:
            yield Talk(ledger, running, session)
        finally:
            await running.stop(drain_s=0.5)


async def until(condition: Any) -> None:
    """Waits for what other coroutines bring about; the test's own deadline ends it."""
    while True:
        if condition():
            return
        await asyncio.sleep(0)
