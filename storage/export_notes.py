"""What an export has finished so far: what was interrupted goes on from here."""

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from quipu.dumps.manifest import (
    MANIFEST_FILE,
    NOTES_FILE,
    UNSIGNED_FILE,
    DumpFile,
    Manifest,
    ManifestUnreadable,
    ManifestWrong,
    read_manifest,
)
from quipu.dumps.whole import sha256_of
from quipu.storage.failpoints import passing
from quipu.storage.store import Owner, StoreError

OURS = {MANIFEST_FILE, NOTES_FILE, UNSIGNED_FILE}


class ExportRefused(StoreError):
    """The target holds something else: a dump of another node, or no dump at all."""


@dataclass(slots=True)
class Notes:
    """Invariant: every segment noted is whole and holds the feed up to its position."""

    folder: Path
    before: Manifest | None  # the dump that this one continues
    first: dict[str, Any]  # whose, and with what: another one begins anew
    segments: list[tuple[int, list[DumpFile]]] = field(default_factory=list)

    @property
    def upto(self) -> int:
        """The last feed position that is in a file."""
        if self.segments:
            return self.segments[-1][0]
        return self.before.feed_upto if self.before else 0

    def add(self, upto: int, files: list[DumpFile]) -> None:
        self.segments.append((upto, files))
        self._write({"upto": upto, "files": [asdict(file) for file in files]}, "a")
        passing("export.segment")

    def begin(self) -> None:
        self._write(self.first, "w")
        passing("export.begun")

    def _write(self, line: dict[str, Any], mode: str) -> None:
        with (self.folder / NOTES_FILE).open(mode) as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())


def open_notes(folder: Path, owner: Owner, entries: str) -> Notes:
    """Of an empty or new directory, a dump of this node, or one that was interrupted."""
    before = _dump_before(folder, owner)
    if before is not None and before.entries != entries:
        raise ExportRefused(f"{folder} is a dump with entries {before.entries!r}, not {entries!r}")
    first = {
        "node_id": owner.node_id.hex(),
        "cluster_id": owner.cluster_id.hex(),
        "entries": entries,
        "after": before.hash.hex() if before else "",
    }
    notes = Notes(folder, before, first)
    lines = _lines(folder / NOTES_FILE)
    if lines and lines[0] != first and before is None:
        raise ExportRefused(f"{folder} holds an unfinished dump of something else")
    if lines and lines[0] == first:
        for line in lines[1:]:
            files = [DumpFile(**file) for file in line["files"]]
            if not all(_is_whole(folder, file) for file in files):
                break
            notes.segments.append((line["upto"], files))
    notes.begin()
    kept, notes.segments = notes.segments, []
    for upto, files in kept:
        notes.add(upto, files)
    return notes


def _dump_before(folder: Path, owner: Owner) -> Manifest | None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not (folder / MANIFEST_FILE).exists():
        if any(folder.iterdir()) and not (folder / NOTES_FILE).exists():
            raise ExportRefused(f"{folder} is not empty, and no dump")
        return None
    try:
        before = read_manifest(folder)
    except (ManifestUnreadable, ManifestWrong) as error:
        raise ExportRefused(f"{folder / MANIFEST_FILE}: {error}") from error
    if (before.cluster_id, before.node_id) != (owner.cluster_id.hex(), owner.node_id.hex()):
        raise ExportRefused(f"{folder} is a dump of node {before.node_id[:16]}")
    return before


def _lines(path: Path) -> list[dict[str, Any]]:
    """The last line may be cut: it was being written."""
    lines: list[dict[str, Any]] = []
    if path.exists():
        for text in path.read_text().splitlines():
            try:
                lines.append(json.loads(text))
            except ValueError:
                break
    return lines


def _is_whole(folder: Path, file: DumpFile) -> bool:
    path = folder / file.name
    return path.is_file() and path.stat().st_size == file.bytes and sha256_of(path) == file.sha256
