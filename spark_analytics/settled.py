"""What is final, by receipts and cuts alone: a few rows a cord, whatever the ledger's size.

A receipt is cumulative, so the highest seq that each signer named in a cord says all. The highest
seq that the author and MAX_CONFIRMS others have named in one epoch is certified.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from quipu.spark_analytics.reading import PLACE, Ledger

CORD = ["author_no", "journal"]
HLC_SHIFT = 16


@dataclass(slots=True)
class Cords:
    """What is said of each cord; kept, for it is a few rows."""

    ledger: Ledger
    settle_s: float
    _parts: dict[str, DataFrame] = field(default_factory=dict)

    def _kept(self, name: str, made: Callable[[], DataFrame]) -> DataFrame:
        if name not in self._parts:
            self._parts[name] = self.ledger.keep(made())
        return self._parts[name]

    @property
    def forked(self) -> DataFrame:
        """Cords of which two branches are held: a seq alone does not say there what a receipt
        names."""
        return self._kept("forked", lambda: _forked(self.ledger))

    @property
    def certified(self) -> DataFrame:
        """copy, author_no, journal, certified_seq: in each copy by the receipts and cuts that it
        holds itself."""
        return self._kept("certified", lambda: self._certified("seq", self.ledger.table("cuts")))

    @property
    def settled(self) -> DataFrame:
        """author_no, journal, settled_seq: what was final long enough before the oldest dump that
        it has to be Read in every copy; cuts count where every copy has them."""
        everywhere = Window.partitionBy("epoch", *CORD, "event")
        copies = F.size(F.collect_set("copy").over(everywhere))
        cuts = self.ledger.table("cuts").withColumn("copies", copies)
        cuts = cuts.where(F.col("copies") == len(self.ledger.copies))
        return self._kept(
            "settled",
            lambda: (
                self._certified("early_seq", cuts)
                .groupBy(*CORD)
                .agg(F.max("certified_seq").alias("settled_seq"))
                .join(self.forked, CORD, "left_anti")
            ),
        )

    @property
    def _highest(self) -> DataFrame:
        """Of each signer the highest seq named in each cord and epoch: of all its receipts, and of
        those alone that were signed early enough."""
        return self._kept("highest", lambda: _highest(self.ledger, self._upto_ms))

    @property
    def _upto_ms(self) -> int:
        oldest_ms = min(copy.manifest.as_of_ms for copy in self.ledger.copies)
        return oldest_ms - int(self.settle_s * 1_000)

    def _certified(self, seq: str, cuts: DataFrame) -> DataFrame:
        by_cuts = cuts.select("copy", *CORD, F.col("seq").alias("certified_seq"))
        parts = _by_receipts(self._highest.withColumn("seq", F.col(seq))).unionByName(by_cuts)
        return parts.groupBy("copy", *CORD).agg(F.max("certified_seq").alias("certified_seq"))


def _highest(ledger: Ledger, upto_ms: int) -> DataFrame:
    held = ledger.slim.select("eid", F.col("id").alias("event"), "copy")
    resolved = ledger.table("receipts").join(held, ["eid", "event", "copy"], "left_semi")
    members = ledger.table("members").select(
        "copy", "epoch", F.col("node_no").alias("signer_no"), "confirms"
    )
    signed_ms = F.shiftrightunsigned(F.col("number"), HLC_SHIFT)
    return (
        resolved.groupBy("copy", "epoch", "signer_no", *CORD)
        .agg(
            F.max("seq").alias("seq"),
            F.max(F.when(signed_ms <= F.lit(upto_ms), F.col("seq"))).alias("early_seq"),
        )
        .join(members, ["copy", "epoch", "signer_no"])
    )


def _by_receipts(highest: DataFrame) -> DataFrame:
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


def _forked(ledger: Ledger) -> DataFrame:
    once = ledger.slim.select(*PLACE, *CORD, "seq").distinct()
    ids = once.groupBy(*CORD, "seq").agg(F.countDistinct("id").alias("ids"))
    return ids.where(F.col("ids") > 1).select(*CORD).distinct()
