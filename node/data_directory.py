"""The data directory of a node: its lock, its keys, its genesis, and where its store lies.

node.lock   held while a process uses the directory
node.key    the node's identity: its Ed25519 seed
cluster.key the cluster's secrets, one a line: one, or up to three while they are changed
genesis     the cluster's first document
seeds       members to dial first, one URI a line
peers       nodes that were met, and where
unsigned    there while the key has signed nothing
consumers/  named cursors, a file each
store/      LMDB
"""

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

from quipu.ledger import limits as core_limits
from quipu.ledger.epochs import cluster_id_of, decode_genesis
from quipu.ledger.refusals import Refused
from quipu.ledger.signing import KeyPair
from quipu.node.exits import CannotStart, DirectoryTaken
from quipu.node.founding import (
    CLUSTER_KEY_FILE,
    GENESIS_FILE,
    NODE_KEY_FILE,
    UNSIGNED_FILE,
    FirstStart,
    Joining,
    make_key,
    read_cluster_secrets,
    read_key,
)
from quipu.storage.environment import sync_directory

LOCK_FILE = "node.lock"
STORE_FOLDER = "store"
NO_LOCK = -1
PEERS_FILE = "peers"
OURS = {LOCK_FILE, NODE_KEY_FILE, CLUSTER_KEY_FILE, GENESIS_FILE, STORE_FOLDER, UNSIGNED_FILE}
LOST_AND_FOUND = "lost+found"  # in the root of a fresh file system
FOLDER_MODE = 0o700


@dataclass(slots=True)
class DataDirectory:
    """Invariant: while it is open no other process has it."""

    path: Path
    key: KeyPair
    cluster_secrets: tuple[bytes, ...]  # any of them admits
    genesis: bytes
    _lock: int

    @property
    def cluster_secret(self) -> bytes:
        """What invitations carry."""
        return self.cluster_secrets[0]

    @property
    def cluster_id(self) -> bytes:
        return cluster_id_of(self.genesis)

    @property
    def store_path(self) -> Path:
        return self.path / STORE_FOLDER

    @property
    def is_unsigned(self) -> bool:
        """The key has signed nothing yet: a store may be made for it that asks nobody."""
        return (self.path / UNSIGNED_FILE).exists()

    def store_made(self) -> None:
        """From now on the key signs."""
        (self.path / UNSIGNED_FILE).unlink(missing_ok=True)
        sync_directory(self.path)

    def close(self) -> None:
        if self._lock != NO_LOCK:
            os.close(self._lock)
            self._lock = NO_LOCK


def open_directory(path: Path, first: FirstStart | None) -> DataDirectory:
    """With `first` an empty or missing directory becomes that of a node. Raises `CannotStart`."""
    path = path.absolute()
    lock = _claim(path, first is not None)
    try:
        return _open_claimed(path, first, lock)
    except OSError as error:
        os.close(lock)
        raise _denied(path, error) from error
    except BaseException:
        os.close(lock)
        raise


def make_identity(path: Path, seed: bytes) -> KeyPair:
    """A key alone, in a directory that is no node yet. Raises `CannotStart`."""
    path = path.absolute()
    lock = _claim(path, may_make=True)
    try:
        return make_key(path, seed)
    except OSError as error:
        raise _denied(path, error) from error
    finally:
        os.close(lock)


def read_directory(path: Path) -> DataDirectory:
    """To look at, beside a process that may be using it: nothing is locked."""
    path = path.absolute()
    try:
        return _open_claimed(path, None, NO_LOCK)
    except OSError as error:
        raise _denied(path, error) from error


def _claim(path: Path, may_make: bool) -> int:
    try:
        if path.exists() and not path.is_dir():
            raise DirectoryTaken(f"{path} is not a directory", "Name another --data-dir.")
        if not path.exists() and not may_make:
            raise DirectoryTaken(f"{path} does not exist", "`quipu init` or `quipu run` makes it.")
        path.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        _refuse_foreign(path)
        return _lock(path)
    except OSError as error:
        raise _denied(path, error) from error


def _refuse_foreign(path: Path) -> None:
    """Never a folder that somebody uses for something else."""
    names = (item.name for item in path.iterdir())
    found = sorted(name for name in names if not name.startswith(".") and name != LOST_AND_FOUND)
    if found and not OURS.intersection(found):
        raise DirectoryTaken(
            f"{path} holds {found[0]!r} and no node",
            "Name an empty or a new directory with --data-dir.",
        )


def _lock(path: Path) -> int:
    fd = os.open(path / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.read(fd, 32).decode(errors="replace").strip()
        os.close(fd)
        raise DirectoryTaken(
            f"{path} is in use by process {holder or '?'}",
            "Stop that one, or name another --data-dir: every node needs its own.",
        ) from error
    os.truncate(fd, 0)
    os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
    return fd


def _open_claimed(path: Path, first: FirstStart | None, lock: int) -> DataDirectory:
    genesis_path = path / GENESIS_FILE
    if not genesis_path.exists():
        if first is None:
            raise DirectoryTaken(f"{path} holds no node", "`quipu init` or `quipu run` makes one.")
        if (path / STORE_FOLDER).exists():
            raise DirectoryTaken(
                f"{genesis_path} is missing beside a store",
                "Put it back from a backup or from another member: nothing can be read without it.",
            )
        first.carry_out(path, make_key(path, first.seed))
    try:
        key = read_key(path)
        secrets = read_cluster_secrets(path / CLUSTER_KEY_FILE)
    except FileNotFoundError as error:
        raise DirectoryTaken(
            f"{error.filename} is missing",
            "Put it back from a backup. A node without its old key is another node.",
        ) from error
    genesis = genesis_path.read_bytes()
    _check_genesis(genesis_path, genesis, first)
    return DataDirectory(path, key, secrets, genesis, lock)


def _check_genesis(path: Path, genesis: bytes, first: FirstStart | None) -> None:
    try:
        decode_genesis(genesis[: core_limits.EPOCH_BYTES_MAX + 1])
    except Refused as refusal:
        raise DirectoryTaken(
            f"{path} is not a genesis: {refusal}", "Put the right file back."
        ) from refusal
    if isinstance(first, Joining) and first.invitation.cluster_id != cluster_id_of(genesis):
        raise DirectoryTaken(
            f"{path} is of cluster {cluster_id_of(genesis).hex()[:16]}, the invitation of "
            f"{first.invitation.cluster_name} ({first.invitation.cluster_id.hex()[:16]})",
            "Name a new directory with --data-dir: a node belongs to one cluster.",
        )


def _denied(path: Path, error: OSError) -> CannotStart:
    return CannotStart(
        f"cannot use {path}: {error.strerror or error}",
        "Look at its owner, its mode and the room on its disk, or name another --data-dir.",
    )
