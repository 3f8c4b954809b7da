"""The client for programs with an event loop. `Client` has the same names without `await`."""

import asyncio
import base64
import ssl
import uuid
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import msgspec

from quipu.client import consuming
from quipu.client.clients import AsyncClients
from quipu.client.consuming import Bookmark
from quipu.client.errors import Unavailable, Unreachable
from quipu.client.ingest import AsyncIngest
from quipu.client.models import (
    BatchAnswer,
    Consumer,
    Entry,
    EntryBody,
    Gap,
    Page,
    ReceiptBody,
    Status,
    Verdict,
    entry_of,
    page_of,
)
from quipu.client.operating import AsyncOperator
from quipu.client.ordering import AsyncOrder
from quipu.client.pipe import Terms as PipeTerms
from quipu.client.streaming import Ended, items_of
from quipu.client.transport import ANSWER_S, Answer, Terms, Transport, pause

JSON = "application/json"
WAIT_S = 30.0
QUERY_S = 5.0


@dataclass(slots=True)
class AsyncReceipt:
    """What became of a submission, as far as it is known."""

    id: str
    state: str
    duplicate: bool
    time: str
    client: "AsyncClient"

    async def wait(self, state: str = "read", timeout: float = WAIT_S) -> bool:  # noqa: ASYNC109
        """Whether the entry got that far in time. That it has not yet is no exception."""
        status = await self.client.wait(self.id, state, timeout)
        self.state = status.state
        return reached(status.state, state)


def reached(state: str, wanted: str) -> bool:
    steps = ("stored", "read", "ordered", "executed")
    return state == wanted or (
        state in steps and wanted in steps and steps.index(state) >= steps.index(wanted)
    )


