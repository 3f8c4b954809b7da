"""What is measured of the HTTP face, and the bare loop beside it in the same round."""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

from bench import requests
from bench.load import Load, Result
from bench.servers import Server, run_load

ENTRY_BYTES = 256
BATCH_ENTRIES = 100
PAGE_ENTRIES = 100
READ_IDS = 2_000
PAGES = 20
LINES_PER_CHUNK = 64
FRAME_ENTRIES = 256
OPEN_SHARE = 0.8  # of the peak, where latency is taken


@dataclass(frozen=True)
class Plan:
    """How long and how often."""

    seconds: float
    rounds: int
    warm_up_s: float = 0.5


@dataclass(frozen=True)
class Floors:
    """What is asked of a case on two quiet cores and their disk."""

    entries_per_s: float = 0.0
    ratio: float = 0.55  # to the bare loop, where there is one beside it
    p50_ms: float = math.inf
    p99_ms: float = math.inf


@dataclass(frozen=True)
class Case:
    name: str
    unit: str
    connections: int
    per_request: int  # entries
    prepare: Callable[[Server], list[bytes]]
    writes: bool = True
    beside_bare: bool = True
    stream: str = ""  # one connection that takes many entries: of which kind
    per_chunk: int = 1
    floors: Floors = Floors()


@dataclass(frozen=True)
class Figures:
    """One server in one round. Rates count entries (of a page: those that it holds)."""

    peak: float
    offered: float
    open_rate: float
    latency_ms: dict[str, float]
    late_share: float
    server_cpu_us: float  # an entry
    client_cpu_us: float


@dataclass
class Outcome:
    case: Case
    node: list[Figures] = field(default_factory=list)
    bare: list[Figures] = field(default_factory=list)
    void: str = ""  # why the figures mean nothing

    @property
    def ratio(self) -> float | None:
        pairs = zip(self.node, self.bare, strict=True) if self.bare else ()
        return median([node.peak / bare.peak for node, bare in pairs]) if self.bare else None


def of(rounds: list[Figures], take: Callable[[Figures], float]) -> float:
    return median(map(take, rounds))


# --- the cases ------------------------------------------------------------------------------------
def _posts(stream: str) -> Callable[[Server], list[bytes]]:
    return lambda server: [requests.post(stream, ENTRY_BYTES)]


def _batches(stream: str) -> Callable[[Server], list[bytes]]:
    return lambda server: [requests.batch(stream, ENTRY_BYTES, BATCH_ENTRIES)]


def _lines(server: Server) -> list[bytes]:
    return requests.lines("ndjson", ENTRY_BYTES, LINES_PER_CHUNK)


def _frames(server: Server) -> list[bytes]:
    return requests.frames("ingest", ENTRY_BYTES, FRAME_ENTRIES)


def _reads_by_id(server: Server) -> list[bytes]:
    """Entries of batches, in no order."""
    count = READ_IDS // BATCH_ENTRIES
    load = _load(server, [requests.batch("held", ENTRY_BYTES, BATCH_ENTRIES)], 4)
    load.seconds, load.warm_up_s, load.keep_bodies = 0.5, 0.0, count
    ids = requests.ids_of(run_load(load).bodies)
    random.Random(1).shuffle(ids)
    return [requests.get(f"/v1/entries/{identity}") for identity in ids]


def _reads_by_page(server: Server) -> list[bytes]:
    """The pages of a stream that are full, one after the other."""
    run_load(_load(server, [requests.batch("paged", ENTRY_BYTES, BATCH_ENTRIES)], 4))
    path = f"/v1/entries?stream=paged&limit={PAGE_ENTRIES}"
    found: list[bytes] = []
    place, has_more = path, True
    while has_more and len(found) < PAGES:
        page = server.ask(place)
        if len(page["items"]) == PAGE_ENTRIES:
            found.append(requests.get(place))
        place, has_more = f"{path}&after={page['next']}", page["more"]
    return found


