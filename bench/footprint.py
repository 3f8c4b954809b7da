"""What the same entries leave behind at each node: bytes of disk and memory. Part of `make bench`.

Batches of 100 entries until so many are acknowledged. The memory is that of the processes once
they hold them, with and without what they map of their files, which the kernel takes back.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from bench import cluster_cases, requests
from bench.cases import BATCH_ENTRIES, ENTRY_BYTES, Plan
from bench.cluster_cases import READ
from bench.clusters import Cluster, NodeCluster
from bench.compare_cases import CASES, OURS, Asked, Rivals, asked_of, asks_of
from bench.servers import MIB

STREAM = "kept"
CONNECTIONS = 12
PLAN = Plan(seconds=2.0, rounds=1, warm_up_s=0.0)
ROUNDS_MAX = 200  # of two seconds: whoever takes less than 1,250 a second is cut short
DISK_FLOOR, DISK_GOAL = 330, 290  # bytes an entry of 256 bytes and node
MEMORY_FLOOR, MEMORY_GOAL = 150, 100  # MiB of a node that holds 500,000


@dataclass(frozen=True)
class Footprint:
    system: str
    entries: int
    disk_bytes: float  # an entry and node
    own_mib: float  # the largest of its nodes
    resident_mib: float

    def short(self) -> list[str]:
        """Floors are of ours alone."""
        found = []
        if self.disk_bytes > DISK_FLOOR:
            found.append(f"{self.disk_bytes:.0f} bytes of disk an entry, {DISK_FLOOR} asked")
        if self.own_mib > MEMORY_FLOOR:
            found.append(f"{self.own_mib:.0f} MiB of memory, {MEMORY_FLOOR} asked")
        return found


def of_ours(nodes: NodeCluster, entries: int) -> tuple[Footprint, str]:
    """With why it does not count, if it does not."""
    batch = next(case for case in cluster_cases.CASES if case.name == "batch")
    asked = [requests.batch(STREAM, ENTRY_BYTES, BATCH_ENTRIES, READ)]
    measured = cluster_cases.Measured(replace(batch, name=STREAM, requests=asked), nodes)
    folder = nodes.net.folder

    def more() -> int:
        measured.round(PLAN)
        return measured.acknowledged

    found = _filled(OURS, nodes, folder, more, entries)
    return found, measured.missing()


def of_others(rivals: Rivals, entries: int) -> list[Footprint]:
    found = []
    batch = next(case for case in CASES if case.name == "batch")
    batch = replace(batch, asks=asks_of(STREAM, CONNECTIONS, BATCH_ENTRIES))
    for name, asked in asked_of(batch, rivals).items():
        rival = rivals[name]

        def more(asked: Asked = asked) -> int:
            asked.round(PLAN)
            return asked.acknowledged

        found.append(_filled(name, rival, rival.folder, more, entries))
    return found


def _filled(
    name: str, cluster: Cluster, folder: Path, more: Callable[[], int], entries: int
) -> Footprint:
    before, held = _disk_bytes(folder), 0
    for _ in range(ROUNDS_MAX):
        held = more()
        if held >= entries:
            break
    nodes = len(cluster.servers)
    return Footprint(
        name,
        held,
        (_disk_bytes(folder) - before) / max(held, 1) / nodes,
        max(server.rss_bytes() for server in cluster.servers) / MIB,
        max(server.resident_bytes() for server in cluster.servers) / MIB,
    )


def _disk_bytes(folder: Path) -> int:
    return sum(file.stat().st_blocks * 512 for file in folder.rglob("*") if file.is_file())
