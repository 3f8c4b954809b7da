"""What is wrong with a dump, each thing with the file it shows in. No Spark, no store, no node."""

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from quipu.dumps import limits, manifest
from quipu.dumps.buckets import bucket_digests
from quipu.dumps.headers import FROM_HEADER, decode, id_of
from quipu.dumps.manifest import (
    BUCKETS_TABLE,
    MANIFEST_FILE,
    DumpFile,
    Manifest,
    ManifestUnreadable,
    ManifestWrong,
)
from quipu.dumps.places import LocalPlace, Place
from quipu.dumps.tables import arrow_schema, eid_of
from quipu.verify.values import is_signed


class Flaw(StrEnum):
    """Kinds of problems: the first five could not be read, the others were and are wrong."""

    UNFINISHED = "unfinished"
    UNREADABLE = "unreadable"
    FORMAT_UNKNOWN = "format-unknown"
    FILE_MISSING = "file-missing"
    FILE_CUT = "file-cut"
    MANIFEST_WRONG = "manifest-wrong"
    FILE_STRAY = "file-stray"
    FILE_CHANGED = "file-changed"
    TABLE_WRONG = "table-wrong"
    ROWS_WRONG = "rows-wrong"
    CONTENT_WRONG = "content-wrong"
    BUCKETS_WRONG = "buckets-wrong"
    CLUSTER_FOREIGN = "cluster-foreign"
    CHAIN_BROKEN = "chain-broken"


UNREADABLE = (
    Flaw.UNFINISHED,
    Flaw.UNREADABLE,
    Flaw.FORMAT_UNKNOWN,
    Flaw.FILE_MISSING,
    Flaw.FILE_CUT,
)


class Problem(NamedTuple):
    flaw: Flaw
    file: str  # as the caller named the dump, and the file in it
    what: str

    @property
    def is_unreadable(self) -> bool:
        return self.flaw in UNREADABLE

    def __str__(self) -> str:
        return f"{self.file}: {self.what} ({self.flaw})"


class CheckedDump(NamedTuple):
    place: Place
    manifest: Manifest | None  # None: there is nothing to go on from
    problems: list[Problem]

    @property
    def folder(self) -> Path:
        """Of one on this machine."""
        assert isinstance(self.place, LocalPlace)
        return self.place.folder


Looked = Callable[[str, int, int], None]  # what is looked at, how many files done, of how many


def check_files(folder: Path, looked: Looked = lambda what, done, total: None) -> CheckedDump:
    """The manifest, its signature, and every file by its size and hash."""
    return check_place(LocalPlace(folder), looked)


def check_place(place: Place, looked: Looked = lambda what, done, total: None) -> CheckedDump:
    problems: list[Problem] = []
    try:
        found = manifest.manifest_at(place)
    except (ManifestUnreadable, ManifestWrong) as error:
        return CheckedDump(place, None, [_of_manifest(place, error)])
    for done, file in enumerate(found.files):
        looked(file.name, done, len(found.files))
        problems.extend(_of_file(place, file))
    problems.extend(_strays(place, found))
    return CheckedDump(place, found, problems)


def _of_manifest(place: Place, error: Exception) -> Problem:
    file, flaw = place.file(MANIFEST_FILE), Flaw.MANIFEST_WRONG
    if isinstance(error, ManifestUnreadable):
        flaw = Flaw.FORMAT_UNKNOWN if "format" in str(error) else Flaw.UNREADABLE
        if place.is_folder() and MANIFEST_FILE not in place.names():
            return Problem(Flaw.UNFINISHED, file, "there is no manifest: it is written last")
    return Problem(flaw, file, str(error))


def _of_file(place: Place, file: DumpFile) -> Iterator[Problem]:
    path = place.file(file.name)
    try:
        size = place.size(file.name)
        if size < file.bytes:
            yield Problem(Flaw.FILE_CUT, path, f"{size} bytes of {file.bytes}")
        elif size > file.bytes or place.sha256(file.name) != file.sha256:
            yield Problem(Flaw.FILE_CHANGED, path, "is not the file that was written")
    except FileNotFoundError:
        yield Problem(Flaw.FILE_MISSING, path, "is not there")
    except OSError as error:
        yield Problem(Flaw.UNREADABLE, path, error.strerror or str(error))


def _strays(place: Place, found: Manifest) -> Iterator[Problem]:
    known = {MANIFEST_FILE, *(file.name for file in found.files)}
    for name in place.names():
        if name not in known:
            yield Problem(Flaw.FILE_STRAY, place.file(name), "is not named by the manifest")


