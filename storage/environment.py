"""The LMDB environment of one store: its files, its owner, its tables, its snapshot.

It turns what LMDB, the disk and the directory can answer into errors with a name.
"""

import errno
import faulthandler
import fcntl
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import IO, NamedTuple, NoReturn, TypeAlias, cast

import lmdb
from lmdb import _Database

from quipu.storage import limits
from quipu.storage.store import (
    DiskFailed,
    OutcomeUnknown,
    StoreClosed,
    StoreError,
    StoreFull,
)

DATA_FILE = "data.mdb"
DATA_MODE = 0o600
LOCK_FILE = "lock.mdb"  # of LMDB; made anew whenever it is missing
OWNER_FILE = "owner.lock"
PROBE_FILE = "room.probe"
CRASH_FILE = "crash.log"  # what the interpreter wrote when a fatal signal ended it

Table: TypeAlias = _Database
# Generic for the type checker alone.
ReadTxn: TypeAlias = "lmdb.Transaction[memoryview]"
WriteTxn: TypeAlias = "lmdb.Transaction[bytes]"


class StoreMissing(StoreError):
    """There is no store in that directory."""


class StoreLocked(StoreError):
    """Another process has it open, or this one has it open twice."""


class StoreDamaged(StoreError):
    """The structure of the file is broken, not one record: set it aside, begin anew."""


class Tables(NamedTuple):
    meta: Table  # format, owner, own state
    events: Table  # slot -> the event
    ids: Table  # prefix of an id -> slots
    edges: Table  # slot of a parent | slot of a child -> nothing; prev edges are the slots
    feed: Table  # number -> id
    branches: Table
    invs: Table  # signer | number -> Inv
    signers: Table  # signer -> its newest Inv
    proofs: Table
    epochs: Table
    keyed: Table  # scope of an idempotency key | slot | index -> nothing
    # None: of the first format, and only read; the first open for writing makes them.
    log: Table | None = None  # index -> entry
    votes: Table | None = None  # what this node promised, accepted and knows of the log

    @property
    def named(self) -> list[tuple[str, Table]]:
        """Those that are there."""
        pairs = zip(self._fields, self, strict=True)
        return [(name, table) for name, table in pairs if table is not None]

    @property
    def entries_of_log(self) -> Table:
        assert self.log is not None
        return self.log

    @property
    def votes_of_log(self) -> Table:
        assert self.votes is not None
        return self.votes


ADDED = 2  # the last ones, which the first format lacks


STRUCTURAL = (
    lmdb.CorruptedError,
    lmdb.PageNotFoundError,
    lmdb.InvalidError,
    lmdb.VersionMismatchError,
    lmdb.CursorFullError,
    lmdb.PageFullError,
    lmdb.IncompatibleError,
    lmdb.BadValsizeError,
    lmdb.NotFoundError,
    lmdb.BadTxnError,  # an earlier call of that transaction met an error and did not say so
)
_NO_ROOM = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))


def raise_named(error: lmdb.Error, path: Path) -> NoReturn:
    """What an error of LMDB means, where nothing was being written."""
    if isinstance(error, STRUCTURAL):
        _note_damage(path, error)
        raise StoreDamaged(f"{path}: {error}") from error
    kind = DiskFailed if _code_of(error) > 0 else StoreError
    raise kind(f"{path}: {error}") from error


