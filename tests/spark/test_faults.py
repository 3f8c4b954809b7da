"""Every planted fault is found as exactly what it is, and nothing else is found."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from pyspark.sql import SparkSession

from quipu.dumps import tracing
from quipu.dumps.checking import check_files
from quipu.dumps.tables import eid_of
from quipu.spark_analytics.engine_dataframe import DataFrameEngine
from quipu.spark_analytics.findings import CHECKS
from quipu.spark_analytics.pipeline import read_findings
from quipu.spark_analytics.reading import Ledger, named_copies
from quipu.spark_analytics.report import AGREE, WRONG
from quipu.spark_analytics.rosters import node_names
from quipu.spark_analytics.session import DATAFRAME, GRAPHFRAMES
from quipu.spark_analytics.structure_checks import Structure
from tests.spark.conftest import Analyse
from tests.spark.faults import FAULTS, Expected, planted
from tests.spark.ledgers import World, write_all


def wrongly(found: Expected, expected: dict[str, Expected]) -> dict[str, list[object]]:
    """Which faults were not found as what they are; and what is no fault."""
    every = set().union(*expected.values())
    missed = {name: sorted(wanted - found) for name, wanted in expected.items() if wanted - found}
    extra = {"nobody planted": sorted(found - every)} if found - every else {}
    return {**missed, **extra}  # type: ignore[dict-item]


@pytest.mark.parametrize("engine", [DATAFRAME, GRAPHFRAMES])
def test_every_planted_fault_and_nothing_else(
    analyse: Analyse, tmp_path: Path, engine: str
) -> None:
    world, dumps, expected = planted()
    paths = write_all(world, list(dumps.values()), tmp_path / "dumps")
    report = analyse(paths, engine)
    found = {finding[:3] for finding in read_findings(tmp_path / "out")}
    assert wrongly(found, expected) == {}
    assert report.exit_code == WRONG
    for result in report.results:
        assert result.count == sum(1 for check, _, _ in found if check == result.check)
    if engine == GRAPHFRAMES:
        used = report.algorithms
        assert used["connectedComponents"] == 3  # the ledger and two islands
        assert used["find"] == sum(1 for check, _, _ in found if check == "dag.fork")
        assert used["stronglyConnectedComponents"] == 25
        assert used["pageRank"] == len(report.measures["authors"]) - 1
        assert used["aggregateMessages"] > len(world.read) // 2


def test_enough_kinds_are_planted() -> None:
    assert len(FAULTS) >= 36


def test_a_sound_cluster_has_no_finding_however_it_lies(analyse: Analyse, tmp_path: Path) -> None:
    world = World()
    world.live(8)
    dumps = world.dumps()
    for at, dump in enumerate(dumps):
        for rows in dump.tables.values():
            rows[:] = rows[at:] + rows[:at]
    paths = write_all(world, dumps, tmp_path / "dumps", files=3)
    report = analyse(paths, DATAFRAME)
    assert read_findings(tmp_path / "out") == []
    assert (report.exit_code, report.found) == (AGREE, 0)
    assert report.verdict == "3 copies of 24 events agree; every check passed."
    assert [author["events"] for author in report.measures["authors"]] == [8, 8, 8]
    said = json.loads((tmp_path / "out" / "report.json").read_text())
    assert (said["version"], said["findings"], len(said["checks"])) == (1, 0, len(CHECKS))
    suite = ET.fromstring((tmp_path / "out" / "junit.xml").read_text())
    assert (suite.get("tests"), suite.get("failures")) == (str(len(CHECKS)), "0")
    metrics = (tmp_path / "out" / "quipu_analysis.prom").read_text()
    assert 'quipu_analysis_findings{check="dag.fork"} 0' in metrics
    page = (tmp_path / "out" / "report.html").read_text()
    assert report.verdict in page
    assert "<svg" in page
    assert "prefers-color-scheme: dark" in page
    assert "http" not in page
    assert tracing.diff(paths[0], paths[1]) == []


def test_a_torn_copy_is_named_and_the_rest_is_checked(analyse: Analyse, tmp_path: Path) -> None:
    world = World()
    world.live(4)
    paths = write_all(world, world.dumps(), tmp_path / "dumps")
    (paths[2] / "manifest.json").unlink()
    report = analyse(paths, DATAFRAME)
    (found,) = read_findings(tmp_path / "out")
    assert (found.check, found.subject) == ("files", str(paths[2] / "manifest.json"))
    assert report.exit_code == 10
    assert "1 file could not be read" in report.verdict


def test_a_search_for_loops_that_was_cut_is_said(spark: SparkSession, tmp_path: Path) -> None:
    """Every event names one above it, so that all edges are suspicious."""
    world = World(2)
    world.live(4)
    (dump, _) = world.dumps()
    last = world.read[-1].id
    edge = {"parent": last, "peid": eid_of(last), "ordinal": 7}
    for event in world.read[:-1]:
        row = {"child": bytes(event.id), "ceid": eid_of(event.id), **edge}
        dump.tables["edges"].append(row)
    edges = len(dump.tables["edges"])
    checked = [check_files(path) for path in write_all(world, [dump], tmp_path)]
    ledger = Ledger(spark, named_copies(checked, node_names(checked)))
    try:
        whole = Structure(ledger, DataFrameEngine(ledger))
        assert whole.loops().count() == len(world.read)
        assert whole.cut == []
        cut = Structure(ledger, DataFrameEngine(ledger), loop_edges_max=edges - 3)
        assert cut.loops().count() <= len(world.read)
        assert cut.cut == [
            f"dag.loop: 3 of {edges} suspicious edges, the deepest, were not searched"
        ]
    finally:
        ledger.release()
