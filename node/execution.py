"""The executor of a node beside its loop: in turns, in a thread of its own, what is ordered.

It pulls from the log what the journal has applied, so that after a start it goes on behind its own
applied index; nothing else of it is remembered anywhere.
"""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from quipu.ledger.limits import CLIENT_AHEAD_MAX
from quipu.ledger.log.entry import LogEntry
from quipu.ledger.order.journal import CLIENTS_PART, decode_record
from quipu.ledger.order.marks import SnapshotWanted, read_mark
from quipu.ledger.words import NodeNo
from quipu.node import limits
from quipu.node.client_service import ClientRefused, Executed, ExecutorStatus, NoExecutor
from quipu.node.logs import Log
from quipu.node.machine import Machine
from quipu.node.ordered_commands import commands_of
from quipu.node.service import Overloaded
from quipu.storage.executors import keeping
from quipu.storage.executors.desk import content_digest
from quipu.storage.executors.executor import NO_DIGEST, Mark, Snapshot
from quipu.storage.executors.outcome import Answer, Code, Kept, Outcome
from quipu.storage.executors.request import (
    ClientId,
    Configured,
    LogIndex,
    MessageId,
    Signed,
)
from quipu.storage.executors.sqlite_executor import SqliteExecutor
from quipu.storage.store import (
    DiskFailed,
    OutcomeUnknown,
    Store,
    StoreClosed,
    StoreError,
    StoreFull,
)

T = TypeVar("T")
K = TypeVar("K")
SNAPSHOTS = "snapshots"  # folder beside the database
OpenExecutor = Callable[[], SqliteExecutor]


class Asked(NamedTuple):
    """What somebody here waits for: one client, one id, one content."""

    client: int
    message_id: int
    digest: bytes


class Turned(NamedTuple):
    """What a turn came to."""

    applied: Mark
    upto: int
    outcomes: dict[Asked, Outcome]
    refused: dict[Asked, Code]
    answers: dict[bytes, Outcome | Answer]  # of READ, by the bytes of the item
    watermarks: dict[int, int]  # of those that were executed; of all where `is_whole`
    is_whole: bool
    commands: int
    snapshot: Snapshot | None = None


class Job(NamedTuple):
    """Log entries above what is applied, and where their events are. `snapshot`: where one is to be
    made as of the last of them."""

    entries: list[LogEntry]
    upto: int
    store: Store
    snapshot: Path | None = None


class LogGone(StoreError):
    """Log entries that the executor lacks are not held any more."""


