"""What is measured of the order: entries to `ordered`, numbers of sequences, and requests of
clients to `executed`."""

import math
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from bench import etcds, executed, requests
from bench.cases import BATCH_ENTRIES, ENTRY_BYTES, Plan
from bench.clusters import Cluster, NodeCluster, cpu_s
from bench.load import Load, Result
from bench.servers import run_load
from quipu.devnet.processes import until

ORDERED = "?wait=ordered"
CALM_RATE = 200.0
AGREED_S = 60.0
HTTP_STORED = 202  # not executed when the time was over
ALL, MASTER, OTHER = "all", "master", "other"


@dataclass(frozen=True)
class Floors:
    rate: float = 0.0
    p50_ms: float = math.inf


@dataclass(frozen=True)
class Case:
    """`at`: which nodes are asked. `sequence`: its name, where numbers are published."""

    name: str
    unit: str
    connections: int
    per_request: int
    requests: list[bytes]
    rate: float | None = None
    at: str = ALL
    sequence: str = ""
    statements: int = 0  # of a signed request; else it is none
    etcd: list[bytes] = field(default_factory=list)  # the nearest that etcd has; empty: nothing
    floors: Floors = Floors()


CASES = (
    Case(
        "order-200",
        "POSTs to ordered, 200 a second",
        64,
        1,
        [requests.post("order-200", ENTRY_BYTES, ORDERED)],
        rate=CALM_RATE,
        etcd=[etcds.put("order-200", ENTRY_BYTES)],
        floors=Floors(p50_ms=25.0),
    ),
    Case(
        "order-64",
        "POSTs to ordered, 64 connections",
        64,
        1,
        [requests.post("order-64", ENTRY_BYTES, ORDERED)],
        etcd=[etcds.put("order-64", ENTRY_BYTES)],
        floors=Floors(rate=2_000),
    ),
    Case(
        "order-batch",
        "batches of 100 to ordered, 12 connections",
        12,
        BATCH_ENTRIES,
        [requests.batch("order-batch", ENTRY_BYTES, BATCH_ENTRIES, ORDERED)],
        etcd=[etcds.put_many("order-batch", ENTRY_BYTES, BATCH_ENTRIES)],
        floors=Floors(rate=20_000),
    ),
    Case(
        "order-1",
        "POSTs to ordered, 1 connection, not at the master",
        1,
        1,
        [requests.post("order-1", ENTRY_BYTES, ORDERED)],
        at=OTHER,
        etcd=[etcds.put("order-1", ENTRY_BYTES)],
    ),
    Case(
        "publish-master",
        "lock and publish, 1 connection, at the master",
        1,
        1,
        [requests.publish("publish-master")],
        at=MASTER,
        sequence="publish-master",
        etcd=[etcds.put("publish-master", 32)],
        floors=Floors(p50_ms=10.0),
    ),
    Case(
        "publish-other",
        "lock and publish, 1 connection, at another node",
        1,
        1,
        [requests.publish("publish-other")],
        at=OTHER,
        sequence="publish-other",
        etcd=[etcds.put("publish-other", 32)],
        floors=Floors(p50_ms=10.0),
    ),
    Case(
        "contended",
        "lock and publish of one sequence, a connection to each node",
        3,
        1,
        [requests.publish("contended")],
        sequence="contended",
        floors=Floors(rate=300),
    ),
    Case(
        "execute-64",
        "signed requests of one statement to executed, 64 clients",
        64,
        1,
        [],
        statements=1,
        floors=Floors(rate=1_500),
    ),
    Case(
        "execute-batch",
        "signed requests of 100 statements to executed, 12 clients; counts statements",
        12,
        BATCH_ENTRIES,
        [],
        statements=BATCH_ENTRIES,
        floors=Floors(rate=15_000),
    ),
)
REQUESTS_PER_S = 6_000  # signed beforehand, so that they do not run out; of one statement
BATCHES_PER_S = 600


@dataclass(frozen=True)
class Figures:
    """Of one round; a rate counts entries or numbers."""

    rate: float
    p50_ms: float
    p99_ms: float
    cpu_us: float  # of all nodes, for each
    client_cpu_us: float
    commits: float = 0.0


@dataclass
class Outcome:
    case: Case
    nodes: list[Figures] = field(default_factory=list)
    etcd: list[Figures] = field(default_factory=list)
    void: str = ""

    def missed(self) -> list[str]:
        """The floors that the nodes do not reach."""
        floors, rate = self.case.floors, median(one.rate for one in self.nodes)
        p50_ms = median(one.p50_ms for one in self.nodes)
        found = []
        if rate < floors.rate:
            found.append(f"{rate:,.0f}/s of {floors.rate:,.0f}")
        if p50_ms > floors.p50_ms:
            found.append(f"p50 {p50_ms:.1f} ms of {floors.p50_ms:g}")
        return found


