"""What the checks find: one row a culprit, and what each check means."""

from collections.abc import Iterable
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

CHECKS = {
    "files": "every file is whole, is the one that was signed, and can be read",
    "config.chain": "genesis and epoch documents follow each other, sealed, alike in all copies",
    "config.members": "the table of members is what the documents say",
    "events.id": "the id is the hash of the header",
    "events.columns": "the columns and edges of an event are those of its header",
    "events.signature": "the author's signature is valid",
    "events.author": "the author is a member of the event's epoch",
    "events.root": "the entries give the root and the count that the header names",
    "receipts.columns": "the rows of a receipt are those of its signed bytes",
    "receipts.signature": "the signer's signature is valid, and it is a member of that epoch",
    "receipts.conflict": "a signer acknowledges one event for a slot, and signs a number once",
    "receipts.lacking": "who acknowledged an event holds it",
    "dag.duplicate": "an event stands once in a dump",
    "dag.stray-edge": "every edge begins at an event",
    "dag.missing-parent": "prev and parents are there",
    "dag.prev": "prev is the event before it in the cord",
    "dag.root": "what has no prev is the first of a cord",
    "dag.depth": "depth is 1 + the greatest below: with this no loop is possible",
    "dag.loop": "no event is its own ancestor",
    "dag.causality": "hlc and epoch do not fall from an event to one that names it",
    "dag.feed": "a Read event became Read after all below it, and positions have no holes",
    "dag.fork": "a slot has one event",
    "dag.island": "everything hangs on the genesis",
    "copies.buckets": "the digests of a dump are those of its Read events",
    "copies.missing": "what was final is in every copy",
    "copies.bytes": "one id has the same bytes everywhere",
    "copies.stuck": "what was final is Read in every copy",
    "copies.unproven": "what is Read has its receipts, or stands in a cut",
    "copies.shrunk": "a later dump of a node holds all that an earlier one held",
    "order.gap": "indexes and positions have no holes and no repetitions",
    "order.chain": "each message's hash is the next one's prev",
    "order.regime": "regimes do not fall",
    "order.diverges": "all copies have one order: the first index at which they do not",
    "order.extension": "an event is ordered once, and after prev and parents",
    "order.unknown": "what is ordered is Read",
    "order.certificate": "the newest index is signed by a majority of its serializers",
    "clients.key": "a client has one key in all copies",
    "results.gap": "results that a client does not hold yet are there, without a hole",
    "results.digest": "the digest is that of the stored result",
    "results.differ": "executors came to one result for a message",
    "results.state": "executors stand alike at one index: the first at which they do not",
}
COLUMNS = ("check", "copy", "subject", "detail")
SCHEMA = StructType([StructField(name, StringType(), False) for name in COLUMNS])


class Finding(NamedTuple):
    """`copy` is the dump in which it shows, `subject` the exact thing that is wrong."""

    check: str
    copy: str
    subject: str
    detail: str


def found(rows: DataFrame, check: str, subject: Column, detail: Column | str) -> DataFrame:
    """These rows as findings; they have a column `copy`."""
    assert check in CHECKS, check
    said = F.lit(detail) if isinstance(detail, str) else detail
    return rows.select(
        F.lit(check).alias("check"),
        F.col("copy"),
        subject.cast("string").alias("subject"),
        F.coalesce(said.cast("string"), F.lit("")).alias("detail"),
    )


def of_rows(spark: SparkSession, rows: Iterable[Finding]) -> DataFrame:
    return spark.createDataFrame([tuple(row) for row in rows], SCHEMA)


def hex_of(name: str) -> Column:
    return F.lower(F.hex(F.col(name)))


def cord_text() -> Column:
    return F.concat_ws("/", F.col("author_no"), F.col("journal"))


def slot_text() -> Column:
    return F.concat_ws("/", F.col("author_no"), F.col("journal"), F.col("seq"))


def unsigned(name: str) -> Column:
    """Orders LONGs as the 64 bits without a sign that they are."""
    return F.col(name).bitwiseXOR(F.lit(-(2**63)))
