"""A connection to an executor's database, set up alike on every machine."""

import hashlib
import platform
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import NoReturn

from quipu.storage.executors import limits
from quipu.storage.store import DiskFailed, StoreCorrupt, StoreError, StoreFull

Connection = sqlite3.Connection

_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: limits.VALUE_BYTES_MAX,
    # EXPLAIN stands before a statement that is checked; the text has its own bound.
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 2 * limits.SQL_BYTES_MAX,
    sqlite3.SQLITE_LIMIT_COLUMN: limits.COLUMNS_MAX,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: limits.EXPRESSION_DEPTH_MAX,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: limits.COMPOUND_SELECTS_MAX,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: limits.FUNCTION_ARGUMENTS_MAX,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: limits.LIKE_PATTERN_BYTES_MAX,
    sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: limits.PARAMETERS_MAX,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: limits.TRIGGER_DEPTH_MAX,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
# What decides outcomes is said here and not left to how the library was built.
_SETTINGS = (
    "PRAGMA foreign_keys = ON",
    "PRAGMA recursive_triggers = OFF",
    "PRAGMA trusted_schema = OFF",
    "PRAGMA temp_store = MEMORY",
    f"PRAGMA cache_size = -{limits.CACHE_KIB}",
    "PRAGMA mmap_size = 0",
)
_NO_ROOM = sqlite3.SQLITE_FULL
_DAMAGED = frozenset([sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB])
_PRIMARY = 0xFF  # the low octet of an extended result code


class SqliteTooOld(StoreError):
    """The library that Python came with lacks what executors need."""


@cache
def engine() -> str:
    """What must be equal for outcomes to be: plans, formats and functions go by the version and by
    how it was built, and conversions of floats by the processor."""
    with closing(sqlite3.connect(":memory:")) as connection:
        options = sorted(o for (o,) in connection.execute("PRAGMA compile_options"))
    told = "\n".join(o for o in options if not o.startswith("COMPILER="))
    build = hashlib.sha256(told.encode()).hexdigest()[:8]
    return f"sqlite {sqlite3.sqlite_version} {platform.machine()} {build}"


def connect(file: Path, *, readonly: bool = False) -> Connection:
    if sqlite3.sqlite_version_info < limits.SQLITE_VERSION_LEAST:
        least = ".".join(map(str, limits.SQLITE_VERSION_LEAST))
        raise SqliteTooOld(f"SQLite {sqlite3.sqlite_version}, at least {least}")
    connection = sqlite3.connect(
        f"{file.absolute().as_uri()}?mode={'ro' if readonly else 'rwc'}",
        uri=True,
        timeout=limits.BUSY_TIMEOUT_S,
        isolation_level=None,  # transactions are begun and ended by name
        check_same_thread=False,  # whoever owns it uses it from one thread at a time
        # A statement that was prepared before goes on counting its steps where it ended, so a
        # cached one would give up at another place than a fresh one.
        cached_statements=0,
    )
    try:
        for category, most in _LIMITS.items():
            connection.setlimit(category, most)
        for setting in _SETTINGS:
            connection.execute(setting)
        if not readonly:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute(f"PRAGMA wal_autocheckpoint = {limits.WAL_PAGES}")
    except sqlite3.Error as error:
        connection.close()
        raise_named(error, file)
    return connection


def modules_of(connection: Connection) -> frozenset[str]:
    return frozenset(name.lower() for (name,) in connection.execute("PRAGMA module_list"))


def raise_named(error: sqlite3.Error, file: Path) -> NoReturn:
    code = getattr(error, "sqlite_errorcode", 0) & _PRIMARY
    if code == _NO_ROOM:
        raise StoreFull(f"{file}: {error}") from error
    if code in _DAMAGED:
        raise StoreCorrupt("executor", str(file), str(error)) from error
    kind = DiskFailed if code == sqlite3.SQLITE_IOERR else StoreError
    raise kind(f"{file}: {error}") from error


Passing = Callable[[str], None]  # told at each named place; tests make the process die there