def _note_damage(path: Path, error: lmdb.Error) -> None:
    """A node that meets it at work may not meet it when it is started again: then every page is
    looked at, as after a crash."""
    with suppress(OSError):
        fd = os.open(path / CRASH_FILE, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        with open(fd, "wb") as crash:
            crash.write(f"{error}\n".encode())


def _code_of(error: lmdb.Error) -> int:
    """Positive: an errno. LMDB's own codes are negative, and the binding's errors have none."""
    return getattr(error, "code", 0)


def raise_uncommitted(error: lmdb.Error, path: Path, bytes_wanted: int) -> NoReturn:
    """What an error of LMDB means that ended a write transaction."""
    if isinstance(error, lmdb.PanicError):
        raise OutcomeUnknown(f"{path}: {error}") from error
    code = _code_of(error)
    # A short write, which is how a full disk mostly shows, is EIO to LMDB.
    if code in _NO_ROOM or (code == errno.EIO and not has_room(path, bytes_wanted)):
        raise StoreFull(f"{path}: {error}") from error
    raise_named(error, path)


def has_room(path: Path, bytes_wanted: int) -> bool:
    """Whether the data file could grow: asked of a sparse file of the same length beside it, which
    meets the same disk, quota and limit on the size of a file."""
    probe = path / PROBE_FILE
    try:
        fd = os.open(probe, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(fd, (path / DATA_FILE).stat().st_size, bytes_wanted)
        finally:
            os.close(fd)
            probe.unlink(missing_ok=True)
    except OSError as error:
        return error.errno not in _NO_ROOM
    return True


def sync_directory(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def lock_owner(path: Path) -> int:
    """Takes the directory for this process until the descriptor is closed."""
    fd = os.open(path / OWNER_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = os.read(fd, 32).decode(errors="replace").strip()
        os.close(fd)
        raise StoreLocked(f"{path} is open in process {holder or '?'}") from error
    with suppress(OSError):  # a full disk is no reason not to start: reading goes on
        os.pwrite(fd, f"{os.getpid():<15}\n".encode(), 0)
    return fd


@dataclass(slots=True)
class Snapshot:
    """The last commit, as readers see it: one read transaction for all reads up to the next.

    Used as a context it gives the transaction and holds the lock, so that the map is never moved
    under a reader. What is read as a memoryview must not leave the context.
    """

    env: lmdb.Environment
    path: Path
    _lock: Lock = field(default_factory=Lock)
    _txn: "ReadTxn | None" = None
    _closed: bool = False

    def __enter__(self) -> ReadTxn:
        self._lock.acquire()
        txn = self._txn
        if txn is None:
            try:
                txn = self._txn = self._begin()
            except BaseException:
                self._lock.release()
                raise
        return txn

    def _begin(self) -> ReadTxn:
        if self._closed:
            raise StoreClosed(str(self.path))
        try:
            return self.env.begin(buffers=True)
        except lmdb.MapResizedError:  # another process writes; this one only reads
            self.env.set_mapsize(0)
            return self.env.begin(buffers=True)
        except lmdb.Error as error:
            raise_named(error, self.path)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, lmdb.Error):
            self._end()  # LMDB refuses any further read in a transaction that met an error
        self._lock.release()
        if isinstance(error, lmdb.Error):
            raise_named(error, self.path)

    def renew(self) -> None:
        """The next read sees what has been committed since. Ended at once and not when that read
        comes: pages that a waiting snapshot pins are never used again."""
        with self._lock:
            self._end()

    def grow(self, map_bytes: int) -> None:
        """Moves the map: no transaction of this process may be open."""
        with self._lock:
            self._end()
            self.env.set_mapsize(map_bytes)

    def close(self) -> None:
        with self._lock:
            self._end()
            self._closed = True

    def _end(self) -> None:
        if self._txn is not None:
            self._txn.abort()
            self._txn = None


def open_environment(path: Path, map_bytes: int, *, readonly: bool = False) -> lmdb.Environment:
    data = path / DATA_FILE
    size = data.stat().st_size if data.exists() else 0
    while map_bytes < 2 * size:
        map_bytes *= 2
    try:
        env = lmdb.Environment(
            str(path),
            map_size=map_bytes,
            readonly=readonly,
            create=not readonly,
            mode=DATA_MODE,
            max_dbs=limits.TABLES_MAX,
            sync=True,
            metasync=True,
            writemap=False,
            # A node reads here and there: with readahead a cold start of 300,000 events takes 75
            # to 100 ms in place of 10, and memory fills with neighbours that nobody asked for.
            # Copies and verification read all of it in order, which readahead makes a third faster.
            readahead=readonly,
            lib_version=0,  # the file format of LMDB 0.9, whatever the binding's default becomes
        )
    except lmdb.Error as error:
        raise_named(error, path)
    try:
        if not readonly:
            env.reader_check()  # a reader that was killed pins its pages until somebody looks
        _refuse_cut_file(env, path)
    except BaseException:
        env.close()
        raise
    return env


def refuse_after_crash(path: Path) -> None:
    """Some damage makes LMDB abort the process when it is met, so that a node would start, meet it
    and die again and again. After such an end every page is looked at before LMDB is."""
    crash, data = path / CRASH_FILE, path / DATA_FILE
    if not all(file.exists() and file.stat().st_size for file in (crash, data)):
        return
    broken = broken_pages(path)
    if broken:
        raise StoreDamaged(f"{path}: {broken[0]}")
    crash.replace(path / f"{CRASH_FILE}.last")


def note_crashes(path: Path) -> IO[bytes]:
    """Before LMDB touches the file: it may be the start that meets the damage."""
    crash_log = (path / CRASH_FILE).open("ab")
    faulthandler.enable(crash_log)
    return crash_log


def end_notes(crash_log: IO[bytes] | None) -> None:
    if crash_log is not None:
        faulthandler.disable()
        crash_log.close()


def open_readonly(path: Path) -> lmdb.Environment:
    """Beside a node that is writing, or alone."""
    if not (path / DATA_FILE).is_file():
        raise StoreMissing(f"{path} holds no store")
    return open_environment(path, limits.MAP_BYTES_FIRST, readonly=True)


def last_commit_ms(path: Path) -> int:
    """Of a store that nobody has open: LMDB writes its file at every commit."""
    return (path / DATA_FILE).stat().st_mtime_ns // 1_000_000


def _refuse_cut_file(env: lmdb.Environment, path: Path) -> None:
    """A page of the map behind the end of the file would kill the process when it is touched.

    The last pages of a sound file can be missing, too, when they were taken and freed by one
    transaction. So a short file is a suspicion, and the walk over its pages decides."""
    pages = (path / DATA_FILE).stat().st_size // env.stat()["psize"]
    if env.info()["last_pgno"] < pages:
        return
    broken = broken_pages(path)
    if broken:
        raise StoreDamaged(f"{path}: {broken[0]}")


def broken_pages(path: Path) -> list[str]:
    """Walks every page of the committed trees without LMDB's help. Its cost grows with the file."""
    from lmdb.verify import VerifyError, verify

    try:
        return [str(finding) for finding in cast(list[object], verify(str(path)))]  # type: ignore[no-untyped-call]
    except VerifyError as error:
        return [str(error)]


def open_tables(env: lmdb.Environment, path: Path, *, create: bool) -> Tables:
    """All tables, or none: they are made together, so a store that lacks one has lost it. Whether
    it may lack those that were added, its format says (`ownership`)."""
    names = [name.encode() for name in Tables._fields]
    try:
        if create and env.stat()["entries"] == 0:
            with env.begin(write=True) as txn:
                return Tables(*[env.open_db(name, txn=txn) for name in names])
        found = [_open_table(env, name) for name in names]
    except lmdb.Error as error:
        raise_uncommitted(error, path, limits.MIB)
    first, added = found[:-ADDED], found[-ADDED:]
    tables = [table for table in first if table is not None]
    if not any(found):
        raise StoreMissing(f"{path} holds no store")
    if len(tables) < len(first) or any(added) != all(added):
        raise StoreDamaged(f"{path}: a table is missing")
    log, votes = added
    return Tables(*tables)._replace(log=log, votes=votes)


def add_tables(env: lmdb.Environment, txn: WriteTxn, tables: Tables) -> Tables:
    return tables._replace(log=env.open_db(b"log", txn=txn), votes=env.open_db(b"votes", txn=txn))


def _open_table(env: lmdb.Environment, name: bytes) -> Table | None:
    try:
        return env.open_db(name, create=False)
    except lmdb.NotFoundError:
        return None


def touch_tables(txn: ReadTxn, tables: Tables) -> None:
    """Walks down both edges of every tree, so that damage near a root shows when it is opened."""
    for _, table in tables.named:
        with txn.cursor(table) as cursor:
            ends = (cursor.first(), cursor.last())
        if ends != (txn.stat(table)["entries"] > 0,) * 2:
            raise lmdb.CorruptedError("the records of a table are not as many as it counts")


def records_from(
    txn: ReadTxn, table: Table, start: bytes = b""
) -> Iterator[tuple[memoryview, memoryview]]:
    """The records from that key on, in order. The views end with the transaction."""
    with txn.cursor(table) as cursor:
        if cursor.set_range(start) if start else cursor.first():
            yield from cursor.iternext()
