"""GET /v1/stream: entries as they become final, as SSE or NDJSON.

One that reads too slowly is told so by a `gap`, at its place, and slows nobody. What is in a gap is
in the feed: GET /v1/entries with its `after` gives it again.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic

import msgspec
from aiohttp import web

from quipu.api import limits
from quipu.api.bodies import NDJSON, StreamName
from quipu.api.calls import Call, Response
from quipu.api.codes import Code
from quipu.api.connections import Connection
from quipu.api.cursors import Cursor, read_cursor
from quipu.api.face import Face
from quipu.api.models import StreamItem
from quipu.api.pages import Filter, Page, Pages
from quipu.api.problems import Problem, at, problem
from quipu.api.reading import Name, author_of, check_reach, readable_streams
from quipu.api.receipts import ReceiptsTold
from quipu.api.shaping import Form
from quipu.api.tokens import CLUSTER_READ
from quipu.ledger.words import Cord, EventId
from quipu.node.service import (
    EventOrdered,
    EventRead,
    EventStored,
    Gap,
    Goodbye,
    Ledger,
    News,
    PeerMoved,
    Subscription,
)

SSE = "text/event-stream"
KINDS = frozenset({"dag", "entries", "members", "receipts", "status"})
OF_THE_CLUSTER = ("dag", "members", "receipts")  # not of single streams: these need cluster:read
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class StreamQuery(msgspec.Struct, kw_only=True, rename={"start": "from"}):
    start: str = "now"
    stream: StreamName | None = None
    author: Name | None = None
    events: str = "entries"


def now_cursor(ledger: Ledger) -> Cursor:
    cursor = Cursor(ledger.feed_number)
    for row in ledger.frontier():
        if row.read_seq:
            cursor.vector[Cord(row.author_no, row.journal)] = row.read_seq
    return cursor


async def _begin(call: Call, query: StreamQuery) -> Cursor:
    last = call.request.headers.get("Last-Event-ID")
    if last:
        cursor = read_cursor(last, call.ledger.node_id, "Last-Event-ID")
    elif query.start == "now":
        return now_cursor(call.ledger)
    elif query.start == "start":
        return Cursor()
    else:
        cursor = read_cursor(query.start, call.ledger.node_id, "from")
    if cursor.downwards:
        raise at(Code.INVALID_CURSOR, "from", "was given for order=desc")
    await check_reach(call.ledger, cursor)
    return cursor


async def stream(call: Call) -> Response:
    if call.request.method == "HEAD":
        raise Problem(Code.METHOD_NOT_ALLOWED, "a stream has no end and no HEAD", allow="GET")
    query = call.query(StreamQuery)
    wanted = frozenset(query.events.split(","))
    if not wanted <= KINDS:
        raise at(Code.INVALID_PARAMETER, "events", f"is of {', '.join(sorted(KINDS))}")
    for kind in OF_THE_CLUSTER:
        if kind in wanted and not call.principal.may(CLUSTER_READ):
            problem(Code.FORBIDDEN, f"events={kind} needs the scope {CLUSTER_READ}")
    found = Filter(readable_streams(call, query.stream), author_of(call.ledger, query.author))
    pages = Pages(call.ledger, call.face.shapes, Form(lines=True), found, with_cursors=True)
    cursor = await _begin(call, query)
    face = call.face
    if face.draining:
        raise Problem(Code.DRAINING, retry_after_s=limits.RETRY_AFTER_S)
    if face.counters.streams >= limits.STREAMS_MAX:
        detail = f"{face.counters.streams} streams are open"
        raise Problem(Code.NODE_FULL, detail, retry_after_s=limits.RETRY_AFTER_S)
    face.counters.streams += 1
    try:
        moved = ReceiptsTold(face.shapes, call.ledger) if "receipts" in wanted else None
        return await _Told(call, pages, cursor, wanted, call.media_type == SSE, moved).run()
    finally:
        face.counters.streams -= 1


@dataclass(slots=True)
class _Told:
    """Invariant: everything up to `cursor` was written to the caller, or said to be in a gap."""

    call: Call
    pages: Pages
    cursor: Cursor
    wanted: frozenset[str]
    as_sse: bool
    receipts: ReceiptsTold | None

    async def run(self) -> Response:
        kind = SSE if self.as_sse else NDJSON
        response = web.StreamResponse(headers={**_HEADERS, "Content-Type": kind})
        response.headers["X-Request-Id"] = self.call.request_id
        await response.prepare(self.call.request)
        bound_what_is_unsent(self.call)
        news: Subscription | None = None
        with suppress(ConnectionError):
            if self.as_sse:
                await response.write(b": connected\n\n")
            await self._catch_up(response, self.call.ledger.feed_number)
            news = self.call.ledger.subscribe(
                self.call.face.settings.stream_queue_items, bool({"dag", "status"} & self.wanted)
            )
            try:
                await self._catch_up(response, news.feed_number)
                await self._listen(response, news)
            finally:
                news.close()
        return response

    async def _catch_up(self, response: web.StreamResponse, upto: int) -> None:
        """What is in the store already, page by page, as fast as the caller reads."""
        if "entries" not in self.wanted:
            return  # nothing of the feed will be told
        while self.cursor.number < upto and not self.call.face.draining:
            page = self.pages.read(self.cursor, limits.PAGE_DEFAULT)
            await self._write_page(response, page)

    async def _listen(self, response: web.StreamResponse, news: Subscription) -> None:
        protocol = self.call.request.protocol
        assert isinstance(protocol, Connection)
        moved, beat_s = self.receipts, self.call.face.settings.heartbeat_s
        told_s = monotonic()
        pause_s = min(limits.RECEIPTS_EVERY_S, beat_s) if moved else beat_s
        async for item in _with_pauses(news, self.call.face, protocol.gone(), pause_s):
            if moved and (rows := moved.news(monotonic())):
                await response.write(self._line(StreamItem("receipts", receipts=rows)))
            if moved and item is None and monotonic() < told_s + beat_s:
                continue
            told_s = monotonic()
            match item:
                case None:
                    beat = b": heartbeat\n\n" if self.as_sse else self._line(_HEARTBEAT)
                    await response.write(beat)
                case EventRead(number, identity):
                    if number > self.cursor.number:
                        await self._write_entries(response, number, identity)
                        await self._write_status(response, identity, "read")
                case EventStored(identity):
                    await self._write_event(response, identity)
                case EventOrdered(identity):
                    await self._write_status(response, identity, "ordered")
                case PeerMoved():
                    await self._write_member(response, item)
                case Gap():
                    await response.write(self._line(self._gap(item)))
                case Goodbye(reason):
                    await response.write(self._line(StreamItem("goodbye", reason=reason)))
                    return

    def _gap(self, gap: Gap) -> StreamItem:
        """From where the caller is to where the news go on; it may read the feed between."""
        self.call.face.counters.stream_gaps += 1
        node_id = self.call.ledger.node_id
        after = self.cursor.text(node_id)
        if gap.upto > self.cursor.number:
            skipped = self.cursor.copy()
            for number, identity in self.call.ledger.feed(
                skipped.number, gap.upto - skipped.number
            ):
                meta = self.call.ledger.meta(identity)
                assert meta is not None
                skipped.pass_over(number, meta)
            self.cursor = skipped
        upto = self.cursor.text(node_id)
        return StreamItem("gap", cursor=upto, missed=gap.missed, after=after, upto=upto)

    async def _write_entries(
        self, response: web.StreamResponse, number: int, identity: EventId
    ) -> None:
        if "entries" in self.wanted:
            await self._write_page(response, self.pages.one(self.cursor, number, identity))
        else:
            meta = self.call.ledger.meta(identity)
            assert meta is not None  # it became Read
            self.cursor.pass_over(number, meta)

    async def _write_event(self, response: web.StreamResponse, identity: EventId) -> None:
        """With all its fields for who draws the DAG; the id alone for others."""
        meta = self.call.ledger.meta(identity) if "dag" in self.wanted else None
        if meta is None:
            await self._write_status(response, identity, "stored")
        else:
            item = StreamItem("event", event=self.call.face.shapes.event(meta))
            await response.write(self._line(item))

    async def _write_page(self, response: web.StreamResponse, page: Page) -> None:
        node_id = self.call.ledger.node_id
        for entry, cursor in zip(page.items, page.cursors, strict=True):
            item = StreamItem("entry", cursor=cursor.text(node_id), entry=entry)
            await response.write(self._line(item))

    async def _write_status(
        self, response: web.StreamResponse, identity: bytes, state: str
    ) -> None:
        if self.wanted & {"dag", "status"}:
            item = StreamItem("status", event_id=identity.hex(), state=state)
            await response.write(self._line(item))

    async def _write_member(self, response: web.StreamResponse, moved: PeerMoved) -> None:
        if "members" in self.wanted:
            node_id, state = moved.peer.hex(), str(moved.after)
            before = str(moved.before)
            item = StreamItem(
                "member", node_id=node_id, before=before, state=state, reason=moved.why
            )
            await response.write(self._line(item))

    def _line(self, item: StreamItem) -> bytes:
        if not self.as_sse:
            return msgspec.json.encode(item) + b"\n"
        shown = item.entry or item.event or item
        cursor = f"id: {item.cursor}\n" if item.cursor else ""
        return f"event: {item.type}\n{cursor}data: ".encode() + msgspec.json.encode(shown) + b"\n\n"


def bound_what_is_unsent(call: Call) -> None:
    """Else the kernel alone keeps megabytes for a reader that has gone to sleep."""
    transport, most = call.request.transport, call.face.settings.stream_write_bytes
    if transport is None:
        return
    transport.set_write_buffer_limits(high=most)
    connected = transport.get_extra_info("socket")
    if connected is not None:
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, most)


_HEARTBEAT = StreamItem("heartbeat")


async def _with_pauses(
    news: Subscription, face: Face, gone: Coroutine[None, None, None], pause_s: float
) -> AsyncIterator[News | None]:
    """The news; None where nothing has come for so long. They end when the caller is gone."""
    coming: asyncio.Future[News] | None = None
    closing = asyncio.ensure_future(face.closing.wait())
    leaving = asyncio.ensure_future(gone)
    try:
        while True:
            if coming is None:
                coming = asyncio.ensure_future(_following(news))
            done, _ = await asyncio.wait(
                (coming, closing, leaving), timeout=pause_s, return_when=asyncio.FIRST_COMPLETED
            )
            if not done:
                yield None
                continue
            if leaving in done:
                return
            if closing in done:
                yield Goodbye("the node is stopping")
                return
            ended, coming = coming, None
            try:
                item = ended.result()
            except _Ended:
                return
            yield item
    finally:
        closing.cancel()
        leaving.cancel()
        if coming is not None:
            coming.cancel()


class _Ended(Exception):
    """The subscription says nothing more."""


async def _following(news: Subscription) -> News:
    try:
        return await anext(news)
    except StopAsyncIteration as end:
        raise _Ended from end
