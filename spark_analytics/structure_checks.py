"""C: the DAG of each copy, by certificates: two joins of edges with events and one groupBy.

Depth, hlc and feed position grow along every edge of a sound ledger. Where depth does, there is no
loop, whatever the ledger's size; only where it does not is a loop looked for.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from quipu.spark_analytics import limits
from quipu.spark_analytics.engine import ROOT_EID, Engine
from quipu.spark_analytics.findings import cord_text, found, hex_of, slot_text, unsigned
from quipu.spark_analytics.reading import Ledger

BELOW = ["author_no", "journal", "seq", "epoch", "hlc", "depth", "state", "feed_pos"]


@dataclass(slots=True)
class Structure:
    """Edges with what is above and below them; kept, for several checks read it."""

    ledger: Ledger
    engine: Engine
    loop_edges_max: int = limits.LOOP_EDGES_MAX
    cut: list[str] = field(default_factory=list)  # what was not looked at, and why
    _joined: DataFrame | None = None

    def checks(self) -> Iterator[DataFrame]:
        yield self.duplicates()
        yield self.stray_edges()
        yield from self.missing_parents()
        yield self.prevs()
        yield self.roots()
        yield self.depths()
        yield self.loops()
        yield self.causality()
        yield from self.feed()
        yield self.forks()
        yield self.islands()

    @property
    def joined(self) -> DataFrame:
        if self._joined is None:
            self._joined = self.ledger.keep(self.unkept)
        return self._joined

    @property
    def unkept(self) -> DataFrame:
        slim = self.ledger.slim.distinct()
        edges = self.ledger.table("edges")
        below = slim.select(
            "copy",
            F.col("eid").alias("peid"),
            F.col("id").alias("parent"),
            *[F.col(name).alias(f"p_{name}") for name in BELOW],
        )
        above = slim.select("copy", F.col("eid").alias("ceid"), F.col("id").alias("child"), *BELOW)
        return edges.join(above, ["copy", "ceid", "child"], "left").join(
            below, ["copy", "peid", "parent"], "left"
        )

    def duplicates(self) -> DataFrame:
        often = self.ledger.slim.groupBy("copy", "id").agg(F.count("*").alias("times"))
        return found(often.where("times > 1"), "dag.duplicate", hex_of("id"), F.col("times"))

    def stray_edges(self) -> DataFrame:
        stray = self.joined.where(F.col("seq").isNull())
        return found(stray, "dag.stray-edge", hex_of("child"), hex_of("parent"))

    def missing_parents(self) -> Iterator[DataFrame]:
        """Named by the child that lacks it, with who has the parent."""
        lacking = self.joined.where(F.col("p_seq").isNull() & F.col("seq").isNotNull())
        holders = (
            self.ledger.slim.select(F.col("id").alias("parent"), F.col("copy").alias("holder"))
            .join(lacking.select("parent").distinct(), "parent")
            .groupBy("parent")
            .agg(F.array_join(F.sort_array(F.collect_set("holder")), " ").alias("holders"))
        )
        named = lacking.join(holders, "parent", "left")
        where = F.coalesce(F.concat(F.lit("held by "), F.col("holders")), F.lit("held nowhere"))
        detail = F.concat_ws(" ", hex_of("parent"), where)
        yield found(named, "dag.missing-parent", hex_of("child"), detail)

    def prevs(self) -> DataFrame:
        before = (
            (F.col("p_author_no") == F.col("author_no"))
            & (F.col("p_journal") == F.col("journal"))
            & (F.col("p_seq") == F.col("seq") - 1)
        )
        wrong = self.joined.where((F.col("ordinal") == 0) & ~before)
        return found(wrong, "dag.prev", hex_of("child"), hex_of("parent"))

    def roots(self) -> DataFrame:
        """Without prev although not first; or first, and its prev is not the genesis."""
        with_prev = self.ledger.table("edges").where("ordinal = 0").select("copy", "ceid", "child")
        first = F.col("prev") == F.lit(self.ledger.cluster_id)
        rootless = self.ledger.slim.select(
            "copy", F.col("eid").alias("ceid"), F.col("id").alias("child"), "seq", "prev"
        ).join(with_prev, ["copy", "ceid", "child"], "left_anti")
        wrong = rootless.where((F.col("seq") != 1) | ~first)
        return found(wrong, "dag.root", hex_of("child"), F.col("seq"))

    def depths(self) -> DataFrame:
        """Of events whose parents are all there."""
        greatest = self.joined.groupBy("copy", "ceid", "child").agg(
            F.max("p_depth").alias("below"), F.min(F.col("p_seq").isNotNull()).alias("whole")
        )
        own = self.ledger.slim.select(
            "copy", F.col("eid").alias("ceid"), F.col("id").alias("child"), "depth"
        )
        both = own.join(greatest, ["copy", "ceid", "child"], "left")
        expected = 1 + F.coalesce(F.col("below"), F.lit(0))
        wrong = both.where(F.coalesce("whole", F.lit(True)) & (F.col("depth") != expected))
        detail = F.concat(F.col("depth"), F.lit(" in place of "), expected)
        return found(wrong, "dag.depth", hex_of("child"), detail)

    def loops(self) -> DataFrame:
        """A loop has at least one edge along which depth does not grow, and lies between the two
        depths of such an edge: what is suspicious is that part alone."""
        turning = self.joined.where(F.col("p_depth") >= F.col("depth"))
        ranges = turning.groupBy("copy").agg(
            F.min("depth").alias("low"), F.max("p_depth").alias("high")
        )
        suspicious = (
            self.joined.where(F.col("p_seq").isNotNull() & F.col("seq").isNotNull())
            .join(ranges, "copy")
            .where(F.col("depth").between(F.col("low"), F.col("high")))
            .where(F.col("p_depth").between(F.col("low"), F.col("high")))
            .select("copy", "ceid", "peid", "depth")
        )
        members = self.engine.loops(self._bounded(suspicious))
        ids = self.ledger.slim.select("copy", "eid", "id")
        return found(
            members.join(ids, ["copy", "eid"]), "dag.loop", hex_of("id"), F.col("loop_events")
        )

    def _bounded(self, suspicious: DataFrame) -> DataFrame:
        """At most so many, the deepest left out: what was not looked at is said."""
        suspicious = self.ledger.keep(suspicious)
        count = suspicious.count()
        if count > self.loop_edges_max:
            self.cut.append(
                f"dag.loop: {count - self.loop_edges_max:,} of {count:,} suspicious edges, "
                "the deepest, were not searched"
            )
            suspicious = suspicious.orderBy("depth", "ceid", "peid").limit(self.loop_edges_max)
        return suspicious.select("copy", "ceid", "peid")

    def causality(self) -> DataFrame:
        later = unsigned("p_hlc") >= unsigned("hlc")
        falls = F.col("p_epoch") > F.col("epoch")
        wrong = self.joined.where(later | falls)
        detail = F.concat_ws(" ", F.when(later, F.lit("hlc")), F.when(falls, F.lit("epoch")))
        return found(wrong, "dag.causality", hex_of("child"), detail)

    def feed(self) -> Iterator[DataFrame]:
        is_read = F.col("state") == "read"
        below = F.col("p_feed_pos").isNull() | (F.col("p_feed_pos") >= F.col("feed_pos"))
        wrong = self.joined.where(is_read & F.col("p_seq").isNotNull() & below)
        yield found(wrong, "dag.feed", hex_of("child"), hex_of("parent"))
        counted = (
            self.ledger.slim.where(is_read)
            .groupBy("copy")
            .agg(
                F.count("feed_pos").alias("there"),
                F.countDistinct("feed_pos").alias("distinct"),
                F.min("feed_pos").alias("first"),
                F.max("feed_pos").alias("last"),
                F.count("*").alias("read"),
            )
        )
        whole = (
            (F.col("first") == 1)
            & (F.col("there") == F.col("last"))
            & (F.col("distinct") == F.col("last"))
            & (F.col("read") == F.col("last"))
        )
        wrong = counted.where(~F.coalesce(whole, F.lit(False)))
        yield found(wrong, "dag.feed", F.col("copy"), "positions have holes or repeat")

    def forks(self) -> DataFrame:
        """Over all copies together: two events of one cord upon the same prev."""
        once = self.ledger.slim.select(
            "id", "eid", "author_no", "journal", "seq", "prev"
        ).distinct()
        forked = self.engine.forks(once).withColumn("copy", F.lit("*"))
        return found(forked, "dag.fork", hex_of("id"), slot_text())

    def islands(self) -> DataFrame:
        """Over all copies together: a component in which no cord begins."""
        slim = self.ledger.slim
        vertices = slim.select("eid").distinct()
        above = slim.select(F.col("eid").alias("ceid")).distinct()
        below = slim.select(F.col("eid").alias("peid")).distinct()
        edges = (
            self.ledger.table("edges")
            .select("ceid", "peid")
            .distinct()
            .join(below, "peid", "left_semi")
            .join(above, "ceid", "left_semi")
        )
        first = slim.where("seq = 1").where(F.col("prev") == F.lit(self.ledger.cluster_id))
        hung = first.select(F.col("eid").alias("ceid"), F.lit(ROOT_EID).alias("peid")).distinct()
        components = self.engine.components(vertices, edges.unionByName(hung))
        root = components.where(F.col("eid") == ROOT_EID).select("component")
        adrift = components.join(F.broadcast(root), "component", "left_anti")
        events = slim.select("copy", "eid", "id", "author_no", "journal")
        named = (
            adrift.join(events, "eid")
            .groupBy("id")
            .agg(
                F.array_join(F.sort_array(F.collect_set("copy")), " ").alias("copy"),
                F.first(cord_text()).alias("cord"),
            )
        )
        return found(named, "dag.island", hex_of("id"), F.concat(F.lit("cord "), F.col("cord")))
