"""Copies that are alike are looked at once, and nothing that one of them alone has is missed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from quipu.dumps.checking import check_files
from quipu.spark_analytics import alike
from quipu.spark_analytics.engine_dataframe import DataFrameEngine
from quipu.spark_analytics.pipeline import read_findings
from quipu.spark_analytics.reading import Ledger, named_copies
from quipu.spark_analytics.rosters import node_names
from quipu.spark_analytics.session import DATAFRAME
from quipu.spark_analytics.structure_checks import Structure
from tests.spark.conftest import Analyse, found_in
from tests.spark.faults import Planted
from tests.spark.ledgers import DumpRows, World, write_all

Found = set[tuple[str, str, str]]
TWINS = {"n2": "n1", "n3": "n1"}


@contextmanager
def ledger_of(
    spark: SparkSession, world: World, dumps: list[DumpRows], at: Path
) -> Iterator[Ledger]:
    checked = [check_files(path) for path in write_all(world, dumps, at)]
    ledger = Ledger(spark, named_copies(checked, node_names(checked)))
    try:
        yield ledger
    finally:
        ledger.release()


def lived() -> tuple[World, list[DumpRows]]:
    """Sound, and something is on its way: Unread in the last copy alone."""
    world = World()
    world.live(5)
    dumps = world.dumps()
    planted = Planted(world, {"n3": dumps[2]})
    planted.forge("n1", 1, planted.journal())
    return world, dumps


def feed_turned(world: World, dumps: list[DumpRows]) -> Found:
    """An event became Read before what it names, in one copy."""
    one, other = world.read[7], world.read[6]
    upper, lower = dumps[1].of(one.id), dumps[1].of(other.id)
    assert other.id in {one.header.prev, *one.header.parents}
    upper["feed_pos"], lower["feed_pos"] = lower["feed_pos"], upper["feed_pos"]
    return {("dag.feed", "n2", bytes(one.id).hex())}


def position_gone(world: World, dumps: list[DumpRows]) -> Found:
    lost = world.read[4].id
    dumps[2].of(lost)["feed_pos"] = None
    above = {("dag.feed", "n3", child.hex()) for child in dumps[2].children(lost)}
    return above | {("dag.feed", "n3", "n3")}


def unread_too_deep(world: World, dumps: list[DumpRows]) -> Found:
    planted = Planted(world, {"n2": dumps[1]})
    made = planted.forge("n2", 2, planted.journal(), depth=9)
    return {("dag.depth", "n2", bytes(made.id).hex())}


def unread_without_parent(world: World, dumps: list[DumpRows]) -> Found:
    planted = Planted(world, {"n2": dumps[1]})
    made = planted.forge("n2", 3, planted.journal(), parents=[bytes(32)], depth=9)
    return {("dag.missing-parent", "n2", bytes(made.id).hex())}


def test_what_copies_need_not_have_alike_is_looked_at_in_each(
    spark: SparkSession, tmp_path: Path
) -> None:
    world, dumps = lived()
    faults = (feed_turned, position_gone, unread_too_deep, unread_without_parent)
    expected = set().union(*[fault(world, dumps) for fault in faults])
    with ledger_of(spark, world, dumps, tmp_path) as ledger:
        structure = Structure(ledger, DataFrameEngine(ledger))
        assert structure.alike == TWINS
        assert found_in(structure.checks()) == expected
        assert found_in(Structure(ledger, DataFrameEngine(ledger), twins={}).checks()) == expected


def other_depth(dumps: list[DumpRows], at: bytes) -> None:
    dumps[1].of(at)["depth"] += 1


def other_edge(dumps: list[DumpRows], at: bytes) -> None:
    edge = next(row for row in dumps[1].tables["edges"] if row["child"] == at)
    edge["parent"] = bytes(32)


def edge_twice(dumps: list[DumpRows], at: bytes) -> None:
    dumps[1].tables["edges"] += [
        {**row, "ordinal": 7} for row in dumps[1].tables["edges"] if row["child"] == at
    ]


@pytest.mark.parametrize("change", [other_depth, other_edge, edge_twice])
def test_a_copy_that_says_the_same_digests_and_holds_other_rows_is_not_alike(
    spark: SparkSession, tmp_path: Path, change: Callable[[list[DumpRows], bytes], None]
) -> None:
    world, dumps = lived()
    change(dumps, world.read[8].id)
    with ledger_of(spark, world, dumps, tmp_path) as ledger:
        assert alike.twins(ledger) == {"n3": "n1"}


def test_other_digests_are_not_even_compared(spark: SparkSession, tmp_path: Path) -> None:
    world, dumps = lived()
    dumps[0].drop(world.read[-1].id)
    dumps[2].drop(world.read[-2].id)
    with ledger_of(spark, world, dumps, tmp_path) as ledger:
        assert alike.twins(ledger) == {}


def test_what_all_have_alike_is_named_in_all(analyse: Analyse, tmp_path: Path) -> None:
    world, dumps = lived()
    fault = world.read[6].id
    for dump in dumps:
        dump.of(fault)["depth"] += 100
    expected = {("dag.depth", dump, fault.hex()) for dump in ("n1", "n2", "n3")}
    analyse(write_all(world, dumps, tmp_path / "dumps"), DATAFRAME)
    found = {finding[:3] for finding in read_findings(tmp_path / "out")}
    assert expected <= found
    assert {copy for check, copy, _ in found if check == "dag.depth"} == {"n1", "n2", "n3"}
