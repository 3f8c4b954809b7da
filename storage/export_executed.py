"""What the executor of a node keeps, as rows of a dump: of one read transaction of its database."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from quipu.dumps.tables import as_long
from quipu.storage import limits
from quipu.storage.executors.connection import Connection, connect, raise_named
from quipu.storage.executors.snapshots import DATABASE_FILE
from quipu.storage.export_notes import ExportRefused
from quipu.storage.export_rows import Row

CLIENTS = """SELECT c.client_id, k.public, c.last_id, c.released, coalesce(k.proof, x'') <> x''
    FROM quipu_clients c LEFT JOIN quipu_keys k USING (client_id) ORDER BY client_id"""
EXECUTED = """SELECT position, digest FROM quipu_marks
    UNION SELECT applied, digest FROM quipu_state ORDER BY position"""
RESULTS = """SELECT client_id, message_id, request, digest, content
    FROM quipu_results ORDER BY client_id, message_id"""


class Piece(NamedTuple):
    """Rows of one file."""

    table: str
    number: int
    rows: list[Row]


def has_executed(folder: Path | None) -> bool:
    """Whether an executor has ever been opened there."""
    return folder is not None and (folder / DATABASE_FILE).is_file()


def executed_pieces(folder: Path, cluster_id: bytes) -> Iterator[Piece]:
    """Raises `StoreError`. The node may go on executing meanwhile."""
    file = folder / DATABASE_FILE
    try:
        with closing(connect(file, readonly=True)) as connection:
            connection.execute("BEGIN")
            (theirs,) = connection.execute("SELECT cluster FROM quipu_state").fetchone()
            if theirs != cluster_id:
                raise ExportRefused(f"{file} is of another cluster")
            yield Piece("clients", 0, _clients(connection))
            yield Piece("executed", 0, [tuple(row) for row in connection.execute(EXECUTED)])
            yield from _results(connection)
    except sqlite3.Error as error:
        raise_named(error, file)


def _clients(connection: Connection) -> list[Row]:
    return [
        (number, key, as_long(last_id), as_long(released), bool(ended))
        for number, key, last_id, released, ended in connection.execute(CLIENTS)
    ]


def _results(connection: Connection) -> Iterator[Piece]:
    rows: list[Row] = []
    number = held_bytes = 0
    for client_id, message_id, request, digest, content in connection.execute(RESULTS):
        rows.append((client_id, as_long(message_id), request, digest, content))
        held_bytes += len(content)
        if held_bytes >= limits.EXPORT_RESULTS_BYTES_MAX:
            yield Piece("results", number, rows)
            rows, number, held_bytes = [], number + 1, 0
    yield Piece("results", number, rows)
