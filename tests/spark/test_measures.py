"""What both engines say of the graph of two groups that hear little of each other."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from quipu.dumps.checking import check_files
from quipu.ledger.event import SignedEvent
from quipu.spark_analytics.engine_dataframe import DataFrameEngine
from quipu.spark_analytics.engine_graphframes import GraphFramesEngine
from quipu.spark_analytics.measures import Measures, measure
from quipu.spark_analytics.reading import Ledger, named_copies
from quipu.spark_analytics.rosters import node_names
from quipu.spark_analytics.spread import NoSuchEvent, spread_of
from tests.spark.ledgers import World, write_all

ROUNDS, LEVELS = 6, 5
GROUPS = [[1, 2], [3, 4]]


def two_groups() -> World:
    """Each writes upon its neighbour; in the middle, once, 3 writes upon 2."""
    world = World(4)
    ledger = world.ledger
    tips: dict[int, SignedEvent] = {}
    for number in range(ROUNDS):
        for group in GROUPS:
            for author in group:
                near = [tips[other] for other in group if other != author and other in tips]
                far = [tips[2]] if (number, author) == (ROUNDS // 2, 3) else []
                tips[author] = ledger.write(author, [f"{number}"], parents=near + far)
                world.read.append(tips[author])
        world.sign()
    return world


@contextmanager
def ledger_of(spark: SparkSession, world: World, folder: Path) -> Iterator[Ledger]:
    checked = [check_files(path) for path in write_all(world, world.dumps()[:1], folder)]
    ledger = Ledger(spark, named_copies(checked, node_names(checked)))
    try:
        yield ledger
    finally:
        ledger.release()


def reached(world: World, start: SignedEvent, levels: int) -> dict[bytes, int]:
    """Hops, an edge at a time, in a window of so many levels of depth."""
    hops = {bytes(start.id): 0}
    for event in world.read:  # parents before children
        below = {event.header.prev, *event.header.parents} & hops.keys()
        if below and event.header.depth <= start.header.depth + levels:
            hops[bytes(event.id)] = 1 + min(hops[parent] for parent in below)
    return hops


def expected_spread(world: World, start: SignedEvent) -> dict[str, Any]:
    hops = reached(world, start, LEVELS)
    counts = [sum(1 for h in hops.values() if h == n) for n in range(1, max(hops.values()) + 1)]
    first: dict[int, SignedEvent] = {}
    for event in world.read:
        author = world.ledger.cord_of(event).author_no
        if event.id in hops and author != world.ledger.cord_of(start).author_no:
            first.setdefault(author, event)
    return {
        "events_above": len(hops) - 1,
        "by_hops": [{"hops": n, "events": count} for n, count in enumerate(counts, start=1)],
        "tree": {no: (event.id.hex(), hops[bytes(event.id)]) for no, event in first.items()},
    }


def shown(found: dict[str, Any]) -> dict[str, Any]:
    kept = {name: found[name] for name in ("events_above", "by_hops")}
    tree = {row["author_no"]: (row["event"], row["hops"]) for row in found["tree"]}
    return {**kept, "tree": tree}


def without_ranks(found: Measures) -> dict[str, Any]:
    facts = found.facts()
    facts["authors"] = [{k: v for k, v in row.items() if k != "rank"} for row in facts["authors"]]
    return facts


def test_both_engines_measure_alike_and_graphframes_did_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    world = two_groups()
    start = world.read[ROUNDS * 2 - 4]  # of node 1, below the one event that both groups see
    with ledger_of(spark, world, tmp_path) as ledger:
        plain, graphs = DataFrameEngine(ledger), GraphFramesEngine(ledger)
        one, other = measure(ledger, plain), measure(ledger, graphs)
        assert without_ranks(one) == without_ranks(other)
        ranks = [[row["rank"] for row in found.authors] for found in (one, other)]
        assert ranks[0] == pytest.approx(ranks[1])
        assert other.communities == GROUPS
        ((far,),) = [[row for row in other.relays if (row["from_no"], row["to_no"]) == (2, 3)]]
        assert (far["times"], far["p50_ms"]) == (1, 1)
        assert {row["times"] for row in other.relays if row != far} <= {ROUNDS - 1, ROUNDS}
        identity = start.id.hex()
        spreads = [spread_of(ledger, engine, identity[:20], LEVELS) for engine in (plain, graphs)]
        assert spreads[0] == spreads[1]
        assert shown(spreads[1]) == expected_spread(world, start)
        assert {row["author_no"]: row["via"] for row in spreads[1]["tree"]} == {2: 1, 3: 2, 4: 3}
        assert not spreads[1]["is_whole"]
        assert graphs.used["communities"] == len(GROUPS)
        assert graphs.used["pregel"] == 1 + spreads[1]["events_above"]
        assert graphs.used["pageRank"] == 4
        assert graphs.used["aggregateMessages"] == len(world.read) - 2  # but the two last
        with pytest.raises(NoSuchEvent, match="no events"):
            spread_of(ledger, plain, "00" * 32)
