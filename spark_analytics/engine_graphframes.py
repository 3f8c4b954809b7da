"""The engine on GraphFrames. What it answers is checked by joins before it is believed."""

from graphframes import GraphFrame
from graphframes.lib import AggregateMessages, Pregel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from quipu.spark_analytics import limits
from quipu.spark_analytics.engine import ROOT_EID
from quipu.spark_analytics.engine_dataframe import LOOPS, core_of
from quipu.spark_analytics.reading import Ledger

CORE = "copy string, ceid long, peid long"


class NotBelieved(Exception):
    """GraphFrames answered what a join shows to be wrong."""


class GraphFramesEngine:
    name = "graphframes"

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.used: dict[str, int] = {}  # algorithm -> rows of its last answer

    def _graph(self, vertices: DataFrame, edges: DataFrame) -> GraphFrame:
        """Files and unions bring small partitions along, and every round has a task of each."""
        most = int(self._ledger.spark.conf.get("spark.sql.shuffle.partitions") or 1)
        return GraphFrame(vertices.coalesce(most), edges.coalesce(most))

    def components(self, vertices: DataFrame, edges: DataFrame) -> DataFrame:
        """By large and small stars: `graphx` takes as many rounds as the DAG is deep, and keeps
        something of each of them."""
        root = vertices.sparkSession.createDataFrame([(ROOT_EID,)], "eid long")
        named = vertices.unionByName(root).select(F.col("eid").alias("id"))
        pairs = edges.select(F.col("ceid").alias("src"), F.col("peid").alias("dst"))
        answer = self._graph(named, pairs).connectedComponents()
        answer = self._ledger.keep(answer.select(F.col("id").alias("eid"), "component"))
        self.used["connectedComponents"] = answer.select("component").distinct().count()
        self._check_components(answer, edges)
        return answer

    def _check_components(self, answer: DataFrame, edges: DataFrame) -> None:
        """Both ends of every edge lie in one component, and there are as few as that allows."""
        above = answer.select(F.col("eid").alias("ceid"), F.col("component").alias("c"))
        below = answer.select(F.col("eid").alias("peid"), F.col("component").alias("p"))
        torn = edges.join(above, "ceid").join(below, "peid").where("c != p")
        if not torn.isEmpty():
            raise NotBelieved("connectedComponents parted the ends of an edge")
        if not answer.groupBy("eid").count().where("count > 1").isEmpty():
            raise NotBelieved("connectedComponents named a vertex twice")

    def forks(self, events: DataFrame) -> DataFrame:
        """Two children of one prev in one cord. That is a vertex below zero, where no eid is."""
        below = F.xxhash64("author_no", "journal", "prev").bitwiseOR(F.lit(-(2**63)))
        pairs = events.select(F.col("eid").alias("src"), below.alias("dst"))
        named = pairs.select(F.col("src").alias("id")).unionByName(
            pairs.select(F.col("dst").alias("id"))
        )
        graph = self._graph(named.distinct(), pairs)
        twins = graph.find("(a)-[]->(p); (b)-[]->(p)").where("a.id != b.id")
        eids = self._ledger.keep(twins.select(F.col("a.id").alias("eid")).distinct())
        self.used["find"] = eids.count()
        return events.join(eids, "eid", "left_semi").dropDuplicates(["id"])

    def loops(self, edges: DataFrame) -> DataFrame:
        """One graph for all copies: eids are numbered anew for each of them. What only leads to a
        loop, or only away from one, GraphFrames would take away level by level, a job for each."""
        core = core_of(edges.collect())
        if not core:
            return self._ledger.spark.createDataFrame([], LOOPS)
        edges = self._ledger.spark.createDataFrame(core, CORE)

        def one(end: str) -> Column:
            return F.xxhash64("copy", end)

        ends = edges.select("copy", F.col("ceid").alias("eid")).unionByName(
            edges.select("copy", F.col("peid").alias("eid"))
        )
        named = ends.distinct().withColumn("id", F.xxhash64("copy", "eid"))
        pairs = edges.select(one("ceid").alias("src"), one("peid").alias("dst"))
        graph = self._graph(named.select("id"), pairs)
        answer = graph.stronglyConnectedComponents(maxIter=limits.SCC_ROUNDS)
        parts = answer.groupBy("component").agg(F.count("*").cast("int").alias("loop_events"))
        on_loops = answer.join(parts.where("loop_events > 1"), "component")
        itself = pairs.where("src = dst").select(
            F.col("src").alias("id"), F.lit(1).alias("loop_events")
        )
        members = on_loops.select("id", "loop_events").unionByName(itself)
        result = self._ledger.keep(members.join(named, "id").select("copy", "eid", "loop_events"))
        self.used["stronglyConnectedComponents"] = result.count()
        self._check_loops(result, edges)
        return result

    def _check_loops(self, result: DataFrame, edges: DataFrame) -> None:
        """Whatever lies on a loop has an edge out to, and one in from, what does."""
        inside = edges.join(
            result.select("copy", F.col("eid").alias("ceid")), ["copy", "ceid"], "left_semi"
        ).join(result.select("copy", F.col("eid").alias("peid")), ["copy", "peid"], "left_semi")
        for end in ("ceid", "peid"):
            ends = inside.select("copy", F.col(end).alias("eid"))
            if not result.join(ends, ["copy", "eid"], "left_anti").isEmpty():
                raise NotBelieved("stronglyConnectedComponents named what is on no loop")

    def children(self, edges: DataFrame) -> DataFrame:
        """Each edge tells its parent of one child. Held against the number of edges."""
        pairs = self._ledger.keep(
            edges.select(F.col("ceid").alias("src"), F.col("peid").alias("dst"))
        )
        ends = pairs.select(F.col("src").alias("id")).unionByName(
            pairs.select(F.col("dst").alias("id"))
        )
        graph = self._graph(ends.distinct(), pairs)
        told = graph.aggregateMessages(
            F.sum(AggregateMessages.msg).alias("children"), sendToDst=F.lit(1)
        )
        answer = self._ledger.keep(told.select(F.col("id").alias("eid"), "children"))
        self.used["aggregateMessages"] = answer.count()
        counted = answer.agg(F.sum("children")).first()
        if counted is None or (counted[0] or 0) != pairs.count():
            raise NotBelieved("aggregateMessages lost an edge")
        return answer

    def communities(self, authors: DataFrame, ties: DataFrame) -> DataFrame:
        """Held against the ties: both ends of each in one community."""
        named = authors.select(F.col("author_no").cast("long").alias("id"))
        pairs = ties.select(
            F.col("above").cast("long").alias("src"), F.col("below").cast("long").alias("dst")
        )
        answer = self._graph(named, pairs).connectedComponents(algorithm="graphx")
        answer = self._ledger.keep(
            answer.select(
                F.col("id").cast("int").alias("author_no"),
                F.col("component").cast("int").alias("community"),
            )
        )
        self.used["communities"] = answer.select("community").distinct().count()
        src = answer.select(F.col("author_no").alias("above"), F.col("community").alias("c"))
        dst = answer.select(F.col("author_no").alias("below"), F.col("community").alias("p"))
        if not ties.join(src, "above").join(dst, "below").where("c != p").isEmpty():
            raise NotBelieved("connectedComponents parted authors that are tied")
        return answer

    def spread(self, edges: DataFrame, start: int, levels: int) -> DataFrame:
        """Each round tells the children of what was reached. Held against the edges: whatever was
        reached has a parent that was reached one hop before."""
        pairs = self._ledger.keep(
            edges.select(F.col("ceid").alias("src"), F.col("peid").alias("dst"))
        )
        ends = pairs.select(F.col("src").alias("id")).unionByName(
            pairs.select(F.col("dst").alias("id"))
        )
        first = ends.sparkSession.createDataFrame([(start,)], "id long")
        told = (
            self._graph(ends.unionByName(first).distinct(), pairs)
            .pregel.setMaxIter(levels)
            .withVertexColumn(
                "hops",
                F.when(F.col("id") == start, F.lit(0)),
                F.coalesce(F.col("hops"), Pregel.msg()),
            )
            .sendMsgToSrc(Pregel.dst("hops") + 1)
            .aggMsgs(F.min(Pregel.msg()))
            .run()
        )
        reached = told.where("hops IS NOT NULL").select(F.col("id").alias("eid"), "hops")
        answer = self._ledger.keep(reached)
        self.used["pregel"] = answer.count()
        before = answer.select(F.col("eid").alias("dst"), (F.col("hops") + 1).alias("hops"))
        led = pairs.join(before, "dst").select(F.col("src").alias("eid"), "hops")
        if not answer.where("hops > 0").join(led, ["eid", "hops"], "left_anti").isEmpty():
            raise NotBelieved("pregel reached what nothing leads to")
        return answer

    def ranks(self, ties: DataFrame) -> DataFrame:
        """Shares of a whole, so they are held to sum up to one."""
        repeated = F.explode(F.array_repeat(F.lit(1), F.col("times").cast("int")))
        pairs = ties.select(
            F.col("above").cast("long").alias("src"),
            F.col("below").cast("long").alias("dst"),
            repeated,
        ).select("src", "dst")
        ends = pairs.select(F.col("src").alias("id")).unionByName(
            pairs.select(F.col("dst").alias("id"))
        )
        if pairs.isEmpty():
            return self._ledger.spark.createDataFrame([], "author_no int, rank double")
        graph = self._graph(ends.distinct(), pairs)
        answer = graph.pageRank(maxIter=limits.PAGERANK_ROUNDS).vertices
        total = answer.agg(F.sum("pagerank")).first()
        assert total is not None
        shares = answer.select(
            F.col("id").cast("int").alias("author_no"), (F.col("pagerank") / total[0]).alias("rank")
        )
        shares = self._ledger.keep(shares)
        self.used["pageRank"] = shares.count()
        if self.used["pageRank"] != ends.distinct().count():
            raise NotBelieved("pageRank left an author out")
        return shares
