"""What is measured of ours and of the others, what each is asked, and what was promised."""

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

from bench import cluster_cases, etcds, natses, redises, requests
from bench.cases import BATCH_ENTRIES, ENTRY_BYTES, Plan
from bench.clusters import NodeCluster, cpu_s
from bench.load import Load, Result
from bench.others import Others
from bench.servers import Answering, run_load

OURS = "quipu"
SYSTEMS = ("etcd", "nats", "nats-unsynced", "redis")
DURABILITY = {
    OURS: "a majority",
    "etcd": "a majority",
    "nats": "a majority",
    "nats-unsynced": "nobody",
    "redis": "all three, no consensus",
}
Rivals = dict[str, Others]


@dataclass(frozen=True)
class Ask:
    """What a system is asked. `at_all`: connections go to all of its processes."""

    requests: list[bytes]
    connections: int
    wire: str = ""
    replies: int = 1
    at_all: bool = True


@dataclass(frozen=True)
class Case:
    """`floors`: against whom, the ratio that is asked and the one that is aimed at. `by_latency`:
    the ratio is of p50, and less is better."""

    name: str
    unit: str
    per_request: int
    asks: dict[str, Ask]
    floors: dict[str, tuple[float, float]]
    by_latency: bool = False
    writes: bool = True


def asks_of(name: str, connections: int, count: int) -> dict[str, Ask]:
    """Of the others; ours is asked as in `make bench-cluster`."""
    put = etcds.put(name, ENTRY_BYTES)
    nats = [natses.publish(name, ENTRY_BYTES, count)]
    return {
        "etcd": Ask([etcds.put_many(name, ENTRY_BYTES, count) if count > 1 else put], connections),
        "nats": Ask(nats, connections, "nats", count),
        "nats-unsynced": Ask(nats, connections, "nats", count),
        "redis": Ask(
            [redises.add(name, ENTRY_BYTES, count)], connections, "redis", count + 1, False
        ),
    }


CASES = (
    Case(
        "post-64",
        "single entries, 64 connections over all nodes",
        1,
        asks_of("post-64", 64, 1),
        {"etcd": (0.9, 1.5), "nats": (0.45, 0.9), "redis": (0.3, 0.6)},
    ),
    Case(
        "post-1",
        "single entries, one connection",
        1,
        asks_of("post-1", 1, 1),
        {"etcd": (3.0, 1.6), "nats": (3.0, 1.6), "redis": (3.0, 1.6)},
        by_latency=True,
    ),
    Case(
        "batch",
        "batches of 100, 12 connections",
        BATCH_ENTRIES,
        asks_of("batch", 12, BATCH_ENTRIES),
        {"etcd": (1.8, 3.5), "nats": (1.0, 2.0), "redis": (0.7, 1.4)},
    ),
    Case(
        "stream",
        "a connection to each node with many under way: ours a WebSocket, theirs 100 at once",
        BATCH_ENTRIES,
        asks_of("stream", 3, BATCH_ENTRIES),
        {"nats": (1.0, 2.0)},
    ),
    Case(
        "read-64",
        "reads by id or key, 64 connections to one node",
        1,
        {
            "etcd": Ask([etcds.get("read")], 64, at_all=False),
            "redis": Ask([redises.get("read")], 64, "redis", at_all=False),
        },
        {"etcd": (0.5, 1.0)},
        writes=False,
    ),
)


@dataclass(frozen=True)
class Figures:
    rate: float
    p50_ms: float
    p99_ms: float
    cpu_us: float  # of all its processes, for each entry


@dataclass
class Outcome:
    case: Case
    rounds: dict[str, list[Figures]] = field(default_factory=dict)
    void: str = ""


@dataclass(frozen=True)
class Row:
    case: str
    system: str
    durability: str
    rate: float
    p50_ms: float
    p99_ms: float
    cpu_us: float
    ratio: float | None = None
    floor: float | None = None
    goal: float | None = None
    by_latency: bool = False

    @property
    def is_short(self) -> bool:
        if self.ratio is None or self.floor is None:
            return False
        return self.ratio > self.floor if self.by_latency else self.ratio < self.floor


# --- one system -----------------------------------------------------------------------------------
def figures_of(result: Result, per_request: int, cpu: float) -> Figures:
    count = max(result.accepted_all * per_request, 1)
    return Figures(
        rate=result.rate * per_request,
        p50_ms=result.latency_ms["p50"],
        p99_ms=result.latency_ms["p99"],
        cpu_us=cpu / count * 1e6,
    )


def faults_of(result: Result) -> str:
    refused = sum(result.statuses.values()) - result.accepted
    if refused or result.cut or result.unanswered:
        return f"{result.statuses}, {result.cut} cut, {result.unanswered} unanswered"
    return ""


