"""Dumps of real clusters that lived through harm, epochs and a hand-over: nothing is found."""

from pathlib import Path

import pytest

from quipu.dumps.checking import check_contents, check_files
from quipu.dumps.tracing import diff
from quipu.spark_analytics.pipeline import read_findings
from quipu.spark_analytics.report import AGREE
from quipu.spark_analytics.session import DATAFRAME, GRAPHFRAMES
from tests.spark.conftest import Analyse
from tests.spark.worlds import World, world_of_five, world_of_three


@pytest.mark.parametrize(
    ("made", "engine", "copies", "epochs", "forced"),
    [
        (world_of_three, DATAFRAME, {"n1", "n2", "n3", "n4"}, 4, [4]),
        (world_of_five, GRAPHFRAMES, {"n2", "n3", "n4", "n5", "n6"}, 5, []),  # n5 has pruned
    ],
)
def test_a_cluster_that_lived_has_no_finding(
    analyse: Analyse,
    tmp_path: Path,
    made: World,
    engine: str,
    copies: set[str],
    epochs: int,
    forced: list[int],
) -> None:
    """All dumps but the last are of running nodes."""
    dumps = made(tmp_path)
    for dump in dumps:
        checked = check_files(dump)
        assert checked.problems + check_contents(checked, signatures=True) == []
    report = analyse(dumps, engine, settle_s=0.0)
    assert read_findings(tmp_path / "out") == []
    assert report.exit_code == AGREE
    assert {copy["copy"] for copy in report.copies} == copies
    assert [one["epoch"] for one in report.epochs] == list(range(1, epochs + 1))
    assert report.forced == forced
    begins = next((c["history_from"] for c in report.copies if c["history_from"]), None)
    assert (begins is None) == bool(forced)
    ends = "4 opened by force." if forced else f"not checked: n5 below checkpoint {begins}."
    assert report.verdict.endswith(ends)
    assert diff(dumps[0], dumps[1]) == []
