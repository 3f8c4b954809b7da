"""What is wrong with this machine or this data directory, found without changing anything."""

import errno
import fcntl
import os
import resource
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from quipu.node import data_directory as places
from quipu.node import founding, limits, open_files, secret_files
from quipu.node.exits import CannotStart
from quipu.node.settings import Address, Settings
from quipu.storage.counting import read_stats
from quipu.storage.environment import StoreLocked, StoreMissing
from quipu.storage.store import StoreError

YEAR_2025_S = 1_735_689_600  # a clock before that was never set


class Finding(NamedTuple):
    check: str
    is_fine: bool
    what: str
    next_step: str = ""


def examine(settings: Settings) -> Iterator[Finding]:
    path = settings.node.data_dir.absolute()
    yield _python()
    yield _clock()
    yield from _directory(path)
    yield _room(path)
    yield _sync(path)
    yield _socket(settings.admin_socket)
    yield _open_files(settings)
    is_running = holder_of(path) is not None
    faces = (("API", settings.api), ("P2P", settings.p2p), ("OPS", settings.ops))
    for name, address in ((name, face.listen) for name, face in faces):
        yield _port(name, address, is_running)


def holder_of(path: Path) -> str | None:
    """The process that uses the directory; None: nobody."""
    try:
        fd = os.open(path / places.LOCK_FILE, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.read(fd, 32).decode(errors="replace").strip() or "?"
    finally:
        os.close(fd)
    return None


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding(
        "python", sys.version_info >= (3, 11), version, "Python 3.11 or newer is needed."
    )


def _clock() -> Finding:
    now = time.time()
    shown = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    return Finding("clock", now > YEAR_2025_S, shown, "Set the clock: receipts wait for it.")


def _directory(path: Path) -> Iterator[Finding]:
    if not path.exists():
        yield Finding("data directory", True, f"{path} is not there; a first start makes it")
        return
    if not (path / founding.GENESIS_FILE).exists():
        others = [item.name for item in path.iterdir() if not item.name.startswith(".")]
        yield Finding(
            "data directory",
            not others,
            f"{path} holds no node" + (f" but {others[0]!r}" if others else ""),
            "Name an empty or a new directory with --data-dir.",
        )
        return
    holder = holder_of(path)
    state = f"in use by process {holder}" if holder else "not in use"
    yield Finding("data directory", True, f"{path}, {state}")
    for name in (founding.NODE_KEY_FILE, founding.CLUSTER_KEY_FILE):
        yield _key(path / name)
    yield _store(path / places.STORE_FOLDER)


def _key(path: Path) -> Finding:
    try:
        secret_files.check_private(path)
    except CannotStart as error:
        return Finding(path.name, False, error.what, error.next_step)
    except OSError as error:
        return Finding(path.name, False, f"{path}: {error.strerror}", "Put it back from a backup.")
    return Finding(path.name, True, "there, and nobody else may read it")


def _store(path: Path) -> Finding:
    try:
        stats = read_stats(path)
    except StoreMissing:
        return Finding("store", False, f"{path} is missing", "Restore a backup, or start without.")
    except StoreLocked:
        return Finding("store", True, "in use")
    except (StoreError, OSError) as error:
        step = "`quipu store verify` says more; restore a backup."
        return Finding("store", False, str(error), step)
    size = stats.file_bytes / limits.MIB
    return Finding("store", True, f"{stats.events:,} events, {stats.feed:,} Read, {size:,.1f} MiB")


def _nearest(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path


def _room(path: Path) -> Finding:
    free = shutil.disk_usage(_nearest(path)).free
    enough = free > 4 * limits.FULL_PROBE_BYTES
    return Finding("disk", enough, f"{free / limits.MIB:,.0f} MiB free", "Make room.")


def _sync(path: Path) -> Finding:
    """Every acknowledgement waits for one of these."""
    try:
        with tempfile.NamedTemporaryFile(dir=_nearest(path), prefix=".quipu-doctor-") as file:
            seconds = []
            for _ in range(limits.DOCTOR_SYNCS):
                file.write(bytes(4 * limits.KIB))
                file.flush()
                begun = time.perf_counter()
                os.fdatasync(file.fileno())
                seconds.append(time.perf_counter() - begun)
    except OSError as error:
        return Finding("sync", False, str(error.strerror), "The directory must be writable.")
    middle = sorted(seconds)[len(seconds) // 2]
    is_fine = middle < limits.SYNC_SLOW_S
    return Finding(
        "sync", is_fine, f"fdatasync takes {middle * 1e3:.1f} ms", "A faster disk helps."
    )


def _socket(path: Path) -> Finding:
    size = len(os.fsencode(path))
    return Finding(
        "admin socket",
        size <= limits.SOCKET_PATH_BYTES_MAX,
        f"{path}, {size} bytes",
        f"{limits.SOCKET_PATH_BYTES_MAX} fit: --set admin.socket=/run/quipu/admin.sock",
    )


def _open_files(settings: Settings) -> Finding:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = open_files.needed(settings)
    return Finding(
        "open files",
        hard == resource.RLIM_INFINITY or hard >= needed,
        f"{'any number' if hard == resource.RLIM_INFINITY else hard} allowed, {needed} needed",
        "Raise the hard limit (LimitNOFILE= of the unit), or lower api.connections_max.",
    )


def _port(name: str, address: Address, is_running: bool) -> Finding:
    check = f"{name} port"
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
        except OSError as error:
            if error.errno == errno.EADDRINUSE and is_running:
                return Finding(check, True, f"{address} is in use, as it should be")
            with suppress(OSError):
                probe.close()
            step = f"Stop what uses it, or choose another: --{name.lower()}-listen 127.0.0.1:0"
            return Finding(check, False, f"{address}: {error.strerror}", step)
    return Finding(check, True, f"{address} is free")
