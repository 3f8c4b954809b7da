"""What the HTTP face counts about itself, and the node's figures, as Prometheus reads them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from quipu.api.meanings import meaning
from quipu.node.service import Histogram, Ledger

BOUNDS_S = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 2.0, 10.0, 60.0)


@dataclass(slots=True)
class Counters:
    """Plain dicts: a counter of the library costs more than all else that a request is noted."""

    requests: dict[tuple[str, int], int] = field(default_factory=dict)
    _seconds: dict[str, list[float]] = field(default_factory=dict)  # counts by bound, then sum
    connections: int = 0
    waiting: Callable[[], int] = lambda: 0  # connections that were not accepted yet
    connections_refused: int = 0
    streams: int = 0
    stream_gaps: int = 0
    ingests: int = 0
    ingest_acknowledged: int = 0
    ingest_refused: int = 0

    def answered(self, operation: str, status: int, seconds: float) -> None:
        key = (operation, status)
        self.requests[key] = self.requests.get(key, 0) + 1
        row = self._seconds.get(operation)
        if row is None:
            row = self._seconds[operation] = [0.0] * (len(BOUNDS_S) + 2)
        place = 0
        for bound in BOUNDS_S:
            if seconds <= bound:
                break
            place += 1
        row[place] += 1
        row[-1] += seconds

    def families(self) -> Iterable[Metric]:
        requests = CounterMetricFamily(
            "quipu_http_requests",
            "Requests answered, by operation and status.",
            labels=("operation", "status"),
        )
        for (operation, status), count in sorted(self.requests.items()):
            requests.add_metric((operation, str(status)), count)
        yield requests
        seconds = HistogramMetricFamily(
            "quipu_http_request_seconds",
            "Time from the header of a request to its answer.",
            labels=("operation",),
        )
        for operation, row in sorted(self._seconds.items()):
            total: float = 0.0
            buckets: list[tuple[str, float]] = []
            for bound, below in zip((*map(str, BOUNDS_S), "+Inf"), row, strict=False):
                total += below
                buckets.append((bound, total))
            seconds.add_metric((operation,), buckets, row[-1])
        yield seconds
        for name, figure, said in (
            ("connections", self.connections, "Connections of the API that are open."),
            ("connections_waiting", self.waiting(), "Connections not accepted yet."),
            ("streams", self.streams, "Readers of /v1/stream."),
            ("ingests", self.ingests, "Connections of /v1/ingest."),
        ):
            yield GaugeMetricFamily(f"quipu_http_{name}", said, value=figure)
        for name, figure, said in (
            ("connections_refused", self.connections_refused, "Above the share of an address."),
            ("stream_gaps", self.stream_gaps, "Gaps said to readers that were too slow."),
            ("ingest_acknowledged", self.ingest_acknowledged, "Entries of /v1/ingest stored."),
            ("ingest_refused", self.ingest_refused, "Entries of /v1/ingest refused."),
        ):
            yield CounterMetricFamily(f"quipu_http_{name}", said, value=figure)


class LedgerFamilies(Collector):
    def __init__(self, ledger: Ledger, counters: Counters) -> None:
        self._ledger = ledger
        self._counters = counters

    def collect(self) -> Iterable[Metric]:
        found = self._ledger.metrics()
        for name, count in sorted(found.counters.items()):
            plain = name.removesuffix("_total")
            yield CounterMetricFamily(f"quipu_{plain}", meaning(name), value=count)
        for name, value in sorted(found.gauges.items()):
            yield GaugeMetricFamily(f"quipu_{name}", meaning(name), value=value)
        for name, histogram in sorted(found.histograms.items()):
            yield _histogram(name, histogram)
        refused = CounterMetricFamily(
            "quipu_refused", "Inputs that were not taken, by reason.", labels=("reason",)
        )
        for reason, count in sorted(found.refused.items()):
            refused.add_metric((reason,), count)
        yield refused
        yield from self._counters.families()


def _histogram(name: str, histogram: Histogram) -> Metric:
    names = [*map(str, histogram.bounds), "+Inf"]
    counts = [*histogram.counts, histogram.counts[-1]][: len(names)]
    family = HistogramMetricFamily(f"quipu_{name}", meaning(name))
    family.add_metric((), list(zip(names, counts, strict=False)), histogram.total)
    return family


def exposition(ledger: Ledger, counters: Counters) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(LedgerFamilies(ledger, counters))
    return generate_latest(registry)
