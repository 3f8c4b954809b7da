"""Real nodes that multicast, in a network of their own: nobody else's datagrams are in it."""

import fcntl
import socket
import struct
from pathlib import Path

import pytest

from quipu.client import Client
from quipu.devnet import Devnet, faces
from tests.apart import AS_ROOT, may_run, run_apart
from tests.process.cluster import cluster, read_at, wait_until

ALONE = (*AS_ROOT, "--net")
GROUP = "239.77.0.9:8474"
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
ENTRIES = 20  # written at one node, one after the other
LARGE = 30_000


def loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        asked = struct.pack("16sh", b"lo", 0)
        name, flags = struct.unpack("16sh", fcntl.ioctl(any_socket, SIOCGIFFLAGS, asked))
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh", name, flags | IFF_UP))


def figure(net: Devnet, name: str) -> int:
    """Over all nodes."""
    return sum(int(faces.figure(node, f"peer_{name}_total") or 0) for node in net.nodes)


def write(net: Devnet, size: int = 10) -> tuple[int, int]:
    """At the first node; Read at all of them. How many bytes that took, and how many datagrams
    to the group."""
    sent, casts = figure(net, "sent_bytes"), figure(net, "casts_sent")
    with Client([net.node(1).api]) as client:
        written = [client.submit("x" * size, wait="read").id for _ in range(ENTRIES)]
    for number in range(1, len(net.nodes) + 1):
        read_at(net, number, written[-1])
    return figure(net, "sent_bytes") - sent, figure(net, "casts_sent") - casts


def what_several_get_goes_out_once(folder: Path) -> None:
    loopback_up()
    with cluster(folder, 3, settings=(f"p2p.multicast={GROUP}",)) as net:
        wait_until(lambda: write(net)[1] > ENTRIES, "they have reported that they hear")
        _, casts = write(net)
        assert casts >= 2 * ENTRIES  # the event, and at least one receipt
        sent, casts = write(net, LARGE)
        assert sent < 1.5 * ENTRIES * LARGE  # to the group, in place of a copy over each link
        assert casts > 26 * ENTRIES  # in parts
        with Client([net.node(1).api]) as client:
            wait_until(lambda: client.query("frontier")["verdict"] == "agreed", "all agree")


def who_does_not_listen_gets_its_copies(folder: Path) -> None:
    loopback_up()
    with cluster(folder, 3, settings=(f"p2p.multicast={GROUP}",)) as net:
        wait_until(lambda: write(net)[1] > ENTRIES, "they have reported that they hear")
        net.stop(3)
        net.plan.settings.clear()
        net.start(3)
        _, casts = write(net)
        assert casts < ENTRIES  # n2 alone hears n1: that is what its link is for
        received = faces.figure(net.node(3), "peer_casts_received_total")
        assert received == 0


@pytest.mark.parametrize(
    "case", ["what_several_get_goes_out_once", "who_does_not_listen_gets_its_copies"]
)
def test_multicast(tmp_path: Path, case: str) -> None:
    if not may_run(*ALONE, "true"):
        pytest.skip("no network namespace may be made here; the simulated network is tested")
    run_apart(__name__, case, tmp_path, *ALONE)
