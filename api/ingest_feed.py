"""Stream ingest over WebSocket: one connection of a producer of many entries.

Frames of entries come in, each entry is answered once, in any order. Nothing is read beyond the
window, so a node that has no room slows its producers and refuses nothing. However the connection
ends by the node's will, what was taken is answered first, and then a goodbye says that the rest was
not stored.
"""

import asyncio
import logging
import struct
from collections import deque
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from aiohttp import WebSocketError, WSCloseCode, WSMsgType, web

from quipu.api import limits
from quipu.api.calls import Call
from quipu.api.codes import Code
from quipu.api.idempotency import Outcome
from quipu.api.ingest_entries import Entries, Plan
from quipu.api.ingest_frames import (
    FRAMES_VERSION,
    Answer,
    Goodbye,
    Refused,
    RefusedRun,
    Stored,
    StoredRun,
    Welcome,
    encode_answer,
    read_frame,
    refused_runs,
    stored_runs,
)
from quipu.api.models import State
from quipu.api.problems import Problem, problem
from quipu.api.refusals import FAULTS, as_problem
from quipu.api.streams import bound_what_is_unsent
from quipu.api.writing import reached_state, state_now
from quipu.ledger import limits as ledger_limits
from quipu.ledger.words import EventId
from quipu.node.service import Backlogged, EntryId, OutcomeUnknown, Overloaded

log = logging.getLogger("quipu.api")
_REASON_BYTES_MAX = 123  # of a close frame (RFC 6455)
_CLOSE_CODES = {
    Code.TOO_LARGE: WSCloseCode.MESSAGE_TOO_BIG,
    Code.MALFORMED_BODY: WSCloseCode.INVALID_TEXT,
    Code.INVALID_FIELD: WSCloseCode.INVALID_TEXT,
    Code.BAD_REQUEST: WSCloseCode.PROTOCOL_ERROR,
    Code.UNSUPPORTED_MEDIA_TYPE: WSCloseCode.UNSUPPORTED_DATA,
    Code.DRAINING: WSCloseCode.GOING_AWAY,
    Code.INTERNAL: WSCloseCode.INTERNAL_ERROR,
}  # any other: 1008, policy violation


class Terms(NamedTuple):
    wanted: State
    timeout_ms: int
    entries: Entries


class Line(web.WebSocketResponse):
    """aiohttp closes at once where it reads a close frame or something that is none of its frames;
    here what was taken is answered before."""

    is_last_word = False

    async def close(
        self, *, code: int = WSCloseCode.OK, message: bytes = b"", drain: bool = True
    ) -> bool:
        if not self.is_last_word:
            return False
        return await super().close(code=code, message=message, drain=drain)


class _Taken(NamedTuple):
    """A frame between its reading and its answer: what it holds of the window and of the node."""

    first: int
    entries: int
    frame_bytes: int
    room: AbstractContextManager[None]


class _Answered(NamedTuple):
    taken: _Taken
    stored: Sequence[StoredRun]
    refused: Sequence[RefusedRun]


