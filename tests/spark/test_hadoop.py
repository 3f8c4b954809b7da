"""Dumps that only Hadoop reaches: under `viewfs:`, which this machine knows no path of."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from quipu.dumps.checking import check_place
from quipu.spark_analytics.hadoop import HadoopPlace
from quipu.spark_analytics.pipeline import Analysis, Order, read_findings
from quipu.spark_analytics.report import Report
from quipu.spark_analytics.requirements import Missing
from quipu.spark_analytics.session import DATAFRAME, SparkWish
from tests.spark.ledgers import World, write_all

MOUNT = "fs.viewfs.mounttable.quipu.link./dumps"
Analysed = Callable[[list[Path]], Report]


@pytest.fixture
def mounted(spark: SparkSession, tmp_path: Path) -> str:
    """The folder `dumps`, by an address of Hadoop alone."""
    (tmp_path / "dumps").mkdir()
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    hadoop.set(MOUNT, (tmp_path / "dumps").as_uri())
    hadoop.set("fs.viewfs.impl.disable.cache", "true")
    return "viewfs://quipu/dumps"


@pytest.fixture
def analysed(spark: SparkSession, mounted: str, tmp_path: Path) -> Analysed:
    def run(paths: list[Path]) -> Report:
        addresses = [f"{mounted}/{path.name}" for path in paths]
        order = Order(addresses, tmp_path / "out", SparkWish(engine=DATAFRAME))
        return Analysis(order).run(spark)

    return run


def test_they_are_held_to_their_hashes_and_compared(analysed: Analysed, tmp_path: Path) -> None:
    world = World()
    world.live(4)
    dumps = world.dumps()
    lost = world.read[-1].id
    dumps[1].drop(lost)
    paths = write_all(world, dumps, tmp_path / "dumps" / "of")
    paths = [path.rename(tmp_path / "dumps" / path.name) for path in paths]
    (paths[0] / "events" / "letters.txt").write_text("mine")
    torn = paths[2] / "entries" / "made-0.parquet"
    torn.write_bytes(torn.read_bytes()[:-1])
    (paths[2] / "evidence" / "made-0.parquet").unlink()
    report = analysed(paths)
    found = {finding[:3] for finding in read_findings(tmp_path / "out")}
    files = {
        ("files", "n1", "viewfs://quipu/dumps/n1-1/events/letters.txt"),
        ("files", "n3", "viewfs://quipu/dumps/n3-1/entries/made-0.parquet"),
        ("files", "n3", "viewfs://quipu/dumps/n3-1/evidence/made-0.parquet"),
    }
    assert files <= found
    assert ("copies.missing", "n2", lost.hex()) in found
    assert {check for check, _, _ in found} == {
        "files",
        "copies.missing",
        "receipts.lacking",
        "events.root",
    }
    assert report.exit_code == 9
    assert {problem.flaw for problem in report.problems} == {
        "file-cut",
        "file-missing",
        "file-stray",
    }


def test_a_dump_that_was_never_finished_is_named(
    spark: SparkSession, mounted: str, tmp_path: Path
) -> None:
    world = World()
    world.live(2)
    (path, *_) = write_all(world, world.dumps()[:1], tmp_path / "dumps")
    (path / "manifest.json").unlink()
    checked = check_place(HadoopPlace(spark, f"{mounted}/{path.name}"))
    (problem,) = checked.problems
    assert (problem.flaw, problem.file) == ("unfinished", f"{mounted}/n1-1/manifest.json")
    assert problem.is_unreadable


def test_what_hadoop_does_not_know_is_said_with_the_next_step(spark: SparkSession) -> None:
    with pytest.raises(Missing, match=r"nowhere://a/b: .*nowhere") as unknown:
        HadoopPlace(spark, "nowhere://a/b")
    assert "spark-submit --jars" in unknown.value.next_step
    with pytest.raises(Missing) as lacking:
        HadoopPlace(spark, "s3a://bucket/dumps")
    assert "hadoop-aws" in lacking.value.next_step
