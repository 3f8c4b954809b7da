"""Parquet files of a dump: each written whole, hashed, and never changed again."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from quipu.dumps.manifest import BUCKETS_TABLE, DumpFile
from quipu.dumps.tables import TABLES, arrow_schema
from quipu.dumps.whole import PARTIAL_END, put_in_place, sha256_of, write_whole

# Hashes, ids and signatures do not repeat: a dictionary of them only costs time and room.
_REPEATING = {"author", "author_no", "journal", "epoch", "state", "stream", "content_type"}
Rows = Sequence[tuple[Any, ...]]


def write_rows(folder: Path, table: str, stem: str, rows: Rows) -> DumpFile:
    """Rows in the order of the table's columns."""
    schema = arrow_schema(table)
    columns = zip(*rows, strict=True) if rows else ((),) * len(schema)
    arrays = [pa.array(c, field.type) for c, field in zip(columns, schema, strict=True)]
    return write_table(folder, table, stem, pa.Table.from_arrays(arrays, schema=schema))


def write_table(folder: Path, table: str, stem: str, content: pa.Table) -> DumpFile:
    name = f"{table}/{stem}.parquet"
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    partial = path.with_name(path.name + PARTIAL_END)
    repeating = [column.name for column in TABLES[table] if column.name in _REPEATING]
    pq.write_table(
        content,
        partial,
        compression="zstd",
        row_group_size=max(1, content.num_rows),
        use_dictionary=repeating,
    )
    put_in_place(partial, path)
    return DumpFile(table, name, content.num_rows, path.stat().st_size, sha256_of(path))


def write_buckets(folder: Path, stem: str, digests: bytes) -> DumpFile:
    name = f"{BUCKETS_TABLE}/{stem}.bin"
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    write_whole(path, digests)
    return DumpFile(BUCKETS_TABLE, name, 1, len(digests), sha256_of(path))
