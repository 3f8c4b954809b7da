"""What an operator meets when nodes do not find each other: each trouble has its own words."""

import io
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvloop

from quipu.client import Client
from quipu.devnet import Devnet
from quipu.node.exits import Exit
from quipu.node.founding import CLUSTER_KEY_LABEL
from quipu.node.joining import join_network
from quipu.node.logs import open_log
from quipu.node.program import opened
from quipu.node.settings import Address, LogSettings, NodeSettings, P2pSettings, Settings
from quipu.p2p import hello
from tests.process.cluster import client_of, cluster, wait_until, wait_until_async
from tests.process.command import RunningCommand, quipu

ANY = "127.0.0.1:0"


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Devnet]:
    with cluster(tmp_path_factory.mktemp("net") / "net", members=1) as made:
        yield made


@contextmanager
def running(folder: Path, *arguments: str) -> Iterator[tuple[RunningCommand, Client]]:
    with RunningCommand(folder, "--p2p-listen", ANY, *arguments) as node:
        assert node.facts, node.ended()
        with Client(node.facts["api"]) as client:
            yield node, client


def joined(net: Devnet, folder: Path, name: str) -> Path:
    """A directory that has its place in the cluster, and has not run yet."""
    done = quipu(
        *("join", str(net.invitation), "--data-dir", str(folder), "--name", name),
        *("--p2p-listen", "127.0.0.1:1"),
    )
    assert done.returncode == Exit.OK, done.stderr
    return folder


def told_of(client: Client, node_id: str) -> str:
    return next((row["trouble"] for row in rows(client) if row["node_id"] == node_id), "")


def rows(client: Client) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = client.members()["items"]
    return items


def says(read: Callable[[], str], *words: str) -> None:
    def is_said() -> bool:
        said = read()
        return all(word in said for word in words)

    wait_until(is_said, f"{words} are said")


def log_of(net: Devnet) -> Callable[[], str]:
    return net.log_of(net.node(1)).read_text


def test_a_seed_that_nobody_is_at(net: Devnet, tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # and does not listen
        port, peer = silent.getsockname()[1], net.node(1).node_id
        seed = f"quipu://127.0.0.1:{port}/{peer}"
        alone = tmp_path / "alone"
        with running(alone, "--set", f"p2p.peers={seed}") as (node, client):
            says(lambda: told_of(client, peer), f"cannot reach it at 127.0.0.1:{port}", "running")
            assert "cannot reach it" in quipu("status", "--url", node.facts["api"]).stdout
            assert "cannot reach it" in quipu("members", "--url", node.facts["api"]).stdout
            assert client.submit(1, wait="read").state == "read"
            _, logged = node.stop()
        assert logged.count("cannot reach it at") == 1


def test_another_key_at_that_address(net: Devnet, tmp_path: Path) -> None:
    wanted = some_key(tmp_path)
    seed = f"quipu://127.0.0.1:{net.node(1).p2p_port}/{wanted}"
    with running(tmp_path / "n", "--set", f"p2p.peers={seed}") as (_, client):
        says(lambda: told_of(client, wanted), "is not this node: another key", "quipu keys")


def some_key(folder: Path) -> str:
    done = quipu(
        *("init", "--key-only", "--data-dir", str(folder / "key"), "--json"),
        *("--p2p-listen", "127.0.0.1:1"),
    )
    return str(json.loads(done.stdout)["node_id"])


def test_a_node_of_another_cluster(net: Devnet, tmp_path: Path) -> None:
    first = net.node(1)
    with running(tmp_path / "n", "--set", f"p2p.peers={first.uri}") as (_, client):
        says(log_of(net), "it belongs to another cluster")
        says(lambda: told_of(client, first.node_id), "does not greet back", "refuses this node")


def test_a_node_with_another_secret(net: Devnet, tmp_path: Path) -> None:
    folder = joined(net, tmp_path / "n", "n8")
    (folder / "cluster.key").write_text(f"{CLUSTER_KEY_LABEL} {'00' * 32}\n")
    with running(folder, "--name", "n8") as (_, client):
        says(log_of(net), "does not hold this cluster's secret", "quipu invite")
        says(lambda: told_of(client, net.node(1).node_id), "does not greet back")


def test_an_address_that_others_cannot_dial(net: Devnet, tmp_path: Path) -> None:
    folder, first = joined(net, tmp_path / "n", "n9"), net.node(1)
    with (
        running(folder, "--name", "n9", "--advertise", "127.0.0.1:1") as (node, client),
        client_of(net, 1) as seed,
    ):
        says(lambda: told_of(client, first.node_id), "does not greet back", "p2p.advertise")
        says(lambda: told_of(seed, node.facts["node_id"]), "cannot reach it at 127.0.0.1:1")


def test_a_name_that_is_taken(net: Devnet, tmp_path: Path) -> None:
    folder = joined(net, tmp_path / "n", "n1")
    with running(folder, "--name", "n1") as (node, client), client_of(net, 1) as seed:
        says(lambda: told_of(client, net.node(1).node_id), "its name n1 is taken", "--name")
        says(lambda: told_of(seed, node.facts["node_id"]), "its name n1 is taken", "--name")
        wait_until(
            lambda: all(row["linked_in"] and row["linked_out"] for row in rows(client)),
            "it is linked all the same",
        )


def test_a_version_that_is_too_old(
    net: Devnet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This process is the node of another version: it greets with what the others do not speak."""
    for name in ("PROTOCOL_MIN", "PROTOCOL_MAX"):
        monkeypatch.setattr(hello, name, hello.PROTOCOL_MAX + 1)
    settings = Settings(
        node=NodeSettings(name="n7", data_dir=tmp_path / "n", join=str(net.invitation)),
        p2p=P2pSettings(listen=Address("127.0.0.1", 0)),
        log=LogSettings(level="error"),
    )

    async def greet() -> None:
        log = open_log(settings.log, stream=io.StringIO())
        async with opened(settings, log) as node:
            ledger = node.ledger
            join_network(settings, node.directory, ledger.machine.view, ledger.network)
            await wait_until_async(
                lambda: "no version of the protocol that both speak" in log_of(net)(),
                "the refusal is said",
            )
            await ledger.network.stop()

    uvloop.run(greet())


def test_a_port_of_peers_that_is_taken(net: Devnet, tmp_path: Path) -> None:
    address = f"127.0.0.1:{net.node(1).p2p_port}"
    done = quipu(
        *("run", "--data-dir", str(tmp_path / "n"), "--p2p-listen", address),
        *("--api-listen", ANY, "--ops-listen", ANY),
    )
    assert (done.returncode, address in done.stderr) == (Exit.CONFLICT, True), done.stderr
    assert "p2p.listen" in done.stderr
