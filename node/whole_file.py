"""A file that is replaced whole: after a crash it is the one before or the new one."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from quipu.node.service import StoreIsFull
from quipu.storage.environment import sync_directory
from quipu.storage.failpoints import passing
from quipu.storage.store import DiskFailed


def replace_file(path: Path, content: bytes) -> None:
    """Durable when it returns: blocks for two syncs."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(content)
            file.flush()
            passing("file.written")
            os.fsync(file.fileno())
        passing("file.synced")
        beside.replace(path)
        passing("file.replaced")
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


@contextmanager
def disk_errors() -> Iterator[None]:
    """As what they mean to a caller."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreIsFull("no room on the disk") from error
        raise DiskFailed(str(error)) from error
