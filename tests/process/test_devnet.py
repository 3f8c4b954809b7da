"""`quipu devnet`: real nodes on loopback, harmed and healed through the real command."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from quipu.devnet import Devnet, DevnetFailed, NoDevnet
from quipu.devnet.plan import Running, read_plan, write_plan
from quipu.devnet.processes import ProcessState, state_of
from quipu.node.exits import Exit
from tests.process.cluster import WAIT_S, client_of, cluster, read_at, wait_until
from tests.process.command import QUIPU, environment, quipu

TRIES = 5  # of an interruption that has to come in time


def devnet(folder: Path, *arguments: str) -> tuple[int, str]:
    done = quipu("devnet", *arguments, "--data-dir", str(folder))
    return done.returncode, done.stdout + done.stderr


def nodes_of(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(devnet(folder, "ps", "--json")[1])["nodes"]
    return rows


def test_auto_makes_members_of_those_who_join(tmp_path: Path) -> None:
    folder = tmp_path / "net"
    try:
        code, said = devnet(folder, "up", "-n", "1", "--observers", "2", "--auto")
        assert code == Exit.OK, said
        net = Devnet.open(folder)
        with client_of(net, 3) as client:
            assert [one["name"] for one in client.roster()["members"]] == ["n1", "n2", "n3"]
        assert devnet(folder, "up", "--auto")[0] == Exit.OK  # nobody is left to be made one
    finally:
        devnet(folder, "down")


def test_the_life_of_a_cluster(tmp_path: Path) -> None:
    folder = tmp_path / "a folder with spaces"
    try:
        code, said = devnet(folder, "up", "-n", "3", "--json")
        assert code == Exit.OK, said
        nodes = json.loads(said)["nodes"]
        assert {"node_id", "api", "p2p", "ops", "pid", "data_dir"} <= set(nodes[0])
        assert len({node["node_id"] for node in nodes}) == 3
        net = Devnet.open(folder)
        with client_of(net, 1) as client:
            receipt = client.submit({"order": 7}, wait="read")
            assert receipt.state == "read"
        read_at(net, 3, receipt.id)

        for command, state in (
            ("pause", "paused"),
            ("resume", "running"),
            ("kill", "stopped"),
            ("start", "running"),
            ("stop", "stopped"),
        ):
            code, said = devnet(folder, command, "2")
            assert code == Exit.OK, said
            assert nodes_of(folder)[1]["state"] == state
        assert devnet(folder, "up")[0] == Exit.OK
        again = nodes_of(folder)
        assert [n["state"] for n in again] == ["running"] * 3
        assert [n["node_id"] for n in again] == [n["node_id"] for n in nodes]
        assert [n["api"] for n in again] == [n["api"] for n in nodes]
    finally:
        code, said = devnet(folder, "down")
    assert code == Exit.OK, said
    assert {n["state"] for n in nodes_of(folder)} == {"stopped"}


def test_a_partition_and_its_end(tmp_path: Path) -> None:
    with cluster(tmp_path / "net") as net, client_of(net, 1) as n1, client_of(net, 3) as n3:
        assert devnet(net.folder, "partition", "1,2|3")[0] == Exit.OK
        apart = n3.submit({"from": "the minority"})
        assert n1.submit({"from": "the majority"}, wait="read").state == "read"
        assert not apart.wait("read", timeout=2)
        assert devnet(net.folder, "heal")[0] == Exit.OK
        assert apart.wait("read", timeout=60)
        read_at(net, 1, apart.id)


def test_an_observer_reads_along(tmp_path: Path) -> None:
    with cluster(tmp_path / "net", members=1, observers=1) as net:
        with client_of(net, 1) as member:
            receipt = member.submit({"order": 7}, wait="read")
        read_at(net, 2, receipt.id)


def test_nothing_is_left_where_one_cannot_start(tmp_path: Path) -> None:
    with cluster(tmp_path / "net", members=2) as net:
        net.stop(1, 2)
        net.nodes[1].api_port = net.nodes[0].api_port
        write_plan(net.folder, net.plan)
        with pytest.raises(DevnetFailed, match="another program listens on"):
            net.up()
        assert {net.state(1), net.state(2)} == {ProcessState.STOPPED}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_node_is_orphaned_by_an_end_in_the_middle(number: int, tmp_path: Path) -> None:
    """Ctrl-C ends those that were started; after a kill the file knows them, for `down`."""
    for count in range(TRIES):
        folder = tmp_path / f"net{count}"
        is_in_the_middle = interrupted(folder, number)
        begun = started_in(folder)
        if not is_in_the_middle or number == signal.SIGKILL:
            assert devnet(folder, "down")[0] == Exit.OK
        assert {state_of(running) for running in begun} <= {ProcessState.STOPPED}
        assert {node["state"] for node in nodes_of(folder)} == {"stopped"}
        if is_in_the_middle:
            return
    raise AssertionError(f"it was over each of {TRIES} times")


def interrupted(folder: Path, number: int) -> bool:
    """Whether the signal came before it was over."""
    command = [*QUIPU, "devnet", "up", "-n", "2", "--data-dir", str(folder)]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment()
    ) as up:
        wait_until(lambda: len(started_in(folder)) == 2, "both are started")
        up.send_signal(number)
        return up.wait(WAIT_S) != 0


def started_in(folder: Path) -> list[Running]:
    try:
        return [n.running for n in read_plan(folder).nodes if n.running is not None]
    except NoDevnet:
        return []


def test_a_process_is_known_by_its_start(tmp_path: Path) -> None:
    """One that only has the same number is left alone."""
    with cluster(tmp_path / "net", members=1) as net:
        mine = net.nodes[0].running
        assert mine is not None
        assert os.getsid(mine.pid) == mine.pid, "it outlives the terminal of who started it"
        net.nodes[0].running = Running(os.getpid(), mine.begun_ticks)
        net.kill(1)  # this test goes on
        assert state_of(mine) is ProcessState.RUNNING
        os.kill(mine.pid, signal.SIGKILL)
        wait_until(lambda: state_of(mine) is ProcessState.STOPPED, "the real one ends")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("ps",), Exit.NOT_FOUND, "quipu devnet up --data-dir"),
        (("up", "-n", "0"), Exit.USAGE, "At least one member"),
        (("up", "-n", "33"), Exit.FAILURE, "32"),
    ],
)
def test_what_cannot_be_done(
    arguments: tuple[str, ...], code: Exit, said: str, tmp_path: Path
) -> None:
    found, told = devnet(tmp_path / "net", *arguments)
    assert (found, said in told) == (code, True), told


def test_what_a_running_one_refuses(tmp_path: Path) -> None:
    with cluster(tmp_path / "net", members=2) as net:
        for arguments, code, said in (
            (("up", "-n", "3"), Exit.CONFLICT, "holds a devnet of 2 members"),
            (("start", "1"), Exit.CONFLICT, "n1 runs already"),
            (("kill", "7"), Exit.USAGE, "there is no node 7"),
            (("partition", "1|1"), Exit.USAGE, "two groups"),
            (("partition", "1,2"), Exit.USAGE, "one group"),
            (("partition", "n1|n2"), Exit.USAGE, "names no groups"),
        ):
            found, told = devnet(net.folder, *arguments)
            assert (found, said in told) == (code, True), told
        net.stop(2)
        found, told = devnet(net.folder, "pause", "2")
        assert (found, "n2 does not run" in told) == (Exit.USAGE, True), told


def test_a_path_that_is_too_long_for_sockets(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 25)
    code, said = devnet(folder, "up", "-n", "1")
    assert code == Exit.OK, said
    data = str(folder / "n1" / "data")
    assert devnet(folder, "stop", "1")[0] == Exit.OK
    assert not (Path(data) / "admin.sock").exists()
    assert devnet(folder, "down")[0] == Exit.OK


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    code, said = devnet(tmp_path, "up")
    assert (code, "not an empty folder" in said) == (Exit.CONFLICT, True)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_settings_of_the_environment_are_no_settings_of_the_nodes(tmp_path: Path) -> None:
    done = quipu(
        *("devnet", "up", "-n", "1", "--data-dir", str(tmp_path / "net"), "--json"),
        **environment(QUIPU_NODE_NAME="elsewhere", QUIPU_API_LISTEN="127.0.0.1:1"),
    )
    try:
        assert done.returncode == Exit.OK, done.stderr
    finally:
        devnet(tmp_path / "net", "down")


TIED = """
import os, signal, sys
from pathlib import Path
from quipu.devnet import Devnet
net = Devnet.make(Path(sys.argv[1]), 1, is_tied=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_nodes_of_a_test_end_with_it(tmp_path: Path) -> None:
    """However it ends: nobody is left to end them."""
    done = subprocess.run([sys.executable, "-c", TIED, str(tmp_path / "net")], check=False)
    assert done.returncode == -signal.SIGKILL
    (node,) = read_plan(tmp_path / "net").nodes
    assert node.running is not None
    wait_until(lambda: state_of(node.running) is ProcessState.STOPPED, "the node ends")
