"""Long work that somebody asked for: one at a time of a kind, with progress, cancel and result.

They are kept in memory: a restart ends those that run and forgets the others.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from quipu.node import limits
from quipu.node.logs import Log
from quipu.node.service import Draining
from quipu.storage.store import StoreError


class OperationKind(StrEnum):
    """What there is to be asked for."""

    BACKUP = "backup"
    EXPORT = "export"
    PRUNE = "prune"
    SCRUB = "scrub"


class OperationState(StrEnum):
    """How far an operation is."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class OperationRuns(Exception):
    """One of that kind is under way."""

    def __init__(self, operation: "Operation") -> None:
        super().__init__(f"{operation.kind} {operation.id} is under way")
        self.operation = operation


@dataclass(slots=True)
class Operation:
    """Invariant: `ended_ms` is set exactly when it is not running."""

    id: str
    kind: OperationKind
    started_ms: int
    state: OperationState = OperationState.RUNNING
    phase: str = ""
    done: int = 0
    total: int = 0
    ended_ms: int | None = None
    result: dict[str, Any] | None = None
    error: str = ""

    @property
    def is_running(self) -> bool:
        return self.state is OperationState.RUNNING

    def heard(self, line: dict[str, Any]) -> None:
        """Of the process that does the work."""
        if "phase" in line:
            self.phase, self.done, self.total = line["phase"], line["done"], line["total"]


Work = Callable[[Operation], Awaitable[dict[str, Any]]]


@dataclass(slots=True)
class Operations:
    wall_ms: Callable[[], int]
    log: Log
    _held: dict[str, Operation] = field(default_factory=dict)  # oldest first
    _tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)  # of those that run
    _closed: bool = False

    def start(self, kind: OperationKind, work: Work) -> Operation:
        """Raises `OperationRuns`, or `Draining`."""
        if self._closed:
            raise Draining("the node is stopping")
        for other in self._held.values():
            if other.kind == kind and other.is_running:
                raise OperationRuns(other)
        operation = Operation(secrets.token_hex(8), kind, self.wall_ms())
        self._held[operation.id] = operation
        self._forget()
        self._tasks[operation.id] = asyncio.create_task(self._run(operation, work))
        return operation

    def list(self) -> list[Operation]:
        """The newest first."""
        return list(reversed(self._held.values()))

    def get(self, identity: str) -> Operation | None:
        return self._held.get(identity)

    async def cancel(self, operation: Operation) -> None:
        """Returns when it has ended; one that has ended stays as it is."""
        task = self._tasks.get(operation.id)
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
            if operation.is_running:  # it was ended before it had begun
                self._end(operation, OperationState.CANCELLED)

    async def ended(self, operation: Operation) -> None:
        task = self._tasks.get(operation.id)
        if task is not None:
            await asyncio.wait([task])

    async def close(self) -> None:
        """Takes nothing more and ends what runs."""
        self._closed = True
        for operation in self.list():
            await self.cancel(operation)

    async def _run(self, operation: Operation, work: Work) -> None:
        self.log.info("operation begins", kind=operation.kind, id=operation.id)
        try:
            operation.result = await work(operation)
            self._end(operation, OperationState.DONE)
        except asyncio.CancelledError:
            self._end(operation, OperationState.CANCELLED)
        except (StoreError, OSError) as error:
            operation.error = str(error)
            self._end(operation, OperationState.FAILED)
        except Exception as fault:
            self.log.exception("an operation failed")
            operation.error = f"{type(fault).__name__}: {fault}"
            self._end(operation, OperationState.FAILED)

    def _end(self, operation: Operation, state: OperationState) -> None:
        operation.state, operation.ended_ms = state, self.wall_ms()
        self._tasks.pop(operation.id, None)
        self.log.info(
            "operation ended",
            kind=operation.kind,
            id=operation.id,
            state=str(state),
            error=operation.error,
        )

    def _forget(self) -> None:
        ended = [one.id for one in self._held.values() if not one.is_running]
        for identity in ended[: max(0, len(self._held) - limits.OPERATIONS_KEPT_MAX)]:
            del self._held[identity]