@dataclass
class Asked:
    """One system in one case."""

    case: Case
    name: str
    servers: list[Answering]
    ask: Ask
    cpu_s: Callable[[], float]
    acknowledged: int = 0
    void: str = ""

    def round(self, plan: Plan) -> Figures:
        ask, first = self.ask, self.servers[0]
        load = Load(first.host, first.port, ask.requests, ask.connections, plan.seconds)
        load.warm_up_s, load.wire, load.replies = plan.warm_up_s, ask.wire, ask.replies
        load.ports = [server.port for server in self.servers] if ask.at_all else [first.port]
        before = self.cpu_s()
        result = run_load(load)
        self.acknowledged += result.accepted_all * self.case.per_request
        self.void = self.void or faults_of(result)
        return figures_of(result, self.case.per_request, self.cpu_s() - before)


def held(name: str, rival: Others, case: str) -> int:
    """How many entries of a case it has, everywhere."""
    servers = rival.servers
    match name:
        case "redis":
            return min(redises.length(server, case) for server in servers)
        case "etcd":
            return min(etcds.versions(server, case) for server in servers)
        case _:
            return natses.stored(servers[0], case)


class Ours:
    """The same as in `make bench-cluster`; reads go to one entry of the first node."""

    def __init__(self, case: Case, nodes: NodeCluster) -> None:
        self.case, self.nodes = case, nodes
        named = "ingest" if case.name == "stream" else case.name
        known = next((one for one in cluster_cases.CASES if one.name == named), None)
        self.measured = None if known is None else cluster_cases.Measured(known, nodes)
        self.asked: Asked | None = None

    def round(self, plan: Plan) -> Figures:
        if self.measured is not None:
            found = self.measured.round(plan)
            latency = found.latency_ms
            return Figures(found.rate, latency["p50"], latency["p99"], found.cpu_us)
        if self.asked is None:
            server = self.nodes.servers[0]
            items = server.ask("/v1/entries?limit=1")["items"]
            ask = Ask([requests.get(f"/v1/entries/{items[0]['id']}")], 64, at_all=False)
            servers = self.nodes.servers
            self.asked = Asked(self.case, OURS, servers, ask, lambda: cpu_s(self.nodes))
        return self.asked.round(plan)

    def missing(self) -> str:
        if self.measured is not None:
            return self.measured.missing()
        return "" if self.asked is None else self.asked.void


def asked_of(case: Case, rivals: Rivals) -> dict[str, Asked]:
    """Those of the others that it is for."""
    return {
        name: Asked(case, name, rival.servers, case.asks[name], lambda r=rival: cpu_s(r))  # type: ignore[misc]
        for name, rival in rivals.items()
        if name in case.asks
    }


# --- all of them ----------------------------------------------------------------------------------
def measure(case: Case, nodes: NodeCluster, rivals: Rivals, plan: Plan) -> Outcome:
    outcome = Outcome(case)
    ours, others = Ours(case, nodes), asked_of(case, rivals)
    if not case.writes:
        _fill(rivals)
    for _ in range(plan.rounds):
        for name, one in others.items():
            outcome.rounds.setdefault(name, []).append(one.round(plan))
        outcome.rounds.setdefault(OURS, []).append(ours.round(plan))
    wrong = [("", ours.missing())]
    for name, one in others.items():
        lost = one.void
        # etcd gives a batch to many keys, each put once more with each batch: the answers count it
        if not lost and case.writes and not (name == "etcd" and case.per_request > 1):
            count = held(name, rivals[name], case.name)
            lost = (
                ""
                if count >= one.acknowledged
                else f"{one.acknowledged} acknowledged, {count} held"
            )
        wrong.append((name, lost))
    outcome.void = "; ".join(f"{name} {what}".strip() for name, what in wrong if what)
    return outcome


def _fill(rivals: Rivals) -> None:
    """A value to be read."""
    for name, rival in rivals.items():
        server = rival.servers[0]
        match name:
            case "redis":
                redises.ask(server, "SET", "read", "x" * ENTRY_BYTES)
            case "etcd":
                run_load(Load(server.host, server.port, [etcds.put("read", ENTRY_BYTES)], 1, 0.05))
            case _:
                pass


def rows_of(outcome: Outcome) -> list[Row]:
    """Ours first."""
    case = outcome.case
    found = []
    for name in (OURS, *(name for name in outcome.rounds if name != OURS)):
        rounds = outcome.rounds[name]
        row = Row(
            case.name,
            name,
            DURABILITY[name] if case.writes else "",
            median(one.rate for one in rounds),
            median(one.p50_ms for one in rounds),
            median(one.p99_ms for one in rounds),
            median(one.cpu_us for one in rounds),
        )
        if name == OURS:
            found.append(row)
            continue
        ratio = _ratio(outcome.rounds[OURS], rounds, case.by_latency)
        floor, goal = case.floors.get(name, (None, None))
        found.append(
            Row(
                *(row.case, row.system, row.durability, row.rate, row.p50_ms, row.p99_ms),
                *(row.cpu_us, ratio, floor, goal, case.by_latency),
            )
        )
    return found


def _ratio(ours: list[Figures], others: list[Figures], by_latency: bool) -> float:
    """The median of the rounds, each of which saw both."""
    return median(
        one.p50_ms / max(other.p50_ms, 1e-6) if by_latency else one.rate / max(other.rate, 1e-6)
        for one, other in zip(ours, others, strict=True)
    )
