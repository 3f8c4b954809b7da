"""The last report about the consistency of the cluster: one file, replaced whole."""

from pathlib import Path

from quipu.node import limits
from quipu.node.whole_file import replace_file

REPORT_FILE = "report.json"


def write_report(folder: Path, content: bytes) -> None:
    """Blocks for a sync."""
    assert len(content) <= limits.REPORT_BYTES_MAX
    replace_file(folder / REPORT_FILE, content)


def read_report(folder: Path) -> bytes | None:
    try:
        return (folder / REPORT_FILE).read_bytes()
    except FileNotFoundError:
        return None


def is_report_kept(folder: Path) -> bool:
    return (folder / REPORT_FILE).exists()
