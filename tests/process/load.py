"""Mixed load on a cluster under torture, and the history of what was acknowledged.

To each node single entries, batches and a stream with idempotency keys, by the client that users
have; numbers of one sequence; and a reader that follows everything from its beginning. Work goes
on only between `begin` and `pause`; what was under way then is given up and counts as unknown.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from hashlib import sha256
from typing import Any, NamedTuple

import aiohttp

from quipu.client import AsyncClient, AsyncReceipt, Entry, QuipuError

BATCH = 20
STREAM = 40
PAUSE_S = 0.25  # between two deeds of one worker: the machine is not to be the fault
READ_S = 1.0  # that a single entry waits to be Read
ANSWER_S = 4.0
END_S = 30.0
SEQUENCE = "torture"


class Acked(NamedTuple):
    id: str
    state: str  # as it was acknowledged
    node: int
    text: str  # no other entry has it


class Published(NamedTuple):
    number: int
    digest: str


class History:
    """Written by one thread, read by another once nothing is under way."""

    def __init__(self) -> None:
        self.acked: list[Acked] = []
        self.published: list[Published] = []
        self.undecided = 0  # publishes whose answer was lost: the number may be taken or not
        self.followed: dict[int, Counter[str]] = {}  # by node: each id, and how often
        self.failures: Counter[str] = Counter()  # what clients were told, by kind

    def read(self) -> list[Acked]:
        return [one for one in self.acked if one.state != "stored"]


class Load:
    """On an event loop of its own, in a thread of its own."""

    def __init__(self, urls: dict[int, str]) -> None:
        self.history = History()
        self._urls = urls
        self._count = 0
        self._workers: list[asyncio.Task[None]] = []
        self._followers: list[asyncio.Task[None]] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="load", daemon=True)
        self._thread.start()

    def follow(self) -> None:
        """On all nodes, to the end."""
        self._run(self._follow_all())

    def begin(self) -> None:
        self._run(self._begin())

    def pause(self) -> None:
        self._run(self._end(self._workers))

    def end(self) -> None:
        self._run(self._end(self._workers))
        self._run(self._end(self._followers))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, wanted: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(wanted, self._loop).result(END_S)

    # --- on its loop ----------------------------------------------------------------------------
    async def _begin(self) -> None:
        for number, url in self._urls.items():
            for work in (self._single, self._batch, self._stream):
                self._start(work, [url], number)
        self._start(self._publish, list(self._urls.values()), 0)

    def _start(
        self, work: Callable[[AsyncClient, int], Awaitable[None]], urls: list[str], number: int
    ) -> None:
        self._workers.append(self._loop.create_task(self._repeat(work, urls, number)))

    async def _repeat(
        self, work: Callable[[AsyncClient, int], Awaitable[None]], urls: list[str], number: int
    ) -> None:
        async with AsyncClient(urls, timeout=ANSWER_S) as client:
            while True:
                try:
                    async with asyncio.timeout(ANSWER_S):
                        await work(client, number)
                except (QuipuError, TimeoutError, OSError, aiohttp.ClientError) as error:
                    self.history.failures[type(error).__name__] += 1
                await asyncio.sleep(PAUSE_S)

    async def _end(self, tasks: list[asyncio.Task[None]]) -> None:
        for task in tasks:
            task.cancel()
        done, left = await asyncio.wait(tasks, timeout=END_S / 2) if tasks else (set(), set())
        for one in left:
            one.print_stack()
        assert not left, "a client does not end"
        for one in done:
            if not one.cancelled() and (error := one.exception()) is not None:
                raise error
        tasks.clear()

    def _text(self, number: int, kind: str) -> str:
        self._count += 1
        return f"{kind} {number}/{self._count}"

    # --- deeds ----------------------------------------------------------------------------------
    async def _single(self, client: AsyncClient, number: int) -> None:
        text = self._text(number, "single")
        receipt = await client.submit(text, wait="read", timeout=READ_S)
        self.history.acked.append(Acked(receipt.id, receipt.state, number, text))

    async def _batch(self, client: AsyncClient, number: int) -> None:
        texts = [self._text(number, "batch") for _ in range(BATCH)]
        answer = await client.submit_batch(texts, wait="read", timeout=READ_S)
        for text, result in zip(texts, answer.results, strict=True):
            if result.id is not None and result.state is not None:
                self.history.acked.append(Acked(result.id, result.state, number, text))

    async def _stream(self, client: AsyncClient, number: int) -> None:
        async with client.ingest(wait="stored") as feed:
            texts = [self._text(number, "stream") for _ in range(STREAM)]
            futures = [await feed.submit(text, stream="torture", key=text) for text in texts]
            receipts = await asyncio.gather(*futures, return_exceptions=True)
            for text, receipt in zip(texts, receipts, strict=True):
                if isinstance(receipt, AsyncReceipt):
                    self.history.acked.append(Acked(receipt.id, receipt.state, number, text))
                else:
                    self.history.failures[type(receipt).__name__] += 1

    async def _publish(self, client: AsyncClient, number: int) -> None:
        text = self._text(number, "number")
        self.history.undecided += 1
        found = await client.sequence_publish(SEQUENCE, text.encode())
        self.history.undecided -= 1
        digest = sha256(text.encode()).hexdigest()
        self.history.published.append(Published(int(found["number"]), digest))

    # --- followers ------------------------------------------------------------------------------
    async def _follow_all(self) -> None:
        for number, url in self._urls.items():
            self.history.followed[number] = Counter()
            self._followers.append(self._loop.create_task(self._follow(number, url)))

    async def _follow(self, number: int, url: str) -> None:
        seen = self.history.followed[number]
        cursor: str | None = None
        async with AsyncClient(url, timeout=ANSWER_S) as client:
            while True:
                with suppress(QuipuError, TimeoutError, OSError, aiohttp.ClientError):
                    start = "start" if cursor is None else cursor
                    async for item in client.follow(cursor=cursor, start=start):
                        if isinstance(item, Entry):
                            seen[item.id] += 1
                            cursor = item.cursor or cursor
                        else:
                            cursor = item.upto
                            async for missed in client.missed(item):
                                seen[missed.id] += 1
                self.history.failures["follow"] += 1
                cursor = None  # the store may be another one: from the beginning
                await asyncio.sleep(PAUSE_S)
