"""Catching up with real processes: a node is stopped, the others get a history that it missed, it
comes back. Timed from its first answer; beside that stands what its start took before.

The history is written into the stores of the others while nothing runs (`bench.history`), so that a
million entries take minutes. Figures count only where all three nodes then hold the same bytes.
"""

import threading
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench import history, requests
from bench.cases import BATCH_ENTRIES, ENTRY_BYTES
from bench.clusters import NodeCluster, node_cluster
from bench.figures import note_figure
from bench.load import Load
from bench.servers import MIB, Answering, run_load
from quipu.devnet.processes import until

MEMBERS = 3
DONORS = (1, 2)
LATE = 3  # the node that misses them, counted from 1
CONNECTIONS = 64
LOAD_S = 2.0  # one round of POSTs
CALM_ROUNDS = 3
CAUGHT_UP_S = 900.0
POLL_S = 0.05

Cord = tuple[str, str]  # author and journal


@dataclass(frozen=True)
class CatchUp:
    kind: str
    entries: int
    events: int
    seconds: float  # from its first answer
    start_s: float  # what a start takes before that
    donor_cpu_s: float  # of both donors
    late_cpu_s: float
    rss_bytes: int  # the most that the late node had
    answer_s: float  # the longest that one of its answers took meanwhile
    void: str
    calm_ms: float = 0.0  # p99 of POSTs to the donors at half of their peak; 0: not measured
    busy_ms: float = 0.0  # the same while the late node caught up

    def text(self) -> str:
        each = 1e6 / self.entries
        text = (
            f"catch-up, {self.kind} events: {self.entries:,} entries in {self.events:,} events: "
            f"{self.seconds:.2f} s after a start of {self.start_s:.2f} s; CPU s for 1,000,000 "
            f"entries: donors {self.donor_cpu_s * each:.1f}, "
            f"late node {self.late_cpu_s * each:.1f}; "
            f"memory of the late node {self.rss_bytes / MIB:.0f} MiB at most; "
            f"it answered within {self.answer_s * 1e3:.0f} ms"
        )
        if self.busy_ms:
            text += f"; POSTs, p99: {self.calm_ms:.1f} ms before, {self.busy_ms:.1f} ms meanwhile"
        return text

    def note(self, command: str) -> None:
        each = 1e6 / self.entries
        name = f"catch-up, {self.kind} events"
        note_figure(command, f"{name}: entries/s", self.entries / max(self.seconds, POLL_S))
        note_figure(command, f"{name}: donors' CPU s per 1,000,000", self.donor_cpu_s * each)
        note_figure(command, f"{name}: late node's CPU s per 1,000,000", self.late_cpu_s * each)


def measure(folder: Path, entries: int, events: int, busy: bool = False) -> list[CatchUp]:
    """So many entries in large events, then so many in events of one entry; 0: not measured.
    `busy`: the donors take POSTs meanwhile, and their CPU is that of both."""
    found = []
    for kind, wanted, each in (("large", entries, BATCH_ENTRIES), ("single", events, 1)):
        if wanted:
            with node_cluster(folder / kind, MEMBERS) as cluster:
                found.append(_missed(cluster, kind, wanted, each, busy))
    return found


def _missed(cluster: NodeCluster, kind: str, wanted: int, per_event: int, busy: bool) -> CatchUp:
    net = cluster.net
    net.stop(*DONORS, LATE)
    events = -(-wanted // per_event)
    folders = [net.data_of(net.node(number)) for number in (*DONORS, LATE)]
    history.write(folders[:-1], events, kind, ENTRY_BYTES, per_event)
    net.start(*DONORS)
    cluster.disagreement()
    cluster.unordered()  # the history is written without a log: that is work of its own
    donors = cluster.servers
    target = _read(donors[0])
    posts = _Posts(donors) if busy else None
    cpu = sum(donor.cpu_s() for donor in donors)
    watch = _Watch(cluster, target)
    starting = threading.Thread(target=net.start, args=(LATE,))
    starting.start()
    meanwhile = posts.until(watch.thread) if posts else 0.0
    watch.thread.join()
    starting.join()
    donor_cpu_s = sum(donor.cpu_s() for donor in donors) - cpu
    void = cluster.disagreement()
    net.stop(*DONORS, LATE)
    void = void or history.difference(folders[0], folders[-1])
    return CatchUp(
        kind,
        events * per_event,
        events,
        watch.done_s - watch.linked_s,
        watch.linked_s - watch.begun_s,
        donor_cpu_s,
        watch.cpu_s,
        watch.rss_bytes,
        watch.answer_s,
        void,
        posts.calm_ms if posts else 0.0,
        meanwhile,
    )


class _Posts:
    """POSTs to the donors at half of their peak: latency counts from when each was meant to go."""

    def __init__(self, donors: list[Answering]) -> None:
        made = [requests.post("meanwhile", ENTRY_BYTES)]
        self._load = Load(donors[0].host, donors[0].port, made, CONNECTIONS, LOAD_S)
        self._load.ports = [donor.port for donor in donors]
        self._load.rate = run_load(self._load).rate / 2
        self.calm_ms = median(self._p99_ms() for _ in range(CALM_ROUNDS))

    def _p99_ms(self) -> float:
        return run_load(self._load).latency_ms["p99"]

    def until(self, thread: threading.Thread) -> float:
        """The median of the rounds that began before it ended."""
        rounds = []
        while thread.is_alive():
            rounds.append(self._p99_ms())
        return median(rounds)


class _Watch:
    """Looks at the late node from before its start until it holds as Read what the donors did."""

    def __init__(self, cluster: NodeCluster, target: dict[Cord, int]) -> None:
        self._cluster = cluster
        self._target = target
        self.begun_s = time.perf_counter()
        self.linked_s = self.done_s = self.cpu_s = self.answer_s = 0.0
        self.rss_bytes = 0
        self.thread = threading.Thread(target=self._look)
        self.thread.start()

    def _look(self) -> None:
        assert until(self._is_done, CAUGHT_UP_S), "it never caught up"

    def _is_done(self) -> bool:
        late = self._late()
        if late is None:
            return False
        asked_s = time.perf_counter()
        try:
            self.rss_bytes = max(self.rss_bytes, late.rss_bytes())
            held = _read(late)
        except (OSError, SystemExit):
            return False  # it does not answer yet
        self.done_s = time.perf_counter()
        self.linked_s = self.linked_s or self.done_s
        self.answer_s = max(self.answer_s, self.done_s - asked_s)
        self.cpu_s = late.cpu_s()
        return all(held.get(cord, 0) >= seq for cord, seq in self._target.items())

    def _late(self) -> Answering | None:
        name = self._cluster.net.node(LATE).name
        return next((one for one in self._cluster.servers if one.name == name), None)


def _read(server: Answering) -> dict[Cord, int]:
    """How far each cord is Read."""
    rows = server.ask("/v1/dag/frontier")["rows"]
    return {(str(row["author"]), str(row["journal"])): int(row["read_seq"]) for row in rows}
