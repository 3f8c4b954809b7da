"""`spark.read.format("quipu")`: a dump's table, or the final entries of a running node.

What is read is verified first. Of a dump: the manifest's signature, and each file by its SHA-256
before a row of it is parsed. Of a node: each entry by its finality bundle. For bulk work read the
Parquet of a dump natively, after `quipu export --verify`.
"""

import json
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from quipu.dumps.checking import check_files
from quipu.dumps.limits import READ_ROWS
from quipu.dumps.tables import TABLES, as_long, eid_of
from quipu.spark_analytics import limits
from quipu.spark_analytics.reading import schema_of
from quipu.verify.bundle import verify
from quipu.verify.values import BUNDLE_BYTES_MAX, array_of, bytes_of, decoded

ENTRIES = "entries"


class NotBelieved(Exception):
    """What was to be read is not what was signed, or could not be read."""


def register(spark: SparkSession) -> None:
    """From here on this session knows the format `quipu`."""
    spark.dataSource.register(QuipuDataSource)


class QuipuDataSource(DataSource):
    """Options: `path` (a dump's directory or http(s)://…), `table` (events, of a node entries),
    for a node `genesis` (the cluster id in hex, which pins the cluster) and `token`."""

    @classmethod
    def name(cls) -> str:
        return "quipu"

    def schema(self) -> StructType:
        return schema_of(self._table)

    def reader(self, schema: StructType) -> DataSourceReader:
        path = self.options.get("path", "")
        if not self._is_node:
            return DumpReader(Path(path), self._table)
        if self._table != ENTRIES:
            raise ValueError(f"a node gives {ENTRIES}; {self._table} are in a dump")
        genesis = bytes.fromhex(self.options.get("genesis", ""))
        if not genesis:
            raise ValueError("say which cluster you mean: option genesis, its id in hex")
        return NodeReader(path.rstrip("/"), genesis, self.options.get("token", ""))

    @property
    def _is_node(self) -> bool:
        return str(self.options.get("path", "")).startswith(("http://", "https://"))

    @property
    def _table(self) -> str:
        table = str(self.options.get("table", ENTRIES if self._is_node else "events"))
        if table not in TABLES:
            raise ValueError(f"no table {table!r}; there are {', '.join(TABLES)}")
        return table


class DumpFilePart(InputPartition):
    def __init__(self, name: str, digest: str) -> None:
        super().__init__(name)
        self.name = name
        self.digest = digest


class DumpReader(DataSourceReader):
    """A partition a file. Each is hashed where it is read: it may have changed since."""

    def __init__(self, folder: Path, table: str) -> None:
        self._folder = folder
        self._table = table

    def partitions(self) -> Sequence[InputPartition]:
        checked = check_files(self._folder)
        if checked.manifest is None or checked.problems:
            raise NotBelieved("; ".join(str(problem) for problem in checked.problems))
        return [
            DumpFilePart(file.name, file.sha256)
            for file in checked.manifest.files
            if file.table == self._table
        ]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, DumpFilePart):
            return  # the dump has no file of this table
        data = (self._folder / partition.name).read_bytes()
        if sha256(data).hexdigest() != partition.digest:
            raise NotBelieved(f"{self._folder / partition.name} is not the file that was signed")
        for batch in pq.ParquetFile(pa.BufferReader(data)).iter_batches(READ_ROWS):
            yield pa.RecordBatch.from_arrays(
                [_plain(column) for column in batch.columns], names=batch.schema.names
            )


def _plain(column: pa.Array) -> pa.Array:
    """Spark knows no binary of a fixed size."""
    return column.cast(pa.binary()) if pa.types.is_fixed_size_binary(column.type) else column


class ProvenEntry(NamedTuple):
    """A row of `entries`."""

    event: bytes
    eid: int
    position: int
    stream: str
    client_id: int | None
    message_id: int | None
    time_ms: int
    content_type: str
    data_bytes: int
    leaf_hash: bytes
    data: bytes


class NodeReader(DataSourceReader):
    """Final entries in the order of the node, one partition: a request for a page, one an entry."""

    def __init__(self, url: str, genesis: bytes, token: str = "") -> None:
        self._url = url
        self._genesis = genesis
        self._token = token

    def read(self, partition: InputPartition | None) -> Iterator[tuple[Any, ...]]:
        after = ""
        while True:
            asked = {"limit": limits.NODE_PAGE_ENTRIES} | ({"after": after} if after else {})
            page = json.loads(self._get(f"/v1/entries?{urlencode(asked)}"))
            for item in page["items"]:
                yield self._proven(str(item["id"]))
            if not page["more"]:
                return
            after = page["next"]

    def _proven(self, identity: str) -> ProvenEntry:
        """Raises `VerificationFailed`, or `NotBelieved` where the proof is of something else."""
        bundle = self._get(f"/v1/entries/{quote(identity)}/proof")
        found = verify(bundle, self._genesis)
        if f"{found.event_id.hex()}:{found.index}" != identity:
            raise NotBelieved(f"the node gave another entry's proof for {identity}")
        entry = found.entry
        fields = array_of(decoded(bundle, BUNDLE_BYTES_MAX, "bundle"), 10, "bundle")
        leaf = sha256(b"\0" + bytes_of(fields[6], "entry")).digest()
        return ProvenEntry(
            event=found.event_id,
            eid=eid_of(found.event_id),
            position=found.index,
            stream=entry.stream,
            client_id=entry.client_id,
            message_id=None if entry.message_id is None else as_long(entry.message_id),
            time_ms=as_long(entry.time_ms),
            content_type=entry.content_type,
            data_bytes=len(entry.data),
            leaf_hash=leaf,
            data=entry.data,
        )

    def _get(self, target: str) -> bytes:
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        request = Request(self._url + target, headers=headers)  # noqa: S310  # http(s) alone
        with urlopen(request, timeout=limits.NODE_ANSWER_S) as answer:  # noqa: S310
            data: bytes = answer.read(BUNDLE_BYTES_MAX)
        return data
