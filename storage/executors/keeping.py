"""The executor's database in a backup, out of one, and out of the way.

A backup has it as of a commit before that of the store beside it: what was ordered since stands in
the log of that store, and is executed after a restore, each request once.
"""

import os
import sqlite3
from contextlib import suppress
from pathlib import Path

import msgspec

from quipu.storage.environment import lock_owner, sync_directory
from quipu.storage.executors import limits
from quipu.storage.executors.connection import connect
from quipu.storage.executors.executor import Snapshot, SnapshotMismatch
from quipu.storage.executors.request import LogIndex
from quipu.storage.executors.snapshots import (
    DATABASE_FILE,
    TargetTaken,
    refuse_other,
    restore_snapshot,
    take_snapshot,
)
from quipu.storage.store import StoreError

DESCRIPTION_FILE = "executor.json"
WITH_WAL = ("", "-wal", "-shm")  # what SQLite has beside a file, with itself


def back_up(directory: Path, target: Path) -> LogIndex | None:
    """A copy with its description, and how far it is; None: there is no executor."""
    if not is_begun(directory):
        return None
    made = take_snapshot(directory / DATABASE_FILE, target / DATABASE_FILE)
    with (target / DESCRIPTION_FILE).open("wb") as file:
        file.write(msgspec.json.encode(made))
        file.flush()
        os.fsync(file.fileno())
    return made.applied.at


def leave_out(target: Path) -> None:
    for name in (DATABASE_FILE, DESCRIPTION_FILE):
        (target / name).unlink()


def backed_up(backup: Path) -> Snapshot | None:
    """What a backup has, checked against its description; None: it has no executor. Raises
    `SnapshotMismatch`."""
    file, description = backup / DATABASE_FILE, backup / DESCRIPTION_FILE
    if not file.exists() and not description.exists():
        return None
    try:
        made = msgspec.json.decode(description.read_bytes(), type=Snapshot)
    except (OSError, msgspec.DecodeError) as error:
        raise SnapshotMismatch(f"{description}: {error}") from error
    refuse_other(file, made)
    return made


def bring_back(backup: Path, directory: Path, made: Snapshot) -> None:
    restore_snapshot(backup / DATABASE_FILE, directory, made)


def is_begun(directory: Path) -> bool:
    return (directory / DATABASE_FILE).exists()


def set_aside(directory: Path) -> Path | None:
    """The database under another name beside; nothing is ever deleted. None: there is none. Raises
    `StoreLocked` where a process has it open."""
    if not is_begun(directory):
        return None
    owner = lock_owner(directory)
    try:
        _write_back(directory / DATABASE_FILE)
        for number in range(1, limits.SET_ASIDE_MAX + 1):
            aside = directory / f"aside-{number}.sqlite3"
            if not aside.exists():
                for ending in WITH_WAL:
                    file = directory / (DATABASE_FILE + ending)
                    if file.exists():
                        file.rename(aside.with_name(aside.name + ending))
                sync_directory(directory)
                return aside
    except OSError as error:
        raise StoreError(f"{directory}: {error}") from error
    finally:
        os.close(owner)
    raise TargetTaken(f"{limits.SET_ASIDE_MAX} databases lie aside in {directory}")


def _write_back(file: Path) -> None:
    """Then it is one file: its log would be read into whatever gets its name."""
    with suppress(sqlite3.Error, StoreError):  # a damaged one goes as it is
        connect(file).close()
