"""Dumps as tables: of each table one DataFrame over all copies, with the column `copy`."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)
from pyspark.storagelevel import StorageLevel

from quipu.dumps import tables
from quipu.dumps.checking import CheckedDump
from quipu.dumps.manifest import Manifest
from quipu.dumps.places import Place

_TYPES: dict[str, DataType] = {
    tables.ID: BinaryType(),
    tables.LONG: LongType(),
    tables.INT: IntegerType(),
    tables.TEXT: StringType(),
    tables.BYTES: BinaryType(),
    tables.BOOL: BooleanType(),
    tables.BYTES_LIST: ArrayType(BinaryType()),
}
# What the checks of structure need of an event: a third of its bytes.
SLIM = (
    *("copy", "id", "eid", "author", "author_no", "journal", "seq", "branch", "epoch", "prev"),
    *("hlc", "depth", "state", "feed_pos", "bytes"),
)
PLACE = ("eid", "id")  # they decide in which partition an event lies


@dataclass(frozen=True, slots=True)
class Copy:
    """One dump, under the name that the findings call it by."""

    name: str
    place: Place
    manifest: Manifest
    broken: frozenset[str] = frozenset()  # files that cannot be used


@dataclass(slots=True)
class Ledger:
    spark: SparkSession
    copies: Sequence[Copy]
    _tables: dict[str, DataFrame] = field(default_factory=dict)
    _kept: list[DataFrame] = field(default_factory=list)

    def table(self, name: str) -> DataFrame:
        if name not in self._tables:
            self._tables[name] = self._read(name)
        return self._tables[name]

    @property
    def slim(self) -> DataFrame:
        """Events with a hash of their bytes in place of them; kept, for nearly every check reads
        them, and laid out so that what joins or groups them by their ids need not move them."""
        if "slim" not in self._tables:
            rows = self.table("events").withColumn(
                "bytes", F.xxhash64("header", "signature", "body_bytes")
            )
            partitions = int(self.spark.conf.get("spark.sql.shuffle.partitions") or 1)
            laid_out = rows.select(*SLIM).repartition(partitions, *PLACE)
            self._tables["slim"] = self.keep(laid_out.sortWithinPartitions(*PLACE, "copy"))
        return self._tables["slim"]

    def keep(self, frame: DataFrame) -> DataFrame:
        self._kept.append(frame.persist(StorageLevel.MEMORY_AND_DISK))
        return frame

    def release(self) -> None:
        for frame in self._kept:
            frame.unpersist()
        self._kept.clear()
        self._tables.clear()

    @property
    def cluster_id(self) -> bytes:
        return bytes.fromhex(self.copies[0].manifest.cluster_id)

    def _read(self, name: str) -> DataFrame:
        parts = [self._read_copy(copy, name) for copy in self.copies]
        return reduce(DataFrame.unionByName, parts)

    def _read_copy(self, copy: Copy, name: str) -> DataFrame:
        whole = [n for n in copy.manifest.names(name) if n not in copy.broken]
        paths = [copy.place.file(n) for n in whole]
        schema = schema_of(name)
        if paths:
            rows = self.spark.read.schema(schema).parquet(*paths)
        else:
            rows = self.spark.createDataFrame([], schema)
        return rows.withColumn("copy", F.lit(copy.name))


def schema_of(table: str) -> StructType:
    columns = tables.TABLES[table]
    return StructType([StructField(c.name, _TYPES[c.kind], c.optional) for c in columns])


def named_copies(dumps: Sequence[CheckedDump], names: dict[str, str]) -> list[Copy]:
    """Each by its node's name in the roster; where one node has several, with the dump's number."""
    usable = [(dump, dump.manifest) for dump in dumps if dump.manifest is not None]
    often = Counter(manifest.node_id for _, manifest in usable)
    copies = []
    for dump, manifest in usable:
        name = names.get(manifest.node_id, manifest.node_id[:16])
        if often[manifest.node_id] > 1:
            name += f"@{manifest.number}"
        prefix = len(dump.place.file(""))
        broken = frozenset(problem.file[prefix:] for problem in dump.problems)
        copies.append(Copy(name, dump.place, manifest, broken))
    return copies
