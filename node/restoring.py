"""Putting a backup in the place of a store that was lost.

What the node's key has signed since the backup is not in it. So the store says that it was
restored: the node counts as recovering, and signs no receipt until enough members have told it
what they hold of it.

The executor's database comes with it: what was ordered between the two copies is executed again
from the log. One that is there is of a later log than the store that comes, and is set aside.
"""

from pathlib import Path
from typing import Any, NamedTuple

from quipu.node import secret_files
from quipu.node.data_directory import DataDirectory, open_directory
from quipu.node.exits import CannotStart, DirectoryTaken, Exit
from quipu.node.founding import GENESIS_FILE, GENESIS_MODE, NODE_KEY_FILE
from quipu.storage.backup import copy_store, set_aside
from quipu.storage.executors import keeping
from quipu.storage.executors.executor import Snapshot, SnapshotMismatch
from quipu.storage.executors.snapshots import DATABASE_FILE
from quipu.storage.store import Owner
from quipu.storage.verification import Report, Verification, verify_store


class BackupUnsound(CannotStart):
    code = Exit.NOT_VERIFIED


class Places(NamedTuple):
    """Where a node of this machine keeps what a backup has."""

    folder: Path
    executor: Path


def restore(backup: Path, places: Places, is_set_aside: bool, report: Report) -> dict[str, Any]:
    """Raises `CannotStart` or StoreError; then what was there is there."""
    _bring_genesis(backup, places.folder)
    directory = open_directory(places.folder, None)
    try:
        store = directory.store_path
        is_taken = store.exists() and any(store.iterdir())
        if is_taken and not is_set_aside:
            raise _taken(f"{store} holds a store")
        if keeping.is_begun(places.executor) and not is_set_aside:
            raise _taken(f"{places.executor} holds the database of an executor")
        verification = verify_store(backup, report)
        _check(backup, verification, directory)
        executed = _executed(backup)
        aside = set_aside(store) if is_taken else None
        executor_aside = keeping.set_aside(places.executor)
        if executed is not None:
            keeping.bring_back(backup, places.executor, executed)
        copy_store(backup, store, report)
        return {
            "path": str(store),
            "events": verification.events,
            "set_aside": None if aside is None else str(aside),
            "executed": None if executed is None else executed.applied.at,
            "executor_set_aside": None if executor_aside is None else str(executor_aside),
        }
    finally:
        directory.close()


def _taken(what: str) -> DirectoryTaken:
    then = "Nothing is overwritten: --set-aside keeps it beside, under another name."
    return DirectoryTaken(what, then)


def _executed(backup: Path) -> Snapshot | None:
    try:
        return keeping.backed_up(backup)
    except SnapshotMismatch as error:
        raise BackupUnsound(
            f"the executor's database in {backup} is damaged: {error}",
            f"Take another backup. Without {keeping.DESCRIPTION_FILE} and {DATABASE_FILE} in it "
            "the rest is restored, and the executor begins anew.",
        ) from error


def _bring_genesis(backup: Path, folder: Path) -> None:
    """A new machine has the keys, and the backup has the rest."""
    here, there = folder / GENESIS_FILE, backup / GENESIS_FILE
    if (folder / NODE_KEY_FILE).exists() and there.exists() and not here.exists():
        secret_files.write_new(here, there.read_bytes(), GENESIS_MODE)


def _check(backup: Path, verification: Verification, directory: DataDirectory) -> None:
    if verification.found:
        raise BackupUnsound(
            f"{backup} is damaged: {verification.findings[0]}",
            "`quipu store verify` lists all of it. Take another backup, or start without: "
            "the other members have what it holds.",
        )
    if verification.owner != Owner(directory.cluster_id, directory.key.node_id):
        raise DirectoryTaken(
            f"{backup} is of another node or another cluster",
            "Take the backup that belongs to these keys.",
        )
