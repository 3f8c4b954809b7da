"""The plain engine: joins and groups alone, and the driver's own memory for what is suspicious."""

from collections import Counter
from collections.abc import Iterable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from quipu.spark_analytics import limits
from quipu.spark_analytics.engine import ROOT_EID
from quipu.spark_analytics.reading import Ledger

LABELS = "eid long, label long"
Vertex = tuple[str, int]  # copy, eid
LOOPS = StructType(
    [
        StructField("copy", StringType(), False),
        StructField("eid", LongType(), False),
        StructField("loop_events", IntegerType(), False),
    ]
)


class DataFrameEngine:
    name = "dataframe"

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.driver_edges_max = limits.DRIVER_EDGES_MAX

    def components(self, vertices: DataFrame, edges: DataFrame) -> DataFrame:
        """What is small the driver joins itself; the rest is joined by large and small stars, whose
        rounds grow with the logarithm of the longest path, where passing labels on would take as
        many as the DAG is deep."""
        pairs = edges.select(F.col("ceid").alias("a"), F.col("peid").alias("b")).distinct()
        few = pairs.limit(self.driver_edges_max + 1).collect()
        if len(few) <= self.driver_edges_max:
            labels = sorted(least_labels((row.a, row.b) for row in few).items())
            return _labelled(vertices, self._ledger.spark.createDataFrame(labels, LABELS))
        pairs = pairs.localCheckpoint()
        digest = None
        while True:
            pairs = _small_star(_large_star(pairs)).localCheckpoint()
            found = pairs.agg(
                F.count("*"), F.sum(F.xxhash64("a", "b").cast("decimal(38,0)"))
            ).first()
            if found == digest:
                break
            digest = found
        least = pairs.groupBy(F.col("a").alias("eid")).agg(F.min("b").alias("label"))
        return _labelled(vertices, least)

    def forks(self, events: DataFrame) -> DataFrame:
        keys = ["author_no", "journal", "prev"]
        often = events.groupBy(*keys).agg(F.countDistinct("id").alias("ids")).where("ids > 1")
        return events.join(often.select(*keys), keys, "left_semi").dropDuplicates(["id"])

    def loops(self, edges: DataFrame) -> DataFrame:
        by_copy: dict[str, list[tuple[int, int]]] = {}
        for copy, child, parent in edges.collect():
            by_copy.setdefault(copy, []).append((child, parent))
        rows = [
            (copy, eid, len(loop))
            for copy, pairs in sorted(by_copy.items())
            for loop in loops_of(pairs)
            for eid in loop
        ]
        return self._ledger.spark.createDataFrame(rows, LOOPS)

    def children(self, edges: DataFrame) -> DataFrame:
        return edges.groupBy(F.col("peid").alias("eid")).agg(F.count("*").alias("children"))

    def ranks(self, ties: DataFrame) -> DataFrame:
        """The number of authors is that of nodes: the driver does the rounds itself."""
        pairs = [(row.above, row.below, row.times) for row in ties.collect()]
        rows = sorted(ranks_of(pairs).items())
        return self._ledger.spark.createDataFrame(rows, "author_no int, rank double")

    def communities(self, authors: DataFrame, ties: DataFrame) -> DataFrame:
        """Some dozens of nodes: the driver joins them itself."""
        labels = least_labels((row.above, row.below) for row in ties.collect())
        rows = [
            (row.author_no, labels.get(row.author_no, row.author_no)) for row in authors.collect()
        ]
        return self._ledger.spark.createDataFrame(rows, "author_no int, community int")

    def spread(self, edges: DataFrame, start: int, levels: int) -> DataFrame:
        """The edges are those of a few levels: the driver walks them itself."""
        above: dict[int, list[int]] = {}
        for row in edges.collect():
            above.setdefault(row.peid, []).append(row.ceid)
        hops = {start: 0}
        newest = [start]
        for level in range(1, levels + 1):
            newest = sorted({c for p in newest for c in above.get(p, ())} - hops.keys())
            hops.update(dict.fromkeys(newest, level))
        return self._ledger.spark.createDataFrame(sorted(hops.items()), "eid long, hops int")


def ranks_of(pairs: list[tuple[int, int, int]]) -> dict[int, float]:
    """As GraphX counts: every vertex begins with 1, and a share of 0.15 comes from nowhere."""
    out: dict[int, int] = {}
    for above, below, times in pairs:
        out[above] = out.get(above, 0) + times
        out.setdefault(below, 0)
    ranks = dict.fromkeys(out, 1.0)
    for _ in range(limits.PAGERANK_ROUNDS):
        given = dict.fromkeys(out, 0.0)
        for above, below, times in pairs:
            given[below] += ranks[above] * times / out[above]
        ranks = {vertex: 0.15 + 0.85 * share for vertex, share in given.items()}
    total = sum(ranks.values()) or 1.0
    return {vertex: rank / total for vertex, rank in ranks.items()}


