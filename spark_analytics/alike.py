"""Copies with the same Read events: the DAG of one of them is that of all.

Which may be alike the digests of their manifests say; that they are is seen by what the rows give,
summed up under salts that nobody could know when the dumps were made. Edges of what is Unread are
left out, for that differs from copy to copy, and is looked at in each.
"""

import secrets
from collections.abc import Sequence
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from quipu.spark_analytics import limits
from quipu.spark_analytics.reading import SLIM, Copy, Ledger

OF_ONE_COPY = ("copy", "branch", "state", "feed_pos")  # what copies need not have alike
EDGE = ("child", "parent", "ceid", "peid", "ordinal")
HALF = 2**32


class Sum(NamedTuple):
    """Of one copy's rows, whatever their order."""

    rows: int
    halves: tuple[int, ...]


def twins(ledger: Ledger) -> dict[str, str]:
    """Copy -> the one that stands for it; those that stand for themselves are left out."""
    candidates = _candidates(ledger.copies)
    if not candidates:
        return {}
    names = [copy.name for group in candidates for copy in group]
    of_them = F.col("copy").isin(names)
    slim, salts = ledger.slim.where(of_them), [secrets.randbits(63) for _ in range(2)]
    unread = slim.where("state != 'read'")
    counts = {row.copy: row["count"] for row in unread.groupBy("copy").count().collect()}
    if max(counts.values(), default=0) > limits.UNREAD_SENT_MAX:
        return {}
    shared = [name for name in SLIM if name not in OF_ONE_COPY]
    events = _sums(slim.where("state = 'read'"), shared, salts)
    edges = _sums(_of_read(ledger.table("edges").where(of_them), unread), EDGE, salts)
    found = {}
    for group in candidates:
        first: dict[tuple[Sum | None, Sum | None], str] = {}
        for copy in group:
            said = events.get(copy.name), edges.get(copy.name)
            stands = first.setdefault(said, copy.name)
            if stands != copy.name:
                found[copy.name] = stands
    return found


def of_unread(edges: DataFrame, unread: DataFrame) -> DataFrame:
    """A few rows, sent to where the edges are."""
    return edges.join(F.broadcast(_children(unread)), ["copy", "ceid", "child"], "left_semi")


def _of_read(edges: DataFrame, unread: DataFrame) -> DataFrame:
    return edges.join(F.broadcast(_children(unread)), ["copy", "ceid", "child"], "left_anti")


def _children(unread: DataFrame) -> DataFrame:
    return unread.select("copy", F.col("eid").alias("ceid"), F.col("id").alias("child"))


def _candidates(copies: Sequence[Copy]) -> list[list[Copy]]:
    """Those whose manifests name the same digests, of files that can be used."""
    groups: dict[str, list[Copy]] = {}
    for copy in copies:
        if copy.manifest.buckets_sha256 and not copy.broken:
            groups.setdefault(copy.manifest.buckets_sha256, []).append(copy)
    return [group for group in groups.values() if len(group) > 1]


def _sums(rows: DataFrame, columns: Sequence[str], salts: Sequence[int]) -> dict[str, Sum]:
    """Of each row a hash under each salt, its halves summed up: no sum leaves the LONGs."""
    halves: list[Column] = []
    for salt in salts:
        made = F.xxhash64(F.lit(salt), *columns)
        halves += [F.sum(F.shiftrightunsigned(made, 32)), F.sum(made.bitwiseAND(HALF - 1))]
    found = rows.groupBy("copy").agg(F.count("*"), *halves).collect()
    return {row[0]: Sum(row[1], tuple(row[2:])) for row in found}