CASES = (
    Case(
        "post-1",
        "POSTs of one entry, 1 connection",
        1,
        1,
        _posts("post-1"),
        floors=Floors(p50_ms=1.2),
    ),
    Case(
        "post-64",
        "POSTs of one entry, 64 connections",
        64,
        1,
        _posts("post-64"),
        floors=Floors(10_000, p99_ms=20.0),
    ),
    Case(
        "batch",
        "batches of 100, 8 connections",
        8,
        BATCH_ENTRIES,
        _batches("batch"),
        floors=Floors(120_000),
    ),
    Case(
        "ndjson",
        "lines of one NDJSON stream",
        1,
        1,
        _lines,
        beside_bare=False,
        stream="lines",
        per_chunk=LINES_PER_CHUNK,
    ),
    Case(
        "ingest",
        "entries over one WebSocket",
        1,
        1,
        _frames,
        beside_bare=False,
        stream="frames",
        per_chunk=FRAME_ENTRIES,
        floors=Floors(40_000),
    ),
    Case(
        "read",
        "reads by id, 64 connections",
        64,
        1,
        _reads_by_id,
        writes=False,
        floors=Floors(10_000),
    ),
    Case("page", "pages of 100, 8 connections", 8, PAGE_ENTRIES, _reads_by_page, False, False),
)


# --- measuring ------------------------------------------------------------------------------------
def _load(server: Server, made: list[bytes], connections: int) -> Load:
    return Load(server.host, server.port, made, connections, 0.3, 0.0)


class Measured:
    """One case on one server, with what was acknowledged on the way."""

    def __init__(self, case: Case, server: Server) -> None:
        self.case = case
        self.server = server
        self.requests = case.prepare(server)
        self.acknowledged = 0
        self.sent = 0
        self.void = ""

    def round(self, plan: Plan) -> Figures:
        """The peak in a closed loop, then latency in an open one below it."""
        case = self.case
        load = _load(self.server, self.requests, case.connections)
        load.seconds, load.warm_up_s = plan.seconds, plan.warm_up_s
        load.stream, load.per_chunk = case.stream, case.per_chunk
        cpu_s = self.server.cpu_s()
        peak = self._run(load)
        cpu_s = self.server.cpu_s() - cpu_s
        entries = peak.accepted_all * case.per_request
        load.rate = OPEN_SHARE * peak.rate
        calm = self._run(load)
        return Figures(
            peak=peak.rate * case.per_request,
            offered=load.rate * case.per_request,
            open_rate=calm.rate * case.per_request,
            latency_ms=calm.latency_ms,
            late_share=calm.late / max(calm.sent, 1),
            server_cpu_us=cpu_s / max(entries, 1) * 1e6,
            client_cpu_us=peak.cpu_us / case.per_request,
        )

    def _run(self, load: Load) -> Result:
        result = run_load(load)
        self.acknowledged += result.accepted_all * self.case.per_request
        self.sent += result.sent * self.case.per_request
        refused = sum(result.statuses.values()) - result.accepted
        if refused or result.cut or result.unanswered:
            self.void = f"{result.statuses}, {result.cut} cut, {result.unanswered} unanswered"
        return result

    def missing(self) -> str:
        """Why what was measured does not count; empty: every acknowledged entry is there."""
        if self.void or not self.case.writes or self.server.name != "node":
            return self.void
        held = self.server.stored(self.case.name)
        if self.acknowledged <= held <= self.sent:
            return ""
        return f"{self.acknowledged} acknowledged of {self.sent} sent, {held} held"


def measure(case: Case, bare: Server, node: Server, plan: Plan) -> Outcome:
    outcome = Outcome(case)
    sides = [(Measured(case, node), outcome.node)]
    if case.beside_bare:
        sides.insert(0, (Measured(case, bare), outcome.bare))
    for _ in range(plan.rounds):
        for measured, into in sides:
            into.append(measured.round(plan))
    outcome.void = "; ".join(filter(None, (measured.missing() for measured, _ in sides)))
    return outcome
