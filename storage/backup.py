"""Copies of a store that is being written, and what to do with one whose structure is broken."""

import fcntl
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from struct import Struct

import lmdb

from quipu.storage import environment, limits, ownership, records
from quipu.storage.environment import DATA_FILE, OWNER_FILE, StoreLocked, StoreMissing
from quipu.storage.store import StoreError

COPIED = b"copied"
_MILLISECONDS = Struct(">Q")


class BackupFailed(StoreError):
    """There is no copy: the target is not empty, or copying ended with an error."""


def backup_beside(source: Path, target: Path) -> None:
    """For the process that has the store open. LMDB opens a file once a process and moves its map
    when it grows, so the copy is made by another process, which only reads."""
    command = [sys.executable, "-m", "quipu.storage", "backup", str(source), str(target)]
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(  # noqa: S603 - our own interpreter, our own module
        command, env=paths, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise BackupFailed(done.stderr.strip() or f"exit {done.returncode}")


def copy_store(source: Path, target: Path) -> None:
    """A copy of the last commit, there whole or not at all. Whoever starts from it is recovering:
    what its key signed after the copy was taken is not in it."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise BackupFailed(f"{target} is there already")
    partial = target.with_name(target.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir(mode=0o700, parents=True)
        _copy_pages(source, partial)
        _mark(partial)
        environment.sync_directory(partial)
        partial.rename(target)
        environment.sync_directory(target.parent)
    except OSError as error:
        raise BackupFailed(f"{target}: {error}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _copy_pages(source: Path, partial: Path) -> None:
    env = environment.open_readonly(source)
    try:
        try:
            env.copy(str(partial), compact=True)
        except lmdb.IncompatibleError:  # a page has leaked; only the plain copy takes it along
            (partial / DATA_FILE).unlink(missing_ok=True)
            env.copy(str(partial))
    except lmdb.Error as error:
        raise BackupFailed(f"{source}: {error}") from error
    finally:
        env.close()


def _mark(partial: Path) -> None:
    env = environment.open_environment(partial, limits.MAP_BYTES_FIRST)
    try:
        tables = environment.open_tables(env, partial, create=False)
        with env.begin(buffers=True) as txn:
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
    except lmdb.Error as error:
        raise BackupFailed(f"{partial}: {error}") from error
    finally:
        env.close()
    (partial / environment.LOCK_FILE).unlink(missing_ok=True)


def set_aside(path: Path) -> Path:
    """Moves a store with a broken structure out of the way and says where it lies now. Nothing is
    ever deleted. The caller begins a new one there, as recovering."""
    lock = os.open(path / OWNER_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for number in range(1, limits.SET_ASIDE_MAX + 1):
            aside = path.with_name(f"{path.name}.damaged-{number}")
            if not aside.exists():
                path.rename(aside)
                environment.sync_directory(path.parent)
                return aside
    except BlockingIOError as error:
        raise StoreLocked(f"{path} is open") from error
    finally:
        os.close(lock)
    raise StoreError(f"{limits.SET_ASIDE_MAX} damaged stores lie beside {path}")
