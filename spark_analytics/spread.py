"""How one event spread: what was built upon it, by whom first, over whom, and after how long.

Followed are some levels of depth above it, whatever the ledger's size: a window of the graph.
"""

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from quipu.spark_analytics import limits
from quipu.spark_analytics.engine import Engine
from quipu.spark_analytics.reading import Ledger
from quipu.spark_analytics.settled import HLC_SHIFT


class NoSuchEvent(Exception):
    """No dump has an event whose id begins so, or several have."""


def spread_of(
    ledger: Ledger, engine: Engine, start: str, levels: int = limits.SPREAD_LEVELS
) -> dict[str, Any]:
    """Facts about the event whose id in hex begins so. Raises `NoSuchEvent`."""
    slim = ledger.slim.dropDuplicates(["id"])
    rows = slim.where(F.lower(F.hex("id")).startswith(start.lower())).limit(2).collect()
    if len(rows) != 1:
        raise NoSuchEvent(f"{len(rows) or 'no'} events have an id that begins with {start}")
    event = rows[0]
    above = F.col("depth").between(event.depth + 1, event.depth + levels)
    inside = ledger.keep(
        slim.where(above | (F.col("id") == F.lit(bytes(event.id)))).select(
            "eid", "id", "author_no", F.shiftrightunsigned("hlc", HLC_SHIFT).alias("ms")
        )
    )
    edges = ledger.keep(_within(ledger.table("edges"), inside))
    reached = ledger.keep(engine.spread(edges, event.eid, levels).join(inside, "eid"))
    deepest = slim.agg(F.max("depth")).first()
    assert deepest is not None
    by_hops = reached.where("hops > 0").groupBy("hops").count().orderBy("hops").collect()
    return {
        "event": bytes(event.id).hex(),
        "author_no": event.author_no,
        "events_above": sum(row["count"] for row in by_hops),
        "levels": levels,
        "is_whole": deepest[0] <= event.depth + levels,
        "by_hops": [{"hops": row.hops, "events": row["count"]} for row in by_hops],
        "tree": _tree(reached, edges, event.author_no, event.hlc),
    }


def _within(edges: DataFrame, inside: DataFrame) -> DataFrame:
    above, below = (inside.select(F.col("eid").alias(end)) for end in ("ceid", "peid"))
    pairs = edges.select("ceid", "peid").distinct()
    return pairs.join(above, "ceid", "left_semi").join(below, "peid", "left_semi")


def _tree(reached: DataFrame, edges: DataFrame, author_no: int, hlc: int) -> list[dict[str, Any]]:
    """Of every other author its first event above, and whose event that names which was nearest."""
    first = (
        reached.where(F.col("author_no") != author_no)
        .groupBy("author_no")
        .agg(F.min(F.struct("ms", "hops", "eid", "id")).alias("first"))
        .select("author_no", "first.*")
    )
    below = reached.select(
        F.col("eid").alias("peid"), F.col("author_no").alias("by"), F.col("hops").alias("p_hops")
    )
    via = (
        first.select(F.col("eid").alias("ceid"))
        .join(edges, "ceid")
        .join(below, "peid")
        .groupBy("ceid")
        .agg(F.min(F.struct("p_hops", "by")).alias("via"))
    )
    named = first.join(via, first["eid"] == via["ceid"]).orderBy("ms", "author_no")
    began_ms = (hlc % 2**64) >> HLC_SHIFT
    return [
        {
            "author_no": row.author_no,
            "event": bytes(row.id).hex(),
            "hops": row.hops,
            "after_ms": row.ms - began_ms,
            "via": row.via.by,
        }
        for row in named.collect()
    ]
