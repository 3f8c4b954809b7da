"""The one writer: commits a turn and says how it went, in a thread of its own or inline.

While the thread syncs, the loop collects what is the next turn. Measured on one disk with an
fdatasync of 4 ms: see docs/operations.md, "The writer".
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from threading import Thread
from typing import NamedTuple, Protocol

from quipu.storage.failpoints import passing, passing_kinds
from quipu.storage.store import Kept, Store, StoreError


class Outcome(NamedTuple):
    error: Exception | None
    seconds: float


Done = Callable[[Outcome], None]


class Writer(Protocol):
    def commit(self, store: Store, durable: Sequence[Kept], done: Done) -> None:
        """`done` is called on the loop, after this call has returned."""

    def is_alive(self) -> bool: ...

    def stop(self) -> None:
        """After the last commit has been answered."""


def write_turn(store: Store, durable: Sequence[Kept]) -> Outcome:
    begun = time.perf_counter()
    error: Exception | None = None
    try:
        passing("commit.begin")
        passing_kinds("store", durable)
        store.commit(durable)
        passing_kinds("stored", durable)
        passing("commit.durable")
    except StoreError as failed:
        error = failed
    except Exception as fault:  # noqa: BLE001 - whatever it was, the loop must hear of it
        error = fault
    return Outcome(error, time.perf_counter() - begun)


class InlineWriter:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def commit(self, store: Store, durable: Sequence[Kept], done: Done) -> None:
        self._loop.call_soon(done, write_turn(store, durable))

    def is_alive(self) -> bool:
        return True

    def stop(self) -> None:
        pass


class ThreadWriter:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._jobs: SimpleQueue[tuple[Store, Sequence[Kept], Done] | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name="quipu-writer", daemon=True)
        self._thread.start()

    def commit(self, store: Store, durable: Sequence[Kept], done: Done) -> None:
        self._jobs.put((store, durable, done))

    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> None:
        self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        while job := self._jobs.get():
            store, durable, done = job
            outcome = write_turn(store, durable)
            self._loop.call_soon_threadsafe(done, outcome)
