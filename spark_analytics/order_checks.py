"""E: the order of each copy, and of all copies beside each other. Silent without a journal.

A copy has the log from above its base on: what lies below it was ordered, too, and no row says so.
"""

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from quipu.dumps.certificates import Newest, flaw_of
from quipu.spark_analytics.findings import found, hex_of
from quipu.spark_analytics.horizon import that_should_be_there
from quipu.spark_analytics.reading import Ledger

PLACE = ["index", "position"]


def checks(ledger: Ledger) -> Iterator[DataFrame]:
    if not any(
        file.rows
        for copy in ledger.copies
        for file in copy.manifest.files
        if file.table == "journal"
    ):
        return
    journal = ledger.keep(ledger.table("journal"))
    yield gaps(journal)
    yield from linked(journal)
    yield diverging(journal)
    yield extension(ledger, journal)
    yield repeated(journal)
    yield unknown(ledger, journal)
    yield certificates(ledger, journal)


def gaps(journal: DataFrame) -> DataFrame:
    """No index between the first and the last is missing, and in each positions 0 to the last."""
    by_index = journal.groupBy("copy", "index").agg(
        F.count("*").alias("rows"),
        F.countDistinct("position").alias("distinct"),
        F.max("position").alias("last"),
    )
    torn = by_index.where(
        (F.col("rows") != F.col("last") + 1) | (F.col("distinct") != F.col("rows"))
    )
    whole = found(torn, "order.gap", F.col("index"), "positions")
    following = by_index.select("copy", (F.col("index") + 1).alias("index"))
    last = by_index.groupBy("copy").agg((F.max("index") + 1).alias("end"))
    expected = following.join(last, "copy")
    absent = expected.where(F.col("index") < F.col("end")).join(
        by_index, ["copy", "index"], "left_anti"
    )
    return whole.unionByName(found(absent, "order.gap", F.col("index"), "is missing"))


def linked(journal: DataFrame) -> Iterator[DataFrame]:
    """Each message beside the one before it, by a join: a window would be one of a whole copy."""
    last = journal.groupBy("copy", "index").agg(F.max("position").alias("position"))
    ends = journal.join(last, ["copy", *PLACE]).select(
        "copy",
        (F.col("index") + 1).alias("index"),
        F.lit(0).alias("position"),
        F.col("message_hash").alias("before"),
        F.col("regime").alias("regime_before"),
    )
    within = journal.select(
        "copy",
        "index",
        (F.col("position") + 1).alias("position"),
        F.col("message_hash").alias("before"),
        F.col("regime").alias("regime_before"),
    )
    both = journal.join(ends.unionByName(within), ["copy", *PLACE])
    place = F.concat_ws("/", *PLACE)
    broken = both.where(F.col("prev_hash") != F.col("before"))
    yield found(broken, "order.chain", place, "prev is not the message before")
    falling = both.where(F.col("regime") < F.col("regime_before"))
    yield found(falling, "order.regime", place, F.col("regime"))


def diverging(journal: DataFrame) -> DataFrame:
    """The first place at which two copies that both have it do not say the same."""
    said = F.xxhash64("event", "message_hash", "regime")
    kinds = journal.groupBy(*PLACE).agg(F.countDistinct(said).alias("kinds"))
    first = kinds.where("kinds > 1").agg(F.min(F.struct(*PLACE)).alias("first"))
    place = first.where(F.col("first").isNotNull()).select("first.index", "first.position")
    return found(
        place.withColumn("copy", F.lit("*")),
        "order.diverges",
        F.concat_ws("/", *PLACE),
        "copies differ from here on",
    )


def _places(journal: DataFrame) -> DataFrame:
    ordered = journal.where(F.col("event").isNotNull())
    return ordered.groupBy("copy", "event").agg(F.min(F.struct(*PLACE)).alias("place"))


def extension(ledger: Ledger, journal: DataFrame) -> DataFrame:
    places = _places(journal)
    above = places.select("copy", F.col("event").alias("child"), F.col("place").alias("at"))
    below = places.select("copy", F.col("event").alias("parent"), F.col("place").alias("p_at"))
    edges = ledger.table("edges").select("copy", "child", "parent")
    first = journal.groupBy("copy").agg(F.min("index").alias("first"))
    both = edges.join(above, ["copy", "child"]).join(below, ["copy", "parent"], "left")
    early = both.join(first, "copy").where(
        (F.col("p_at").isNull() & (F.col("first") == 1)) | (F.col("p_at") >= F.col("at"))
    )
    return found(early, "order.extension", hex_of("child"), hex_of("parent"))


def repeated(journal: DataFrame) -> DataFrame:
    ordered = journal.where(F.col("event").isNotNull())
    often = ordered.groupBy("copy", "event").agg(F.count("*").alias("times")).where("times > 1")
    return found(often, "order.extension", hex_of("event"), F.col("times"))


def unknown(ledger: Ledger, journal: DataFrame) -> DataFrame:
    read = ledger.slim.where("state = 'read'").select("copy", F.col("id").alias("event"))
    lacking = journal.where(F.col("event").isNotNull()).join(read, ["copy", "event"], "left_anti")
    lacking = that_should_be_there(ledger, lacking)
    return found(lacking, "order.unknown", hex_of("event"), "")


def certificates(ledger: Ledger, journal: DataFrame) -> DataFrame:
    """Of the newest index alone: a signature covers all before it."""
    cluster_id = ledger.cluster_id

    def flaw(index: int, digest: bytes, *said: Any) -> str | None:
        certificate, serializers, members = said
        keys = {member.node_no: bytes(member.node_id) for member in members or ()}
        voters = None if serializers is None else bytes(serializers)
        newest = Newest(index, bytes(digest), bytes(certificate), voters)
        return flaw_of(newest, cluster_id, keys)

    member = F.struct("node_no", "node_id")
    keys = ledger.table("members").groupBy("copy").agg(F.collect_set(member).alias("members"))
    ends = journal.where(F.col("certificate").isNotNull()).groupBy("copy", "index")
    last = F.max_by(F.struct("message_hash", "certificate", "serializers"), "position")
    rows = ends.agg(last.alias("last")).join(keys, "copy", "left")
    columns = ("index", "last.message_hash", "last.certificate", "last.serializers", "members")
    judged = rows.withColumn("flaw", F.udf(flaw, StringType())(*columns))
    wrong = judged.where(F.col("flaw").isNotNull())
    return found(wrong, "order.certificate", F.col("index"), F.col("flaw"))
