"""How often each check moves all of its rows: one shuffle more makes a large ledger slow."""

from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from quipu.dumps.checking import check_files
from quipu.spark_analytics import copies_checks, events_checks, limits
from quipu.spark_analytics.engine_dataframe import DataFrameEngine
from quipu.spark_analytics.reading import Ledger, named_copies
from quipu.spark_analytics.rosters import node_names
from quipu.spark_analytics.settled import Cords
from quipu.spark_analytics.structure_checks import Structure
from tests.spark.ledgers import World, write_all
from tests.spark.test_oracles import told

# No table is small enough to be sent whole to everybody, as in a large ledger.
LARGE = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.shuffle.partitions": "2",
}
SHUFFLES = {
    "kept: edges with both ends": 2,
    "kept: digests": 1,
    "events.id": 0,
    "dag.duplicate": 0,
    "dag.stray-edge": 0,
    "dag.missing-parent": 3,
    "dag.prev": 0,
    "dag.root": 0,
    "dag.depth": 0,
    "dag.causality": 0,
    "dag.feed": 0,
    "dag.feed, positions": 2,
    "dag.fork": 4,
    "copies.bytes": 0,
    "copies.buckets": 1,
    "copies.missing": 2,
    "copies.stuck": 1,
    "copies.unproven": 2,
}


def shuffles(frame: DataFrame) -> int:
    """Of its own plan: what is kept was shuffled once for all that read it."""

    def below(plan: Any) -> int:
        children = plan.children()
        own = int(plan.nodeName() == "Exchange")
        return own + sum(below(children.apply(at)) for at in range(children.size()))

    return below(frame._jdf.queryExecution().executedPlan())


def counted(ledger: Ledger, twins: dict[str, str]) -> dict[str, int]:
    """What is kept comes first: from then on Spark takes it for a table."""
    structure = Structure(ledger, DataFrameEngine(ledger), twins=twins)
    events, cords = ledger.table("events"), Cords(ledger, limits.SETTLE_S)
    made = copies_checks.made_digests(ledger)
    found = {
        "kept: edges with both ends": shuffles(structure.unkept),
        "kept: digests": shuffles(made),
    }
    made = ledger.keep(made)
    (missing_parents,) = structure.missing_parents()
    below, *_, positions = structure.feed()
    frames = {
        "events.id": events_checks.ids(events),
        "dag.duplicate": structure.duplicates(),
        "dag.stray-edge": structure.stray_edges(),
        "dag.missing-parent": missing_parents,
        "dag.prev": structure.prevs(),
        "dag.root": structure.roots(),
        "dag.depth": structure.depths(),
        "dag.causality": structure.causality(),
        "dag.feed": below,
        "dag.feed, positions": positions,
        "dag.fork": structure.forks(),
        "copies.bytes": copies_checks.other_bytes(ledger),
        "copies.buckets": copies_checks.buckets(ledger, made),
        "copies.missing": copies_checks.missing(ledger, cords.settled, [1]),
        "copies.stuck": copies_checks.stuck(ledger, cords.settled),
        "copies.unproven": copies_checks.unproven(ledger, cords),
    }
    return found | {name: shuffles(frame) for name, frame in frames.items()}


def test_no_check_shuffles_more_often_than_it_did(spark: SparkSession, tmp_path: Path) -> None:
    world = World()
    world.live(2)
    checked = [check_files(path) for path in write_all(world, world.dumps(), tmp_path)]
    ledger = Ledger(spark, named_copies(checked, node_names(checked)))
    try:
        with told(spark, LARGE):
            assert counted(ledger, {}) == SHUFFLES
            alike = {"n2": "n1", "n3": "n1"}
            assert {n: c for n, c in counted(ledger, alike).items() if c > SHUFFLES[n]} == {}
    finally:
        ledger.release()