@dataclass(slots=True)
class Execution:
    """Invariant: the executor is touched by the one thread of `_pool` alone; `_seen` is never
    below what it has made durable."""

    machine: Machine
    open_executor: OpenExecutor | None  # None: this node runs none
    directory: Path
    log: Log
    catch_up: Callable[[], Awaitable[None]] | None = None  # puts a snapshot in its place
    made: Snapshot | None = None  # the newest snapshot that others may fetch
    state: str = "waiting"
    detail: str = "it is being opened"
    engine: str = ""
    applied: Mark = Mark(LogIndex(0), NO_DIGEST)
    commands: int = 0
    watermarks: dict[int, int] = field(default_factory=dict)
    terminated: frozenset[int] = frozenset()  # clients
    executor: SqliteExecutor | None = None
    _is_over: bool = False
    _opened: SqliteExecutor | None = None  # by the thread: nobody may have been told of it yet
    _seen: int = 0
    _pool: ThreadPoolExecutor = field(init=False)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _task: asyncio.Task[None] | None = None
    _waiting: dict[Asked, list[asyncio.Future[Executed]]] = field(default_factory=dict)
    _reads: dict[bytes, list[asyncio.Future[Answer]]] = field(default_factory=dict)
    _levels: list[tuple[int, asyncio.Future[None]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "quipu-executor")
        if self.open_executor is None:
            self.state, self.detail = "off", "executor.engine is off"

    # --- from start to stop ---------------------------------------------------------------------
    def start(self) -> None:
        if self.open_executor is not None:
            self._task = asyncio.get_running_loop().create_task(self._serve())

    def pump(self) -> None:
        """The journal has applied more."""
        self.machine.ordering.kept_to = self.kept_to  # it may be another by now
        self._wake.set()

    def kept_to(self) -> int | None:
        """The log is not dropped beyond this index: what the executor here has made durable, and a
        majority of those that speak. None: nobody needs it, or it has grown too long."""
        ordering = self.machine.ordering
        journal, base = ordering.journal, ordering.machine.state.log.base.index
        is_long = journal.applied - base > limits.LOG_HELD_ENTRIES_MAX
        if is_long or not journal.registry.lists:
            return None
        kept: list[int] = [self.applied.at] if self.state in {"running", "waiting"} else []
        told = journal.marks.reached(self.members)
        return min([*kept, *([] if told is None else [told])], default=None)

    async def stop(self) -> None:
        """Once or more than once."""
        self.end_waiting(NoExecutor("the node is stopping", may_come=True))
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        self.executor = None
        self.state, self.detail = "waiting", "the node is stopping"
        if not self._is_over:
            self._is_over = True
            await self._in_thread(self._close_in_thread)
            self._pool.shutdown()

    def end_waiting(self, error: Exception) -> None:
        waiting: list[asyncio.Future[Any]] = [one for _, one in self._levels]
        waiting += [one for some in self._waiting.values() for one in some]
        waiting += [one for some in self._reads.values() for one in some]
        self._waiting.clear()
        self._reads.clear()
        self._levels.clear()
        for one in waiting:
            if not one.done():
                one.set_exception(error)

    @property
    def members(self) -> tuple[NodeNo, ...]:
        """Those that may run an executor: the config stream takes the role and gives it."""
        config = self.machine.ordering.journal.config
        return tuple(n for n in sorted(self.machine.view.epoch.members) if config.executes(n))

    def _is_wanted(self) -> bool:
        """Who is no member follows no log, and is in no change."""
        ordering = self.machine.ordering
        return ordering.journal.config.executes(ordering.own_no)

    async def _retire(self) -> None:
        """The order has taken the role away. What was executed stays on the disk, and is not gone
        on with: the log does not wait for it any more."""
        if self.state == "off":
            return
        self.state, self.detail = "off", "the order says that this node is no executor"
        self.end_waiting(NoExecutor(self.detail, may_come=False))
        await self._close()
        self.made, self.applied = None, Mark(LogIndex(0), NO_DIGEST)
        self.watermarks, self.terminated = {}, frozenset()
        try:
            aside = await self._in_thread(keeping.set_aside, self.directory)
            self.detail += "" if aside is None else f"; its database lies in {aside}"
        except StoreError as error:  # it lies where it was, and the next start tries again
            self.detail += f"; its database could not be set aside: {error}"
        self.log.warning("the executor has stopped", reason=self.detail)

    async def _serve(self) -> None:
        while True:
            try:
                if not self._is_wanted():
                    await self._retire()
                if self.state == "failed" or not self._is_wanted():
                    await self._wake.wait()
                    self._wake.clear()
                    continue
                if self.executor is None:
                    await self._open()
                job = self._next_job()
                if job is None:
                    self._level()
                    await self._wake.wait()
                    self._wake.clear()
                    continue
                self._hear(await self._in_thread(self._turn, job))
            except LogGone as error:
                await self._begin_anew(str(error))
            except (StoreFull, DiskFailed) as error:
                self.log.warning("the executor waits for its disk", error=repr(error))
                await asyncio.sleep(limits.EXECUTOR_RETRY_S)
            except (StoreClosed, OutcomeUnknown) as error:  # of the ledger, or its own
                self.log.warning("the executor opens anew", error=repr(error))
                await self._close()
                await asyncio.sleep(limits.EXECUTOR_RETRY_S)
            except Exception as error:  # noqa: BLE001 - whatever it was, it serves no more
                self.fail(f"{type(error).__name__}: {error}")

    async def _open(self) -> None:
        self.state, self.detail = "waiting", "it is being opened"
        executor = await self._in_thread(self._open_in_thread)
        position = executor.position()
        self.executor, self.engine, self.applied = executor, position.engine, position.applied
        self._seen = max(self._seen, position.applied.at)
        self.watermarks = await self._in_thread(executor.watermarks)
        self.terminated = await self._in_thread(executor.terminated)
        self.state, self.detail = "running", ""
        self.pump()

    async def _close(self) -> None:
        self.executor, self._seen = None, 0
        await self._in_thread(self._close_in_thread)

    def _open_in_thread(self) -> SqliteExecutor:
        assert self.open_executor is not None
        self._opened = self.open_executor()
        return self._opened

    def _close_in_thread(self) -> None:
        """Also one that came to be open when the task that asked for it had been cancelled."""
        executor, self._opened = self._opened, None
        if executor is not None:
            executor.close()

    async def _begin_anew(self, why: str) -> None:
        """From a snapshot of another executor."""
        if self.catch_up is None or self.members == (self.machine.ordering.own_no,):
            self.fail(why)
            return
        self.log.info("the executor wants a snapshot", reason=why)
        self.state, self.detail = "waiting", f"{why}; a snapshot is asked for"
        await self._close()
        await self.catch_up()

    def fail(self, why: str) -> None:
        """It serves no more; the node goes on."""
        self.state, self.detail = "failed", why
        self.log.error("the executor has stopped", reason=why)
        self.end_waiting(NoExecutor(why, may_come=False))

    # --- turns ----------------------------------------------------------------------------------
    def _next_job(self) -> Job | None:
        ordering = self.machine.ordering
        log, journal = ordering.machine.state.log, ordering.journal
        base, last = log.base.index, journal.applied
        if not journal.registry.lists:  # nobody is a client: there is nothing to be executed
            self._seen = last
            return None
        if self._seen < base:
            if decode_record(ordering.machine.state.base_state).part(CLIENTS_PART):
                raise LogGone(f"log entries {self._seen + 1} to {base} are not held any more")
            self._seen = base  # nobody was a client up to there
        if self._seen >= last:
            return None
        upto = min(last, self._seen + limits.EXECUTED_PER_TURN_MAX)
        entries: list[LogEntry] = []
        for index in range(self._seen + 1, upto + 1):
            entries.append(log.at(index).entry)
            if wants_snapshot(entries[-1]):
                folder = self.directory / SNAPSHOTS
                return Job(entries, index, self.machine.store, folder / f"{index}.sqlite3")
        return Job(entries, upto, self.machine.store)

    def _turn(self, job: Job) -> Turned:
        """In the thread."""
        executor = self.executor
        assert executor is not None
        ordered = [one for entry in job.entries for one in commands_of(entry, job.store)]
        durable = executor.position().applied
        is_idle = not ordered and job.snapshot is None
        if is_idle and job.upto - durable.at < limits.EXECUTED_IDLE_MAX:
            return Turned(durable, job.upto, {}, {}, {}, {}, False, 0)
        outcomes = executor.apply(ordered, LogIndex(job.upto))
        refused: dict[Asked, Code] = {}
        done = {}
        answers: dict[bytes, Outcome | Answer] = {}
        for (_, command), outcome in zip(ordered, outcomes, strict=True):
            if isinstance(command, Configured):
                answers[command.item] = outcome
            elif isinstance(command, Signed):
                asked = Asked(command.client_id, command.message_id, content_digest(command.data))
                kept = _kept(executor, asked) if outcome.code is Code.REPEATED else None
                if kept is not None:
                    done[asked] = kept
                elif outcome.code in _REFUSED:
                    refused[asked] = outcome.code
        for client, message, executed in executor.executed:
            digest = executor.signed_digest(client, message)
            if digest is not None:
                done[Asked(client, message, digest)] = executed
        is_whole = bool(answers)  # an item of the order may have ended a client
        marks: dict[int, int] = {client: message for client, message, _ in executor.executed}
        marks = executor.watermarks() if is_whole else marks
        applied = executor.position().applied
        made = None if job.snapshot is None else self._snapshot(executor, job.snapshot)
        return Turned(
            applied, job.upto, done, refused, answers, marks, is_whole, len(ordered), made
        )

    def _snapshot(self, executor: SqliteExecutor, target: Path) -> Snapshot | None:
        """For others: that it cannot be made is no reason to stop."""
        try:
            return snapshot_alone(executor, target)
        except (StoreError, OSError) as error:
            self.log.warning("no snapshot could be made", error=repr(error))
            return None

    def _hear(self, turned: Turned) -> None:
        """On the loop: whoever waits for it is told."""
        self.applied, self._seen = turned.applied, turned.upto
        self.commands += turned.commands
        self.made = turned.snapshot or self.made
        if turned.is_whole:
            self.watermarks = turned.watermarks
        else:
            self.watermarks.update(turned.watermarks)
        ended = [one.client for one, code in turned.refused.items() if code is Code.TERMINATED]
        self.terminated |= frozenset(ended)
        for asked, outcome in turned.outcomes.items():
            for one in self._waiting.pop(asked, ()):
                if not one.done():
                    one.set_result(Executed(outcome))
        for asked, code in turned.refused.items():
            for one in self._waiting.pop(asked, ()):
                if not one.done():
                    one.set_exception(ClientRefused(str(code)))
        for item, answer in turned.answers.items():
            for reader in self._reads.pop(item, ()):
                if reader.done():
                    continue
                if isinstance(answer, Answer):
                    reader.set_result(answer)
                else:
                    reader.set_exception(ClientRefused(str(answer.code)))
        self._level()

    def _level(self) -> None:
        for index, one in self._levels:
            if index <= self._seen and not one.done():
                one.set_result(None)
        self._levels = [(index, one) for index, one in self._levels if not one.done()]

    # --- what is asked --------------------------------------------------------------------------
    def status(self) -> ExecutorStatus:
        behind = max(0, self.machine.ordering.journal.applied - self._seen)
        seen = max(self._seen, self.applied.at)
        return ExecutorStatus(
            self.state, self.detail, self.engine, seen, self.applied.digest, behind
        )

    def gauges(self) -> dict[str, float]:
        status = self.status()
        return {
            "executor_applied": status.applied,
            "executor_behind": status.behind,
            "executor_running": int(status.state == "running"),
            "executor_failed": int(status.state == "failed"),
        }

    def check(self) -> SqliteExecutor:
        """Raises `NoExecutor`."""
        if self.executor is None or self.state != "running":
            raise NoExecutor(self.detail or self.state, may_come=self.state == "waiting")
        return self.executor

    async def ask(self, question: Callable[[SqliteExecutor], T]) -> T:
        """In the thread, between two turns. Raises `NoExecutor`."""
        return await self._in_thread(partial(question, self.check()))

    def is_next(self, client: int, message_id: int) -> bool:
        """Known on the loop: nothing is executed or refused under that id. Raises `NoExecutor`."""
        self.check()
        done = self.watermarks.get(client, 0)
        return client not in self.terminated and done < message_id <= done + CLIENT_AHEAD_MAX

    def when_executed(self, asked: Asked) -> asyncio.Future[Executed]:
        self.check()
        return _waits(self._waiting, asked)

    def when_read(self, item: bytes) -> asyncio.Future[Answer]:
        self.check()
        return _waits(self._reads, item)

    async def reach(self, index: int) -> None:
        """Until all up to this index of the log is executed here. Raises `NoExecutor`."""
        if self.state != "waiting":
            self.check()
            if index <= self._seen:
                return
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._levels.append((index, answer))
        self._wake.set()
        await answer

    async def _in_thread(self, done: Callable[..., T], *given: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, done, *given)


_REFUSED = frozenset(
    {
        Code.BAD_SIGNATURE,
        Code.BAD_ID,
        Code.TOO_FAR_AHEAD,
        Code.TERMINATED,
        Code.RELEASED,
        Code.RESULTS_UNREAD,
        Code.UNKNOWN_CLIENT,
    }
)


def _kept(executor: SqliteExecutor, asked: Asked) -> Outcome | None:
    found = executor.result(ClientId(asked.client), MessageId(asked.message_id))
    return found.outcome if isinstance(found, Kept) else None


def _waits(waiting: "dict[K, list[asyncio.Future[T]]]", key: "K") -> "asyncio.Future[T]":
    """Whoever waits no longer ends it. Raises `Overloaded`."""
    if len(waiting) >= limits.WAITERS_MAX:
        raise Overloaded(limits.RETRY_AFTER_S, "too many wait for the executor")
    answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    waiting.setdefault(key, []).append(answer)

    def ended(done: "asyncio.Future[T]") -> None:
        others = waiting.get(key)
        if others is not None and done in others:
            others.remove(done)
            if not others:
                del waiting[key]

    answer.add_done_callback(ended)
    return answer


def wants_snapshot(entry: LogEntry) -> bool:
    return any(isinstance(read_mark(data), SnapshotWanted) for data in entry.items)


def snapshot_alone(executor: SqliteExecutor, target: Path) -> Snapshot:
    """As of its last turn; older ones go."""
    target.parent.mkdir(mode=0o700, exist_ok=True)
    for older in target.parent.iterdir():
        older.unlink()
    return executor.snapshot(target)