def check_together(dumps: Sequence[CheckedDump]) -> list[Problem]:
    """Whether these can be compared: one cluster; of one node, each dump behind the one before."""
    known = [(dump.place, dump.manifest) for dump in dumps if dump.manifest is not None]
    problems = []
    for place, found in known:
        file = place.file(MANIFEST_FILE)
        if found.cluster_id != known[0][1].cluster_id:
            what = f"cluster {found.cluster_id[:16]}, the first is {known[0][1].cluster_id[:16]}"
            problems.append(Problem(Flaw.CLUSTER_FOREIGN, file, what))
        problems.extend(_of_chain(file, found, [m for p, m in known if p is not place]))
    return problems


def _of_chain(file: str, found: Manifest, others: list[Manifest]) -> Iterator[Problem]:
    """A later manifest names the hash of the one before."""
    for other in others:
        same = (other.node_id, other.number) == (found.node_id, found.number - 1)
        if same and found.previous and found.previous != other.hash.hex():
            what = f"dump {found.number} does not name dump {other.number} that is given with it"
            yield Problem(Flaw.CHAIN_BROKEN, file, what)


# --- contents -------------------------------------------------------------------------------------
def check_contents(checked: CheckedDump, signatures: bool = False) -> list[Problem]:
    """Rows, columns, ids, edges and buckets of the files that are sound. With `signatures` also
    every event's, which costs far more than all the rest."""
    folder, found = checked.folder, checked.manifest
    assert found is not None
    broken = {problem.file for problem in checked.problems}
    problems: list[Problem] = []
    read_ids: list[bytes] = []
    for file in found.files:
        path = folder / file.name
        if file.table == BUCKETS_TABLE or str(path) in broken:
            continue
        problems.extend(_of_table(path, file))
        if file.table == "events" and not problems:
            problems.extend(_of_events(path, found, read_ids, signatures))
    if not problems and not any(problem.is_unreadable for problem in checked.problems):
        problems.extend(_of_buckets(folder, found, read_ids))
    return problems[: limits.PROBLEMS_KEPT_MAX]


def _of_table(path: Path, file: DumpFile) -> Iterator[Problem]:
    try:
        shape = pq.read_metadata(path)
        schema = pq.read_schema(path)
    except (pa.ArrowException, OSError) as error:
        yield Problem(Flaw.UNREADABLE, str(path), f"is not Parquet: {error}"[:200])
        return
    if not schema.equals(arrow_schema(file.table)):
        yield Problem(Flaw.TABLE_WRONG, str(path), f"has not the columns of {file.table}")
    if shape.num_rows != file.rows:
        what = f"{shape.num_rows} rows, the manifest says {file.rows}"
        yield Problem(Flaw.ROWS_WRONG, str(path), what)


def _of_events(
    path: Path, found: Manifest, read_ids: list[bytes], signatures: bool
) -> Iterator[Problem]:
    wrong: list[str] = []
    for batch in pq.ParquetFile(path).iter_batches(limits.READ_ROWS):
        columns = [batch.column(name).to_pylist() for name in FROM_HEADER]
        of_header = zip(*columns, strict=True)
        fields = ("id", "eid", "header", "signature", "state")
        kept = zip(*[batch.column(name).to_pylist() for name in fields], strict=True)
        for (identity, eid, header, signature, state), row in zip(kept, of_header, strict=True):
            decoded = decode(header)
            holds = (
                decoded is not None
                and id_of(header) == identity
                and eid_of(identity) == eid
                and decoded.columns == row
                and decoded.cluster_id.hex() == found.cluster_id
            )
            if not holds or (signatures and not is_signed(row[0], "event", identity, signature)):
                wrong.append(identity.hex())
            if state == "read":
                read_ids.append(identity)
    if wrong:
        yield Problem(Flaw.CONTENT_WRONG, str(path), _named(wrong))


def _named(wrong: list[str]) -> str:
    shown = " ".join(wrong[: limits.CULPRITS_NAMED_MAX])
    more = len(wrong) - limits.CULPRITS_NAMED_MAX
    return f"events that are not what they say: {shown}" + (f" and {more} more" if more > 0 else "")


def _of_buckets(folder: Path, found: Manifest, read_ids: list[bytes]) -> Iterator[Problem]:
    for name in found.names(BUCKETS_TABLE):
        if bucket_digests(sorted(set(read_ids))) != (folder / name).read_bytes():
            what = "are not the digests of the Read events of this dump"
            yield Problem(Flaw.BUCKETS_WRONG, str(folder / name), what)
    if len(read_ids) != found.read:
        what = f"{len(read_ids)} Read events, the manifest says {found.read}"
        yield Problem(Flaw.ROWS_WRONG, str(folder / MANIFEST_FILE), what)
