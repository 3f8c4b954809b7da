"""Giving the disk back what a store does not need any more, with nobody using it.

LMDB never makes its file smaller. The last commit is copied without its free pages, the copy is
checked, and takes the place of the file in one step. Offline alone: a copy beside a writer is old
when it is done, and a writer that waits for it answers nobody.
"""

import os
import shutil
from pathlib import Path
from typing import Any

import lmdb

from quipu.storage import environment
from quipu.storage.backup import growing
from quipu.storage.counting import read_stats
from quipu.storage.environment import DATA_FILE, DATA_MODE, LOCK_FILE
from quipu.storage.failpoints import passing
from quipu.storage.store import StoreError
from quipu.storage.verification import Report, verify_store

PARTIAL = "compact.partial"  # inside of the store: the same disk, for sure


class CompactionFailed(StoreError):
    """Nothing has changed."""


def compact_store(path: Path, report: Report = lambda progress: None) -> dict[str, Any]:
    """Raises StoreError: then the store is what it was."""
    if not (path / DATA_FILE).is_file():
        raise environment.StoreMissing(f"{path} holds no store")
    partial = path / PARTIAL
    lock = environment.lock_owner(path)
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(mode=0o700)
        before = read_stats(path)
        _copy(path, partial, report)
        passing("compact.copied")
        _check(path, partial, report)
        passing("compact.checked")
        _take_over(path, partial)
        after = (path / DATA_FILE).stat().st_size
        return {"path": str(path), "bytes_before": before.file_bytes, "bytes_after": after}
    except OSError as error:
        raise CompactionFailed(f"{path}: {error}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        os.close(lock)


def _copy(path: Path, partial: Path, report: Report) -> None:
    env = environment.open_readonly(path)
    try:
        total = (path / DATA_FILE).stat().st_size
        with growing(partial / DATA_FILE, total, report):
            env.copy(str(partial), compact=True)
        (partial / DATA_FILE).chmod(DATA_MODE)
    except lmdb.IncompatibleError as error:
        raise CompactionFailed(f"{path}: a page is neither used nor free: {error}") from error
    except lmdb.Error as error:
        raise CompactionFailed(f"{path}: {error}") from error
    finally:
        env.close()


def _check(path: Path, partial: Path, report: Report) -> None:
    """What takes the place of the only copy has to be sound, and as much as it was."""
    found = verify_store(partial, report)
    if found.found:
        raise CompactionFailed(f"the copy is not sound: {found.findings[0]}")
    before, after = read_stats(path), read_stats(partial)
    if before[:7] != after[:7]:
        raise CompactionFailed(f"the copy holds {after[:7]}, the store {before[:7]}")


def _take_over(path: Path, partial: Path) -> None:
    fd = os.open(partial / DATA_FILE, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
    (path / LOCK_FILE).unlink(missing_ok=True)  # it tells of the other file; made anew
    (partial / DATA_FILE).replace(path / DATA_FILE)
    passing("compact.replaced")
    environment.sync_directory(path)
