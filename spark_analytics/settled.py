"""What is final, by receipts and cuts alone: a few rows a cord, whatever the ledger's size.

A receipt is cumulative, so the highest seq that each signer named in a cord says all. The highest
seq that the author and MAX_CONFIRMS others have named in one epoch is certified.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from quipu.spark_analytics.reading import Ledger

CORD = ["author_no", "journal"]
HLC_SHIFT = 16


def certified(ledger: Ledger, upto_ms: int | None = None) -> DataFrame:
    """copy, author_no, journal, certified_seq: in each copy by the receipts that it holds itself.
    With `upto_ms` by those alone that were signed until then; cuts count where every copy has
    them."""
    parts = _by_receipts(ledger, upto_ms).unionByName(_by_cuts(ledger, upto_ms))
    return parts.groupBy("copy", *CORD).agg(F.max("certified_seq").alias("certified_seq"))


def _by_receipts(ledger: Ledger, upto_ms: int | None) -> DataFrame:
    receipts = ledger.table("receipts")
    if upto_ms is not None:
        signed_ms = F.shiftrightunsigned(F.col("number"), HLC_SHIFT)
        receipts = receipts.where(signed_ms <= F.lit(upto_ms))
    held = ledger.slim.select("copy", "eid", F.col("id").alias("event"))
    resolved = receipts.join(held, ["copy", "eid", "event"], "left_semi")
    members = ledger.table("members").select(
        "copy", "epoch", F.col("node_no").alias("signer_no"), "confirms"
    )
    highest = (
        resolved.groupBy("copy", "epoch", "signer_no", *CORD)
        .agg(F.max("seq").alias("seq"))
        .join(members, ["copy", "epoch", "signer_no"])
    )
    is_own = F.col("signer_no") == F.col("author_no")
    own = F.max(F.when(is_own, F.col("seq")))
    others = F.sort_array(F.collect_list(F.when(~is_own, F.col("seq"))), asc=False)
    by_epoch = highest.groupBy("copy", "epoch", *CORD).agg(
        own.alias("own"), others.alias("others"), F.max("confirms").alias("confirms")
    )
    needed = F.when(F.col("confirms") == 0, F.col("own")).otherwise(
        F.when(F.size("others") >= F.col("confirms"), F.expr("element_at(others, confirms)"))
    )
    both = F.when(F.col("own").isNotNull() & needed.isNotNull(), F.least(F.col("own"), needed))
    return by_epoch.select("copy", *CORD, both.alias("certified_seq")).where(
        F.col("certified_seq").isNotNull()
    )


def _by_cuts(ledger: Ledger, upto_ms: int | None) -> DataFrame:
    cuts = ledger.table("cuts")
    if upto_ms is not None:
        everywhere = Window.partitionBy("epoch", *CORD, "event")
        cuts = cuts.withColumn("copies", F.size(F.collect_set("copy").over(everywhere)))
        cuts = cuts.where(F.col("copies") == len(ledger.copies)).drop("copies")
    return cuts.select("copy", *CORD, F.col("seq").alias("certified_seq"))


def settled(ledger: Ledger, settle_s: float) -> DataFrame:
    """author_no, journal, settled_seq: what was final long enough before the oldest dump that it
    has to be Read in every copy."""
    oldest_ms = min(copy.manifest.as_of_ms for copy in ledger.copies)
    upto_ms = oldest_ms - int(settle_s * 1_000)
    return (
        certified(ledger, upto_ms)
        .groupBy(*CORD)
        .agg(F.max("certified_seq").alias("settled_seq"))
        .join(forked(ledger), CORD, "left_anti")
    )


def forked(ledger: Ledger) -> DataFrame:
    """Cords of which two branches are held: a seq alone does not say there what a receipt names."""
    ids = ledger.slim.groupBy(*CORD, "seq").agg(F.countDistinct("id").alias("ids"))
    return ids.where(F.col("ids") > 1).select(*CORD).distinct()
