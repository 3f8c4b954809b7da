"""D: the copies beside each other, and each beside the receipts that it holds."""

from collections.abc import Iterator
from itertools import pairwise

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from quipu.dumps.buckets import DIGEST_BYTES
from quipu.dumps.limits import BUCKET_BITS, BUCKETS
from quipu.dumps.manifest import BUCKETS_TABLE
from quipu.spark_analytics.findings import found, hex_of, slot_text
from quipu.spark_analytics.horizon import that_should_be_there
from quipu.spark_analytics.reading import PLACE, Copy, Ledger
from quipu.spark_analytics.settled import CORD, Cords

BUCKET = f"shiftright(cast(conv(hex(substring(id, 1, 2)), 16, 10) as int), {16 - BUCKET_BITS})"


def checks(ledger: Ledger, settle_s: float) -> Iterator[DataFrame]:
    made = ledger.keep(made_digests(ledger))
    yield buckets(ledger, made)
    yield other_bytes(ledger)
    yield from against_receipts(ledger)
    cords = Cords(ledger, settle_s)
    yield unproven(ledger, cords)
    if len(ledger.copies) > 1:
        final = cords.settled
        yield missing(ledger, final, unlike(ledger, made))
        yield stuck(ledger, final)
        yield from shrunk(ledger)


def made_digests(ledger: Ledger) -> DataFrame:
    """copy, bucket, made: of the Read events that are there; a bucket without any is left out."""
    ids = F.transform(F.sort_array(F.collect_set("id")), F.hex)
    return (
        ledger.slim.where("state = 'read'")
        .groupBy("copy", F.expr(BUCKET).alias("bucket"))
        .agg(F.unhex(F.sha2(F.unhex(F.array_join(ids, "")), 256)).alias("made"))
    )


def buckets(ledger: Ledger, made: DataFrame) -> DataFrame:
    """Each dump's digests are those made from its Read events."""
    empty = F.unhex(F.sha2(F.lit(b""), 256))
    said = ledger.spark.createDataFrame(
        [(copy.name, digest) for copy in ledger.copies for digest in [digests_of(copy)] if digest],
        "copy string, digests binary",
    ).select("copy", "digests", F.explode(F.sequence(F.lit(0), F.lit(BUCKETS - 1))).alias("bucket"))
    digest = F.col("digests").substr(F.col("bucket") * DIGEST_BYTES + 1, F.lit(DIGEST_BYTES))
    both = said.select("copy", "bucket", digest.alias("said")).join(
        made, ["copy", "bucket"], "left"
    )
    wrong = both.where(F.col("said") != F.coalesce("made", empty))
    return found(wrong, "copies.buckets", F.col("bucket"), "")


def digests_of(copy: Copy) -> bytes | None:
    for name in copy.manifest.names(BUCKETS_TABLE):
        if name not in copy.broken:
            return copy.place.read(name)
    return None


def unlike(ledger: Ledger, made: DataFrame) -> list[int]:
    """The buckets whose Read events are not the same in all copies, by what they hold, not by what
    they say."""
    kinds = made.groupBy("bucket").agg(
        F.count("*").alias("copies"), F.countDistinct("made").alias("kinds")
    )
    differing = kinds.where((F.col("copies") < len(ledger.copies)) | (F.col("kinds") > 1))
    return sorted(row.bucket for row in differing.collect())


def other_bytes(ledger: Ledger) -> DataFrame:
    of_event = ledger.slim.groupBy(*PLACE).agg(
        F.min("bytes").alias("least"), F.max("bytes").alias("greatest")
    )
    several = of_event.where("least != greatest").withColumn("copy", F.lit("*"))
    return found(several, "copies.bytes", hex_of("id"), "")


def missing(ledger: Ledger, final: DataFrame, different: list[int]) -> DataFrame:
    """In a bucket where all copies are alike no Read event is missing: what is looked at are the
    other buckets, and all that is Unread."""
    is_open = F.expr(BUCKET).isin(different) | (F.col("state") == "unread")
    rows = ledger.slim.where(is_open).join(final, CORD, "left")
    holders = rows.groupBy(*PLACE).agg(
        F.collect_set("copy").alias("holders"),
        F.min(slot_text()).alias("slot"),
        *[F.min(name).alias(name) for name in (*CORD, "seq")],
        F.max(F.col("seq") <= F.col("settled_seq")).alias("is_due"),
    )
    every = F.array(*[F.lit(copy.name) for copy in ledger.copies])
    lacking = holders.where("is_due").select(
        "id", "slot", *CORD, "seq", F.explode(F.array_except(every, "holders")).alias("copy")
    )
    lacking = that_should_be_there(ledger, lacking)
    return found(lacking, "copies.missing", hex_of("id"), F.col("slot"))


