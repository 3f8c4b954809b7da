"""The authorizer: SQLite asks it about everything that a statement would do before it runs.

What it does not know is denied. The first denial is the one that is told.
"""

import sqlite3
from dataclasses import dataclass, field

from quipu.storage.executors import limits
from quipu.storage.executors.acl import NOTHING, Acl, Right, folded
from quipu.storage.executors.functions import DETERMINISTIC, TABLE_FUNCTIONS
from quipu.storage.executors.outcome import Code
from quipu.storage.executors.sql_text import Words

OWN = "quipu_"  # names of our own tables and triggers
GUARD = "quipu_guard_"
_RESERVED = (OWN, "sqlite_", "pragma_")
_MASTER = frozenset(["sqlite_master", "sqlite_schema"])
_BOOKS = _MASTER | {"sqlite_temp_master", "sqlite_temp_schema", "sqlite_sequence"}
_WRITES = frozenset([sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE])
_OF_TABLE = frozenset(  # the second name is the table
    [
        sqlite3.SQLITE_CREATE_INDEX,
        sqlite3.SQLITE_DROP_INDEX,
        sqlite3.SQLITE_CREATE_TRIGGER,
        sqlite3.SQLITE_DROP_TRIGGER,
    ]
)
_OF_NAME = frozenset(  # the first name is the table or view
    [
        sqlite3.SQLITE_CREATE_TABLE,
        sqlite3.SQLITE_DROP_TABLE,
        sqlite3.SQLITE_CREATE_VIEW,
        sqlite3.SQLITE_DROP_VIEW,
    ]
)


