"""The manifest: what a dump consists of, signed by its node, written last.

It is JSON in one canonical form: sorted keys, no spaces, ASCII, integers and strings. Its hash is
tagged and signed like everything else of the ledger.
"""

import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from quipu.dumps import limits
from quipu.dumps.places import LocalPlace, Place
from quipu.dumps.tables import TABLES
from quipu.dumps.whole import write_whole
from quipu.verify.values import is_signed, tagged

FORMAT = "quipudump/1"
MANIFEST_FILE = "manifest.json"
UNSIGNED_FILE = "manifest.unsigned"  # all but the signature
NOTES_FILE = "unfinished.ndjson"  # of an export under way
ENTRIES_CHOICES = ("described", "with data", "none")
BUCKETS_TABLE = "buckets"
TAG = "dump"
SIGNATURE_TAG = b"quipu/sig/dump/1\0"
NUMBERS = (
    "number",
    "taken_ms",
    "as_of_ms",
    "feed_from",
    "feed_upto",
    "events",
    "read",
    "history_from",
    "feed_first",
)
_HEX_ID = re.compile(r"[0-9a-f]{64}\Z")
_NAME = re.compile(r"[a-z]+/[a-z0-9-]+\.(parquet|bin)\Z")


class ManifestUnreadable(Exception):
    """There is none, or it is not of a form that this program knows."""


class ManifestWrong(Exception):
    """It is there and says what cannot be true, or its signature does not fit."""


@dataclass(frozen=True, slots=True)
class DumpFile:
    table: str
    name: str  # path inside the dump
    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    cluster_id: str
    node_id: str
    genesis_sha256: str
    number: int  # of this dump in its directory, from 1
    previous: str  # hash of the manifest before it; empty: none
    taken_ms: int
    as_of_ms: int  # last commit that is in it
    feed_from: int  # first position that this dump added
    feed_upto: int  # last position in it
    events: int
    read: int
    entries: str  # "none", "described", or "with data"
    absent: tuple[str, ...]  # tables that this node has no source for
    receipt_marks: tuple[tuple[int, int, int], ...]  # signer_no, newest number, Invs up to it
    files: tuple[DumpFile, ...]
    signature: str = ""
    history_from: int = 0  # the epoch whose cut it begins with; 0: it has all
    feed_first: int = 1  # first position in it

    @property
    def hash(self) -> bytes:
        return tagged(TAG, canonical(_unsigned(self)))

    @property
    def buckets_sha256(self) -> str:
        """Equal where two nodes have the same Read events."""
        return next((f.sha256 for f in self.files if f.table == BUCKETS_TABLE), "")

    def names(self, table: str) -> list[str]:
        return [file.name for file in self.files if file.table == table]


def canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _unsigned(manifest: Manifest) -> dict[str, Any]:
    fields = asdict(manifest)
    del fields["signature"]
    if not manifest.history_from:  # as dumps were before there was pruning
        del fields["history_from"], fields["feed_first"]
    return {"format": FORMAT, **fields}


def to_bytes(manifest: Manifest) -> bytes:
    return canonical({**_unsigned(manifest), "signature": manifest.signature})


def from_bytes(data: bytes) -> Manifest:
    """Raises `ManifestUnreadable` or `ManifestWrong`; the signature is not looked at."""
    fields = _fields(data)
    known = fields.pop("format", None)
    if known != FORMAT:
        raise ManifestUnreadable(f"format {str(known)[:40]!r}, this program reads {FORMAT}")
    try:
        found = _manifest(fields)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise ManifestWrong(f"its fields are not those of {FORMAT}: {error}") from error
    if to_bytes(found) != data:
        raise ManifestWrong("it is not in its canonical form")
    return found


def _fields(data: bytes) -> dict[str, Any]:
    if len(data) > limits.MANIFEST_BYTES_MAX:
        raise ManifestUnreadable(f"it has over {limits.MANIFEST_BYTES_MAX} bytes")
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ManifestUnreadable(f"it is not JSON: {error}") from error
    if type(fields) is not dict:
        raise ManifestUnreadable("it is not a JSON object")
    return fields


def _manifest(fields: dict[str, Any]) -> Manifest:
    files = tuple(DumpFile(**file) for file in fields.pop("files"))
    absent = tuple(fields.pop("absent"))
    marks = tuple((no, number, count) for no, number, count in fields.pop("receipt_marks"))
    found = Manifest(**fields, files=files, absent=absent, receipt_marks=marks)
    for name in NUMBERS:
        _need(type(getattr(found, name)) is int, f"{name} is a number")
    _need(type(found.previous) is str and type(found.signature) is str, "hashes are texts")
    _need(all(type(number) is int for mark in marks for number in mark), "marks are numbers")
    for name in ("cluster_id", "node_id", "genesis_sha256"):
        _need(_HEX_ID.match(getattr(found, name)) is not None, f"{name} is no id")
    _need(found.entries in ENTRIES_CHOICES, f"entries {found.entries!r}")
    _need(len(files) <= limits.FILES_MAX, "too many files")
    for file in files:
        _need(file.table in TABLES or file.table == BUCKETS_TABLE, f"table {file.table!r}")
        _need(len(file.name) <= limits.NAME_CHARS_MAX, "a file's name is too long")
        _need(_NAME.match(file.name) is not None, f"file name {file.name!r}")
        _need(file.name.startswith(f"{file.table}/"), f"{file.name} is not of {file.table}")
        _need(type(file.rows) is int and type(file.bytes) is int, "sizes are numbers")
    _need(len({file.name for file in files}) == len(files), "a file stands twice")
    return found


def _need(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(what)


def signed(manifest: Manifest, sign: Callable[[bytes], bytes]) -> Manifest:
    return replace(manifest, signature=sign(SIGNATURE_TAG + manifest.hash).hex())


def check_signature(manifest: Manifest) -> None:
    """Raises `ManifestWrong`."""
    if not manifest.signature:
        raise ManifestWrong("it is not signed")
    try:
        signature = bytes.fromhex(manifest.signature)
    except ValueError:
        signature = b""
    if not is_signed(bytes.fromhex(manifest.node_id), TAG, manifest.hash, signature):
        raise ManifestWrong(f"it is not signed by node {manifest.node_id[:16]}")


def read_manifest(folder: Path) -> Manifest:
    """Signed by the node that it names. Raises `ManifestUnreadable` or `ManifestWrong`."""
    return manifest_at(LocalPlace(folder))


def manifest_at(place: Place) -> Manifest:
    try:
        found = from_bytes(place.read(MANIFEST_FILE))
    except OSError as error:
        raise ManifestUnreadable(error.strerror or str(error)) from error
    check_signature(found)
    return found


def finish(folder: Path, sign: Callable[[bytes], bytes]) -> Manifest:
    """Signs what `UNSIGNED_FILE` says: from here on it is a dump."""
    waiting = folder / UNSIGNED_FILE
    made = signed(from_bytes(waiting.read_bytes()), sign)
    write_whole(folder / MANIFEST_FILE, to_bytes(made))
    _clear(folder, {MANIFEST_FILE, *(file.name for file in made.files)})
    return made


def _clear(folder: Path, named: set[str]) -> None:
    """What only the dump before named, and what an interrupted one left; nothing else."""
    ours = [folder / UNSIGNED_FILE, folder / NOTES_FILE]
    for table in (*TABLES, BUCKETS_TABLE):
        ours += sorted((folder / table).glob("*"))
    for path in ours:
        if path.is_file() and path.relative_to(folder).as_posix() not in named:
            path.unlink()
