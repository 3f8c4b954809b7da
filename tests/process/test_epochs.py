"""Epochs with real processes: checkpoints, and rosters that change while entries come."""

from pathlib import Path

from quipu.devnet import Devnet
from tests.process.cluster import client_of, cluster, read_at

NODES = (1, 2, 3)


def epoch_of(net: Devnet, number: int) -> int:
    with client_of(net, number) as client:
        return int(client.cluster()["epoch"])


def test_a_member_that_restarts_often_is_read_everywhere(tmp_path: Path) -> None:
    with cluster(tmp_path / "net") as net:
        written = []
        for start in range(21):
            if start:
                net.kill(3)
                net.start(3)
            with client_of(net, 3) as client:
                written.append(client.submit({"start": start}).id)
        for identity in written:
            for number in NODES:
                read_at(net, number, identity)
        assert epoch_of(net, 1) > 1
