"""What a cluster costs as it grows: its traffic while nobody writes, and CPU for an entry."""

import time
from dataclasses import dataclass
from pathlib import Path

from bench import requests
from bench.cases import ENTRY_BYTES, Plan
from bench.cluster_cases import READ, Case, Figures, Measured
from bench.clusters import NodeCluster, cpu_s, node_cluster
from bench.figures import note_figure
from quipu.p2p.transports.inbound import FRAME_WIRE_BYTES

SYNC_PERIODS_S = 4.0  # two SyncEvents to each peer
POSTS = Case("growth", "POSTs to read", 64, 1, [requests.post("growth", ENTRY_BYTES, READ)])


@dataclass(frozen=True)
class Growth:
    nodes: int
    idle_bytes_s: float  # sent by each node
    idle_cpu_share: float  # of one core, each node
    busy: Figures
    void: str

    def text(self) -> str:
        return (
            f"growth: {self.nodes} nodes: idle {self.idle_bytes_s:,.0f} bytes/s and "
            f"{self.idle_cpu_share:.2%} of a core each; POSTs to read {self.busy.rate:,.0f}/s, "
            f"{self.busy.cpu_us:.0f} us of CPU an entry over all nodes, "
            f"{self.busy.commits:.2f} fsyncs, {self.busy.signed:.2f} signatures made and "
            f"{self.busy.checked:.2f} checked, "
            f"{self.busy.messages:.2f} messages, {self.busy.wire_bytes:,.0f} wire bytes"
        )

    def note(self, command: str) -> None:
        name = f"{self.nodes} nodes"
        note_figure(command, f"{name}: idle bytes/s a node", self.idle_bytes_s)
        note_figure(command, f"{name}: idle share of a core a node", self.idle_cpu_share)
        note_figure(command, f"{name}: CPU us an entry", self.busy.cpu_us)


def measure(folder: Path, count: int, plan: Plan, idle_s: float = SYNC_PERIODS_S) -> Growth:
    with node_cluster(folder, count) as cluster:
        measured = Measured(POSTS, cluster)
        measured.round(plan)  # so that nothing is new to it
        cluster.disagreement()
        idle_bytes_s, idle_cpu = _idle(cluster, count, idle_s)
        busy = measured.round(plan)
        return Growth(count, idle_bytes_s, idle_cpu, busy, measured.missing())


def _idle(cluster: NodeCluster, count: int, seconds: float) -> tuple[float, float]:
    before, cpu = _sent(cluster), cpu_s(cluster)
    time.sleep(seconds)
    used, sent = cpu_s(cluster) - cpu, _sent(cluster) - before
    return sent / seconds / count, used / seconds / count


def _sent(cluster: NodeCluster) -> float:
    figures = cluster.figures()
    frames = figures["peer_frames_sent_total"]
    return figures["peer_sent_bytes_total"] + frames * FRAME_WIRE_BYTES