@dataclass(slots=True)
class Feed:
    """Invariant: what is held is the sum of the frames that were taken and whose answer is not
    written yet: at most the window and one frame."""

    call: Call
    terms: Terms
    line: Line
    frames_held: int = 0
    entries_held: int = 0
    bytes_held: int = 0
    ended_by: Problem | None = None  # None: by the producer
    _is_over: bool = False  # nothing more is taken
    _is_unreadable: bool = False  # what comes on the line is not WebSocket any more
    _listens: bool = False
    _heard_s: float = 0.0  # when something came, or listening began
    _pong: bytes | None = None
    _answers: deque[_Answered] = field(default_factory=deque)
    _said: asyncio.Event = field(default_factory=asyncio.Event)  # something is to be written
    _written: asyncio.Event = field(default_factory=asyncio.Event)
    _storing: set["asyncio.Task[None]"] = field(default_factory=set)

    async def run(self) -> None:
        bound_what_is_unsent(self.call)
        reading = asyncio.create_task(self._read())
        speaking = asyncio.create_task(self._speak())
        closing = asyncio.create_task(self.call.face.closing.wait())
        tasks = (reading, speaking, closing)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if closing.done() and not reading.done():
                self.ended_by = Problem(Code.DRAINING, "the node is stopping")
            reading.cancel()
            await asyncio.wait((reading,))
            self._is_over = True
            self._said.set()
            with suppress(ConnectionError, TimeoutError):
                await speaking
                await self._part()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if self._storing:  # the line is gone; what was taken is stored all the same
                await asyncio.wait(self._storing)

    # --- hearing ----------------------------------------------------------------------------------
    async def _read(self) -> None:
        try:
            while True:
                while not self._has_room():
                    self._written.clear()
                    await self._written.wait()
                data = await self._next()
                if data is None:
                    return
                await self._take(data)
        except Problem as found:
            self.ended_by = found
        except Exception:
            log.exception("ingest %s failed", self.call.request_id)
            self.ended_by = Problem(Code.INTERNAL)

    def _has_room(self) -> bool:
        return (
            self.frames_held < limits.INGEST_WINDOW_FRAMES
            and self.entries_held < limits.INGEST_WINDOW_ENTRIES
            and self.bytes_held < limits.INGEST_WINDOW_BYTES
        )

    async def _next(self) -> bytes | None:
        """The next frame; None: the producer has ended, or is gone."""
        loop = asyncio.get_running_loop()
        while True:
            self._heard_s, self._listens = loop.time(), True
            message = await self.line.receive()
            self._listens = False
            match message.type:
                case WSMsgType.BINARY:
                    data: bytes = message.data
                    return data
                case WSMsgType.PING:
                    self._pong = message.data
                    self._said.set()
                case WSMsgType.PONG:
                    pass
                case WSMsgType.TEXT:
                    problem(Code.UNSUPPORTED_MEDIA_TYPE, "frames are binary, and hold msgpack")
                case WSMsgType.ERROR if isinstance(message.data, WebSocketError):
                    self._is_unreadable = True
                    is_large = message.data.code == WSCloseCode.MESSAGE_TOO_BIG
                    problem(Code.TOO_LARGE if is_large else Code.BAD_REQUEST, str(message.data))
                case _:
                    return None

    async def _take(self, data: bytes) -> None:
        frame = read_frame(data)
        call = self.call
        principal = call.face.identify(call.request, call.endpoint)
        plan = self.terms.entries.plan(frame, principal, call.ledger.epoch.streams_erasable)
        count = len(frame.entries)
        room: AbstractContextManager[None] = nullcontext()
        if plan.plain or plan.shaped:
            try:
                room = await self._room(len(data))
            except FAULTS as error:
                found = _translated(error)
                if found.code is Code.DRAINING:
                    raise found from error
                plan = Plan(dict.fromkeys(range(count), found), [], [])
        taken = _Taken(frame.first, count, len(data), room)
        self.frames_held += 1
        self.entries_held += count
        self.bytes_held += len(data)
        task = asyncio.create_task(self._store(taken, plan))
        self._storing.add(task)
        task.add_done_callback(self._storing.discard)

    async def _room(self, size: int) -> AbstractContextManager[None]:
        """Room in the node. Where it is full nothing more is read: the producer waits."""
        is_again = False
        while True:
            try:
                room = self.call.ledger.admit(size, is_again)
                room.__enter__()
                return room
            except Backlogged:
                raise
            except Overloaded:
                is_again = True
                await asyncio.sleep(limits.INGEST_ROOM_S)

    # --- storing ----------------------------------------------------------------------------------
    async def _store(self, taken: _Taken, plan: Plan) -> None:
        try:
            stored, refused = await self._runs(taken, plan)
        except Exception:
            log.exception("ingest %s failed", self.call.request_id)
            outcomes = [Problem(Code.INTERNAL)] * taken.entries
            stored, refused = [], refused_runs(taken.first, outcomes)
        finally:
            taken.room.__exit__(None, None, None)
        counters = self.call.face.counters
        counters.ingest_acknowledged += sum(run.count for run in stored)
        counters.ingest_refused += sum(run.count for run in refused)
        self._answers.append(_Answered(taken, stored, refused))
        self._said.set()

    async def _runs(self, taken: _Taken, plan: Plan) -> tuple[list[StoredRun], list[RefusedRun]]:
        first, fresh = taken.first, list[Outcome | Problem]()
        try:
            if plan.plain:
                placed = await self.call.ledger.submit(plan.plain)
                event, index, hlc = placed.event_id, placed.index, placed.hlc
                if not plan.refused:  # flat: most frames are one run
                    reached = (await self._states({event: False}))[event]
                    return [StoredRun(first, taken.entries, event, index, hlc, reached, False)], []
                places = range(index, index + len(plan.plain))
                fresh += [Outcome(EntryId(event, place), hlc, False) for place in places]
            elif plan.shaped:
                fresh += await self.call.face.keys.submit(plan.shaped)
        except FAULTS as error:
            fresh += _refusals(error, plan)
        left = iter(fresh)
        outcomes = [plan.refused.get(place) or next(left) for place in range(taken.entries)]
        events = {o.id.event: o.duplicate for o in outcomes if isinstance(o, Outcome)}
        states = await self._states(events)
        return stored_runs(first, outcomes, states), refused_runs(first, outcomes)

    async def _states(self, events: Mapping[EventId, bool]) -> dict[EventId, State]:
        """Of each event; those that were there before are further than stored, perhaps."""
        wanted = self.terms.wanted
        if wanted != "stored":
            timeout_ms = self.terms.timeout_ms
            waits = (reached_state(self.call, event, timeout_ms, wanted) for event in events)
            reached = await asyncio.gather(*waits)
            return dict(zip(events, reached, strict=True))
        call = self.call
        return {event: state_now(call, event) if old else "stored" for event, old in events.items()}

    # --- speaking ---------------------------------------------------------------------------------
    async def _speak(self) -> None:
        """Until all that was taken is answered and nothing more is taken."""
        await self._send(_welcome(self.call))
        while self.frames_held or not self._is_over:
            if not (self._answers or self._pong is not None) and not await self._woken():
                if self._is_silent():
                    return
                await self._within_time(self.line.ping())
            if self._pong is not None:
                pong, self._pong = self._pong, None
                await self._within_time(self.line.pong(pong))
            if self._answers:
                await self._write_answers()

    async def _woken(self) -> bool:
        """False: nothing was to be said for so long that a sign of life is due."""
        self._said.clear()
        try:
            async with asyncio.timeout(self.call.face.settings.heartbeat_s):
                return await self._said.wait()
        except TimeoutError:
            return False

    def _is_silent(self) -> bool:
        """Whether the producer, who is listened to, has not even answered a ping."""
        settings, now_s = self.call.face.settings, asyncio.get_running_loop().time()
        most_s = settings.heartbeat_s + settings.body_s
        if not self._listens or self.frames_held or now_s - self._heard_s < most_s:
            return False
        self.ended_by = Problem(Code.BODY_TIMEOUT, f"nothing came for {most_s:g} s")
        return True

    async def _write_answers(self) -> None:
        answered = list(self._answers)
        self._answers.clear()
        stored = [run for one in answered for run in one.stored]
        refused = [run for one in answered for run in one.refused]
        for start in range(0, len(stored), limits.INGEST_ROWS_MAX):
            await self._send(Stored(stored[start : start + limits.INGEST_ROWS_MAX]))
        for start in range(0, len(refused), limits.INGEST_ROWS_MAX):
            await self._send(Refused(refused[start : start + limits.INGEST_ROWS_MAX]))
        for one in answered:
            self.frames_held -= 1
            self.entries_held -= one.taken.entries
            self.bytes_held -= one.taken.frame_bytes
        self._written.set()

    async def _send(self, answer: Answer) -> None:
        await self._within_time(self.line.send_bytes(encode_answer(answer)))

    async def _within_time(self, writing: Coroutine[None, None, None]) -> None:
        """One who does not read what is answered is cut off, for nothing can be told to it."""
        try:
            async with asyncio.timeout(self.call.face.settings.body_s):
                await writing
        except TimeoutError:
            if self.call.request.transport is not None:
                self.call.request.transport.abort()
            raise

    async def _part(self) -> None:
        """The goodbye, and the close frame that repeats it in short."""
        self.line.is_last_word = True
        found = self.ended_by
        if found is None:
            await self.line.close()
            return
        kind, detail = found.kind, found.detail or found.kind.meaning
        goodbye = Goodbye(kind.status, str(found.code), kind.retryable, detail)
        await self._send(goodbye)
        code = _CLOSE_CODES.get(found.code, WSCloseCode.POLICY_VIOLATION)
        reason = f"{found.code}: {detail}".encode()[:_REASON_BYTES_MAX]
        reason = reason.decode(errors="ignore").encode()
        if not self._is_unreadable:
            await self.line.close(code=code, message=reason)
            return
        await self.line.send_frame(struct.pack("!H", code) + reason, WSMsgType.CLOSE)
        await self._linger()

    async def _linger(self) -> None:
        """A socket that is closed with something unread in it takes back what was just written, so
        the other end goes first, for as long as it gets."""
        loop, request = asyncio.get_running_loop(), self.call.request
        ends_s = loop.time() + limits.INGEST_CLOSE_S
        while request.transport is not None and loop.time() < ends_s:  # noqa: ASYNC110
            await asyncio.sleep(limits.INGEST_ROOM_S)  # aiohttp tells nobody


def _welcome(call: Call) -> Welcome:
    return Welcome(
        FRAMES_VERSION,
        limits.INGEST_WINDOW_ENTRIES,
        limits.INGEST_WINDOW_BYTES,
        limits.INGEST_WINDOW_FRAMES,
        limits.INGEST_FRAME_ENTRIES_MAX,
        limits.INGEST_FRAME_BYTES_MAX,
        ledger_limits.ENTRY_BYTES_MAX,
        int(call.face.settings.heartbeat_s * 1_000),
    )


def _translated(error: Exception) -> Problem:
    found = as_problem(error)
    if found is None or found.code in {Code.STORAGE_FAILED, Code.OUTCOME_UNKNOWN}:
        log.error("ingest: %s: %s", type(error).__name__, error)
    return found or Problem(Code.INTERNAL)


def _refusals(error: Exception, plan: Plan) -> list[Problem]:
    """The same for each entry, and its id where it may turn up."""
    found = _translated(error)
    if isinstance(error, OutcomeUnknown) and plan.plain:
        return [Problem(found.code, found.detail, entry_id=str(i)) for i in error.ids]
    return [Problem(found.code, found.detail)] * (len(plan.plain) or len(plan.shaped))
