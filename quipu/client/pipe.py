"""The line to a node over which entries are streamed: frames out, answers in, and what becomes of
the entries that are on their way when a line breaks.

Nothing here knows whether the program that waits has an event loop: a future is a future.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import aiohttp
import msgspec

from quipu.client import frames
from quipu.client.errors import (
    UNDECIDED_CODES,
    Problem,
    QuipuError,
    Rejected,
    Unavailable,
    Undecided,
    Unreachable,
    error_of,
)
from quipu.client.streaming import SILENCE_S
from quipu.client.transport import BROKEN, SUBMIT_ATTEMPTS, Transport, pause

FRAME_ENTRIES = 512  # so that a node stores one frame while the next is on its way
CLOSE_S = 5.0
DRAINING_CODE = "draining"
UPGRADE_CODE, UPGRADE_REQUIRED = "upgrade-required", 426


MadeReceipt = Callable[[str, str, bool, str], Any]  # of id, state, duplicate, time


class Waiting:
    """One entry until it is settled."""

    __slots__ = ("future", "is_doubtful", "item", "key", "size", "stream")

    def __init__(self, item: frames.Item, key: str | None, stream: str, future: Any) -> None:
        self.item = item
        self.key = key
        self.stream = stream
        self.future = future  # of asyncio, or of concurrent.futures
        self.size = frames.ITEM_HEAD_BYTES + sum(
            len(part) for part in item if isinstance(part, str | bytes)
        )
        self.is_doubtful = False  # a line broke with it: it may be stored


class Terms(NamedTuple):
    """What a caller wants of all entries of a pipe."""

    wait: str = "stored"
    timeout: float = 30.0
    at_least_once: bool = False


@dataclass(slots=True)
class Counts:
    stored: int = 0
    duplicates: int = 0
    refused: int = 0
    undecided: int = 0


class _Ended(Exception):
    """The node said goodbye: what it has not answered it has not stored."""

    def __init__(self, error: QuipuError, is_retryable: bool) -> None:
        super().__init__(str(error))
        self.error = error
        self.is_retryable = is_retryable


@dataclass(slots=True)
class Pipe:
    """Invariant: an entry that was put in is in the queue, on its way, or settled."""

    transport: Transport
    terms: Terms
    receipt: MadeReceipt
    settled: Callable[[int, int], None]  # so many entries, so many bytes
    counts: Counts = field(default_factory=Counts)
    failure: QuipuError | None = None  # nothing is sent any more
    _queue: deque[Waiting] = field(default_factory=deque)
    _under_way: dict[int, Waiting] = field(default_factory=dict)
    _bytes_under_way: int = 0
    _number: int = 0
    _attempts: int = 0  # lines in a row over which nothing was settled
    _is_closing: bool = False
    _wake: asyncio.Event = field(default_factory=asyncio.Event)

    def put(self, waiting: Iterable[Waiting]) -> None:
        self._queue.extend(waiting)
        self._wake.set()
        if self.failure is not None:
            self._fail_all(self.failure)

    def close(self) -> None:
        """Ends when all that was put in is settled."""
        self._is_closing = True
        self._wake.set()

    @property
    def queued(self) -> int:
        return len(self._queue)

    def _is_idle(self) -> bool:
        return not self._queue and not self._under_way

    # --- lines ------------------------------------------------------------------------------------
    async def run(self) -> None:
        """Until it is closed; from one line to the next, and from one node to the next."""
        try:
            await self._run()
        except Exception as error:
            self._give_up(QuipuError(f"stream ingest failed: {type(error).__name__}: {error}"))
            raise

    async def abandon(self, running: "asyncio.Task[None]") -> None:
        """Nobody waits any more: what is not settled never is."""
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        for waiting in (*self._under_way.values(), *self._queue):
            waiting.future.cancel()

    async def _run(self) -> None:
        while True:
            await self._until_needed()
            if self._is_closing and self._is_idle():
                return
            before = self._settled_count()
            try:
                await self._over_one_line()
            except _Ended as ended:
                failure, is_final = ended.error, not ended.is_retryable
            except Unavailable as error:
                failure, is_final = error, False
            except QuipuError as error:
                failure, is_final = error, not isinstance(error, Unreachable)
            else:
                continue
            self._attempts = 0 if self._settled_count() > before else self._attempts + 1
            if is_final or not await self._goes_on(failure):
                self._give_up(failure)
                return

    async def _until_needed(self) -> None:
        while not self._queue and not self._is_closing:
            self._wake.clear()
            await self._wake.wait()

    def _settled_count(self) -> int:
        counts = self.counts
        return counts.stored + counts.duplicates + counts.refused

    async def _goes_on(self, failure: QuipuError) -> bool:
        """Whether another line is tried. What may be stored on a node is tried there alone, until
        it counts as undecided."""
        transport = self.transport
        doubtful = any(waiting.is_doubtful for waiting in self._queue)
        if doubtful and self._attempts >= SUBMIT_ATTEMPTS:
            self._settle_doubtful(failure)
            doubtful, self._attempts = False, 0
        if self._attempts >= SUBMIT_ATTEMPTS * len(transport.nodes):
            return False
        if not doubtful:
            transport.current = (transport.current + 1) % len(transport.nodes)
        least_s = failure.retry_after_s if isinstance(failure, Unavailable) else 0.0
        await pause(self._attempts, least_s)
        return True

    async def _over_one_line(self) -> None:
        """One connection from its upgrade to its end. Raises why it ended, if not by us."""
        node = self.transport.nodes[self.transport.current]
        line = await self._connected(node)
        self._number = 0
        sending: asyncio.Task[None] | None = None
        try:
            welcome = await self._answer(line, node)
            if not isinstance(welcome, frames.Welcome) or welcome.version != frames.VERSION:
                raise QuipuError(f"{node} speaks another version of stream ingest")
            sending = asyncio.create_task(self._send(line, welcome))
            while True:
                answer = await self._answer(line, node)
                if answer is None:
                    return
                self._hear(answer, node)
        except _Ended:
            self._requeue(list(self._under_way.values()))
            raise
        except Unreachable:
            self._doubt(node)
            raise
        finally:
            if sending is not None:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)
            await line.close()

    async def _connected(self, node: str) -> aiohttp.ClientWebSocketResponse:
        url = node.rstrip("/") + "/v1/ingest"
        timeout = aiohttp.ClientWSTimeout(ws_receive=SILENCE_S, ws_close=CLOSE_S)
        params = {
            "wait": self.terms.wait,
            "timeout": f"{int(self.terms.timeout * 1_000)}ms",
            "content_type": "application/json",
        }
        try:
            return await self.transport.session().ws_connect(url, params=params, timeout=timeout)
        except aiohttp.WSServerHandshakeError as error:
            await self._explain(node, params, error)
            raise Unavailable(f"{node}: {error}") from error
        except BROKEN as error:
            raise Unreachable(f"{node}: {str(error) or type(error).__name__}") from error

    async def _explain(
        self, node: str, params: Mapping[str, str], error: aiohttp.WSServerHandshakeError
    ) -> None:
        """The body of such an error is lost: the same question without the upgrade gives it."""
        try:
            await self.transport.read_from(node, "/v1/ingest", params)
        except Rejected as found:
            if error.status == UPGRADE_REQUIRED or found.code != UPGRADE_CODE:
                raise

    async def _answer(
        self, line: aiohttp.ClientWebSocketResponse, node: str
    ) -> frames.Answer | None:
        """None: it was closed by us, with everything settled."""
        try:
            message = await line.receive()
            if message.type is aiohttp.WSMsgType.BINARY:
                return frames.decode_answer(message.data)
        except (*BROKEN, msgspec.DecodeError) as error:
            raise Unreachable(f"{node}: {str(error) or type(error).__name__}") from error
        if self._is_closing and self._is_idle():
            return None
        raise Unreachable(f"{node}: the line broke")

    # --- sending ----------------------------------------------------------------------------------
    async def _send(self, line: aiohttp.ClientWebSocketResponse, welcome: frames.Welcome) -> None:
        try:
            while True:
                frame = self._next_frame(welcome)
                if frame is not None:
                    await line.send_bytes(frame)
                elif self._is_closing and self._is_idle():
                    return
                else:
                    self._wake.clear()
                    await self._wake.wait()
        finally:
            await line.close()  # which ends the hearing, too

    def _next_frame(self, welcome: frames.Welcome) -> bytes | None:
        """As much of the queue as a frame and the window hold."""
        most = min(
            FRAME_ENTRIES,
            welcome.frame_entries_max,
            welcome.window_entries - len(self._under_way),
        )
        room = min(welcome.frame_bytes_max, welcome.window_bytes - self._bytes_under_way)
        room -= frames.FRAME_HEAD_BYTES
        first, queue = self._number, self._queue
        items: list[frames.Item] = []
        while queue and len(items) < most:
            waiting = queue[0]
            if waiting.size > welcome.frame_bytes_max - frames.FRAME_HEAD_BYTES:
                self._settle(queue.popleft(), _too_large(waiting, welcome))
                continue
            if waiting.size > room:
                break
            room -= waiting.size
            items.append(waiting.item)
            self._under_way[self._number] = queue.popleft()
            self._bytes_under_way += waiting.size
            self._number += 1
        return frames.encode_frame(first, items) if items else None

    # --- hearing ----------------------------------------------------------------------------------
    def _hear(self, answer: frames.Answer, node: str) -> None:
        match answer:
            case frames.Stored(runs):
                for run in runs:
                    self._hear_stored(run)
            case frames.Refused(refusals):
                for refusal in refusals:
                    self._hear_refused(refusal, node)
            case frames.Goodbye(status, code, retryable, detail):
                problem = Problem(code, status, detail=detail, retryable=retryable)
                raise _Ended(error_of(problem, 0.0), retryable)
            case frames.Welcome():
                pass
        self._wake.set()

    def _hear_stored(self, run: frames.StoredRun) -> None:
        name, time = run.event.hex(), frames.time_text(run.hlc)
        count = size = 0
        for offset in range(run.count):
            waiting = self._under_way.pop(run.first + offset, None)
            if waiting is None:
                continue
            count += 1
            size += waiting.size
            if not waiting.future.done():
                identity = f"{name}:{run.index + offset}"
                receipt = self.receipt(identity, run.state, run.duplicate, time)
                waiting.future.set_result(receipt)
        if run.duplicate:
            self.counts.duplicates += count
        else:
            self.counts.stored += count
        self._bytes_under_way -= size
        self.settled(count, size)

    def _hear_refused(self, run: frames.RefusedRun, node: str) -> None:
        problem = Problem(
            run.code,
            run.status,
            detail=run.detail,
            retryable=run.retryable,
            entry_id=run.entry_id,
        )
        again: list[Waiting] = []
        for number in range(run.first, run.first + run.count):
            waiting = self._under_way.pop(number, None)
            if waiting is None:
                continue
            self._bytes_under_way -= waiting.size
            if run.code == DRAINING_CODE:  # the node says goodbye next
                again.append(waiting)
            elif run.code in UNDECIDED_CODES:
                self._settle(waiting, _undecided(waiting, str(problem), node))
            else:
                self._settle(waiting, error_of(problem, 0.0))
        self._queue.extendleft(reversed(again))

    # --- settling ---------------------------------------------------------------------------------
    def _settle(self, waiting: Waiting, error: QuipuError) -> None:
        if isinstance(error, Undecided):
            self.counts.undecided += 1
        else:
            self.counts.refused += 1
        if not waiting.future.done():
            waiting.future.set_exception(error)
        self.settled(1, waiting.size)

    def _requeue(self, entries: list[Waiting]) -> None:
        self._queue.extendleft(reversed(entries))
        self._under_way.clear()
        self._bytes_under_way = 0

    def _doubt(self, node: str) -> None:
        """A line broke: what was on its way may be stored."""
        again: list[Waiting] = []
        for waiting in self._under_way.values():
            if self.terms.at_least_once:
                again.append(waiting)
            elif waiting.key is not None:
                waiting.is_doubtful = True
                again.append(waiting)
            else:
                self._settle(waiting, _undecided(waiting, f"the line to {node} broke", node))
        self._requeue(again)

    def _settle_doubtful(self, failure: QuipuError) -> None:
        node = self.transport.nodes[self.transport.current]
        kept = deque[Waiting]()
        for waiting in self._queue:
            if waiting.is_doubtful:
                self._settle(waiting, _undecided(waiting, str(failure), node))
            else:
                kept.append(waiting)
        self._queue = kept

    def _give_up(self, failure: QuipuError) -> None:
        self.failure = failure
        self._settle_doubtful(failure)
        self._fail_all(failure)

    def _fail_all(self, failure: QuipuError) -> None:
        entries = [*self._under_way.values(), *self._queue]
        self._requeue([])
        self._queue.clear()
        for waiting in entries:
            self._settle(waiting, failure)
        self.settled(0, 0)


def _undecided(waiting: Waiting, why: str, node: str) -> Undecided:
    return Undecided(f"it may be stored or not: {why}", waiting.key or "", waiting.stream, node)


def _too_large(waiting: Waiting, welcome: frames.Welcome) -> QuipuError:
    detail = f"{waiting.size} bytes; an entry takes {welcome.entry_bytes_max}"
    return error_of(Problem("too-large", 413, detail=detail), 0.0)
