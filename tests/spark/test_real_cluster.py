"""Dumps of a real cluster that went through a partition, a kill, a restart and a late start."""

from pathlib import Path

from quipu.devnet import Devnet
from quipu.dumps.checking import check_contents, check_files
from quipu.dumps.tracing import diff
from quipu.node.exits import Exit
from quipu.spark_analytics.pipeline import read_findings
from quipu.spark_analytics.report import AGREE
from quipu.spark_analytics.session import DATAFRAME
from tests.process.cluster import client_of, cluster, read_at
from tests.process.command import quipu
from tests.spark.conftest import Analyse

NODES = (1, 2, 3)


def written(net: Devnet, nodes: tuple[int, ...], text: str) -> list[str]:
    """Entries submitted to each of these, not waited for."""
    ids = []
    for number in nodes:
        with client_of(net, number) as client:
            ids += [client.submit({"at": number, "text": f"{text} {i}"}).id for i in range(4)]
    return ids


def lived(net: Devnet) -> None:
    net.stop(3)
    ids = written(net, (1, 2), "before node 3")
    net.start(3)
    net.partition([1, 2], [3])
    ids += written(net, NODES, "apart")
    net.heal()
    net.kill(2)
    ids += written(net, (1, 3), "without node 2")
    net.start(2)
    net.stop(1)
    net.start(1)
    ids += written(net, NODES, "together")
    for number in NODES:
        for identity in ids:
            read_at(net, number, identity)


def test_a_cluster_that_was_harmed_has_no_finding(analyse: Analyse, tmp_path: Path) -> None:
    dumps = [tmp_path / f"dump-{number}" for number in NODES]
    with cluster(tmp_path / "net") as net:
        lived(net)
        for number, dump in zip(NODES[:2], dumps, strict=False):
            data = str(net.data_of(net.node(number)))
            done = quipu("export", str(dump), "--data-dir", data)
            assert done.returncode == Exit.OK, done.stderr
        net.stop(3)
        alone = quipu("export", str(dumps[2]), "--data-dir", str(net.data_of(net.node(3))))
        assert alone.returncode == Exit.OK, alone.stderr
    for dump in dumps:
        checked = check_files(dump)
        assert checked.problems + check_contents(checked, signatures=True) == []
    report = analyse(dumps, DATAFRAME, settle_s=0.0)
    assert read_findings(tmp_path / "out") == []
    assert report.exit_code == AGREE
    assert {copy["copy"] for copy in report.copies} == {"n1", "n2", "n3"}
    assert diff(dumps[0], dumps[1]) == []
