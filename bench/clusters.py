"""The clusters that are measured: three processes of the bare loop, and real nodes."""

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from bench.servers import Answering, Server
from quipu.devnet import Devnet
from quipu.devnet.processes import until

AGREED_S = 60.0  # how long all nodes may take to hold the same, once nothing comes any more
ORDERED_S = 600.0  # of a million events, at some 20 us of CPU each and node
QUIET = ("log.level=error",)


class Cluster(Protocol):
    """Processes that hold the same."""

    @property
    def name(self) -> str: ...

    @property
    def servers(self) -> list[Answering]: ...


def cpu_s(cluster: Cluster) -> float:
    """Of all its processes."""
    return sum(server.cpu_s() for server in cluster.servers)


@dataclass
class BareCluster:
    servers: list[Answering]
    name: str = "bare"


@contextmanager
def bare_cluster(folder: Path, count: int) -> Iterator[BareCluster]:
    begun: list[Server] = []
    try:
        for number in range(count):
            place = folder / str(number)
            place.mkdir(parents=True)
            begun.append(Server("bare", ["bench.bare_cluster", str(place), str(number)]))
        for number, server in enumerate(begun):
            others = {i: other.said for i, other in enumerate(begun) if i != number}
            server.tell(json.dumps(others))
        yield BareCluster(list[Answering](begun))
    finally:
        for server in begun:
            server.stop()


class NodeCluster:
    """A devnet; its nodes are counted from 0 here."""

    def __init__(self, net: Devnet) -> None:
        self.net = net
        self.name = "nodes"

    @property
    def servers(self) -> list[Answering]:
        found = []
        for node in self.net.nodes:
            if node.running is not None:
                host = str(urlsplit(node.api).hostname)
                found.append(Answering(node.name, node.running.pid, host, node.api_port))
        return found

    def figures(self) -> dict[str, float]:
        """The metrics of all nodes, added up."""
        total: dict[str, float] = {}
        for node in self.net.nodes:
            if node.running is None:
                continue
            with urllib.request.urlopen(f"{node.ops}/metrics", timeout=60) as answer:
                text = answer.read().decode()
            for line in text.splitlines():
                name, _, value = line.rpartition(" ")
                if name.startswith("quipu_") and "{" not in name:
                    short = name.removeprefix("quipu_")
                    total[short] = total.get(short, 0.0) + float(value)
        return total

    def disagreement(self) -> str:
        """Why the Models are not known to be equal, with nothing left Unread; empty: they are."""
        found: list[str] = []

        def is_over() -> bool:
            rows = [_rows(server) for server in self.servers]
            late = [row for row in rows[0] if row["read_seq"] != row["held_seq"]]
            found[:] = [f"{len(late)} cords have Unread events"] if late else []
            found.extend("frontiers differ" for other in rows[1:] if other != rows[0])
            return not found

        until(is_over, AGREED_S)
        return ", ".join(found)

    def unordered(self) -> float:
        """How many events are Read and not ordered, once that falls no more in time."""
        until(lambda: not self.figures().get("events_not_ordered", 0.0), ORDERED_S)
        return self.figures().get("events_not_ordered", 0.0)

    def strays(self, stream: str, least: int, most: int) -> str:
        """Which nodes do not hold so many entries of a stream."""
        counts = [server.stored(stream) for server in self.servers]
        if all(least <= count <= most for count in counts):
            return ""
        return f"{stream}: {least} acknowledged, {most} sent, held {counts}"


def _rows(server: Answering) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = server.ask("/v1/dag/frontier")["rows"]
    return sorted(rows, key=lambda row: (row["author"], row["journal"], row["held_id"]))


@contextmanager
def node_cluster(folder: Path, count: int) -> Iterator[NodeCluster]:
    """No process of it is left, whatever happens."""
    net = Devnet.make(folder, count, settings=QUIET)
    try:
        yield NodeCluster(net)
    finally:
        net.kill(*range(1, count + 1))
