"""A copy of an executor's database that another one begins from, and the check that it is that."""

import hashlib
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from quipu.storage.environment import sync_directory
from quipu.storage.executors import limits
from quipu.storage.executors.connection import Connection, connect, raise_named
from quipu.storage.executors.executor import Mark, Snapshot, SnapshotMismatch
from quipu.storage.executors.request import Digest, LogIndex
from quipu.storage.executors.table_digest import table_digest
from quipu.storage.failpoints import passing
from quipu.storage.store import StoreError

DATABASE_FILE = "executor.sqlite3"


class TargetTaken(StoreError):
    """Something is there already: nothing is ever written over."""


def take_snapshot(file: Path, target: Path) -> Snapshot:
    """As of one commit, while turns go on. There whole or not at all."""
    if target.exists():
        raise TargetTaken(str(target))
    partial = target.with_name(target.name + ".partial")
    partial.unlink(missing_ok=True)
    try:
        _copy(file, partial)
        described = describe(partial)
        _sync(partial)
        passing("snapshot.copied")
        partial.rename(target)
        passing("snapshot.named")
        sync_directory(target.parent)
    except sqlite3.Error as error:
        raise_named(error, target)
    except OSError as error:
        raise StoreError(f"{target}: {error}") from error
    finally:
        partial.unlink(missing_ok=True)
    return described


def restore_snapshot(source: Path, directory: Path, expected: Snapshot) -> None:
    """Makes a directory from which an executor opens at the snapshot's index. Every byte is checked
    against the description, which the caller has from whom it trusts."""
    target = directory / DATABASE_FILE
    if target.exists():
        raise TargetTaken(str(target))
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    partial = target.with_name(DATABASE_FILE + ".partial")
    try:
        shutil.copyfile(source, partial)
        partial.chmod(0o600)
        refuse_other(partial, expected)
        _sync(partial)
        passing("snapshot.checked")
        partial.rename(target)
        sync_directory(directory)
    except sqlite3.Error as error:
        raise SnapshotMismatch(f"{source}: {error}") from error
    except OSError as error:
        raise StoreError(f"{source}: {error}") from error
    finally:
        partial.unlink(missing_ok=True)


def refuse_other(file: Path, expected: Snapshot) -> None:
    """Bytes first: a file that is not the one described is not opened."""
    size, digest = _measured(file)
    if (size, digest) != (expected.file_bytes, expected.file_digest):
        raise SnapshotMismatch(f"{file}: {size} bytes, digest {digest.hex()[:16]}")
    found = describe(file)
    for name, is_, wanted in zip(Snapshot._fields, found, expected, strict=True):
        if is_ != wanted:
            raise SnapshotMismatch(f"{file}: {name} is {is_!r}, not {wanted!r}")


def describe(file: Path) -> Snapshot:
    """Read from the file alone."""
    size, digest = _measured(file)
    connection = connect(file, readonly=True)
    try:
        applied, engine = state_of(connection)
        tables = table_digest(connection)
    finally:
        connection.close()
    return Snapshot(applied, tables, engine, size, digest)


def digest_tables(file: Path) -> Digest:
    """As of one commit, while turns go on."""
    connection = connect(file, readonly=True)
    try:
        connection.execute("BEGIN")
        return table_digest(connection)
    except sqlite3.Error as error:
        raise_named(error, file)
    finally:
        connection.close()


def state_of(connection: Connection) -> tuple[Mark, str]:
    index, digest, engine = connection.execute(
        "SELECT applied, digest, engine FROM quipu_state"
    ).fetchone()
    return Mark(LogIndex(index), Digest(digest)), engine


def _copy(file: Path, partial: Path) -> None:
    with (
        closing(connect(file, readonly=True)) as source,
        closing(sqlite3.connect(partial, isolation_level=None)) as copy,
    ):
        source.execute("BEGIN")
        state_of(source)  # from here on the copy sees this commit and no later one
        source.backup(copy, pages=limits.SNAPSHOT_PAGES_PER_STEP)
        source.execute("COMMIT")
        copy.execute("PRAGMA journal_mode = DELETE")  # one file, without a log beside it
    partial.chmod(0o600)


def _measured(file: Path) -> tuple[int, Digest]:
    running = hashlib.sha256()
    size = 0
    with file.open("rb") as stream:
        while chunk := stream.read(limits.FILE_BYTES_PER_READ):
            running.update(chunk)
            size += len(chunk)
    return size, Digest(running.digest())


def _sync(file: Path) -> None:
    fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
