"""The data directory of a node: its lock, its keys, its genesis, and where its store lies.

    node.lock   held while a process uses the directory
    node.key    the node's identity: its Ed25519 seed
    cluster.key the cluster's secret
    genesis     the cluster's first document
    store/      LMDB

A first start makes all of it, in an order that a crash at any place leaves usable.
"""

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

from quipu.ledger import limits as core_limits
from quipu.ledger import quorum
from quipu.ledger.canonical import encode
from quipu.ledger.epochs import GENESIS_VERSION, Founder, Genesis, cluster_id_of, decode_genesis
from quipu.ledger.refusals import Refused
from quipu.ledger.signing import SEED_BYTES, KeyPair
from quipu.node import secret_files
from quipu.node.exits import CannotStart, DirectoryTaken
from quipu.node.failpoints import passing

LOCK_FILE = "node.lock"
NODE_KEY_FILE = "node.key"
CLUSTER_KEY_FILE = "cluster.key"
GENESIS_FILE = "genesis"
STORE_FOLDER = "store"
LOST_AND_FOUND = "lost+found"  # in the root of a fresh file system
NODE_KEY_LABEL = "quipu-node-key-1"
CLUSTER_KEY_LABEL = "quipu-cluster-key-1"
MEMBER_ROLES = ("member", "serializer")
GENESIS_MODE = 0o644
FOLDER_MODE = 0o700


@dataclass(frozen=True, slots=True)
class Founding:
    """What a first start without a cluster needs; the clock and the dice are the caller's."""

    node_name: str
    cluster_name: str
    now_ms: int
    random: bytes  # 2 seeds and a salt
    streams_erasable: tuple[str, ...] = ()

    def split(self) -> tuple[bytes, bytes, bytes]:
        return self.random[:SEED_BYTES], self.random[SEED_BYTES:-16], self.random[-16:]


FOUNDING_RANDOM_BYTES = SEED_BYTES + SEED_BYTES + 16


@dataclass(slots=True)
class DataDirectory:
    """Invariant: while it is open no other process has it."""

    path: Path
    key: KeyPair
    cluster_secret: bytes
    genesis: bytes
    is_new: bool  # this start made the cluster
    _lock: int

    @property
    def cluster_id(self) -> bytes:
        return cluster_id_of(self.genesis)

    @property
    def store_path(self) -> Path:
        return self.path / STORE_FOLDER

    def close(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def open_directory(path: Path, founding: Founding | None) -> DataDirectory:
    """With `founding` an empty or missing directory becomes a cluster of one. Raises
    `CannotStart`."""
    path = path.absolute()
    lock = _claim(path, founding is not None)
    try:
        return _open_claimed(path, founding, lock)
    except OSError as error:
        os.close(lock)
        raise _denied(path, error) from error
    except BaseException:
        os.close(lock)
        raise


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
    ours = {LOCK_FILE, NODE_KEY_FILE, CLUSTER_KEY_FILE, GENESIS_FILE, STORE_FOLDER}
    if found and not ours.intersection(found):
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


def _open_claimed(path: Path, founding: Founding | None, lock: int) -> DataDirectory:
    genesis_path = path / GENESIS_FILE
    is_new = not genesis_path.exists()
    if is_new:
        if founding is None:
            raise DirectoryTaken(f"{path} holds no node", "`quipu init` or `quipu run` makes one.")
        if (path / STORE_FOLDER).exists():
            raise DirectoryTaken(
                f"{genesis_path} is missing beside a store",
                "Put it back from a backup or from another member: nothing can be read without it.",
            )
        _found(path, founding)
    try:
        key = secret_files.read_secret(path / NODE_KEY_FILE, NODE_KEY_LABEL, SEED_BYTES)
        secret = secret_files.read_secret(path / CLUSTER_KEY_FILE, CLUSTER_KEY_LABEL, SEED_BYTES)
    except FileNotFoundError as error:
        raise DirectoryTaken(
            f"{error.filename} is missing",
            "Put it back from a backup. A node without its old key is another node.",
        ) from error
    keys = KeyPair.from_seed(key)
    genesis = genesis_path.read_bytes()
    _check_genesis(genesis_path, genesis, keys)
    return DataDirectory(path, keys, secret, genesis, is_new, lock)


def _check_genesis(path: Path, genesis: bytes, key: KeyPair) -> None:
    try:
        document = decode_genesis(genesis[: core_limits.EPOCH_BYTES_MAX + 1])
    except Refused as refusal:
        raise DirectoryTaken(
            f"{path} is not a genesis: {refusal}", "Put the right file back."
        ) from refusal
    if key.node_id not in [member.node_id for member in document.members]:
        raise DirectoryTaken(
            f"{path} does not name this node ({key.node_id.hex()[:16]})",
            "Key and genesis are of two nodes: put back the pair that belongs together.",
        )


def _found(path: Path, founding: Founding) -> None:
    seed, secret, salt = founding.split()
    node_key, cluster_key = path / NODE_KEY_FILE, path / CLUSTER_KEY_FILE
    if node_key.exists():  # of a first start that was cut short
        seed = secret_files.read_secret(node_key, NODE_KEY_LABEL, SEED_BYTES)
    else:
        secret_files.write_secret(node_key, NODE_KEY_LABEL, seed)
    if not cluster_key.exists():
        secret_files.write_secret(cluster_key, CLUSTER_KEY_LABEL, secret)
    passing("start.key")
    founder = Founder(KeyPair.from_seed(seed).node_id, founding.node_name, list(MEMBER_ROLES))
    genesis = encode(
        Genesis(
            GENESIS_VERSION,
            founding.cluster_name,
            founding.now_ms,
            quorum.MAJORITY,
            [founder],
            salt,
            sorted(set(founding.streams_erasable)),
        )
    )
    try:
        decode_genesis(genesis)
    except Refused as refusal:
        raise CannotStart(
            f"no genesis can be made of these names: {refusal}",
            "node.name and node.cluster_name are 1 to 128 bytes long; a stream is 1 to 128 of "
            "a-z 0-9 . _ - and begins with a letter or digit.",
        ) from refusal
    secret_files.write_new(path / GENESIS_FILE, genesis, GENESIS_MODE)
    passing("start.genesis")


def _denied(path: Path, error: OSError) -> CannotStart:
    return CannotStart(
        f"cannot use {path}: {error.strerror or error}",
        "Look at its owner, its mode and the room on its disk, or name another --data-dir.",
    )
