"""The cluster's secret is changed on running nodes, one after the other; nobody is locked out."""

import json
from collections.abc import Sequence
from pathlib import Path

from quipu.devnet import Devnet, faces
from quipu.node.exits import Exit
from quipu.node.founding import CLUSTER_KEY_FILE, CLUSTER_KEY_LABEL, read_cluster_secrets
from tests.process.cluster import client_of, cluster, wait_until
from tests.process.command import RunningCommand, quipu

NODES = (1, 2, 3)
NEW = bytes(range(32))


def file_of(net: Devnet, number: int) -> Path:
    return net.data_of(net.node(number)) / CLUSTER_KEY_FILE


def give(net: Devnet, number: int, secrets: Sequence[bytes]) -> None:
    text = "".join(f"{CLUSTER_KEY_LABEL} {secret.hex()}\n" for secret in secrets)
    file_of(net, number).write_text(text)


def reloaded(net: Devnet, number: int) -> None:
    data = net.data_of(net.node(number))
    assert quipu("reload", "--data-dir", str(data)).returncode == Exit.OK


def test_a_rolling_change_locks_nobody_out(tmp_path: Path) -> None:
    """No node stops for it: links that are open stay, and new ones show what is known by then."""
    with cluster(tmp_path / "net") as net:
        (old,) = read_cluster_secrets(file_of(net, 1))
        new_file = tmp_path / "next.key"
        new_file.write_text(f"{CLUSTER_KEY_LABEL} {NEW.hex()}\n")
        new_file.chmod(0o600)
        for number in NODES:
            data = str(net.data_of(net.node(number)))
            added = quipu("secret", "add", str(new_file), "--data-dir", data, "--json")
            assert json.loads(added.stdout)["takes effect"] == "now"
        net.stop(1)
        give(net, 1, (NEW,))
        net.start(1)  # a step ahead, and linked with both: they have read the new one
        for number in (2, 3):
            give(net, number, (NEW,))
            reloaded(net, number)
        with client_of(net, 2) as client:
            assert client.submit({"step": 3}, wait="read", timeout=60).state == "read"
        # Who still has the old one alone is refused: the change has an effect.
        net.stop(3)
        give(net, 3, (old,))
        with RunningCommand(net.data_of(net.node(3)), "--name", "n3"):
            wait_until(lambda: refusals(net, 2) > 0, "n2 refuses n3, though it never stopped")
            assert faces.figure(net.node(1), "members_live") == 2
        file_of(net, 2).write_text("no secret at all")
        told = quipu("reload", "--data-dir", str(net.data_of(net.node(2))))
        assert told.returncode == Exit.FAILURE
        assert "cluster.key" in told.stdout


def refusals(net: Devnet, number: int) -> float:
    return faces.figure(net.node(number), 'refused_total{reason="peer-wrong-secret"}') or 0
