"""The cluster's secret is changed on running nodes, one after the other; nobody is locked out."""

from collections.abc import Sequence
from pathlib import Path

from quipu.devnet import Devnet, faces
from quipu.node.founding import CLUSTER_KEY_FILE, CLUSTER_KEY_LABEL, read_cluster_secrets
from tests.process.cluster import client_of, cluster, wait_until
from tests.process.command import RunningCommand

NODES = (1, 2, 3)
NEW = bytes(range(32))


def file_of(net: Devnet, number: int) -> Path:
    return net.data_of(net.node(number)) / CLUSTER_KEY_FILE


def give(net: Devnet, number: int, secrets: Sequence[bytes]) -> None:
    text = "".join(f"{CLUSTER_KEY_LABEL} {secret.hex()}\n" for secret in secrets)
    file_of(net, number).write_text(text)


def test_a_rolling_change_locks_nobody_out(tmp_path: Path) -> None:
    with cluster(tmp_path / "net") as net:
        (old,) = read_cluster_secrets(file_of(net, 1))
        for step in ((old, NEW), (NEW,)):
            for number in NODES:
                net.stop(number)
                give(net, number, step)
                net.start(number)  # waits until all see all
                with client_of(net, number) as client:
                    entry = {"step": len(step), "on": number}
                    assert client.submit(entry, wait="read").state == "read"
        for number in NODES:
            assert read_cluster_secrets(file_of(net, number)) == (NEW,)
        # Who still has the old one alone is refused: the change has an effect.
        net.stop(3)
        give(net, 3, (old,))
        with RunningCommand(net.data_of(net.node(3)), "--name", "n3"):
            wait_until(lambda: refusals(net, 1) > 0, "n1 refuses n3")
            assert faces.figure(net.node(1), "members_live") == 2


def refusals(net: Devnet, number: int) -> float:
    return faces.figure(net.node(number), 'refused_total{reason="peer-wrong-secret"}') or 0
