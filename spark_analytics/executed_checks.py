"""E: what executors came to, each by itself and beside each other. Silent without executors.

Each is as far as it was when its dump was made: compared is what several have.
"""

from collections.abc import Iterator

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType

from quipu.dumps.outcomes import digest_of
from quipu.dumps.tables import OF_EXECUTORS
from quipu.spark_analytics.findings import found
from quipu.spark_analytics.reading import Ledger


def has_executed(ledger: Ledger) -> bool:
    return any(
        file.rows and file.table in OF_EXECUTORS
        for copy in ledger.copies
        for file in copy.manifest.files
    )


def checks(ledger: Ledger) -> Iterator[DataFrame]:
    if not has_executed(ledger):
        return
    clients, results = ledger.table("clients"), ledger.table("results")
    yield keys(clients)
    yield gaps(clients, results)
    yield digests(results)
    yield differing(results)
    yield states(ledger.table("executed"))


def keys(clients: DataFrame) -> DataFrame:
    kinds = clients.groupBy("client_id").agg(F.countDistinct("key").alias("kinds"))
    several = kinds.where("kinds > 1").withColumn("copy", F.lit("*"))
    return found(several, "clients.key", F.col("client_id"), "")


def gaps(clients: DataFrame, results: DataFrame) -> DataFrame:
    """What a client does not hold yet is there, all of it and nothing else."""
    there = results.groupBy("copy", "client_id").agg(
        F.count("*").alias("rows"),
        F.countDistinct("message_id").alias("ids"),
        F.min("message_id").alias("first"),
        F.max("message_id").alias("last"),
    )
    known = clients.select("copy", "client_id", "watermark", "released")
    both = known.join(there, ["copy", "client_id"], "full_outer")
    due = F.col("watermark") - F.col("released")
    ends = (F.col("first") == F.col("released") + 1) & (F.col("last") == F.col("watermark"))
    is_whole = (F.col("rows") == due) & (F.col("ids") == due) & ends
    is_empty = F.col("rows").isNull() & (due == 0)
    wrong = both.where(~F.coalesce(is_whole | is_empty, F.lit(False)))
    due_text = F.concat_ws(" to ", F.col("released") + 1, F.col("watermark"))
    there_text = F.concat_ws(" to ", "first", "last")
    detail = F.concat(due_text, F.lit(" are due, there: "), there_text)
    return found(wrong, "results.gap", F.col("client_id"), detail)


def digests(results: DataFrame) -> DataFrame:
    made = F.udf(lambda result: digest_of(bytes(result)), BinaryType())
    wrong = results.where(~F.coalesce(made("result") == F.col("digest"), F.lit(False)))
    return found(wrong, "results.digest", _message(), "")


def differing(results: DataFrame) -> DataFrame:
    said = F.struct("request", "digest")
    kinds = results.groupBy("client_id", "message_id").agg(F.countDistinct(said).alias("kinds"))
    several = kinds.where("kinds > 1").withColumn("copy", F.lit("*"))
    return found(several, "results.differ", _message(), "")


def states(executed: DataFrame) -> DataFrame:
    """The first index at which two executors do not stand alike; what follows follows from it."""
    kinds = executed.groupBy("log_index").agg(F.countDistinct("digest").alias("kinds"))
    first = kinds.where("kinds > 1").agg(F.min("log_index").alias("first"))
    place = first.where(F.col("first").isNotNull()).withColumn("copy", F.lit("*"))
    return found(place, "results.state", F.col("first"), "executors differ from here on")


def _message() -> Column:
    return F.concat_ws("/", "client_id", "message_id")
