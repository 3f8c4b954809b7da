"""Twice what the node can take, from ten times as many connections."""

from dataclasses import dataclass

from bench import requests
from bench.cases import ENTRY_BYTES, Plan
from bench.load import Load, Result
from bench.servers import MIB, Server, run_load

CONNECTIONS = 64
TIMES_CONNECTIONS = 10
TIMES_RATE = 2.0
CALM_SHARE = 0.8
GOODPUT_SHARE_MIN = 0.9
P99_TIMES_MAX = 2.0
RSS_GROWTH_BYTES_MAX = 256 * MIB
STREAM = "overload"


@dataclass(frozen=True)
class Overload:
    peak: Result  # closed loop, the usual connections
    calm: Result  # open loop below it
    flood: Result
    rss_before: int
    rss_after: int
    void: str

    @property
    def goodput_share(self) -> float:
        return self.flood.rate / self.peak.rate

    @property
    def p99_times(self) -> float:
        """Of the accepted, from the moment of sending, against the peak: at a flood the wait before
        that is the generator's own queue and grows without end."""
        return self.flood.service_ms["p99"] / self.peak.service_ms["p99"]

    def text(self) -> str:
        flood, peak = self.flood, self.peak
        refused = {status: count for status, count in flood.statuses.items() if status >= 300}
        share = sum(refused.values()) / max(sum(flood.statuses.values()), 1)
        growth = (self.rss_after - self.rss_before) / MIB
        return f"""overload: {flood.sent / flood.seconds:,.0f}/s reached the node over \
{CONNECTIONS * TIMES_CONNECTIONS} connections; peak was {peak.rate:,.0f}/s
  goodput {flood.rate:,.0f}/s, {self.goodput_share:.0%} of peak (at least {GOODPUT_SHARE_MIN:.0%})
  refused {share:.1%} {refused}, p99 of a refusal {flood.refused_ms["p99"]:.1f} ms
  p99 of the accepted {flood.service_ms["p99"]:.1f} ms, at peak {peak.service_ms["p99"]:.1f} ms: \
{self.p99_times:.2f} x (at most {P99_TIMES_MAX:g} x)
  memory {self.rss_before / MIB:.0f} -> {self.rss_after / MIB:.0f} MiB ({growth:+.0f}, at most \
{RSS_GROWTH_BYTES_MAX / MIB:+.0f})"""

    def short_of(self) -> list[str]:
        """What is not as it should be."""
        wrong = [f"void: {self.void}"] if self.void else []
        if self.goodput_share < GOODPUT_SHARE_MIN:
            wrong.append("goodput")
        if self.p99_times > P99_TIMES_MAX:
            wrong.append("p99 of the accepted")
        if self.rss_after - self.rss_before > RSS_GROWTH_BYTES_MAX:
            wrong.append("memory")
        if set(self.flood.statuses) - {201, 429, 503}:
            wrong.append("statuses")
        return wrong


def measure(node: Server, plan: Plan) -> Overload:
    made = [requests.post(STREAM, ENTRY_BYTES)]

    def load(connections: int, rate: float | None) -> Result:
        return run_load(
            Load(node.host, node.port, made, connections, plan.seconds, plan.warm_up_s, rate)
        )

    peak = load(CONNECTIONS, None)
    calm = load(CONNECTIONS, CALM_SHARE * peak.rate)
    before = node.rss_bytes()
    flood = load(CONNECTIONS * TIMES_CONNECTIONS, TIMES_RATE * peak.rate)
    after = node.rss_bytes()
    acknowledged = peak.accepted_all + calm.accepted_all + flood.accepted_all
    held = node.stored(STREAM)
    void = "" if acknowledged <= held else f"{acknowledged} acknowledged, {held} held"
    return Overload(peak, calm, flood, before, after, void)
