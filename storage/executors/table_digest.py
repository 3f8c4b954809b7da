"""A digest of all tables: exact, in one order, and blind to how the file lays them out.

Rows come by rowid, or by primary key where there is none. The rowid counts: the next one follows
from it. Types count as SQLite stores them: 1, 1.0, '1' and x'31' are four values.
"""

import hashlib
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Final

import msgspec

from quipu.storage.executors.connection import Connection
from quipu.storage.executors.guards import quoted, rowid_names
from quipu.storage.executors.request import Digest

_TEXT: Final = 1  # msgpack extension: a text need not be UTF-8, and is not a blob
_OWN: Final = (
    "SELECT client_id, acl, last_id, released, kept_bytes FROM quipu_clients ORDER BY client_id",
    """SELECT client_id, message_id, request, digest, weight FROM quipu_results
        ORDER BY client_id, message_id""",
    "SELECT record FROM quipu_registry",
    "SELECT id, rules FROM quipu_lists ORDER BY id",
    "SELECT client_id, public, proof FROM quipu_keys ORDER BY client_id",
    """SELECT client_id, message_id, digest, signature, data FROM quipu_signed
        ORDER BY client_id, message_id""",
)
_encode = msgspec.msgpack.Encoder().encode


def table_digest(connection: Connection) -> Digest:
    """Within one read transaction of the caller's."""
    tables = _tables(connection)
    keys = {name: rowid_names(connection, name)[0] for name, without in tables if not without}
    connection.text_factory = partial(msgspec.msgpack.Ext, _TEXT)
    try:
        running = hashlib.sha256(b"quipu tables\0")
        for part in _parts(connection, [name for name, _ in tables], keys):
            running.update(part)
        return Digest(running.digest())
    finally:
        connection.text_factory = str


def _tables(connection: Connection) -> list[tuple[str, bool]]:
    """The apps' tables, and whether each is without rowids."""
    return sorted(
        (name, bool(without))
        for schema, name, kind, _columns, without, _strict in connection.execute(
            "PRAGMA table_list"
        )
        if schema == "main" and kind == "table" and not name.lower().startswith(_RESERVED)
    )


_RESERVED: Final = ("quipu_", "sqlite_")


def _parts(
    connection: Connection, tables: list[str], keys: dict[str, str | None]
) -> Iterator[bytes]:
    yield from _rows(
        connection.execute(
            "SELECT type, name, tbl_name, sql FROM sqlite_schema"
            " WHERE tbl_name NOT LIKE 'quipu\\_%' ESCAPE '\\' ORDER BY type, name"
        )
    )
    for table in tables:
        key = keys.get(table)
        shown = f"{key}, *" if key is not None else "*"
        order = f" ORDER BY {key}" if key is not None else ""
        name = quoted(table)
        yield from _rows(connection.execute(f"SELECT {shown} FROM {name} NOT INDEXED{order}"))  # noqa: S608
    if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_sequence'").fetchone():
        yield from _rows(connection.execute("SELECT name, seq FROM sqlite_sequence ORDER BY name"))
    for query in _OWN:
        yield from _rows(connection.execute(query))


def _rows(rows: Iterable[tuple[Any, ...]]) -> Iterator[bytes]:
    for row in rows:
        yield _encode(row)
    yield _encode(None)  # the end of a part: no row can be taken for one of the next
