"""What an operator may ask a running node to do, beside what apps may."""

import asyncio
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from quipu.dumps.manifest import finish
from quipu.node import limits
from quipu.node.beside import WorkFailed, work_beside
from quipu.node.data_directory import STORE_FOLDER
from quipu.node.eraser import Asked
from quipu.node.founding import GENESIS_FILE
from quipu.node.key_list import KeyRow
from quipu.node.logs import Log, Threshold
from quipu.node.operations import Operation, OperationKind, OperationRuns, Operations
from quipu.node.pruning import Retention, note_archived
from quipu.node.report import is_report_kept, read_report, write_report
from quipu.node.service import EntryId
from quipu.node.soundness import Soundness
from quipu.node.whole_file import disk_errors
from quipu.storage.backup import partial_of, refuse_taken

BACKUP_FOLDER = "backups"
DUMP_FOLDER = "dumps"
HOUR_S = 3_600


class Pruning(Protocol):
    @property
    def retention(self) -> Retention:
        """As the settings say."""

    def prune(self, retention: Retention, dry_run: bool = False) -> Operation:
        """Raises `OperationRuns`."""

    def start(self) -> None:
        """By itself, from now on."""

    async def stop(self) -> None: ...


class Erasing(Protocol):
    async def erase(self, target: EntryId, timeout_s: float) -> Asked:
        """Of an entry that may be erased: what it waits for when the time is over."""

    def start(self) -> None:
        """What anybody asks for is carried out, from now on."""

    async def stop(self) -> None: ...


@dataclass(slots=True)
class Administration:
    """Invariant: all that takes long runs in processes of its own, which `close` ends."""

    folder: Path  # the data directory
    key_rows: Callable[[], Sequence[KeyRow]]
    sign: Callable[[bytes], bytes]  # with the node key
    drain: Callable[[], None]  # as SIGTERM does
    forget_dead_readers: Callable[[], None]
    operations: Operations
    soundness: Soundness
    log: Log
    threshold: Threshold = field(default_factory=Threshold)
    reload: Callable[[], list[str]] = list  # as SIGHUP does; says what could not be read
    pruner: "Pruning | None" = None
    executor_dir: Path | None = None
    eraser: "Erasing | None" = None
    _daily: "asyncio.Task[None] | None" = None

    # --- operations -----------------------------------------------------------------------------
    def scrub(self, signatures: bool = False) -> Operation:
        """Raises `OperationRuns`."""
        options = ["--signatures"] if signatures else []

        async def work(operation: Operation) -> dict[str, Any]:
            try:
                result = await self._beside(operation, "scrub", str(self._store), *options)
            except WorkFailed as error:
                self.soundness.not_done(str(error))
                raise
            self.soundness.noted(result)
            for finding in result["findings"]:
                self.log.error("the store is damaged", **finding)
            return result

        return self.operations.start(OperationKind.SCRUB, work)

    def backup(self, target: Path) -> Operation:
        """Raises `OperationRuns`, or `BackupFailed` where the target is there already."""
        refuse_taken(target)
        also = ["--also", str(self.folder / GENESIS_FILE)]
        if self.executor_dir is not None:
            also += ["--executor", str(self.executor_dir)]

        async def work(operation: Operation) -> dict[str, Any]:
            try:
                return await self._beside(operation, "backup", str(self._store), str(target), *also)
            finally:  # of a process that was killed
                await asyncio.to_thread(shutil.rmtree, partial_of(target), ignore_errors=True)

        return self.operations.start(OperationKind.BACKUP, work)

    def export(self, target: Path, entries: str) -> Operation:
        """A dump, or what is new behind the one that is there. Raises `OperationRuns`. The process
        that reads the store has no key: what it has written is signed here."""
        with_genesis = ["--genesis", str(self.folder / GENESIS_FILE), "--entries", entries]
        if self.executor_dir is not None:
            with_genesis += ["--executor", str(self.executor_dir)]

        async def work(operation: Operation) -> dict[str, Any]:
            arguments = ["export", str(self._store), str(target), *with_genesis]
            done = await self._beside(operation, *arguments)
            with disk_errors():
                await asyncio.to_thread(finish, target, self.sign)
                await asyncio.to_thread(note_archived, self.folder, done["feed_upto"], target)
            return done

        return self.operations.start(OperationKind.EXPORT, work)

    def place(self, folder: str, name: str) -> Path:
        """In the data directory, where a copy or a dump of that name goes."""
        with disk_errors():
            (self.folder / folder).mkdir(mode=0o700, exist_ok=True)
        return self.folder / folder / name

    async def _beside(self, operation: Operation, *arguments: str) -> dict[str, Any]:
        try:
            return await work_beside(list(arguments), operation.heard)
        except BaseException:
            self.forget_dead_readers()
            raise

    @property
    def _store(self) -> Path:
        return self.folder / STORE_FOLDER

    # --- the report -----------------------------------------------------------------------------
    async def keep_report(self, content: bytes) -> None:
        """Raises `StoreIsFull` or `DiskFailed`: then the one before is kept."""
        with disk_errors():
            await asyncio.to_thread(write_report, self.folder, content)

    def has_report(self) -> bool:
        return is_report_kept(self.folder)

    def report(self) -> bytes | None:
        return read_report(self.folder)

    # --- by itself ------------------------------------------------------------------------------
    def scrub_every(self, interval_s: float) -> None:
        """From now on; nothing for 0."""
        if interval_s > 0:
            self._daily = asyncio.create_task(self._scrub_on(interval_s))

    def prune_on(self) -> None:
        """From now on, where the settings bound what is kept; and what is erased goes."""
        if self.pruner is not None:
            self.pruner.start()
        if self.eraser is not None:
            self.eraser.start()

    async def _scrub_on(self, interval_s: float) -> None:
        pause_s = 0.0
        while True:
            await asyncio.sleep(max(pause_s, self.soundness.due_in_s(interval_s)))
            failures = self.soundness.failures
            try:
                await self.operations.ended(self.scrub())
            except OperationRuns as other:
                await self.operations.ended(other.operation)
            pause_s = limits.SCRUB_RETRY_S if self.soundness.failures > failures else 0.0

    async def close(self) -> None:
        if self._daily is not None:
            self._daily.cancel()
        if self.pruner is not None:
            await self.pruner.stop()
        if self.eraser is not None:
            await self.eraser.stop()
        await self.operations.close()