class AsyncClient(AsyncOperator, AsyncOrder, AsyncClients):
    """One ledger, reached through any of its nodes."""

    def __init__(
        self,
        nodes: str | Sequence[str],
        *,
        token: str | None = None,
        tls: ssl.SSLContext | None = None,
        timeout: float = ANSWER_S,
    ) -> None:
        urls = [nodes] if isinstance(nodes, str) else list(nodes)
        if not urls:
            raise ValueError("name at least one node")
        self._transport = Transport(urls, token, tls, timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._transport.close()

    @property
    def transport(self) -> Transport:
        return self._transport

    # --- writing ----------------------------------------------------------------------------------
    async def submit(self, data: Any, **options: Any) -> AsyncReceipt:
        """Stores one entry: JSON, or bytes with a `content_type`.

        Options: stream, content_type, idempotency_key, time, wait ("stored", "read", "ordered"),
        timeout (seconds), at_least_once. Without a key one is made: a retry on the same node is
        safe.
        """
        wanted = Submission(**options)
        key = wanted.idempotency_key or uuid.uuid4().hex
        body = msgspec.json.encode(new_entry(data, wanted, key))
        answer = await self._write("/v1/entries", body, wanted, key)
        found = msgspec.json.decode(answer.body, type=ReceiptBody)
        return AsyncReceipt(found.id, found.state, found.duplicate, found.time, self)

    async def submit_batch(self, items: Iterable[Any], **options: Any) -> BatchAnswer:
        """Stores many; each has its own result. `atomic=True`: all in one event, or none."""
        wanted = Submission(**options)
        bodies = [new_entry(item, wanted, uuid.uuid4().hex) for item in items]
        answer = await self._write("/v1/entries:batch", msgspec.json.encode(bodies), wanted, "")
        return msgspec.json.decode(answer.body, type=BatchAnswer)

    def ingest(
        self, *, wait: str = "stored", timeout: float = WAIT_S, at_least_once: bool = False
    ) -> AsyncIngest:
        """A line for many entries: `async with ledger.ingest() as feed: await feed.submit(…)`.

        With a key an entry is sent again on the same node after a broken line, and stored once;
        with `at_least_once` on any node; else its future raises `Undecided`.
        """

        def receipt(identity: str, state: str, duplicate: bool, time: str) -> AsyncReceipt:
            return AsyncReceipt(identity, state, duplicate, time, self)

        return AsyncIngest(self._transport, PipeTerms(wait, timeout, at_least_once), receipt)

    async def validate(self, data: Any, **options: Any) -> Verdict:
        """What would happen; nothing is stored."""
        wanted = Submission(**options)
        body = msgspec.json.encode(new_entry(data, wanted, wanted.idempotency_key))
        answer = await self._transport.write(
            "/v1/entries:validate", {}, body, {"Content-Type": JSON}, Terms()
        )
        return msgspec.json.decode(answer.body, type=Verdict)

    async def _write(self, path: str, body: bytes, wanted: "Submission", key: str) -> Answer:
        params = {"wait": wanted.wait, "timeout": f"{int(wanted.timeout * 1000)}ms"}
        if wanted.atomic:
            params["atomic"] = "true"
        terms = Terms(key, wanted.stream, at_least_once=wanted.at_least_once)
        headers = {"Content-Type": JSON}
        return await self._transport.write(path, params, body, headers, terms)

    # --- reading ----------------------------------------------------------------------------------
    async def list(self, **filters: Any) -> Page:
        """A page: after, limit, stream, author, submitter, state, since, until, order, wait."""
        answer = await self._read("/v1/entries", filters)
        return page_of(answer.body)

    async def pages(self, **filters: Any) -> AsyncIterator[Entry]:
        """Every entry, page after page."""
        while True:
            page = await self.list(**filters)
            for entry in page.items:
                yield entry
            if not page.more:
                return
            filters["after"] = page.next

    async def get(self, entry_id: str) -> Entry:
        answer = await self._read(f"/v1/entries/{entry_id}")
        return entry_of(msgspec.json.decode(answer.body, type=EntryBody))

    async def status(self, entry_id: str, wait: float = 0, state: str = "read") -> Status:
        """Its state now, or as soon as it is final (`ordered`: has its place in the order) within
        `wait` seconds."""
        given = {"wait": f"{int(wait * 1000)}ms", "state": state} if wait else {}
        answer = await self._read(f"/v1/entries/{entry_id}/status", given)
        return msgspec.json.decode(answer.body, type=Status)

    async def wait(self, entry_id: str, state: str = "read", timeout: float = WAIT_S) -> Status:  # noqa: ASYNC109
        """Its status when it got that far, or when the time is over."""
        loop = asyncio.get_running_loop()
        ends_s = loop.time() + timeout
        while True:
            left_s = max(0.0, min(ends_s - loop.time(), WAIT_S))
            waits_for = state if state in ("ordered", "executed") else "read"
            status = await self.status(entry_id, 0 if state == "stored" else left_s, waits_for)
            if reached(status.state, state) or status.state == "void" or loop.time() >= ends_s:
                return status

    async def proof(self, entry_id: str) -> bytes:
        """The finality bundle, for `quipu.verify`."""
        return (await self._read(f"/v1/entries/{entry_id}/proof")).body

    async def follow(
        self,
        *,
        cursor: str | None = None,
        start: str = "now",
        stream: str | None = None,
        consumer: str | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[Entry | Gap]:
        """Entries as they become final, for ever: reconnects, goes to another node, yields `Gap`.

        `cursor` is that of the last entry that was seen (`entry.cursor`); without it, from now on
        or from the `start`. With `limit` it ends after so many entries.

        `consumer` names a cursor that the first node keeps: it goes on from there, or makes it at
        `start`. Asking for the next item says that the one before is dealt with; that is stored
        once a second, after 100 entries, and at the end. What was not stored yet is given again
        after a crash: at least once. Raises `Conflict` where another process has moved it.
        """
        mark: Bookmark | None = None
        at, attempt, given = cursor or start, 0, 0
        if consumer is not None:
            mark = await Bookmark.open(self._transport, consumer, at, stream)
            at, stream = mark.kept.cursor, mark.kept.stream
        try:
            while True:
                try:
                    async for item in items_of(self._transport, at, stream):
                        attempt = 0
                        if item is not None:
                            at = (item.upto if isinstance(item, Gap) else item.cursor) or at
                            yield item
                            given += isinstance(item, Entry)
                        if mark is not None:
                            await mark.passed(at, int(item is not None))
                        if given == limit:
                            return
                except (Ended, Unreachable, Unavailable):
                    self._transport.next_node()
                    await pause(attempt)
                    attempt += 1
        finally:
            if mark is not None:
                await mark.close()

    async def missed(self, gap: Gap, **filters: Any) -> AsyncIterator[Entry]:
        """Exactly what a gap left out."""
        after = gap.after
        while True:
            page = await self.list(after=after, **filters)
            # Asked after the page: what is in it and beyond the gap is beyond it here as well.
            beyond = await self.list(after=gap.upto, **filters | {"limit": 1})
            stop = beyond.items[0].id if beyond.items else None
            for entry in page.items:
                if entry.id == stop:
                    return
                yield entry
            if not page.more:
                return
            after = page.next

    # --- consumers --------------------------------------------------------------------------------
    async def consumers(self) -> Sequence[Consumer]:
        """The named cursors of the caller that the first node keeps."""
        return await consuming.all_consumers(self._transport)

    async def consumer(self, name: str) -> Consumer:
        """Raises `NotFound`."""
        return await consuming.get(self._transport, name)

    async def keep_consumer(
        self,
        name: str,
        cursor: str,
        *,
        ttl: str = consuming.TTL,
        stream: str | None = None,
        etag: str | None = None,
    ) -> Consumer:
        """`cursor` may be "now" or "start". With an `etag` raises `Conflict` where it is another
        one by now; "" stands for none at all."""
        conditions: dict[str, str] = {}
        if etag is not None:
            conditions = {"If-Match": etag} if etag else {"If-None-Match": "*"}
        body = consuming.wish(cursor, ttl, stream)
        return await consuming.put(self._transport, name, body, conditions)

    async def forget_consumer(self, name: str) -> None:
        """Raises `NotFound`."""
        await consuming.delete(self._transport, name)

    # --- the ledger -------------------------------------------------------------------------------
    async def streams(self) -> Any:
        return await self._json("/v1/streams")

    async def events(self, prefix: str) -> Any:
        """Those whose id begins with these 4 to 64 hex digits; at most 20."""
        return await self._json("/v1/events", {"prefix": prefix})

    async def event(self, event_id: str) -> Any:
        return await self._json(f"/v1/events/{event_id}")

    async def parents(self, event_id: str) -> Any:
        return await self._json(f"/v1/events/{event_id}/parents")

    async def children(self, event_id: str) -> Any:
        return await self._json(f"/v1/events/{event_id}/children")

    async def ancestors(self, event_id: str, *, depth: int = 1, limit: int = 100) -> Any:
        given = {"depth": depth, "limit": limit}
        return await self._json(f"/v1/events/{event_id}/ancestors", given)

    async def explain(self, event_id: str) -> Any:
        """Why an event, or the event of an entry, is final or not."""
        return await self._json(f"/v1/events/{event_id.partition(':')[0]}/explain")

    async def leaves(self) -> Any:
        return await self._json("/v1/dag/leaves")

    async def window(self, center: str | None = None, **bounds: int) -> Any:
        return await self._json("/v1/dag/window", {"center": center, **bounds})

    async def frontier(self) -> Any:
        return await self._json("/v1/dag/frontier")

    async def diff(self, peer: str | int, *, timeout: float = QUERY_S) -> Any:  # noqa: ASYNC109
        """What the node that answers and another member (number, node id or name) hold
        differently."""
        given = {"peer": peer, "timeout": f"{timeout * 1000:.0f}ms"}
        return await self._json("/v1/dag/diff", given)

    async def node(self) -> Any:
        return await self._json("/v1/node")

    async def cluster(self) -> Any:
        return await self._json("/v1/cluster")

    async def members(self) -> Any:
        """The roster, and how the node that answers sees each of them."""
        return await self._json("/v1/cluster/members")

    async def query(
        self,
        question: str,
        argument: str = "",
        *,
        timeout: float = QUERY_S,  # noqa: ASYNC109
        everybody: bool = False,
    ) -> Any:
        """Asks all members; the verdict, and what each has answered. It ends once the verdict is
        clear; with `everybody` each live member is heard."""
        asked = {
            "question": question,
            "argument": argument,
            "timeout": f"{timeout * 1000:.0f}ms",
            "everybody": everybody,
        }
        body, headers = msgspec.json.encode(asked), {"Content-Type": JSON}
        answer = await self._transport.read("/v1/cluster/queries", {}, headers, body)
        return msgspec.json.decode(answer.body)

    async def receipts(self) -> Any:
        """Who has signed how far that it holds each cord, as the node that answers heard it."""
        return await self._json("/v1/cluster/receipts")

    async def figures(self) -> Any:
        """What the node that answers counts and measures."""
        return await self._json("/v1/figures")

    async def evidence(self) -> Any:
        return await self._json("/v1/evidence")

    async def openapi(self) -> Any:
        return await self._json("/openapi.json")

    async def problem(self, code: str) -> Any:
        return await self._json(f"/problems/{code}", {}, {"Accept": JSON})

    async def _json(
        self,
        path: str,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        return msgspec.json.decode((await self._read(path, params or {}, headers)).body)

    async def _order(self, path: str, body: Mapping[str, Any]) -> Any:
        content, headers = msgspec.json.encode(body), {"Content-Type": JSON}
        name = path.rpartition("/")[2].partition(":")[0]
        return msgspec.json.decode((await self._transport.once(path, content, headers, name)).body)

    async def _read(
        self,
        path: str,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        given = {name: str(value) for name, value in (params or {}).items() if value is not None}
        return await self._transport.read(path, given, headers or {})


@dataclass(frozen=True, slots=True)
class Submission:
    """The options of `submit`."""

    stream: str = "default"
    content_type: str | None = None
    idempotency_key: str | None = None
    time: str | None = None
    wait: str = "stored"
    timeout: float = WAIT_S
    atomic: bool = False
    at_least_once: bool = False


def new_entry(data: Any, wanted: Submission, key: str | None) -> dict[str, Any]:
    body: dict[str, Any] = {"stream": wanted.stream}
    if isinstance(data, bytes | bytearray):
        body["data_base64"] = base64.b64encode(data).decode()
    else:
        body["data"] = data
    for name in ("content_type", "time"):
        value = getattr(wanted, name)
        if value is not None:
            body[name] = value
    if key:
        body["idempotency_key"] = key
    return body
