"""What is measured of a cluster, and the bare loop of as many processes beside it."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from statistics import median

from bench import requests
from bench.cases import BATCH_ENTRIES, ENTRY_BYTES, FRAME_ENTRIES, Plan
from bench.clusters import BareCluster, Cluster, NodeCluster, cpu_s
from bench.load import Load, Result
from bench.servers import run_load
from quipu.p2p.transports.inbound import FRAME_WIRE_BYTES

READ = "?wait=read"
CALM_RATE = 500.0


@dataclass(frozen=True)
class Case:
    """`rate`: requests a second of an open loop. `one_each`: a connection to each node, each from
    a generator of its own."""

    name: str
    unit: str
    connections: int
    per_request: int
    requests: list[bytes]
    rate: float | None = None
    nodes: int | None = None  # that are written to; None: all
    one_each: bool = False
    beside_bare: bool = True


CASES = (
    Case("post-1", "POSTs to read, 1 connection", 1, 1, [requests.post("post-1", 256, READ)]),
    Case("post-64", "POSTs to read, 64 connections", 64, 1, [requests.post("post-64", 256, READ)]),
    Case(
        "post-500",
        "POSTs to read, 500 a second",
        64,
        1,
        [requests.post("post-500", ENTRY_BYTES, READ)],
        rate=CALM_RATE,
    ),
    Case(
        "batch",
        "batches of 100 to read, 12 connections",
        12,
        BATCH_ENTRIES,
        [requests.batch("batch", ENTRY_BYTES, BATCH_ENTRIES, READ)],
    ),
    Case(
        "ingest",
        "entries to read over one WebSocket a node",
        1,
        1,
        requests.frames("ingest", ENTRY_BYTES, FRAME_ENTRIES, "&wait=read"),
        one_each=True,
        beside_bare=False,
    ),
    Case(
        "wire",
        "events of 100 entries, one after the other",
        1,
        BATCH_ENTRIES,
        [requests.batch("wire", ENTRY_BYTES, BATCH_ENTRIES, READ)],
        nodes=1,
        beside_bare=False,
    ),
)


@dataclass(frozen=True)
class Figures:
    """One cluster in one round; everything but rate and latency is per entry."""

    rate: float
    latency_ms: dict[str, float]
    cpu_us: float  # of all nodes
    client_cpu_us: float
    commits: float = 0.0
    signed: float = 0.0
    checked: float = 0.0
    messages: float = 0.0
    wire_bytes: float = 0.0

    def wire_share(self, nodes: int) -> float:
        """Of the apps' data, once for each other node."""
        return self.wire_bytes / (ENTRY_BYTES * max(nodes - 1, 1))


@dataclass
class Outcome:
    case: Case
    nodes: list[Figures] = field(default_factory=list)
    bare: list[Figures] = field(default_factory=list)
    void: str = ""

    @property
    def ratio(self) -> float | None:
        if not self.bare or self.case.rate:
            return None
        return median(n.rate / b.rate for n, b in zip(self.nodes, self.bare, strict=True))


class Measured:
    """One case on one cluster, with what was acknowledged on the way."""

    def __init__(self, case: Case, cluster: Cluster) -> None:
        self.case = case
        self.cluster = cluster
        self.acknowledged = self.sent = 0
        self.void = ""

    def round(self, plan: Plan) -> Figures:
        before, cpu = self._counted(), cpu_s(self.cluster)
        results = self._run(plan)
        cpu = cpu_s(self.cluster) - cpu
        after = self._counted()
        case = self.case
        entries = sum(one.accepted_all for one in results) * case.per_request
        self._take(results)

        def each(name: str) -> float:
            return (after.get(name, 0.0) - before.get(name, 0.0)) / max(entries, 1)

        return Figures(
            rate=sum(one.rate for one in results) * case.per_request,
            latency_ms={
                name: median(one.latency_ms[name] for one in results)
                for name in ("p50", "p95", "p99")
            },
            cpu_us=cpu / max(entries, 1) * 1e6,
            client_cpu_us=sum(one.cpu_s for one in results) / max(entries, 1) * 1e6,
            commits=each("commits_total"),
            signed=each("signatures_made_total"),
            checked=each("signatures_checked_total"),
            messages=each("peer_messages_sent_total"),
            wire_bytes=each("peer_sent_bytes_total")
            + each("peer_frames_sent_total") * FRAME_WIRE_BYTES,
        )

    def _counted(self) -> dict[str, float]:
        return self.cluster.figures() if isinstance(self.cluster, NodeCluster) else {}

    def _run(self, plan: Plan) -> list[Result]:
        case, servers = self.case, self.cluster.servers
        ports = [server.port for server in servers][: case.nodes]
        load = Load(servers[0].host, ports[0], case.requests, case.connections, plan.seconds)
        load.warm_up_s, load.rate = plan.warm_up_s, case.rate
        if not case.one_each:
            load.ports = ports
            return [run_load(load)]
        load.stream, load.per_chunk = "frames", FRAME_ENTRIES
        loads = [_to(load, port) for port in ports]
        with ThreadPoolExecutor(len(loads)) as pool:
            return list(pool.map(run_load, loads))

    def _take(self, results: list[Result]) -> None:
        for one in results:
            self.acknowledged += one.accepted_all * self.case.per_request
            self.sent += one.sent * self.case.per_request
            refused = sum(one.statuses.values()) - one.accepted
            if refused or one.cut or one.unanswered:
                self.void = f"{one.statuses}, {one.cut} cut, {one.unanswered} unanswered"

    def missing(self) -> str:
        """Why what was measured does not count; empty: every acknowledged entry is everywhere,
        and the Models are equal."""
        if self.void or not isinstance(self.cluster, NodeCluster):
            return self.void
        return self.cluster.disagreement() or self.cluster.strays(
            self.case.name, self.acknowledged, self.sent
        )


def _to(load: Load, port: int) -> Load:
    other = Load(load.host, port, load.requests, load.connections, load.seconds)
    other.warm_up_s, other.stream, other.per_chunk = load.warm_up_s, load.stream, load.per_chunk
    return other


def measure(case: Case, bare: BareCluster, nodes: NodeCluster, plan: Plan) -> Outcome:
    outcome = Outcome(case)
    sides = [(Measured(case, nodes), outcome.nodes)]
    if case.beside_bare:
        sides.insert(0, (Measured(case, bare), outcome.bare))
    for _ in range(plan.rounds):
        for measured, into in sides:
            into.append(measured.round(plan))
    outcome.void = "; ".join(filter(None, (measured.missing() for measured, _ in sides)))
    return outcome


def of(rounds: list[Figures], take: Callable[[Figures], float]) -> float:
    return median(map(take, rounds))
