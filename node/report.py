"""The last report about the consistency of the cluster: one file, replaced whole."""

import os
from pathlib import Path

from quipu.node import limits
from quipu.storage.environment import sync_directory

REPORT_FILE = "report.json"


def write_report(folder: Path, content: bytes) -> None:
    """Blocks for a sync."""
    assert len(content) <= limits.REPORT_BYTES_MAX
    beside = folder / f".{REPORT_FILE}.{os.getpid()}"
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(folder / REPORT_FILE)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    sync_directory(folder)


def read_report(folder: Path) -> bytes | None:
    try:
        return (folder / REPORT_FILE).read_bytes()
    except FileNotFoundError:
        return None
