"""Steps in the life of a cluster that an operator takes: upgrade, restore, move. docs/life.md."""

import json
import os
from pathlib import Path
from urllib.request import urlopen

from quipu.devnet import Devnet, DevnetFailed
from tests.process.cluster import client_of, cluster, read_at, wait_until
from tests.process.command import RunningCommand, quipu

NODES = (1, 2, 3)
NEXT_PROTOCOL = """
from quipu.p2p import hello
hello.PROTOCOL_MIN, hello.PROTOCOL_MAX = {least}, 2
"""


def program_that_speaks(folder: Path, least: int) -> dict[str, str]:
    """The environment of a later release: this one, with a protocol version more."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(NEXT_PROTOCOL.format(least=least))
    before = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": f"{folder}{os.pathsep}{before}" if before else str(folder)}


def posted(net: Devnet, number: int) -> str:
    with client_of(net, number) as client:
        receipt = client.submit({"on": number}, wait="read", timeout=30)
        assert receipt.state == "read"
        return receipt.id


def test_a_rolling_upgrade_with_both_protocols_at_work(tmp_path: Path) -> None:
    later = program_that_speaks(tmp_path / "later", 1)
    last = program_that_speaks(tmp_path / "last", 2)
    with cluster(tmp_path / "net") as net:
        kept = [posted(net, 1)]
        for number in NODES:
            net.stop(number)
            net.start(number, environment=later)
            kept += [posted(net, other) for other in NODES]
        for identity in kept:
            for number in NODES:
                read_at(net, number, identity)
        # The release after it drops the old protocol: it gets on with the new ones, one by one.
        for number in NODES:
            net.stop(number)
            net.start(number, environment=last)
            kept.append(posted(net, number))
        # And one that missed it all is told what is wrong.
        net.stop(3)
        refused = False
        try:
            net.start(3)
        except DevnetFailed:
            refused = True
        assert refused
        assert "no-common-version" in net.log_of(net.node(1)).read_text() or (
            "speaks" in net.log_of(net.node(3)).read_text()
        )


def test_an_old_backup_in_a_running_cluster_contradicts_nobody(tmp_path: Path) -> None:
    backup = tmp_path / "monday"
    with cluster(tmp_path / "net") as net:
        data = str(net.data_of(net.node(2)))
        kept = [posted(net, number) for number in NODES for _ in range(4)]
        assert quipu("store", "backup", str(backup), "--data-dir", data).returncode == 0
        kept += [posted(net, number) for number in NODES for _ in range(4)]
        running = quipu("store", "restore", str(backup), "--set-aside", "--data-dir", data)
        assert running.returncode == 6  # never under a node that runs
        net.kill(2)
        done = quipu("store", "restore", str(backup), "--set-aside", "--data-dir", data)
        assert done.returncode == 0, done.stderr
        net.start(2)
        kept += [posted(net, number) for number in NODES]
        for identity in kept:
            for number in NODES:
                read_at(net, number, identity)
        for number in NODES:
            with urlopen(f"{net.node(number).api}/v1/evidence") as answer:
                assert json.load(answer)["items"] == []


def test_a_data_directory_can_be_moved(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    with RunningCommand(here) as node:
        stored = quipu("submit", '{"order": 7}', "--url", node.facts["api"], "--json")
        identity, before = json.loads(stored.stdout)["id"], node.facts["node_id"]
        node.stop()
    here.rename(there)
    with RunningCommand(there) as node:
        assert node.facts["node_id"] == before
        got = quipu("get", identity, "--url", node.facts["api"], "--raw")
        assert json.loads(got.stdout) == {"order": 7}


def test_all_nodes_lose_power_at_once(tmp_path: Path) -> None:
    with cluster(tmp_path / "net") as net:
        kept = [posted(net, number) for number in NODES]
        net.kill(*NODES)
        net.start(*NODES)
        kept.append(posted(net, 2))
        for identity in kept:
            for number in NODES:
                read_at(net, number, identity)
        wait_until(lambda: posted(net, 1) != "", "it goes on")
