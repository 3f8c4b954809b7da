"""Stream ingest for programs: entries in, a future of a receipt for each, at the node's speed.

async with ledger.ingest() as feed:
    for row in rows:
        await feed.submit(row, stream="orders", key=row["id"])
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import msgspec

from quipu.client.frames import item_of
from quipu.client.pipe import Counts, MadeReceipt, Pipe, Terms, Waiting
from quipu.client.transport import Transport

if TYPE_CHECKING:
    from quipu.client.asynchronous import AsyncReceipt
    from quipu.client.synchronous import Receipt

# Twice the window of a node: while one half is stored the other is made.
WAITING_ENTRIES_MAX = 16_384
WAITING_BYTES_MAX = 16 << 20
TURN_ENTRIES = 256  # put in without a pause, then the line gets its turn
OCTETS = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class Options:
    """What `submit` takes beside the data."""

    stream: str = "default"
    key: str | None = None
    content_type: str | None = None
    time_ms: int | None = None


def waiting_of(data: Any, options: Options, future: Any) -> Waiting:
    """JSON, or bytes with a `content_type`."""
    content_type = options.content_type
    if isinstance(data, bytes | bytearray):
        raw = bytes(data)
        content_type = content_type or OCTETS
    else:
        raw = msgspec.json.encode(data)
    stream = None if options.stream == "default" else options.stream
    item = item_of(raw, stream, options.key, content_type, options.time_ms)
    return Waiting(item, options.key, options.stream, future)


@dataclass(slots=True)
class _Held:
    """What was submitted and is not settled: bounded, so that a fast producer waits."""

    entries: int = 0
    size: int = 0

    def is_full(self) -> bool:
        return self.entries >= WAITING_ENTRIES_MAX or self.size >= WAITING_BYTES_MAX

    def add(self, entries: int, size: int) -> None:
        self.entries += entries
        self.size += size


class OnLoop(NamedTuple):
    """Another thread's event loop."""

    run: Callable[[Coroutine[Any, Any, None]], None]
    call_soon: Callable[[Callable[[], None]], None]


class AsyncIngest:
    """One line to the ledger for many entries. A context manager: it ends when all is settled."""

    def __init__(self, transport: Transport, terms: Terms, receipt: MadeReceipt) -> None:
        self._held = _Held()
        self._room = asyncio.Event()
        self._pipe = Pipe(transport, terms, receipt, self._settled)
        self._running: asyncio.Task[None] | None = None

    @property
    def counts(self) -> Counts:
        return self._pipe.counts

    async def __aenter__(self) -> Self:
        self._running = asyncio.create_task(self._pipe.run())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._running is not None
        try:
            if kind is None:
                await self.flush()
                self._pipe.close()
                await self._running
        finally:
            await self._pipe.abandon(self._running)

    async def submit(self, data: Any, **options: Any) -> "asyncio.Future[AsyncReceipt]":
        """A future of the receipt. Waits while too much is on its way.

        Options: stream, key (idempotency key), content_type, time_ms. Raises what ended the line
        for good; what is wrong with this entry alone is the future's.
        """
        future: asyncio.Future[AsyncReceipt] = asyncio.get_running_loop().create_future()
        waiting = waiting_of(data, Options(**options), future)
        while self._held.is_full() and self._pipe.failure is None:
            self._room.clear()
            await self._room.wait()
        if self._pipe.failure is not None:
            raise self._pipe.failure
        self._held.add(1, waiting.size)
        self._pipe.put((waiting,))
        if self._pipe.queued % TURN_ENTRIES == 0:
            await asyncio.sleep(0)
        return future

    async def flush(self) -> None:
        """Until everything submitted so far, and since, is settled."""
        while self._held.entries and self._pipe.failure is None:
            self._room.clear()
            await self._room.wait()
        if self._pipe.failure is not None:
            raise self._pipe.failure

    def _settled(self, entries: int, size: int) -> None:
        self._held.add(-entries, -size)
        self._room.set()


class Ingest:
    """The same for programs without an event loop; one thread or many may submit. Callbacks of the
    futures run on the client's own thread, which must not wait: nothing is submitted there."""

    def __init__(
        self, transport: Transport, terms: Terms, receipt: MadeReceipt, loop: "OnLoop"
    ) -> None:
        self._transport = transport
        self._terms = terms
        self._receipt = receipt
        self._loop = loop
        self._held = _Held()
        self._room = threading.Condition()
        self._fresh: list[Waiting] = []
        self._pipe: Pipe | None = None
        self._running: asyncio.Task[None] | None = None

    @property
    def counts(self) -> Counts:
        return Counts() if self._pipe is None else self._pipe.counts

    def __enter__(self) -> Self:
        self._loop.run(self._open())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self.flush()
        finally:
            self._loop.run(self._close(is_clean=kind is None))

    async def _open(self) -> None:
        self._pipe = Pipe(self._transport, self._terms, self._receipt, self._settled)
        self._running = asyncio.create_task(self._pipe.run())

    async def _close(self, is_clean: bool) -> None:
        assert self._pipe is not None
        assert self._running is not None
        if is_clean and self._pipe.failure is None:
            self._pipe.close()
            await self._running
        await self._pipe.abandon(self._running)

    def submit(self, data: Any, **options: Any) -> "Future[Receipt]":
        """A future of the receipt. Waits while too much is on its way.

        Options: stream, key (idempotency key), content_type, time_ms. Raises what ended the line
        for good; what is wrong with this entry alone is the future's.
        """
        assert self._pipe is not None, "use it as a context manager"
        future: Future[Receipt] = Future()
        waiting = waiting_of(data, Options(**options), future)
        with self._room:
            while self._held.is_full() and self._pipe.failure is None:
                self._room.wait()
            if self._pipe.failure is not None:
                raise self._pipe.failure
            self._held.add(1, waiting.size)
            self._fresh.append(waiting)
            is_first = len(self._fresh) == 1
        if is_first:
            self._loop.call_soon(self._pass_on)
        return future

    def flush(self) -> None:
        """Until everything submitted so far, and since, is settled."""
        assert self._pipe is not None
        with self._room:
            while self._held.entries and self._pipe.failure is None:
                self._room.wait()
        if self._pipe.failure is not None:
            raise self._pipe.failure

    def _pass_on(self) -> None:
        assert self._pipe is not None
        with self._room:
            fresh, self._fresh = self._fresh, []
        self._pipe.put(fresh)

    def _settled(self, entries: int, size: int) -> None:
        with self._room:
            self._held.add(-entries, -size)
            self._room.notify_all()
