"""A real node over HTTP, and beside it the bare loop in the same run. `make bench-node`.

Every acknowledgement is synced. Each round takes the peak of bare loop and node in a closed loop,
then latency in an open loop at 80 % of it, counted from the moment a request was meant to be sent.
Shown are medians over the rounds, of the rate with the least and the greatest. Figures count only
where every acknowledged entry is found afterwards. What abuse does is told by `make bench-abuse`.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.cases import CASES, Figures, Outcome, Plan, measure, of
from bench.figures import note_figure
from bench.lock import one_benchmark_at_a_time
from bench.servers import Server, both

COMMAND = "bench-node"
NAMES = tuple(case.name for case in CASES)
HEADINGS = (
    "case", "entries/s", "least", "most", "bare", "ratio", "p50 ms", "p95 ms", "p99 ms",
    "bare p50", "bare p99", "CPU s/1,000", "bare CPU", "client CPU", "late",
)  # fmt: skip


def _latency(name: str) -> Callable[[Figures], float]:
    return lambda found: found.latency_ms[name]


def row_of(outcome: Outcome) -> tuple[str, ...]:
    node, ratio = outcome.node, outcome.ratio
    own, bare = partial(of, node), partial(of, outcome.bare)
    has_bare = bool(outcome.bare)
    return (
        outcome.case.name,
        f"{own(lambda f: f.peak):,.0f}",
        *(f"{choose(f.peak for f in node):,.0f}" for choose in (min, max)),
        f"{bare(lambda f: f.peak):,.0f}" if has_bare else "",
        "" if ratio is None else f"{ratio:.2f}",
        *(f"{own(_latency(name)):.2f}" for name in ("p50", "p95", "p99")),
        *(f"{bare(_latency(name)):.2f}" if has_bare else "" for name in ("p50", "p99")),
        f"{own(lambda f: f.server_cpu_us) / 1e3:.4f}",
        f"{bare(lambda f: f.server_cpu_us) / 1e3:.4f}" if has_bare else "",
        f"{own(lambda f: f.client_cpu_us) / 1e3:.4f}",
        f"{own(lambda f: f.late_share):.1%}",
    )


def note(outcome: Outcome) -> None:
    name, node = outcome.case.name, outcome.node
    note_figure(COMMAND, f"{name}: entries/s", of(node, lambda f: f.peak))
    for share in ("p50", "p95", "p99"):
        note_figure(COMMAND, f"{name}: {share} ms", of(node, _latency(share)))
    note_figure(COMMAND, f"{name}: CPU us an entry", of(node, lambda f: f.server_cpu_us))
    note_figure(COMMAND, f"{name}: client CPU us an entry", of(node, lambda f: f.client_cpu_us))
    if outcome.ratio is not None:
        note_figure(COMMAND, f"{name}: of the bare loop", outcome.ratio)


def show(rows: list[tuple[str, ...]]) -> None:
    if rows:
        print("| " + " | ".join(HEADINGS) + " |")
        print("|" + " --- |" * len(HEADINGS))
    for row in rows:
        print("| " + " | ".join(row) + " |")


def run_cases(names: list[str], bare: Server, node: Server, plan: Plan) -> list[Outcome]:
    found = []
    for case in CASES:
        if case.name in names:
            print(f"{case.name}: {case.unit}", file=sys.stderr)
            found.append(measure(case, bare, node, plan))
    return found


def below_floors(outcome: Outcome) -> list[str]:
    """Which of them this run does not reach."""
    floors = outcome.case.floors
    rate, ratio = of(outcome.node, lambda f: f.peak), outcome.ratio
    found = []
    if rate < floors.entries_per_s:
        found.append(f"{rate:,.0f} entries/s, at least {floors.entries_per_s:,.0f}")
    if ratio is not None and ratio < floors.ratio:
        found.append(f"{ratio:.2f} of the bare loop, at least {floors.ratio:.2f}")
    for share, ms_max in (("p50", floors.p50_ms), ("p99", floors.p99_ms)):
        ms = of(outcome.node, _latency(share))
        if ms >= ms_max:
            found.append(f"{share} {ms:.2f} ms, under {ms_max:g}")
    return found


def asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.node", description=__doc__)
    parser.add_argument(
        "--cases", nargs="+", choices=NAMES, default=NAMES, metavar="CASE", help=", ".join(NAMES)
    )
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measurement (3)")
    parser.add_argument("--rounds", type=int, default=3, help="of bare loop and node (3)")
    parser.add_argument("--disk", type=Path, default=Path.cwd(), help="a folder on that disk (.)")
    parser.add_argument("--note", action="store_true", help="append to docs/figures.csv")
    return parser.parse_args()


def main() -> int:
    given = asked()
    plan = Plan(given.seconds, given.rounds)
    folder = tempfile.TemporaryDirectory(prefix=".quipu-bench-", dir=given.disk)
    with one_benchmark_at_a_time(), folder as path, both(Path(path)) as (bare, node):
        outcomes = run_cases(given.cases, bare, node, plan)
    show([row_of(outcome) for outcome in outcomes])
    void = [outcome for outcome in outcomes if outcome.void]
    for outcome in outcomes:
        for what in below_floors(outcome):
            print(f"BELOW ITS FLOOR: {outcome.case.name}: {what}")
    for outcome in void:
        print(f"VOID: {outcome.case.name}: {outcome.void}")
    if given.note and not void:
        for outcome in outcomes:
            note(outcome)
    return 1 if void else 0


if __name__ == "__main__":
    sys.exit(main())
