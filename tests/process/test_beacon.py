"""Nodes whose addresses all have changed find each other by the beacon alone."""

from pathlib import Path

from quipu.client import Client
from quipu.node.exits import Exit
from tests.process.cluster import cluster, wait_until
from tests.process.command import RunningCommand, quipu
from tests.unit.p2p.transports.test_group_socket import free_group


def test_members_that_all_moved_find_each_other(tmp_path: Path) -> None:
    group = ("--set", f"p2p.beacon={free_group()}")
    with cluster(tmp_path / "net", members=2) as net:
        net.stop(1, 2)
        data = [net.data_of(node) for node in net.nodes]
        for folder in data:  # nothing that names an address is left
            (folder / "seeds").unlink(missing_ok=True)
            (folder / "peers").unlink(missing_ok=True)
        with (
            RunningCommand(data[0], "--name", "n1", *group) as n1,
            RunningCommand(data[1], "--name", "n2") as n2,
            Client([n1.facts["api"]]) as client,
        ):
            assert client.cluster()["members_live"] == 1
            assert n2.stop()[0] == Exit.OK  # it was never found: it sends no beacon
            with RunningCommand(data[1], "--name", "n2", *group):
                wait_until(lambda: client.cluster()["members_live"] == 2, "both are up")
                receipt = client.submit({"order": 7}, wait="read")
                assert receipt.state == "read"


def test_a_group_that_is_none(tmp_path: Path) -> None:
    done = quipu(
        *("run", "--data-dir", str(tmp_path / "n1"), "--p2p-listen", "127.0.0.1:0"),
        *("--set", "p2p.beacon=10.0.0.1:8473"),
    )
    assert done.returncode == Exit.USAGE
    assert "no IPv4 multicast group" in done.stderr
