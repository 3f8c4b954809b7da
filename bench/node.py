"""A real node over HTTP, and beside it the bare loop in the same run. `make bench-node`.

Every acknowledgement is synced. Each round takes the peak of bare loop and node in a closed loop,
then latency in an open loop at 80 % of it. Figures count only where every acknowledged entry is
found afterwards.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench import abuse, overload, requests
from bench.cases import CASES, ENTRY_BYTES, Figures, Outcome, Plan, measure, of
from bench.figures import note_figure
from bench.load import Load
from bench.lock import one_benchmark_at_a_time
from bench.servers import Server, both, run_load

COMMAND = "bench-node"
FLOOD = "overload"
ABUSES = tuple(f"abuse-{kind}" for kind in abuse.KINDS)
NAMES = (*(case.name for case in CASES), FLOOD, *ABUSES)
HEADINGS = (
    "case", "entries/s", "bare", "ratio", "p50 ms", "p95 ms", "p99 ms", "bare p50", "bare p99",
    "CPU s/1,000", "bare CPU", "client CPU", "late",
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
    note_figure(COMMAND, f"{name}: p50 ms", of(node, _latency("p50")))
    note_figure(COMMAND, f"{name}: p99 ms", of(node, _latency("p99")))
    note_figure(COMMAND, f"{name}: CPU us an entry", of(node, lambda f: f.server_cpu_us))
    if outcome.ratio is not None:
        note_figure(COMMAND, f"{name}: of the bare loop", outcome.ratio)


def note_all(outcomes: list[Outcome], flood: overload.Overload | None) -> None:
    for outcome in outcomes:
        note(outcome)
    if flood is not None:
        note_figure(COMMAND, "overload: goodput of peak", flood.goodput_share)
        note_figure(COMMAND, "overload: p99 of the accepted, times", flood.p99_times)


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


def run_abuses(names: list[str], node: Server, plan: Plan) -> tuple[list[abuse.Abuse], str]:
    """And why it does not count, where it does not."""
    kinds = [kind for kind in abuse.KINDS if f"abuse-{kind}" in names]
    if not kinds:
        return [], ""
    made = [requests.post(abuse.STREAM, ENTRY_BYTES)]
    peak = run_load(Load(node.host, node.port, made, abuse.CONNECTIONS, plan.seconds))
    acknowledged = peak.accepted_all
    found = []
    for kind in kinds:
        print(f"abuse: {kind}", file=sys.stderr)
        one, count = abuse.measure(node, kind, abuse.LOAD_SHARE * peak.rate, plan)
        found.append(one)
        acknowledged += count
    held = node.stored(abuse.STREAM)
    return found, "" if held >= acknowledged else f"{acknowledged} acknowledged, {held} held"


def asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.node", description=__doc__)
    parser.add_argument(
        "--cases", nargs="+", choices=NAMES, default=NAMES, metavar="CASE", help=", ".join(NAMES)
    )
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement (4)")
    parser.add_argument("--rounds", type=int, default=3, help="of bare loop and node (3)")
    parser.add_argument("--disk", type=Path, default=Path.cwd(), help="a folder on that disk (.)")
    parser.add_argument(
        "--realtime",
        action="store_true",
        help="run before all else on this machine, abusers behind node and load; needs root",
    )
    parser.add_argument("--note", action="store_true", help="append to docs/figures.csv")
    return parser.parse_args()


def main() -> int:
    given = asked()
    plan = Plan(given.seconds, given.rounds)
    if given.realtime:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(abuse.PRIORITY + 1))
    folder = tempfile.TemporaryDirectory(prefix=".quipu-bench-", dir=given.disk)
    with one_benchmark_at_a_time(), folder as path, both(Path(path)) as (bare, node):
        outcomes = run_cases(given.cases, bare, node, plan)
        flood = overload.measure(node, plan) if FLOOD in given.cases else None
        abuses, abuse_void = run_abuses(given.cases, node, plan)
    wrong = [f"{one.case.name}: void: {one.void}" for one in outcomes if one.void]
    wrong += [f"abuse: void: {abuse_void}"] if abuse_void else []
    show([row_of(outcome) for outcome in outcomes])
    if flood is not None:
        print(flood.text())
        wrong += [f"overload: {what}" for what in flood.short_of()]
    for one in abuses:
        print(one.line())
        wrong += [f"abuse {one.kind}: slower than allowed"] if one.is_too_slow else []
    for line in wrong:
        print(f"NOT AS IT SHOULD BE: {line}")
    is_void = any("void" in line for line in wrong)
    if given.note and not is_void:
        note_all(outcomes, flood)
    return 1 if is_void else 0


if __name__ == "__main__":
    sys.exit(main())