def stuck(ledger: Ledger, final: DataFrame) -> DataFrame:
    unread = ledger.slim.where("state = 'unread'").join(final, CORD).where("seq <= settled_seq")
    return found(unread, "copies.stuck", hex_of("id"), slot_text())


def unproven(ledger: Ledger, cords: Cords) -> DataFrame:
    """Read, and neither a certificate nor a cut that this copy holds says so."""
    read = ledger.slim.where("state = 'read'").join(cords.forked, CORD, "left_anti")
    proven = read.join(cords.certified, ["copy", *CORD], "left")
    above = F.col("seq") > F.coalesce("certified_seq", F.lit(0))
    return found(proven.where(above), "copies.unproven", hex_of("id"), slot_text())


def against_receipts(ledger: Ledger) -> Iterator[DataFrame]:
    receipts = ledger.table("receipts")
    slots = receipts.groupBy("signer_no", *CORD, "seq").agg(
        F.countDistinct("event").alias("events")
    )
    two = slots.where("events > 1").withColumn("copy", F.lit("*"))
    subject = F.concat_ws("/", "signer_no", *CORD, "seq")
    yield found(two, "receipts.conflict", subject, "two events for a slot")
    numbers = (
        ledger.table("invs")
        .groupBy("signer_no", "number")
        .agg(F.countDistinct("inv_id").alias("ids"))
    )
    doubled = numbers.where("ids > 1").withColumn("copy", F.lit("*"))
    text = F.concat_ws("/", "signer_no", "number")
    yield found(doubled, "receipts.conflict", text, "a number signed twice")
    own = ledger.spark.createDataFrame(
        [(copy.name, bytes.fromhex(copy.manifest.node_id)) for copy in ledger.copies],
        "copy string, node_id binary",
    )
    signers = ledger.table("members").select("copy", "node_id", F.col("node_no").alias("signer_no"))
    signed_here = receipts.join(
        signers.join(own, ["copy", "node_id"]).select("copy", "signer_no").distinct(),
        ["copy", "signer_no"],
        "left_semi",
    )
    held = ledger.slim.select("eid", F.col("id").alias("event"), "copy")
    lacking = signed_here.join(held, ["eid", "event", "copy"], "left_anti")
    lacking = that_should_be_there(ledger, lacking)
    once = lacking.groupBy("copy", "event").agg(F.min("number").alias("number"))
    yield found(once, "receipts.lacking", hex_of("event"), F.col("number"))


def shrunk(ledger: Ledger) -> Iterator[DataFrame]:
    """Each dump of a node beside the one before it that is given."""
    by_node: dict[str, list[Copy]] = {}
    for copy in ledger.copies:
        by_node.setdefault(copy.manifest.node_id, []).append(copy)
    for copies in by_node.values():
        ordered = sorted(copies, key=lambda copy: copy.manifest.number)
        for older, newer in pairwise(ordered):
            was = ledger.slim.where(F.col("copy") == older.name)
            now = ledger.slim.where(F.col("copy") == newer.name).select(
                "id", F.col("state").alias("now"), F.col("feed_pos").alias("now_pos")
            )
            lost = was.join(now, "id", "left").where(
                F.col("now").isNull()
                | ((F.col("state") == "read") & (F.col("now") != "read"))
                | (F.col("feed_pos") != F.col("now_pos"))
            )
            gone = lost.where(F.col("now").isNull()).withColumn("copy", F.lit(newer.name))
            lost = lost.where(F.col("now").isNotNull()).unionByName(
                that_should_be_there(ledger, gone)
            )
            what = F.when(F.col("now").isNull(), F.lit("gone")).otherwise(F.lit("changed"))
            yield found(
                lost.withColumn("copy", F.lit(newer.name)), "copies.shrunk", hex_of("id"), what
            )
