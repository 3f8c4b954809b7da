"""Putting a backup in the place of a store that was lost.

What the node's key has signed since the backup is not in it. So the store says that it was
restored: the node counts as recovering, and signs no receipt until enough members have told it
what they hold of it.
"""

from pathlib import Path
from typing import Any

from quipu.node import secret_files
from quipu.node.data_directory import DataDirectory, open_directory
from quipu.node.exits import CannotStart, DirectoryTaken, Exit
from quipu.node.founding import GENESIS_FILE, GENESIS_MODE, NODE_KEY_FILE
from quipu.storage.backup import copy_store, set_aside
from quipu.storage.store import Owner
from quipu.storage.verification import Report, Verification, verify_store


class BackupUnsound(CannotStart):
    code = Exit.NOT_VERIFIED


def restore(backup: Path, folder: Path, is_set_aside: bool, report: Report) -> dict[str, Any]:
    """Raises `CannotStart` or StoreError; then what was there is there."""
    _bring_genesis(backup, folder)
    directory = open_directory(folder, None)
    try:
        store = directory.store_path
        is_taken = store.exists() and any(store.iterdir())
        if is_taken and not is_set_aside:
            raise DirectoryTaken(
                f"{store} holds a store",
                "Nothing is overwritten: --set-aside keeps it beside, under another name.",
            )
        verification = verify_store(backup, report)
        _check(backup, verification, directory)
        aside = set_aside(store) if is_taken else None
        copy_store(backup, store, report)
        return {
            "path": str(store),
            "events": verification.events,
            "set_aside": None if aside is None else str(aside),
        }
    finally:
        directory.close()


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
