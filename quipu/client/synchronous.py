"""The client for programs without an event loop: the same names as `AsyncClient`.

A loop of its own runs in a thread of its own; each call waits for its answer there.
"""

import asyncio
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeVar

from quipu.client.asynchronous import QUERY_S, WAIT_S, AsyncClient, reached
from quipu.client.clients import Clients
from quipu.client.consuming import TTL
from quipu.client.ingest import Ingest, OnLoop
from quipu.client.models import BatchAnswer, Consumer, Entry, Gap, Page, Status, Verdict
from quipu.client.operating import Operator
from quipu.client.ordering import Order
from quipu.client.pipe import Terms
from quipu.client.transport import ANSWER_S

T = TypeVar("T")


@dataclass(slots=True)
class Receipt:
    """What became of a submission, as far as it is known."""

    id: str
    state: str
    duplicate: bool
    time: str
    client: "Client"

    def wait(self, state: str = "read", timeout: float = WAIT_S) -> bool:
        """Whether the entry got that far in time. That it has not yet is no exception."""
        status = self.client.wait(self.id, state, timeout)
        self.state = status.state
        return reached(status.state, state)


class Client(Operator, Order, Clients):
    """One ledger, reached through any of its nodes."""

    _client: AsyncClient

    def __init__(
        self,
        nodes: str | Sequence[str],
        *,
        token: str | None = None,
        tls: ssl.SSLContext | None = None,
        timeout: float = ANSWER_S,
    ) -> None:
        self._client = AsyncClient(nodes, token=token, tls=tls, timeout=timeout)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Once or more than once."""
        if self._loop is None or self._thread is None:
            return
        self._run(self._client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._loop = self._thread = None

    def _run(self, wanted: Coroutine[Any, Any, T]) -> T:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=self._loop.run_forever, name="quipu-client", daemon=True
            )
            self._thread.start()
        future = asyncio.run_coroutine_threadsafe(wanted, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def _call_soon(self, called: Callable[[], None]) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(called)

    def _each(self, items: AsyncIterator[T]) -> Iterator[T]:
        async def following() -> tuple[T, bool] | tuple[None, bool]:
            try:
                return await anext(items), True
            except StopAsyncIteration:
                return None, False

        async def close() -> None:
            await items.aclose()  # type: ignore[attr-defined] # it is a generator

        try:
            while True:
                item, is_there = self._run(following())
                if not is_there:
                    return
                assert item is not None
                yield item
        finally:
            if self._loop is not None:
                self._run(close())

    # --- writing ----------------------------------------------------------------------------------
    def submit(self, data: Any, **options: Any) -> Receipt:
        """Stores one entry: JSON, or bytes with a `content_type`.

        Options: stream, content_type, idempotency_key, time, wait ("stored", "read", "ordered"),
        timeout (seconds), at_least_once. Without a key one is made: a retry on the same node is
        safe.
        """
        found = self._run(self._client.submit(data, **options))
        return Receipt(found.id, found.state, found.duplicate, found.time, self)

    def submit_batch(self, items: Iterable[Any], **options: Any) -> BatchAnswer:
        """Stores many; each has its own result. `atomic=True`: all in one event, or none."""
        return self._run(self._client.submit_batch(items, **options))

    def ingest(
        self, *, wait: str = "stored", timeout: float = WAIT_S, at_least_once: bool = False
    ) -> Ingest:
        """A line for many entries: `with ledger.ingest() as feed: feed.submit(…)`.

        With a key an entry is sent again on the same node after a broken line, and stored once;
        with `at_least_once` on any node; else its future raises `Undecided`.
        """

        def receipt(identity: str, state: str, duplicate: bool, time: str) -> Receipt:
            return Receipt(identity, state, duplicate, time, self)

        terms = Terms(wait, timeout, at_least_once)
        return Ingest(self._client.transport, terms, receipt, OnLoop(self._run, self._call_soon))

    def validate(self, data: Any, **options: Any) -> Verdict:
        """What would happen; nothing is stored."""
        return self._run(self._client.validate(data, **options))

    # --- reading ----------------------------------------------------------------------------------
    def list(self, **filters: Any) -> Page:
        """A page: after, limit, stream, author, submitter, state, since, until, order, wait."""
        return self._run(self._client.list(**filters))

    def pages(self, **filters: Any) -> Iterator[Entry]:
        """Every entry, page after page."""
        return self._each(self._client.pages(**filters))

    def get(self, entry_id: str) -> Entry:
        return self._run(self._client.get(entry_id))

    def status(self, entry_id: str, wait: float = 0, state: str = "read") -> Status:
        """Its state now, or as soon as it is final (`ordered`: has its place in the order) within
        `wait` seconds."""
        return self._run(self._client.status(entry_id, wait, state))

    def wait(self, entry_id: str, state: str = "read", timeout: float = WAIT_S) -> Status:
        """Its status when it got that far, or when the time is over."""
        return self._run(self._client.wait(entry_id, state, timeout))

    def proof(self, entry_id: str) -> bytes:
        """The finality bundle, for `quipu.verify`."""
        return self._run(self._client.proof(entry_id))

    def follow(
        self,
        *,
        cursor: str | None = None,
        start: str = "now",
        stream: str | None = None,
        consumer: str | None = None,
        limit: int | None = None,
    ) -> Iterator[Entry | Gap]:
        """Entries as they become final, for ever: reconnects, goes to another node, yields `Gap`.

        `cursor` is that of the last entry that was seen (`entry.cursor`); without it, from now on
        or from the `start`. With `limit` it ends after so many entries.

        `consumer` names a cursor that the first node keeps: it goes on from there, or makes it at
        `start`. Asking for the next item says that the one before is dealt with; that is stored
        once a second, after 100 entries, and at the end. What was not stored yet is given again
        after a crash: at least once. Raises `Conflict` where another process has moved it.
        """
        items = self._client.follow(
            cursor=cursor, start=start, stream=stream, consumer=consumer, limit=limit
        )
        return self._each(items)

    def missed(self, gap: Gap, **filters: Any) -> Iterator[Entry]:
        """Exactly what a gap left out."""
        return self._each(self._client.missed(gap, **filters))

    # --- consumers --------------------------------------------------------------------------------
    def consumers(self) -> Sequence[Consumer]:
        """The named cursors of the caller that the first node keeps."""
        return self._run(self._client.consumers())

    def consumer(self, name: str) -> Consumer:
        """Raises `NotFound`."""
        return self._run(self._client.consumer(name))

    def keep_consumer(
        self,
        name: str,
        cursor: str,
        *,
        ttl: str = TTL,
        stream: str | None = None,
        etag: str | None = None,
    ) -> Consumer:
        """`cursor` may be "now" or "start". With an `etag` raises `Conflict` where it is another
        one by now; "" stands for none at all."""
        return self._run(
            self._client.keep_consumer(name, cursor, ttl=ttl, stream=stream, etag=etag)
        )

    def forget_consumer(self, name: str) -> None:
        """Raises `NotFound`."""
        self._run(self._client.forget_consumer(name))

    # --- the ledger -------------------------------------------------------------------------------
    def streams(self) -> Any:
        return self._run(self._client.streams())

    def events(self, prefix: str) -> Any:
        """Those whose id begins with these 4 to 64 hex digits; at most 20."""
        return self._run(self._client.events(prefix))

    def event(self, event_id: str) -> Any:
        return self._run(self._client.event(event_id))

    def parents(self, event_id: str) -> Any:
        return self._run(self._client.parents(event_id))

    def children(self, event_id: str) -> Any:
        return self._run(self._client.children(event_id))

    def ancestors(self, event_id: str, *, depth: int = 1, limit: int = 100) -> Any:
        return self._run(self._client.ancestors(event_id, depth=depth, limit=limit))

    def explain(self, event_id: str) -> Any:
        """Why an event, or the event of an entry, is final or not."""
        return self._run(self._client.explain(event_id))

    def leaves(self) -> Any:
        return self._run(self._client.leaves())

    def window(self, center: str | None = None, **bounds: int) -> Any:
        return self._run(self._client.window(center, **bounds))

    def frontier(self) -> Any:
        return self._run(self._client.frontier())

    def diff(self, peer: str | int, *, timeout: float = QUERY_S) -> Any:
        """What the node that answers and another member (number, node id or name) hold
        differently."""
        return self._run(self._client.diff(peer, timeout=timeout))

    def node(self) -> Any:
        return self._run(self._client.node())

    def cluster(self) -> Any:
        return self._run(self._client.cluster())

    def members(self) -> Any:
        return self._run(self._client.members())

    def query(
        self,
        question: str,
        argument: str = "",
        *,
        timeout: float = QUERY_S,
        everybody: bool = False,
    ) -> Any:
        """Asks all members; with `everybody` it does not end with the verdict."""
        wanted = self._client.query(question, argument, timeout=timeout, everybody=everybody)
        return self._run(wanted)

    def receipts(self) -> Any:
        """Who has signed how far that it holds each cord, as the node that answers heard it."""
        return self._run(self._client.receipts())

    def figures(self) -> Any:
        """What the node that answers counts and measures."""
        return self._run(self._client.figures())

    def evidence(self) -> Any:
        return self._run(self._client.evidence())

    def openapi(self) -> Any:
        return self._run(self._client.openapi())

    def problem(self, code: str) -> Any:
        return self._run(self._client.problem(code))
