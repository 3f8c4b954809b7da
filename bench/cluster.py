"""Real nodes on loopback, and beside them a bare loop of three processes in the same run.
`make bench-cluster`.

All processes share the cores of this machine, the load too. Every acknowledgement is synced.
Figures count only where every acknowledged entry is on every node afterwards and the Models are
equal.
"""

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from bench import growth, rejoin
from bench.cases import Plan
from bench.cluster_cases import CASES, Figures, Outcome, measure, of
from bench.clusters import bare_cluster, node_cluster
from bench.figures import note_figure
from bench.lock import one_benchmark_at_a_time

COMMAND = "bench-cluster"
NODES = 3
CATCH_UP, CATCH_UP_BUSY, GROWTH = "catch-up", "catch-up-busy", "growth"
NAMES = (*(case.name for case in CASES), CATCH_UP, CATCH_UP_BUSY, GROWTH)
HEADINGS = (
    "case", "entries/s", "bare", "ratio", "p50 ms", "p99 ms", "bare p50", "bare p99",
    "CPU s/1,000", "bare CPU", "client CPU", "fsyncs", "signed", "checked", "messages",
    "wire bytes", "of the data",
)  # fmt: skip


def row_of(outcome: Outcome) -> tuple[str, ...]:
    nodes, bare, ratio = outcome.nodes, outcome.bare, outcome.ratio

    def latency(side: list[Figures], name: str) -> str:
        return f"{of(side, lambda f: f.latency_ms[name]):.2f}" if side else ""

    return (
        outcome.case.name,
        f"{of(nodes, lambda f: f.rate):,.0f}",
        f"{of(bare, lambda f: f.rate):,.0f}" if bare else "",
        "" if ratio is None else f"{ratio:.2f}",
        latency(nodes, "p50"),
        latency(nodes, "p99"),
        latency(bare, "p50"),
        latency(bare, "p99"),
        f"{of(nodes, lambda f: f.cpu_us) / 1e3:.4f}",
        f"{of(bare, lambda f: f.cpu_us) / 1e3:.4f}" if bare else "",
        f"{of(nodes, lambda f: f.client_cpu_us) / 1e3:.4f}",
        f"{of(nodes, lambda f: f.commits):.3f}",
        f"{of(nodes, lambda f: f.signed):.3f}",
        f"{of(nodes, lambda f: f.checked):.3f}",
        f"{of(nodes, lambda f: f.messages):.3f}",
        f"{of(nodes, lambda f: f.wire_bytes):,.0f}",
        f"{of(nodes, lambda f: f.wire_share(NODES)):.3f}",
    )


def show(outcomes: list[Outcome]) -> None:
    if outcomes:
        print("| " + " | ".join(HEADINGS) + " |")
        print("|" + " --- |" * len(HEADINGS))
    for outcome in outcomes:
        print("| " + " | ".join(row_of(outcome)) + " |")


def note(outcome: Outcome) -> None:
    name, nodes = outcome.case.name, outcome.nodes
    note_figure(COMMAND, f"{name}: entries/s", of(nodes, lambda f: f.rate))
    note_figure(COMMAND, f"{name}: p50 ms", of(nodes, lambda f: f.latency_ms["p50"]))
    note_figure(COMMAND, f"{name}: p99 ms", of(nodes, lambda f: f.latency_ms["p99"]))
    note_figure(COMMAND, f"{name}: CPU us an entry", of(nodes, lambda f: f.cpu_us))
    note_figure(COMMAND, f"{name}: fsyncs an entry", of(nodes, lambda f: f.commits))
    if outcome.ratio is not None:
        note_figure(COMMAND, f"{name}: of the bare loop", outcome.ratio)
    if name == "wire":
        share = of(nodes, lambda f: f.wire_share(NODES))
        note_figure(COMMAND, "wire bytes, of (n - 1) x data", share)


def run_cases(names: list[str], folder: Path, plan: Plan) -> list[Outcome]:
    wanted = [case for case in CASES if case.name in names]
    if not wanted:
        return []
    found = []
    with (
        bare_cluster(folder / "bare", NODES) as bare,
        node_cluster(folder / "nodes", NODES) as nodes,
    ):
        for case in wanted:
            print(f"{case.name}: {case.unit}", file=sys.stderr)
            found.append(measure(case, bare, nodes, plan))
    return found


def asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.cluster", description=__doc__)
    parser.add_argument(
        "--cases", nargs="+", choices=NAMES, default=NAMES, metavar="CASE", help=", ".join(NAMES)
    )
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement (4)")
    parser.add_argument("--rounds", type=int, default=3, help="of bare loop and nodes (3)")
    parser.add_argument("--missed", type=int, default=20_000, help="entries to catch up (20,000)")
    parser.add_argument(
        "--missed-events", type=int, default=20_000, help="events of one entry, the same (20,000)"
    )
    parser.add_argument(
        "--sizes", nargs="+", type=int, default=[1, 3, 5], help="of clusters that grow (1 3 5)"
    )
    parser.add_argument("--disk", type=Path, default=Path.cwd(), help="a folder on that disk (.)")
    parser.add_argument("--note", action="store_true", help="append to docs/figures.csv")
    return parser.parse_args()


def main() -> int:
    given = asked()
    plan = Plan(given.seconds, given.rounds)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the nodes would outlive it
    folder = tempfile.TemporaryDirectory(prefix=".quipu-bench-", dir=given.disk)
    with one_benchmark_at_a_time(), folder as name:
        path = Path(name)
        outcomes = run_cases(given.cases, path, plan)
        missed = [
            one
            for name in (CATCH_UP, CATCH_UP_BUSY)
            if name in given.cases
            for one in rejoin.measure(
                path / name, given.missed, given.missed_events, name == CATCH_UP_BUSY
            )
        ]
        grown = (
            [growth.measure(path / f"grown-{count}", count, plan) for count in given.sizes]
            if GROWTH in given.cases
            else []
        )
    show(outcomes)
    for line in [*(one.text() for one in missed), *(one.text() for one in grown)]:
        print(line)
    voids = [(one.case.name, one.void) for one in outcomes]
    voids += [(CATCH_UP, one.void) for one in missed] + [(GROWTH, one.void) for one in grown]
    wrong = [f"{what}: {why}" for what, why in voids if why]
    for line in wrong:
        print(f"VOID: {line}")
    if given.note and not wrong:
        for outcome in outcomes:
            note(outcome)
        for caught_up in missed:
            if not caught_up.busy_ms:
                caught_up.note(COMMAND)
        for one in grown:
            one.note(COMMAND)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
