"""Files that hold a secret: a line each, 0600, written whole or not at all.

A secret is never a setting, a flag or a log line. What others may read is refused, not repaired:
who has read it already is not known.
"""

import os
import re
import stat
from pathlib import Path

from quipu.node import limits
from quipu.node.exits import KeyExposed
from quipu.storage.environment import sync_directory
from quipu.storage.failpoints import passing

SECRET_MODE = 0o600
OTHERS = stat.S_IRWXG | stat.S_IRWXO


def write_new(path: Path, data: bytes, mode: int = SECRET_MODE) -> None:
    """Whole and durable, or not there. Raises FileExistsError: nothing is ever overwritten."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    try:
        try:
            os.fchmod(fd, mode)
            os.write(fd, data)
            os.fsync(fd)
        finally:
            os.close(fd)
        passing("secret.written")
        os.link(beside, path)
        passing("secret.linked")
    finally:
        beside.unlink()
    sync_directory(path.parent)


def write_secret(path: Path, label: str, secret: bytes) -> None:
    write_new(path, f"{label} {secret.hex()}\n".encode())


def read_secret(path: Path, label: str, size: int) -> bytes:
    """Raises `KeyExposed`, or FileNotFoundError."""
    found = read_secrets(path, label, size)
    if len(found) > 1:
        raise KeyExposed(f"{path} holds {len(found)} keys", "Leave the one line that is right.")
    return found[0]


def read_secrets(path: Path, label: str, size: int) -> tuple[bytes, ...]:
    """One line each, one at least. Raises `KeyExposed`, or FileNotFoundError."""
    check_private(path)
    with path.open("rb") as file:
        text = file.read(limits.KEY_FILE_BYTES_MAX + 1).decode(errors="replace").strip()
    form = re.compile(rf"{re.escape(label)} ([0-9a-f]{{{2 * size}}})")
    lines = [form.fullmatch(line.strip()) for line in text.splitlines()]
    if not lines or None in lines:
        raise KeyExposed(
            f"{path} is not a {label} file",
            "Put the right file back. A node without its old key is another node.",
        )
    return tuple(bytes.fromhex(line[1]) for line in lines if line is not None)


def check_private(path: Path) -> None:
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise KeyExposed(f"{path} is not a regular file", "Put the key file itself there.")
    if found.st_mode & OTHERS:
        raise KeyExposed(
            f"{path} can be read by others (mode {stat.S_IMODE(found.st_mode):04o})",
            f"If nobody has: chmod 600 {path}",
        )
    if found.st_uid not in (os.geteuid(), 0):
        raise KeyExposed(
            f"{path} belongs to user {found.st_uid}, this is user {os.geteuid()}",
            f"Run as that user, or: chown {os.geteuid()} {path}",
        )
