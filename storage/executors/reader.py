"""Looking at an executor's database without touching it: queries, and checks before the order.

Connections of their own, read-only: they see the last commit and never hold up a turn. What is read
here is this executor's state now; that no newer entry is ordered, only the log can tell.
"""

import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from quipu.storage.executors import limits
from quipu.storage.executors.acl import EVERYTHING, Acl, decode_acl
from quipu.storage.executors.connection import connect, modules_of
from quipu.storage.executors.database import Database
from quipu.storage.executors.executor import Mark, RequestRefused
from quipu.storage.executors.gate import Gate
from quipu.storage.executors.interpreter import Interpreter, SqlInterpreter
from quipu.storage.executors.outcome import Code, MessageFailed, Row, Value, encoded_bytes
from quipu.storage.executors.request import CHECKPOINT, Request
from quipu.storage.executors.snapshots import state_of
from quipu.storage.executors.sql_text import checked


class Table(NamedTuple):
    """What a query found."""

    applied: Mark  # the state it was read from
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    complete: bool  # False: there is more than one answer holds


class QueryFailed(Exception):
    """A query that is not answered, and why."""

    def __init__(self, code: Code, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail


class Reader:
    def __init__(self, file: Path, interpreter: Interpreter) -> None:
        self._file = file
        self._interpreter = interpreter
        self._lock = Lock()  # queries may come from another thread than turns
        self._connection = connect(file, readonly=True)
        self._gate = Gate(modules_of(self._connection))
        self._database = Database(self._connection, self._gate)
        self._database.attach()

    def validate(self, request: Request) -> None:
        """Raises RequestRefused, by the rights and tables of the last commit."""
        if len(request.messages) > limits.MESSAGES_PER_REQUEST_MAX:
            detail = f"over {limits.MESSAGES_PER_REQUEST_MAX} messages"
            raise RequestRefused(0, Code.TOO_MANY_MESSAGES, detail)
        with self._lock:
            self._validate(request)

    def validate_at_once(self, request: Request) -> bool:
        """The same, where it is known to take no time to speak of. False: it may, and is not
        done."""
        bodies = [len(message.body) for message in request.messages]
        is_small = len(bodies) <= limits.CHECKED_AT_ONCE_MESSAGES
        if not is_small or sum(bodies) > limits.CHECKED_AT_ONCE_BYTES:
            return False
        if not isinstance(self._interpreter, SqlInterpreter):
            return False  # what an app's own does nobody knows
        if not self._lock.acquire(blocking=False):  # a query may take seconds
            return False
        try:
            self._validate(request)
        finally:
            self._lock.release()
        return True

    def _validate(self, request: Request) -> None:
        rights = self._rights(request.client_id)
        self._database.begin(rights if self._interpreter.as_client else EVERYTHING)
        self._database.follow()
        for number, message in enumerate(request.messages):
            if message.kind == CHECKPOINT:
                continue
            try:
                self._interpreter.validate(request, message, self._database)
            except MessageFailed as failed:
                raise RequestRefused(number, failed.code, failed.detail) from failed

    def _rights(self, client_id: int) -> Acl:
        found = self._connection.execute(
            "SELECT acl, kept_bytes FROM quipu_clients WHERE client_id = ?", (client_id,)
        ).fetchone()
        if found is None:
            raise RequestRefused(0, Code.UNKNOWN_CLIENT, f"client {client_id}")
        acl, kept_bytes = found
        if kept_bytes > limits.KEPT_BYTES_PER_CLIENT_MAX:
            detail = f"over {limits.KEPT_BYTES_PER_CLIENT_MAX} bytes of results wait to be read"
            raise RequestRefused(0, Code.RESULTS_UNREAD, detail)
        return decode_acl(acl)

    def query(
        self,
        sql: str,
        parameters: Sequence[Value] = (),
        rights: Acl = EVERYTHING,
        time_s: float = limits.QUERY_TIME_S_MAX,
    ) -> Table:
        """Rows of the last commit. Any function may be called; nothing can be written."""
        ends = time.monotonic() + min(time_s, limits.QUERY_TIME_S_MAX)
        with self._lock:
            try:
                words = checked(sql)
                self._connection.execute("BEGIN")
                applied, _ = state_of(self._connection)
                self._database.load_names()
                self._gate.any_function = True
                self._gate.close(rights, words)
                self._connection.set_progress_handler(
                    lambda: time.monotonic() > ends, limits.QUERY_STEPS_PER_LOOK
                )
                return self._table(applied, sql, parameters)
            except MessageFailed as failed:
                raise QueryFailed(failed.code, failed.detail) from failed
            except (sqlite3.Error, sqlite3.Warning, OverflowError) as error:
                raise self._query_failed(error) from error
            finally:
                self._end()

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def _table(self, applied: Mark, sql: str, parameters: Sequence[Value]) -> Table:
        cursor = self._connection.execute(sql, parameters)
        columns = tuple(column[0] for column in cursor.description or ())
        rows: list[Row] = []
        size = 0
        try:
            for row in cursor:
                size += encoded_bytes(row)
                if len(rows) == limits.QUERY_ROWS_MAX or size > limits.QUERY_BYTES_MAX:
                    return Table(applied, columns, tuple(rows), complete=False)
                rows.append(row)
        finally:
            cursor.close()
        return Table(applied, columns, tuple(rows), complete=True)

    def _query_failed(self, error: Exception) -> QueryFailed:
        code = getattr(error, "sqlite_errorcode", 0)
        if code == sqlite3.SQLITE_INTERRUPT:
            return QueryFailed(Code.STEPS_SPENT, "the time is over")
        if code == sqlite3.SQLITE_READONLY:
            return QueryFailed(Code.NOT_ALLOWED, "a query writes nothing")
        failed = self._database.failure(error)
        return QueryFailed(failed.code, failed.detail)

    def _end(self) -> None:
        self._gate.open()
        self._gate.any_function = False
        self._database.attach()
        if self._connection.in_transaction:
            self._connection.execute("COMMIT")
