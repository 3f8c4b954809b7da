"""Statements of clients on one connection: within their rights, their steps and their rows.

A failure that every executor meets alike is MessageFailed. What only this machine meets, such as a
full disk, is raised as SQLite's own error: it must end the turn and never become a result.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from quipu.storage.executors import limits
from quipu.storage.executors.acl import EVERYTHING, Acl, folded
from quipu.storage.executors.connection import Connection
from quipu.storage.executors.gate import Gate
from quipu.storage.executors.guards import ROWID_SPENT, guard_rowids
from quipu.storage.executors.outcome import Code, MessageFailed, Result, Row, Value, encoded_bytes
from quipu.storage.executors.sql_text import SCHEMA_VERBS, Words, checked

_PRIMARY: Final = 0xFF  # the low octet of an extended result code
# Codes that follow from the statement and the data, so that every executor meets them.
_OF_STATEMENT: Final = {
    sqlite3.SQLITE_ERROR: Code.BAD_SQL,
    sqlite3.SQLITE_CONSTRAINT: Code.CONSTRAINT,
    sqlite3.SQLITE_MISMATCH: Code.WRONG_TYPE,
    sqlite3.SQLITE_TOOBIG: Code.VALUE_TOO_LARGE,
    sqlite3.SQLITE_RANGE: Code.BAD_PARAMETERS,
    sqlite3.SQLITE_AUTH: Code.NOT_ALLOWED,
}
_CONSTRAINTS: Final = {
    sqlite3.SQLITE_CONSTRAINT_UNIQUE: Code.NOT_UNIQUE,
    sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY: Code.NOT_UNIQUE,
    sqlite3.SQLITE_CONSTRAINT_ROWID: Code.NOT_UNIQUE,
    sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY: Code.FOREIGN_KEY,
    sqlite3.SQLITE_CONSTRAINT_NOTNULL: Code.NOT_NULL,
    sqlite3.SQLITE_CONSTRAINT_CHECK: Code.CHECK,
}


class TurnLost(Exception):
    """SQLite ends the whole transaction when a statement that writes is stopped at its last step.
    The turn is run again, and then that message is known to fail."""


@dataclass(slots=True)
class Budget:
    """What is left of one request."""

    counts: int = field(default_factory=lambda: limits.REQUEST_STEPS_MAX // limits.STEPS_PER_COUNT)
    rows: int = limits.RESULT_ROWS_MAX
    result_bytes: int = limits.RESULT_BYTES_MAX

    def take_columns(self, columns: tuple[str, ...]) -> None:
        self._take_bytes(columns)

    def take(self, row: Row) -> None:
        self.rows -= 1
        if self.rows < 0:
            raise MessageFailed(Code.RESULT_TOO_LARGE, f"over {limits.RESULT_ROWS_MAX} rows")
        self._take_bytes(row)

    def _take_bytes(self, row: Row) -> None:
        self.result_bytes -= encoded_bytes(row)
        if self.result_bytes < 0:
            raise MessageFailed(Code.RESULT_TOO_LARGE, f"over {limits.RESULT_BYTES_MAX} bytes")


@dataclass(slots=True)
class Database:
    """What an interpreter is given: `execute`, and nothing that could end the transaction."""

    connection: Connection
    gate: Gate
    rights: Acl = EVERYTHING
    budget: Budget = field(default_factory=Budget)
    _schema_touched: bool = False
    _schema: int = -1  # the version that names and `_checked` are of
    _checked: dict[tuple[str, int], Acl] = field(default_factory=dict)  # text and values: rights

    def attach(self) -> None:
        """Makes itself the connection's judge."""
        self.connection.set_authorizer(self.gate)
        self.connection.set_progress_handler(self._count, limits.STEPS_PER_COUNT)

    def begin(self, rights: Acl) -> None:
        """The next statements belong to another request."""
        self.rights, self.budget, self._schema_touched = rights, Budget(), False

    def execute(self, sql: str, parameters: Sequence[Value] = ()) -> Result:
        """Runs one statement. Raises MessageFailed."""
        if not self.connection.in_transaction:  # whoever caught the first: nothing may follow it
            raise TurnLost
        words = checked(sql)
        self.gate.close(self.rights, words)
        before = self.connection.total_changes
        cursor: sqlite3.Cursor | None = None
        try:
            cursor = self.connection.execute(sql, parameters)
            result = self._result(cursor, before)
        except (sqlite3.Error, sqlite3.Warning, OverflowError) as error:
            raise self.failure(error) from error
        finally:
            if cursor is not None:
                cursor.close()
            self.gate.open()
        if words.first in SCHEMA_VERBS:
            self._follow_schema(words)
        return result

    def check(self, sql: str, parameters: Sequence[Value] = ()) -> None:
        """Prepares one statement and does not run it. Raises MessageFailed where it could never
        run; a table that is missing may be there by the time it is executed."""
        place = (sql, len(parameters))
        if self._checked.get(place) is self.rights:
            return
        self._check(sql, parameters)
        if len(self._checked) >= limits.STATEMENTS_CHECKED_MAX:
            self._checked.clear()
        if len(sql) <= limits.STATEMENT_KEPT_CHARACTERS_MAX:
            self._checked[place] = self.rights

    def _check(self, sql: str, parameters: Sequence[Value]) -> None:
        words = checked(sql)
        self.gate.close(self.rights, words)
        try:
            self.connection.execute("EXPLAIN " + sql, parameters).close()
        except (sqlite3.Error, sqlite3.Warning, OverflowError) as error:
            failed = self.failure(error)
            if failed.code is not Code.BAD_SQL or not str(error).startswith(_MAY_COME):
                raise failed from error
        finally:
            self.gate.open()

    def rolled_back(self) -> None:
        """The names are those of before; read while nothing is counted, for SQLite loads a changed
        schema with the next statement and counts its steps."""
        if self._schema_touched:
            self.load_names()
            self._schema_touched = False

    def follow(self) -> None:
        """What another connection has made of the tables."""
        (version,) = self.connection.execute("PRAGMA schema_version").fetchone()
        if version != self._schema:
            self._checked.clear()
            self.load_names()
            self._schema = version

    def load_names(self) -> None:
        rows = self.connection.execute(
            "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')"
        )
        self.gate.names = frozenset(folded(name) for (name,) in rows)

    def _count(self) -> bool:
        """SQLite calls it every so many steps of a statement; True ends the statement."""
        if not self.gate.closed:
            return False
        self.budget.counts -= 1
        return self.budget.counts < 0

    def _result(self, cursor: sqlite3.Cursor, before: int) -> Result:
        if cursor.description is None:
            return Result(Code.OK, changes=self.connection.total_changes - before)
        columns = tuple(column[0] for column in cursor.description)
        self.budget.take_columns(columns)
        rows: list[Row] = []
        for row in cursor:
            self.budget.take(row)
            rows.append(row)
        changes = self.connection.total_changes - before
        return Result(Code.OK, columns, tuple(rows), changes)

    def _follow_schema(self, words: Words) -> None:
        self._schema_touched = True
        before = self.gate.names
        self.load_names()
        if words.first == "ALTER":  # SQLite does not ask about the name that a table gets
            for name in sorted(self.gate.names - before):
                if (denial := self.gate.schema_change(name)) is not None:
                    raise MessageFailed(*denial)
        guard_rowids(self.connection, anew=words.first == "ALTER")

    def failure(self, error: Exception) -> MessageFailed:
        """What a client is told; raises the error itself where it is not the client's doing."""
        if isinstance(error, OverflowError):
            return MessageFailed(Code.BAD_PARAMETERS, "an integer of over 64 bits")
        extended = getattr(error, "sqlite_errorcode", None)
        if extended is None:
            return _of_binding(error)
        primary = extended & _PRIMARY
        if self.gate.denied is not None and primary in {sqlite3.SQLITE_AUTH, sqlite3.SQLITE_ERROR}:
            return MessageFailed(*self.gate.denied)
        if primary == sqlite3.SQLITE_INTERRUPT and self.budget.counts < 0:
            if not self.connection.in_transaction:
                raise TurnLost from error
            return steps_spent()
        if str(error) == ROWID_SPENT:
            return MessageFailed(Code.ROWID_EXHAUSTED, "SQLite would choose the next at random")
        code = _CONSTRAINTS.get(extended, _OF_STATEMENT.get(primary))
        if code is None:
            raise error
        return MessageFailed(code, str(error))


_MAY_COME = ("no such table", "no such column", "no such index", "no such view", "no such trigger")


def steps_spent() -> MessageFailed:
    return MessageFailed(Code.STEPS_SPENT, f"over {limits.REQUEST_STEPS_MAX} steps")


def _of_binding(error: Exception) -> MessageFailed:
    """The binding's own errors have no code."""
    text = str(error)
    if "one statement" in text:
        return MessageFailed(Code.BAD_SQL, "more than one statement in a message")
    if "UTF-8" in text:
        return MessageFailed(Code.BAD_TEXT, "a text in the result is not UTF-8")
    if "binding" in text:
        return MessageFailed(Code.BAD_PARAMETERS, "another number of parameters than in the text")
    raise error