class Measured:
    """One case on one cluster, with what was acknowledged on the way."""

    def __init__(self, case: Case, cluster: Cluster) -> None:
        self.case = case
        self.cluster = cluster
        self.acknowledged = self.sent = 0
        self.void = ""

    def round(self, plan: Plan) -> Figures:
        case, cluster = self.case, self.cluster
        is_ours = isinstance(cluster, NodeCluster)
        servers = cluster.servers
        ports = [server.port for server in servers]
        if case.at != ALL:
            ports = [ports[master_of(cluster) if is_ours else 0]]
            if case.at == OTHER:
                others = [server.port for server in servers if server.port not in ports]
                ports = others[:1]
        load = Load(
            servers[0].host,
            ports[0],
            self._requests(plan) if is_ours else case.etcd,
            case.connections,
            plan.seconds,
        )
        load.once = case.statements > 0
        load.warm_up_s, load.rate, load.ports = plan.warm_up_s, case.rate, ports
        before, cpu = self._commits(), cpu_s(cluster)
        result = run_load(load)
        cpu = cpu_s(cluster) - cpu
        self._take(result)
        count = max(result.accepted_all * case.per_request, 1)
        return Figures(
            rate=result.rate * case.per_request,
            p50_ms=result.latency_ms["p50"],
            p99_ms=result.latency_ms["p99"],
            cpu_us=cpu / count * 1e6,
            client_cpu_us=result.cpu_s / count * 1e6,
            commits=(self._commits() - before) / count,
        )

    def _requests(self, plan: Plan) -> list[bytes]:
        case = self.case
        if not case.statements:
            return case.requests
        a_second = REQUESTS_PER_S if case.statements == 1 else BATCHES_PER_S
        count = int(a_second * (plan.seconds + plan.warm_up_s))
        servers = self.cluster.servers
        return executed.signed(servers, case.name, case.connections, case.statements, count)

    def _commits(self) -> float:
        cluster = self.cluster
        return cluster.figures()["commits_total"] if isinstance(cluster, NodeCluster) else 0.0

    def _take(self, result: Result) -> None:
        self.acknowledged += result.accepted_all * self.case.per_request
        self.sent += result.sent * self.case.per_request
        refused = sum(result.statuses.values()) - result.accepted
        late = result.statuses.get(HTTP_STORED, 0) if self.case.statements else 0
        if refused or late or result.cut or result.unanswered:
            self.void = f"{result.statuses}, {result.cut} cut, {result.unanswered} unanswered"

    def missing(self) -> str:
        """Why what was measured does not count; empty: what was acknowledged is on every node."""
        cluster, case = self.cluster, self.case
        if self.void or not isinstance(cluster, NodeCluster):
            return self.void
        why = cluster.disagreement() or unequal_order(cluster)
        if not why and case.statements:
            rows = executed.rows_of(cluster.servers, case.name)
            if len(set(rows)) == 1 and self.acknowledged <= rows[0] <= self.sent:
                return ""
            return f"{self.acknowledged} acknowledged of {self.sent}, the executors have {rows}"
        if why or not case.sequence:
            return why or cluster.strays(case.name, self.acknowledged, self.sent)
        path = f"/v1/sequences/{case.sequence}"
        numbers = [int(server.ask(path)["number"]) for server in cluster.servers]
        if all(self.acknowledged <= number <= self.sent for number in numbers):
            return ""
        return f"{self.acknowledged} numbers acknowledged of {self.sent}, the nodes say {numbers}"


def master_of(cluster: Cluster) -> int:
    """Its place among the nodes, which agree on it."""
    found: list[int] = []

    def is_known() -> bool:
        roles = [row["role"] for row in _journals(cluster)]
        found[:] = [at for at, role in enumerate(roles) if role == "master"]
        return len(found) == 1

    if not until(is_known, AGREED_S):
        raise SystemExit("the cluster has no master")
    return found[0]


def unequal_order(cluster: Cluster) -> str:
    """Why the nodes are not known to have applied the same; empty: they have."""
    found: list[str] = []

    def is_over() -> bool:
        rows = _journals(cluster)
        behind = [row["events_behind"] for row in rows]
        same = len({(row["applied"], row["events"]) for row in rows}) == 1
        found[:] = [] if same and not any(behind) else [f"{behind} events are not ordered"]
        return not found

    until(is_over, AGREED_S)
    return ", ".join(found)


def _journals(cluster: Cluster) -> list[dict[str, Any]]:
    return [server.ask("/v1/journal") for server in cluster.servers]


def measure(case: Case, nodes: NodeCluster, beside: Cluster | None, plan: Plan) -> Outcome:
    outcome = Outcome(case)
    ours = Measured(case, nodes)
    other = Measured(case, beside) if beside is not None and case.etcd else None
    for _ in range(plan.rounds):
        if other is not None:
            outcome.etcd.append(other.round(plan))
        outcome.nodes.append(ours.round(plan))
    voids = (ours.missing(), other.missing() if other is not None else "")
    outcome.void = "; ".join(filter(None, voids))
    return outcome