@dataclass(slots=True)
class Gate:
    """Closed only while a client's statement is at hand; the executor's own pass."""

    modules: frozenset[str]  # virtual tables that exist without being created
    any_function: bool = False  # a query at one node need not agree with others
    closed: bool = False
    acl: Acl = NOTHING
    words: Words = Words("", "", None)
    names: frozenset[str] = frozenset()  # tables and views there are, folded
    denied: tuple[Code, str] | None = None
    _granted: dict[tuple[str, Right], bool] = field(default_factory=dict)
    _passed: dict[tuple[object, ...], None] = field(default_factory=dict)  # nothing against these
    _passed_of: tuple[str, str, bool] = ("", "", False)
    _passed_names: frozenset[str] = frozenset()

    def close(self, acl: Acl, words: Words) -> None:
        """The statement of these words is that of a client with these rights."""
        if acl is not self.acl:
            self._granted.clear()
            self._passed.clear()
            self.acl = acl
        self.words, self.denied, self.closed = words, None, True
        # SQLite asks the same for each statement alike: a hundred INSERT in a row are looked at
        # once. All that an answer rests on is compared here.
        of = (words.first, words.second, self.any_function)
        if of != self._passed_of or self.names is not self._passed_names:
            self._passed.clear()
            self._passed_of, self._passed_names = of, self.names

    def open(self) -> None:
        self.closed = False

    def __call__(
        self,
        action: int,
        first: str | None,
        second: str | None,
        database: str | None,
        within: str | None,
    ) -> int:
        if not self.closed:
            return sqlite3.SQLITE_OK
        asked = (action, first, second, within)
        if asked in self._passed:
            return sqlite3.SQLITE_OK
        denial = self._denial(action, first or "", second or "", within or "")
        if denial is None:
            if len(self._passed) < limits.ANSWERS_OF_GATE_MAX:
                self._passed[asked] = None
            return sqlite3.SQLITE_OK
        if self.denied is None:
            self.denied = denial
        return sqlite3.SQLITE_DENY

    def _denial(self, action: int, first: str, second: str, within: str) -> tuple[Code, str] | None:
        match action:
            case sqlite3.SQLITE_SELECT | sqlite3.SQLITE_RECURSIVE:
                return None
            case sqlite3.SQLITE_FUNCTION:
                return self._function(second)
            case sqlite3.SQLITE_READ:
                return self._read(first, second, within)
            case _ if action in _WRITES:
                return self._write(action, first, second)
            case sqlite3.SQLITE_ALTER_TABLE:
                return self.schema_change(second)
            case _ if action in _OF_NAME:
                if folded(first) == "sqlite_sequence":  # comes with the first AUTOINCREMENT
                    return None
                return self.schema_change(first)
            case _ if action in _OF_TABLE:
                own = folded(first).startswith(OWN)  # SQLite keeps names of its own to itself
                return _reserved(first) if own else self.schema_change(second)
            case sqlite3.SQLITE_REINDEX if self.words.first == "CREATE":
                return None
            case sqlite3.SQLITE_DROP_TEMP_TRIGGER if first.startswith(GUARD) and self._drops_table:
                return None
        return Code.NOT_ALLOWED, _named(action, first, second)

    @property
    def _drops_table(self) -> bool:
        return self.words.first == "DROP" and self.words.second == "TABLE"

    @property
    def _rewrites_schema(self) -> bool:
        return self.words.first in {"ALTER", "DROP"}

    def schema_change(self, name: str) -> tuple[Code, str] | None:
        reserved = _reserved(name)
        if reserved is None and folded(name) in self.modules | TABLE_FUNCTIONS:
            reserved = (Code.NOT_ALLOWED, f"the name {name} is taken by SQLite")
        return reserved or self._right(name, Right.SCHEMA)

    def _function(self, name: str) -> tuple[Code, str] | None:
        if self.any_function or folded(name) in DETERMINISTIC:
            return None
        return Code.NOT_DETERMINISTIC, f"{name} may have another value on each executor"

    def _read(self, table: str, column: str, within: str) -> tuple[Code, str] | None:
        name = folded(table)
        if within.startswith(GUARD) or name in TABLE_FUNCTIONS:
            return None
        if name in _BOOKS:
            # Creating a table and first calling a table function read the rowid alone.
            if (
                self._rewrites_schema
                or column == "ROWID"
                or (self.any_function and name in _MASTER)
            ):
                return None
            return Code.NOT_ALLOWED, f"{table} is not read: its pages differ between executors"
        if not column and name not in self.names and name not in self.modules:
            return _reserved(table)  # a name that WITH has made
        if name in self.modules:
            return Code.NOT_ALLOWED, f"the table function {table} is not executed"
        return _reserved(table) or self._right(table, Right.READ)

    def _write(self, action: int, table: str, column: str) -> tuple[Code, str] | None:
        name = folded(table)
        if name in _MASTER:  # SQLite itself: a statement that names it is refused before it asks
            return None
        if name in _BOOKS and self._rewrites_schema:
            return None
        if action == sqlite3.SQLITE_UPDATE and column == "ROWID":
            return Code.NOT_ALLOWED, "a rowid is changed by its INTEGER PRIMARY KEY alone"
        if action == sqlite3.SQLITE_DELETE and self._drops_table:
            return self.schema_change(table)
        return _reserved(table) or self._right(table, Right.WRITE)

    def _right(self, table: str, right: Right) -> tuple[Code, str] | None:
        granted = self._granted.get((table, right))
        if granted is None:
            granted = self._granted[table, right] = self.acl.grants(table, right)
        return None if granted else (Code.NO_RIGHT, f"no right to {right.name} {table}")


def _reserved(name: str) -> tuple[Code, str] | None:
    if folded(name).startswith(_RESERVED):
        return Code.NOT_ALLOWED, f"the name {name} is reserved"
    return None


_ACTIONS = {
    sqlite3.SQLITE_PRAGMA: "PRAGMA",
    sqlite3.SQLITE_ATTACH: "ATTACH",
    sqlite3.SQLITE_DETACH: "DETACH",
    sqlite3.SQLITE_TRANSACTION: "a transaction",
    sqlite3.SQLITE_SAVEPOINT: "a savepoint",
    sqlite3.SQLITE_ANALYZE: "ANALYZE",
    sqlite3.SQLITE_REINDEX: "REINDEX",
    sqlite3.SQLITE_CREATE_VTABLE: "a virtual table",
    sqlite3.SQLITE_DROP_VTABLE: "a virtual table",
    sqlite3.SQLITE_CREATE_TEMP_TABLE: "a temporary table",
    sqlite3.SQLITE_CREATE_TEMP_VIEW: "a temporary view",
    sqlite3.SQLITE_CREATE_TEMP_TRIGGER: "a temporary trigger",
    sqlite3.SQLITE_CREATE_TEMP_INDEX: "a temporary index",
    sqlite3.SQLITE_DROP_TEMP_TRIGGER: "DROP of a temporary trigger",
}


def _named(action: int, first: str, second: str) -> str:
    what = _ACTIONS.get(action, f"action {action}")
    return f"{what} is not executed: {first or second}"
