"""Catching up with real processes: one node is stopped, entries are written through the others, it
comes back. Timed from the moment its process is started, and from the moment it is ready."""

import threading
import time
from dataclasses import dataclass
from pathlib import Path

from bench import requests
from bench.cases import BATCH_ENTRIES, ENTRY_BYTES
from bench.clusters import NodeCluster, node_cluster
from bench.figures import note_figure
from bench.load import Load
from bench.servers import MIB, Answering, run_load
from quipu.devnet.processes import until

MEMBERS = 3
LATE = 3  # the node that misses them, counted from 1
CAUGHT_UP_S = 600.0
LOAD_S = 0.5  # between two looks at how many there are
POLL_S = 0.05


@dataclass(frozen=True)
class CatchUp:
    kind: str
    entries: int
    events: int
    seconds: float  # from its first moment of being linked
    start_s: float  # what a start takes before that
    donor_cpu_s: float  # of both donors
    late_cpu_s: float
    rss_bytes: int  # the most that the late node had
    void: str

    def text(self) -> str:
        each = 1e6 / self.entries
        return (
            f"catch-up, {self.kind} events: {self.entries:,} entries in {self.events:,} events: "
            f"{self.seconds:.2f} s after a start of {self.start_s:.2f} s; CPU s for 1,000,000 "
            f"entries: donors {self.donor_cpu_s * each:.1f}, "
            f"late node {self.late_cpu_s * each:.1f}; "
            f"memory of the late node {self.rss_bytes / MIB:.0f} MiB at most"
        )

    def note(self, command: str) -> None:
        each = 1e6 / self.entries
        name = f"catch-up, {self.kind} events"
        note_figure(command, f"{name}: entries/s", self.entries / max(self.seconds, POLL_S))
        note_figure(command, f"{name}: donors' CPU s per 1,000,000", self.donor_cpu_s * each)


def measure(folder: Path, entries: int, events: int) -> list[CatchUp]:
    with node_cluster(folder, MEMBERS) as cluster:
        batch = requests.batch("large", ENTRY_BYTES, BATCH_ENTRIES)
        single = requests.post("single", ENTRY_BYTES)
        return [
            _missed(cluster, "large", [batch], 8, entries),
            _missed(cluster, "single", [single], 1, events),
        ]


def _missed(
    cluster: NodeCluster, kind: str, made: list[bytes], connections: int, wanted: int
) -> CatchUp:
    """One connection makes events of one request each; more of them, larger ones."""
    cluster.net.stop(LATE)
    donors = cluster.servers
    before = cluster.figures()["events_stored_total"] / len(donors)
    acknowledged = sent = 0
    while acknowledged < wanted:
        load = Load(donors[0].host, donors[0].port, made, connections, LOAD_S, 0.0)
        load.ports = [donor.port for donor in donors]
        result = run_load(load)
        per_request = BATCH_ENTRIES if kind == "large" else 1
        acknowledged += result.accepted_all * per_request
        sent += result.sent * per_request
    cluster.disagreement()
    events = cluster.figures()["events_stored_total"] / len(donors) - before
    cpu = sum(donor.cpu_s() for donor in donors)
    begun = time.perf_counter()
    watch = _Watch(cluster, kind, acknowledged)
    cluster.net.start(LATE)
    watch.thread.join()
    donor_cpu_s = sum(donor.cpu_s() for donor in donors) - cpu
    void = cluster.disagreement() or cluster.strays(kind, acknowledged, sent)
    return CatchUp(
        kind,
        acknowledged,
        int(events),
        watch.done_s - watch.linked_s,
        watch.linked_s - begun,
        donor_cpu_s,
        watch.cpu_s,
        watch.rss_bytes,
        void,
    )


class _Watch:
    """Looks at the node while it starts."""

    def __init__(self, cluster: NodeCluster, stream: str, wanted: int) -> None:
        self._cluster, self._stream, self._wanted = cluster, stream, wanted
        self.linked_s = self.done_s = self.cpu_s = 0.0
        self.rss_bytes = 0
        self.thread = threading.Thread(target=self._look)
        self.thread.start()

    def _look(self) -> None:
        assert until(self._is_done, CAUGHT_UP_S), "it never caught up"

    def _is_done(self) -> bool:
        late = self._late()
        if late is None:
            return False
        try:
            self.rss_bytes = max(self.rss_bytes, late.rss_bytes())
            held = late.stored(self._stream)
        except (OSError, SystemExit):
            return False  # it does not answer yet
        self.linked_s = self.linked_s or time.perf_counter()
        self.done_s = time.perf_counter()
        self.cpu_s = late.cpu_s()
        return held >= self._wanted

    def _late(self) -> Answering | None:
        name = self._cluster.net.node(LATE).name
        return next((one for one in self._cluster.servers if one.name == name), None)