def least_labels(pairs: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Each vertex with the least of its component."""
    above: dict[int, int] = {}

    def top(vertex: int) -> int:
        path = []
        while above.setdefault(vertex, vertex) != vertex:
            path.append(vertex)
            vertex = above[vertex]
        for passed in path:
            above[passed] = vertex
        return vertex

    for one, other in pairs:
        low, high = sorted((top(one), top(other)))
        above[high] = low
    return {vertex: top(vertex) for vertex in list(above)}


def _labelled(vertices: DataFrame, labels: DataFrame) -> DataFrame:
    root = vertices.sparkSession.createDataFrame([(ROOT_EID,)], "eid long")
    everything = vertices.unionByName(root)
    return everything.join(labels, "eid", "left").select(
        "eid", F.coalesce("label", "eid").alias("component")
    )


def _both_ways(pairs: DataFrame) -> DataFrame:
    turned = pairs.select(F.col("b").alias("a"), F.col("a").alias("b"))
    return pairs.unionByName(turned).where(F.col("a") != F.col("b")).distinct()


def _large_star(pairs: DataFrame) -> DataFrame:
    """Every greater neighbour hangs on the least of the neighbourhood."""
    around = _both_ways(pairs)
    least = around.groupBy("a").agg(F.least(F.min("b"), F.first("a")).alias("least"))
    joined = around.join(least, "a").where(F.col("b") > F.col("a"))
    return joined.select(F.col("b").alias("a"), F.col("least").alias("b")).distinct()


def _small_star(pairs: DataFrame) -> DataFrame:
    """Every smaller neighbour, and the vertex itself, hang on the least of them."""
    down = pairs.select(F.greatest("a", "b").alias("a"), F.least("a", "b").alias("b")).distinct()
    least = down.groupBy("a").agg(F.min("b").alias("least"))
    joined = down.join(least, "a")
    others = joined.where(F.col("b") != F.col("least")).select(
        F.col("b").alias("a"), F.col("least").alias("b")
    )
    return others.unionByName(least.select("a", F.col("least").alias("b"))).distinct()


def core_of(edges: Iterable[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    """Edges (copy, child, parent) that are left when whatever has nothing above it, or nothing
    below it, has gone: loops, and what lies between two of them."""
    pairs = {((copy, child), (copy, parent)) for copy, child, parent in edges}
    downwards = _without_ends(pairs)
    both = _without_ends({(parent, child) for child, parent in downwards})
    return sorted((child[0], child[1], parent[1]) for parent, child in both)


def _without_ends(pairs: set[tuple[Vertex, Vertex]]) -> set[tuple[Vertex, Vertex]]:
    """Without those that no pair leads to, until there are none."""
    left = set(pairs)
    after: dict[Vertex, list[Vertex]] = {}
    leading = Counter(other for _, other in pairs)
    for one, other in sorted(pairs):
        after.setdefault(one, []).append(other)
    waiting = [vertex for vertex in after if vertex not in leading]
    while waiting:
        vertex = waiting.pop()
        for other in after.get(vertex, ()):
            left.discard((vertex, other))
            leading[other] -= 1
            if not leading[other]:
                waiting.append(other)
    return left


def loops_of(pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Strongly connected parts of more than one vertex, or of one that names itself: Tarjan's way,
    with a stack of its own in place of recursion."""
    below: dict[int, list[int]] = {}
    for child, parent in pairs:
        below.setdefault(child, []).append(parent)
        below.setdefault(parent, [])
    order: dict[int, int] = {}
    low: dict[int, int] = {}
    waiting: list[int] = []
    is_waiting: set[int] = set()
    found: list[list[int]] = []
    for start, first in below.items():
        work = [] if start in order else [(start, iter(first))]
        while work:
            vertex, rest = work[-1]
            if vertex not in order:
                order[vertex] = low[vertex] = len(order)
                waiting.append(vertex)
                is_waiting.add(vertex)
            for parent in rest:
                if parent not in order:
                    work.append((parent, iter(below[parent])))
                    break
                if parent in is_waiting:
                    low[vertex] = min(low[vertex], low[parent])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[vertex])
                if low[vertex] == order[vertex]:
                    part = waiting[waiting.index(vertex) :]
                    del waiting[-len(part) :]
                    is_waiting.difference_update(part)
                    if len(part) > 1 or vertex in below[vertex]:
                        found.append(sorted(part))
    return found
