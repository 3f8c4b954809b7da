"""Copies of a store that is being written, and what to do with one whose structure is broken.

LMDB opens a file once a process and moves its map when it grows: a copy is made by a process that
does not have the store open.
"""

import fcntl
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from struct import Struct
from threading import Event, Thread
from typing import Any

import lmdb

from quipu.ledger.log.state import SavedLog
from quipu.ledger.order.journal import CLIENTS_PART, decode_record
from quipu.storage import environment, limits, ownership, records
from quipu.storage.environment import DATA_FILE, DATA_MODE, OWNER_FILE, StoreLocked, StoreMissing
from quipu.storage.executors import keeping
from quipu.storage.failpoints import passing
from quipu.storage.log_tables import LogWriter, first_index, read_log
from quipu.storage.scrub import ScrubProgress
from quipu.storage.store import StoreError
from quipu.storage.verification import Report

COPIED = b"copied"
_MILLISECONDS = Struct(">Q")


class BackupFailed(StoreError):
    """There is no copy: the target is not empty, or copying ended with an error."""


def copy_store(
    source: Path,
    target: Path,
    report: Report = lambda progress: None,
    also: Sequence[Path] = (),
    executor: Path | None = None,
) -> dict[str, Any]:
    """A copy of the last commit, there whole or not at all, with the files `also` beside it, and
    the database of the executor in that directory as of a moment before.
    Whoever starts from it is recovering: what its key signed after the copy was taken is not in
    it."""
    refuse_taken(target)
    partial = partial_of(target)
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir(mode=0o700, parents=True)
        executed = None if executor is None else keeping.back_up(executor, partial)
        _copy_pages(source, partial, report)
        passing("backup.copied")
        needed = _mark(partial)
        passing("backup.marked")
        left_out = executed is not None and executed < needed
        if left_out:
            keeping.leave_out(partial)
        for file in also:
            _copy_file(file, partial / file.name)
        size = sum(item.stat().st_size for item in partial.iterdir())
        environment.sync_directory(partial)
        partial.rename(target)
        passing("backup.named")
        environment.sync_directory(target.parent)
    except OSError as error:
        raise BackupFailed(f"{target}: {error}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    done = {"target": str(target), "bytes": size, "executed": None if left_out else executed}
    if left_out:
        done["executor_left_out"] = f"it is at {executed}, the log goes back to {needed}"
    return done


def refuse_taken(target: Path) -> None:
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise BackupFailed(f"{target} is there already")


def partial_of(target: Path) -> Path:
    """Where a copy grows; whoever kills one clears it away."""
    return target.with_name(target.name + ".partial")


def _copy_file(file: Path, target: Path) -> None:
    shutil.copy(file, target)
    fd = os.open(target, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _copy_pages(source: Path, partial: Path, report: Report) -> None:
    env = environment.open_readonly(source)
    try:
        total = (source / DATA_FILE).stat().st_size
        with growing(partial / DATA_FILE, total, report):
            try:
                env.copy(str(partial), compact=True)
            except lmdb.IncompatibleError:  # a page has leaked; only the plain copy takes it along
                (partial / DATA_FILE).unlink(missing_ok=True)
                env.copy(str(partial))
        (partial / DATA_FILE).chmod(DATA_MODE)
    except lmdb.Error as error:
        raise BackupFailed(f"{source}: {error}") from error
    finally:
        env.close()


@contextmanager
def growing(file: Path, total: int, report: Report) -> Iterator[None]:
    """LMDB copies in one call and says nothing meanwhile: its file does."""
    ended = Event()

    def watch() -> None:
        while not ended.wait(limits.REPORT_INTERVAL_S):
            size = file.stat().st_size if file.exists() else 0
            report(ScrubProgress("copy", min(size, total), total))

    watching = Thread(target=watch, name="quipu-copy", daemon=True)
    watching.start()
    try:
        yield
    finally:
        ended.set()
        watching.join()


def _mark(partial: Path) -> int:
    """As a copy. Returns the least index of an executor that can go on from its log."""
    env = environment.open_environment(partial, limits.MAP_BYTES_FIRST)
    try:
        tables = environment.open_tables(env, partial, create=False)
        base = 0
        with env.begin(buffers=True) as txn:
            if tables.log is not None:
                base = _needed(read_log(txn, tables))
            if ownership.read_owner(txn, tables, partial) is None:
                raise StoreMissing(f"{partial} holds no store")
            state = records.decode_own_state(
                ownership.OWN_STATE, txn.get(ownership.OWN_STATE, b"", db=tables.meta)
            )
        now = _MILLISECONDS.pack(time.time_ns() // 1_000_000)
        own = replace(state, recovering=True)
        with env.begin(write=True) as writer:
            value = records.encode_own_state(ownership.OWN_STATE, own)
            writer.put(ownership.OWN_STATE, value, db=tables.meta)
            writer.put(COPIED, records.guarded(COPIED, now), db=tables.meta)
            if tables.log is not None:
                LogWriter(writer, tables).mark_lost()
    except lmdb.Error as error:
        raise BackupFailed(f"{partial}: {error}") from error
    finally:
        env.close()
    (partial / environment.LOCK_FILE).unlink(missing_ok=True)
    return base


def _needed(saved: SavedLog) -> int:
    """While nobody was a client there was nothing to be executed."""
    if saved.base is None or not decode_record(saved.state).part(CLIENTS_PART):
        return 0
    return first_index(saved) - 1


def set_aside(path: Path) -> Path:
    """Moves a store that is broken, or replaced, out of the way and says where it lies now. Nothing
    is ever deleted. The caller begins a new one there, as recovering."""
    lock = os.open(path / OWNER_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for number in range(1, limits.SET_ASIDE_MAX + 1):
            aside = path.with_name(f"{path.name}.aside-{number}")
            if not aside.exists():
                path.rename(aside)
                passing("aside.renamed")
                environment.sync_directory(path.parent)
                return aside
    except BlockingIOError as error:
        raise StoreLocked(f"{path} is open") from error
    finally:
        os.close(lock)
    raise StoreError(f"{limits.SET_ASIDE_MAX} stores lie beside {path}")
