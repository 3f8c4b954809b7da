"""C: the DAG of each copy, by certificates: two joins of edges with events and one groupBy.

Depth, hlc and feed position grow along every edge of a sound ledger. Where depth does, there is no
loop, whatever the ledger's size; only where it does not is a loop looked for.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from quipu.spark_analytics import alike, horizon, limits
from quipu.spark_analytics.engine import ROOT_EID, Engine
from quipu.spark_analytics.findings import (
    cord_text,
    found,
    hex_of,
    of_rows,
    slot_text,
    unsigned,
)
from quipu.spark_analytics.reading import PLACE, Ledger

BELOW = ["author_no", "journal", "seq", "epoch", "hlc", "depth", "state", "feed_pos"]
CHILD = ["ceid", "child", "copy"]  # in this order rows lie together
TWIN_FEEDS = "twin_feeds"


@dataclass(slots=True)
class Structure:
    """Edges with what is above and below them; kept, for several checks read it.

    Of copies that are alike one is looked at, and of the others what they need not have alike: what
    is Unread, and the order of the feed. So a finding of one that stands for others is a reason to
    look at all of them: with `twins={}`.
    """

    ledger: Ledger
    engine: Engine
    loop_edges_max: int = limits.LOOP_EDGES_MAX
    twins: dict[str, str] | None = None  # None: whoever is found to be one
    cut: list[str] = field(default_factory=list)  # what was not looked at, and why
    _joined: DataFrame | None = None
    _once: DataFrame | None = None

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
    def alike(self) -> dict[str, str]:
        if self.twins is None:
            self.twins = alike.twins(self.ledger)
        return self.twins

    @property
    def joined(self) -> DataFrame:
        if self._joined is None:
            self._joined = self.ledger.keep(self.unkept)
        return self._joined

    @property
    def unkept(self) -> DataFrame:
        """What is below comes first: then all rows of an event lie where it does."""
        slim = self.once
        if self.alike:
            slim = slim.join(self._feeds_of_twins(), [*PLACE], "left")
        names = [*BELOW, TWIN_FEEDS] if self.alike else BELOW
        below = slim.select(
            F.col("eid").alias("peid"),
            F.col("id").alias("parent"),
            "copy",
            *[F.col(name).alias(f"p_{name}") for name in names],
        )
        above = slim.select(F.col("eid").alias("ceid"), F.col("id").alias("child"), "copy", *names)
        return self._edges.join(below, ["peid", "parent", "copy"], "left").join(
            above, ["ceid", "child", "copy"], "left"
        )

    @property
    def once(self) -> DataFrame:
        """Without rows that stand twice, so that none is joined twice."""
        if self._once is None:
            slim = self.ledger.slim
            self._once = slim if self.duplicates().isEmpty() else slim.distinct()
        return self._once

    @property
    def _own(self) -> DataFrame:
        """Events that are looked at in their own copy."""
        slim = self.ledger.slim
        if not self.alike:
            return slim
        return slim.where(~F.col("copy").isin([*self.alike]) | (F.col("state") != "read"))

    @property
    def _edges(self) -> DataFrame:
        """Of what is looked at."""
        edges = self.ledger.table("edges")
        if not self.alike:
            return edges
        is_twin = F.col("copy").isin([*self.alike])
        unread = self._own.where(is_twin)
        return edges.where(~is_twin).unionByName(alike.of_unread(edges.where(is_twin), unread))

    def _feeds_of_twins(self) -> DataFrame:
        """eid, id, and the feed position in each of the twins."""
        positions = [F.max(F.when(F.col("copy") == twin, F.col("feed_pos"))) for twin in self.alike]
        read = self.ledger.slim.where(
            F.col("copy").isin([*self.alike]) & (F.col("state") == "read")
        )
        return read.groupBy(*PLACE).agg(F.array(*positions).alias(TWIN_FEEDS))

    def duplicates(self) -> DataFrame:
        often = self.ledger.slim.groupBy("copy", *PLACE).agg(F.count("*").alias("times"))
        return found(often.where("times > 1"), "dag.duplicate", hex_of("id"), F.col("times"))

    def stray_edges(self) -> DataFrame:
        stray = self.joined.where(F.col("seq").isNull())
        return found(stray, "dag.stray-edge", hex_of("child"), hex_of("parent"))

    def missing_parents(self) -> Iterator[DataFrame]:
        """Named by the child that lacks it, with who has the parent."""
        is_due = ~horizon.may_lack(self.ledger.copies)
        lacking = self.joined.where(F.col("p_seq").isNull() & F.col("seq").isNotNull() & is_due)
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
        with_prev = self.joined.where("ordinal = 0").select(*CHILD)
        rootless = self._as_children().join(with_prev, CHILD, "left_anti")
        wrong = rootless.where(~self._is_lawful_root())
        return found(wrong, "dag.root", hex_of("child"), F.col("seq"))

    def _as_children(self) -> DataFrame:
        return self._own.select(
            F.col("eid").alias("ceid"),
            F.col("id").alias("child"),
            *("copy", "seq", "prev", "depth", "epoch"),
        )

    def _is_lawful_root(self) -> Column:
        return (F.col("seq") == 1) & (F.col("prev") == F.lit(self.ledger.cluster_id))

    def depths(self) -> DataFrame:
        """Of events whose parents are all there."""
        greatest = self.joined.groupBy(*CHILD).agg(
            F.max("p_depth").alias("below"), F.min(F.col("p_seq").isNotNull()).alias("whole")
        )
        both = self._as_children().join(greatest, CHILD, "left")
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
        copies = self.ledger.copies
        is_lost = F.col("p_feed_pos").isNull() & ~horizon.may_lack(copies, "p_epoch")
        below = is_lost | (F.col("p_feed_pos") >= F.col("feed_pos"))
        wrong = self.joined.where(is_read & F.col("p_seq").isNotNull() & below)
        yield found(wrong, "dag.feed", hex_of("child"), hex_of("parent"))
        for at, (twin, stands) in enumerate(self.alike.items()):
            own, under = F.col(TWIN_FEEDS)[at], F.col(f"p_{TWIN_FEEDS}")[at]
            both = self.joined.where(
                is_read & (F.col("copy") == stands) & F.col("p_seq").isNotNull()
            )
            is_lost = under.isNull() & ~horizon.of_copy_may_lack(copies, twin, "p_epoch")
            wrong = both.where(is_lost | (under >= own))
            named = wrong.withColumn("copy", F.lit(twin))
            yield found(named, "dag.feed", hex_of("child"), hex_of("parent"))
        is_lost = F.col("feed_pos").isNull() & ~horizon.may_lack(copies)
        counted = (
            self.ledger.slim.where(is_read)
            .groupBy("copy")
            .agg(
                F.count("feed_pos").alias("there"),
                F.countDistinct("feed_pos").alias("distinct"),
                F.min("feed_pos").alias("first"),
                F.max("feed_pos").alias("last"),
                F.count(F.when(is_lost, True)).alias("lost"),
            )
        )
        whole = (
            (F.col("first") == horizon.feed_first(copies))
            & (F.col("there") == F.col("last") + 1 - F.col("first"))
            & (F.col("distinct") == F.col("there"))
            & (F.col("lost") == 0)
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
        """Over all copies together: a component in which no cord begins. Where every event is the
        lawful first of a cord, or has a parent of less depth, all hang on the genesis: only
        otherwise are components looked for."""
        slim = self.ledger.slim
        if self._all_hang():
            return of_rows(self.ledger.spark, [])
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
        is_first = (F.col("seq") == 1) & (F.col("prev") == F.lit(self.ledger.cluster_id))
        first = slim.where(is_first | horizon.may_lack(self.ledger.copies))
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

    def _all_hang(self) -> bool:
        deeper = self.joined.where(F.col("p_depth") < F.col("depth")).select(*CHILD)
        hangs = self._is_lawful_root() | horizon.may_lack(self.ledger.copies)
        others = self._as_children().where(~hangs)
        return others.join(deeper, CHILD, "left_anti").isEmpty()
