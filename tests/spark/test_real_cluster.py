"""Dumps of real clusters that went through a partition, a kill, a restart and a late start."""

from pathlib import Path

import pytest

from quipu.devnet import Devnet
from quipu.dumps.checking import check_contents, check_files
from quipu.dumps.tracing import diff
from quipu.node.exits import Exit
from quipu.spark_analytics.pipeline import read_findings
from quipu.spark_analytics.report import AGREE
from quipu.spark_analytics.session import DATAFRAME, GRAPHFRAMES
from tests.process.cluster import client_of, cluster, read_at
from tests.process.command import quipu
from tests.spark.conftest import Analyse


def written(net: Devnet, nodes: list[int], text: str) -> list[str]:
    """Entries submitted to each of these, not waited for."""
    ids = []
    for number in nodes:
        with client_of(net, number) as client:
            ids += [client.submit({"at": number, "text": f"{text} {i}"}).id for i in range(4)]
    return ids


def lived(net: Devnet, nodes: list[int]) -> None:
    """The last begins late; a minority is cut off; the second is killed, the first restarted."""
    late, most = nodes[-1], nodes[: len(nodes) // 2 + 1]
    net.stop(late)
    ids = written(net, nodes[:-1], "before the last node")
    net.start(late)
    net.partition(most, nodes[len(most) :])
    ids += written(net, nodes, "apart")
    net.heal()
    net.kill(2)
    ids += written(net, [number for number in nodes if number != 2], "without node 2")
    net.start(2)
    net.stop(1)
    net.start(1)
    ids += written(net, nodes, "together")
    for number in nodes:
        for identity in ids:
            read_at(net, number, identity)


def exported(net: Devnet, number: int, dump: Path) -> Path:
    done = quipu("export", str(dump), "--data-dir", str(net.data_of(net.node(number))))
    assert done.returncode == Exit.OK, done.stderr
    return dump


@pytest.mark.parametrize(("members", "engine"), [(3, DATAFRAME), (5, GRAPHFRAMES)])
def test_a_cluster_that_was_harmed_has_no_finding(
    analyse: Analyse, tmp_path: Path, members: int, engine: str
) -> None:
    """All dumps but one are of running nodes."""
    nodes = list(range(1, members + 1))
    with cluster(tmp_path / "net", members) as net:
        lived(net, nodes)
        dumps = [exported(net, number, tmp_path / f"dump-{number}") for number in nodes[:-1]]
        net.stop(members)
        dumps.append(exported(net, members, tmp_path / "dump-of-one-that-stands"))
    for dump in dumps:
        checked = check_files(dump)
        assert checked.problems + check_contents(checked, signatures=True) == []
    report = analyse(dumps, engine, settle_s=0.0)
    assert read_findings(tmp_path / "out") == []
    assert report.exit_code == AGREE
    assert {copy["copy"] for copy in report.copies} == {f"n{number}" for number in nodes}
    assert diff(dumps[0], dumps[1]) == []
