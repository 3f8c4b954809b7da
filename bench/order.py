"""The order of three real nodes, and beside them etcd with three processes on the same disk.
`make bench-order`.

All processes share the cores of this machine, the load too. Every acknowledgement is synced by a
majority. Figures count only where every node has what was acknowledged. etcd is asked through its
JSON gateway. It orders bytes that it is given; our entries are signed events that are final first.
"""

import argparse
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from bench.cases import Plan
from bench.clusters import Cluster, node_cluster
from bench.etcds import etcds
from bench.figures import note_figure
from bench.go_builds import NotHere
from bench.lock import one_benchmark_at_a_time
from bench.order_cases import CASES, Figures, Outcome, measure

COMMAND = "bench-order"
NODES = 3
NAMES = tuple(case.name for case in CASES)
HEADINGS = (
    "case", "a second", "p50 ms", "p99 ms", "CPU s/1,000", "client CPU", "fsyncs",
    "etcd", "etcd p50", "etcd p99", "etcd CPU",
)  # fmt: skip


def of(rounds: list[Figures], take: Callable[[Figures], float]) -> float:
    return median(map(take, rounds))


def row_of(outcome: Outcome) -> tuple[str, ...]:
    nodes, beside = outcome.nodes, outcome.etcd
    row = [
        outcome.case.name,
        f"{of(nodes, lambda f: f.rate):,.0f}",
        f"{of(nodes, lambda f: f.p50_ms):.2f}",
        f"{of(nodes, lambda f: f.p99_ms):.2f}",
        f"{of(nodes, lambda f: f.cpu_us) / 1e3:.3f}",
        f"{of(nodes, lambda f: f.client_cpu_us) / 1e3:.3f}",
        f"{of(nodes, lambda f: f.commits):.2f}",
    ]
    if not beside:
        return (*row, "", "", "", "")
    return (
        *row,
        f"{of(beside, lambda f: f.rate):,.0f}",
        f"{of(beside, lambda f: f.p50_ms):.2f}",
        f"{of(beside, lambda f: f.p99_ms):.2f}",
        f"{of(beside, lambda f: f.cpu_us) / 1e3:.3f}",
    )


def note(outcome: Outcome) -> None:
    for side, rounds in (("", outcome.nodes), ("etcd ", outcome.etcd)):
        if rounds:
            name = f"{side}{outcome.case.name}"
            note_figure(COMMAND, f"{name}: a second", of(rounds, lambda f: f.rate))
            note_figure(COMMAND, f"{name}: p50 ms", of(rounds, lambda f: f.p50_ms))
            note_figure(COMMAND, f"{name}: p99 ms", of(rounds, lambda f: f.p99_ms))
            note_figure(COMMAND, f"{name}: CPU us for each", of(rounds, lambda f: f.cpu_us))


@contextmanager
def beside(disk: Path, wanted: bool) -> Iterator[Cluster | None]:
    """None, and said why, where there is no etcd."""
    if not wanted:
        yield None
        return
    try:
        begun = etcds(NODES, disk)
        cluster = begun.__enter__()
    except NotHere as reason:
        print(f"no etcd beside: {reason}", file=sys.stderr)
        yield None
        return
    try:
        yield cluster
    finally:
        begun.__exit__(None, None, None)


def asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.order", description=__doc__)
    parser.add_argument(
        "--cases", nargs="+", choices=NAMES, default=NAMES, metavar="CASE", help=", ".join(NAMES)
    )
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement (4)")
    parser.add_argument("--rounds", type=int, default=3, help="of etcd and nodes (3)")
    parser.add_argument("--disk", type=Path, default=Path.cwd(), help="a folder on that disk (.)")
    parser.add_argument("--no-etcd", action="store_true", help="the nodes alone")
    parser.add_argument("--note", action="store_true", help="append to docs/figures.csv")
    return parser.parse_args()


def run(names: list[str], disk: Path, plan: Plan, with_etcd: bool) -> list[Outcome]:
    found = []
    with (
        tempfile.TemporaryDirectory(prefix=".quipu-bench-", dir=disk) as name,
        beside(disk, with_etcd) as other,
        node_cluster(Path(name) / "nodes", NODES) as nodes,
    ):
        for case in CASES:
            if case.name in names:
                print(f"{case.name}: {case.unit}", file=sys.stderr)
                found.append(measure(case, nodes, other, plan))
    return found


def main() -> int:
    given = asked()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the nodes would outlive it
    with one_benchmark_at_a_time():
        plan = Plan(given.seconds, given.rounds)
        outcomes = run(given.cases, given.disk, plan, not given.no_etcd)
    print("| " + " | ".join(HEADINGS) + " |")
    print("|" + " --- |" * len(HEADINGS))
    for outcome in outcomes:
        print("| " + " | ".join(row_of(outcome)) + " |")
    for outcome in outcomes:
        for missed in outcome.missed():
            print(f"below the floor: {outcome.case.name}: {missed}")
    voids = [outcome for outcome in outcomes if outcome.void]
    for outcome in voids:
        print(f"VOID: {outcome.case.name}: {outcome.void}")
    if given.note and not voids:
        for outcome in outcomes:
            note(outcome)
    return 1 if voids else 0


if __name__ == "__main__":
    sys.exit(main())
