"""F: what the graph looks like: figures for people. No verdict rests on them."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from quipu.spark_analytics import limits
from quipu.spark_analytics.engine import Engine
from quipu.spark_analytics.reading import Ledger
from quipu.spark_analytics.settled import HLC_SHIFT

QUANTILES = (0.5, 0.95, 0.99)


@dataclass(slots=True)
class Measures:
    copies: list[dict[str, Any]] = field(default_factory=list)
    authors: list[dict[str, Any]] = field(default_factory=list)
    relays: list[dict[str, Any]] = field(default_factory=list)
    communities: list[list[int]] = field(default_factory=list)  # of authors
    signers: list[dict[str, Any]] = field(default_factory=list)
    timeline: list[dict[str, Any]] = field(default_factory=list)
    events: int = 0
    edges: int = 0
    tips: int = 0
    critical_path: int = 0  # greatest depth: the longest chain of events
    children_most: int = 0
    spread: dict[str, Any] = field(default_factory=dict)  # of the event that was asked for

    def facts(self) -> dict[str, Any]:
        return asdict(self)


def measure(ledger: Ledger, engine: Engine) -> Measures:
    slim = ledger.slim.dropDuplicates(["id"])
    edges = ledger.table("edges").select("ceid", "peid").distinct()
    found = Measures()
    found.copies = _rows(
        ledger.slim.groupBy("copy")
        .agg(
            F.count("*").alias("events"),
            F.sum(F.when(F.col("state") == "read", 1).otherwise(0)).alias("read"),
            F.max("depth").alias("depth"),
        )
        .orderBy("copy")
    )
    total = slim.agg(F.count("*"), F.max("depth")).first()
    assert total is not None
    found.events, found.critical_path = total[0], total[1] or 0
    children = engine.children(edges)
    most = children.agg(F.count("*"), F.max("children"), F.sum("children")).first()
    assert most is not None
    found.tips = found.events - most[0] if found.events else 0
    found.children_most, found.edges = most[1] or 0, most[2] or 0
    ties = ledger.keep(_relayed(ledger, slim))
    found.authors = _authors(engine, slim, ties)
    found.relays = _relays(ties)
    found.communities = _communities(engine, slim, ties)
    found.signers = _signers(ledger)
    found.timeline = _timeline(slim)
    return found


def _relayed(ledger: Ledger, slim: DataFrame) -> DataFrame:
    """above, below, times, q: of authors who build upon events of others, by their own clocks."""
    stamped = slim.select("eid", "author_no", F.shiftrightunsigned("hlc", HLC_SHIFT).alias("ms"))
    ends = {
        end: stamped.select(*[F.col(name).alias(f"{end}_{name}") for name in stamped.columns])
        for end in ("c", "p")
    }
    edges = ledger.table("edges").where("ordinal > 0").select("ceid", "peid").distinct()
    took_ms = F.col("c_ms") - F.col("p_ms")
    return (
        edges.join(ends["c"], F.col("ceid") == F.col("c_eid"))
        .join(ends["p"], F.col("peid") == F.col("p_eid"))
        .groupBy(F.col("c_author_no").alias("above"), F.col("p_author_no").alias("below"))
        .agg(F.count("*").alias("times"), F.percentile_approx(took_ms, list(QUANTILES)).alias("q"))
    )


def _authors(engine: Engine, slim: DataFrame, ties: DataFrame) -> list[dict[str, Any]]:
    """How many events each has, and how much the others build upon them."""
    counted = slim.groupBy("author_no").agg(
        F.count("*").alias("events"), F.countDistinct("journal").alias("journals")
    )
    ranked = counted.join(engine.ranks(ties.drop("q")), "author_no", "left")
    return _rows(ranked.orderBy("author_no"))


def _relays(ties: DataFrame) -> list[dict[str, Any]]:
    return [
        {"from_no": row.below, "to_no": row.above, "times": row.times} | _quantiles(row.q)
        for row in ties.where("above != below").orderBy("below", "above").collect()
    ]


def _communities(engine: Engine, slim: DataFrame, ties: DataFrame) -> list[list[int]]:
    """Authors who build upon each other more often than their numbers alone would bring about."""
    others = ties.where("above != below")
    above = others.groupBy("above").agg(F.sum("times").alias("given"))
    below = others.groupBy("below").agg(F.sum("times").alias("taken"))
    total = others.agg(F.sum("times").alias("total"))
    close = others.join(above, "above").join(below, "below").crossJoin(total)
    close = close.where(F.col("times") * F.col("total") > F.col("given") * F.col("taken"))
    authors = slim.select("author_no").distinct()
    parts: dict[int, list[int]] = {}
    for row in engine.communities(authors, close.select("above", "below")).collect():
        parts.setdefault(row.community, []).append(row.author_no)
    return sorted(sorted(part) for part in parts.values())


def _quantiles(values: Sequence[int]) -> dict[str, int]:
    return {f"p{q * 100:.0f}_ms": at for q, at in zip(QUANTILES, values, strict=True)}


def _signers(ledger: Ledger) -> list[dict[str, Any]]:
    """From an event's own time to a signer's first receipt that names it, by their own clocks."""
    first = (
        ledger.table("receipts").groupBy("signer_no", "eid").agg(F.min("number").alias("number"))
    )
    stamped = ledger.slim.dropDuplicates(["id"]).select("eid", "hlc", "author_no")
    both = first.join(stamped, "eid").where("signer_no != author_no")
    late_ms = F.shiftrightunsigned("number", HLC_SHIFT) - F.shiftrightunsigned("hlc", HLC_SHIFT)
    quantiles = F.percentile_approx(late_ms, list(QUANTILES), 10_000)
    rows = both.groupBy("signer_no").agg(quantiles.alias("q"), F.count("*").alias("named"))
    return [
        {"signer_no": row.signer_no, "named": row.named} | _quantiles(row.q)
        for row in rows.orderBy("signer_no").collect()
    ]


def _timeline(slim: DataFrame) -> list[dict[str, Any]]:
    """Events and width (events a level of depth) over equal parts of time."""
    stamped = slim.select(F.shiftrightunsigned("hlc", HLC_SHIFT).alias("ms"), "depth")
    ends = stamped.agg(F.min("ms"), F.max("ms")).first()
    if ends is None or ends[0] is None:
        return []
    step_ms = max(1, (ends[1] - ends[0]) // limits.TIMELINE_POINTS + 1)
    part = F.floor((F.col("ms") - F.lit(ends[0])) / F.lit(step_ms))
    rows = (
        stamped.groupBy(part.alias("part"))
        .agg(F.count("*").alias("events"), F.countDistinct("depth").alias("levels"))
        .orderBy("part")
        .collect()
    )
    return [
        {
            "from_ms": ends[0] + int(row.part) * step_ms,
            "events": row.events,
            "width": round(row.events / row.levels, 3),
        }
        for row in rows
    ]


def _rows(frame: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict() for row in frame.collect()]
