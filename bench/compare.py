"""Three nodes of ours beside three of what people would pick instead, in one run on one machine.
`make bench`.

All clusters stay up, and those that are not measured are idle; all share the cores of this machine
with the load. An answer of ours says that the entry is Read: signed, final, synced by a majority.
The durability of the others stands in each row. Figures count only where every cluster has what it
acknowledged, and what it is on is a disk.
"""

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bench.cases import Plan
from bench.clusters import NodeCluster, node_cluster
from bench.compare_cases import CASES, SYSTEMS, Outcome, Rivals, Row, measure, rows_of
from bench.etcds import etcds
from bench.figures import commit_now, note_figure
from bench.footprint import Footprint, of_others, of_ours
from bench.go_builds import NotHere
from bench.lock import one_benchmark_at_a_time
from bench.natses import natses
from bench.others import Others
from bench.primitives import commit_us, hash_us, signature_us
from bench.redises import redises
from bench.syncs import Synced, of_all, strace

COMMAND = "bench"
NODES = 3
NAMES = tuple(case.name for case in CASES)
HEADINGS = (
    "case", "system", "synced by", "a second", "p50 ms", "p99 ms", "CPU s/1,000",
    "ours is", "floor", "goal",
)  # fmt: skip
KEPT_HEADINGS = ("system", "entries", "disk bytes each and node", "own MiB", "resident MiB")
SYNC_HEADINGS = ("case", "system", "entries", "syncs, all nodes", "syncs an entry")
KEPT = 500_000
QUICK = Plan(seconds=1.0, rounds=1, warm_up_s=0.5)
IN_MEMORY = frozenset(("tmpfs", "ramfs"))


def file_system_of(path: Path) -> str:
    """The type of the mount that it lies on."""
    place, found, longest = str(path.resolve()), "", -1
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mount, kind, *_ = line.split(" ")
        if (place == mount or place.startswith(mount.rstrip("/") + "/")) and len(mount) > longest:
            found, longest = kind, len(mount)
    return found


def calibration(disk: Path) -> dict[str, float]:
    """What the machine takes for the parts, in microseconds, so that runs can be compared."""
    sign, verify = signature_us()
    cpu, wall = commit_us(disk, 256)
    return {
        "sign": sign,
        "verify": verify,
        "hash of 256 bytes": hash_us(256),
        "commit of LMDB, CPU": cpu,
        "commit of LMDB, p50 by the clock": wall,
    }


@contextmanager
def started(disk: Path, wanted: list[str]) -> Iterator[Rivals]:
    """Those that can be had here; why the others cannot is said."""
    makers: dict[str, Callable[[], AbstractContextManager[Others]]] = {
        "etcd": lambda: etcds(NODES, disk),
        "nats": lambda: natses(NODES, disk, sync=True),
        "nats-unsynced": lambda: natses(NODES, disk, sync=False),
        "redis": lambda: redises(NODES, disk),
    }
    found: Rivals = {}
    with ExitStack() as stack:
        for name, make in makers.items():
            if name not in wanted:
                continue
            print(f"{name} begins", file=sys.stderr)
            try:
                found[name] = stack.enter_context(make())
            except NotHere as reason:
                print(f"no {name} beside: {reason}", file=sys.stderr)
        yield found


def asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.compare", description=__doc__)
    parser.add_argument(
        "--cases", nargs="+", choices=NAMES, default=NAMES, metavar="CASE", help=", ".join(NAMES)
    )
    named = ", ".join(SYSTEMS)
    parser.add_argument(
        "--beside", nargs="*", choices=SYSTEMS, default=SYSTEMS, metavar="SYSTEM", help=named
    )
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement (4)")
    parser.add_argument("--rounds", type=int, default=3, help="of all systems in turn (3)")
    parser.add_argument("--quick", action="store_true", help="one round of a second each")
    parser.add_argument(
        "--kept",
        type=int,
        help=f"entries whose disk and memory are looked at ({KEPT:,}; 0 with --quick)",
    )
    parser.add_argument("--disk", type=Path, default=Path.cwd(), help="a folder on that disk (.)")
    parser.add_argument("--report", type=Path, help="write the figures there, as JSON")
    parser.add_argument("--note", action="store_true", help="append to docs/figures.csv")
    return parser.parse_args()


@dataclass
class Measured:
    outcomes: list[Outcome] = field(default_factory=list)
    kept: list[Footprint] = field(default_factory=list)  # ours first
    syncs: list[Synced] = field(default_factory=list)
    void: list[str] = field(default_factory=list)


def run(given: argparse.Namespace, plan: Plan) -> Measured:
    found = Measured()
    with (
        tempfile.TemporaryDirectory(prefix=".quipu-bench-", dir=given.disk) as folder,
        started(given.disk, list(given.beside)) as rivals,
        node_cluster(Path(folder) / "nodes", NODES) as nodes,
    ):
        for case in CASES:
            if case.name in given.cases:
                print(f"{case.name}: {case.unit}", file=sys.stderr)
                outcome = measure(case, nodes, rivals, plan)
                found.outcomes.append(outcome)
                found.void += [f"{case.name}: {outcome.void}"] if outcome.void else []
        if given.kept:
            print(f"{given.kept:,} entries are kept", file=sys.stderr)
            ours, void = of_ours(nodes, given.kept)
            found.kept = [ours, *of_others(rivals, given.kept)]
            found.void += [f"kept: {void}"] if void else []
            found.syncs = _syncs(nodes, rivals)
    return found


def _syncs(nodes: NodeCluster, rivals: Rivals) -> list[Synced]:
    program = strace()
    if program is None:
        print("syncs are not counted: apt-get install strace", file=sys.stderr)
        return []
    print("syncs are counted", file=sys.stderr)
    return of_all(program, nodes, rivals)


def shown(row: Row) -> tuple[str, ...]:
    return (
        row.case,
        row.system,
        row.durability,
        f"{row.rate:,.0f}",
        f"{row.p50_ms:.2f}",
        f"{row.p99_ms:.2f}",
        f"{row.cpu_us / 1e3:.3f}",
        "" if row.ratio is None else f"{row.ratio:.2f} x",
        "" if row.floor is None else f"{row.floor:g} x",
        "" if row.goal is None else f"{row.goal:g} x",
    )


def shown_kept(one: Footprint) -> tuple[str, ...]:
    figures = (one.disk_bytes, one.own_mib, one.resident_mib)
    return (one.system, f"{one.entries:,}", *(f"{figure:.0f}" for figure in figures))


def shown_syncs(one: Synced) -> tuple[str, ...]:
    return (one.case, one.system, f"{one.entries:,}", f"{one.syncs:,}", f"{one.each:.4f}")


def note_kept(one: Footprint) -> None:
    note_figure(COMMAND, f"kept {one.system}: disk bytes an entry and node", one.disk_bytes)
    note_figure(COMMAND, f"kept {one.system}: own MiB", one.own_mib)
    note_figure(COMMAND, f"kept {one.system}: resident MiB", one.resident_mib)


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def note(row: Row) -> None:
    name = f"{row.case} {row.system}"
    note_figure(COMMAND, f"{name}: a second", row.rate)
    note_figure(COMMAND, f"{name}: p50 ms", row.p50_ms)
    note_figure(COMMAND, f"{name}: CPU us for each", row.cpu_us)
    if row.ratio is not None:
        note_figure(COMMAND, f"{name}: ours is, times", row.ratio)


def main() -> int:
    given = asked()
    kind = file_system_of(given.disk)
    if kind in IN_MEMORY:
        print(f"{given.disk} is in memory ({kind}): nothing is synced there", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the processes would outlive it
    with one_benchmark_at_a_time():
        machine = calibration(given.disk)
        if given.kept is None:
            given.kept = 0 if given.quick else KEPT
        found = run(given, QUICK if given.quick else Plan(given.seconds, given.rounds))
    print(f"on {kind}; microseconds: " + ", ".join(f"{k} {v:.0f}" for k, v in machine.items()))
    rows = [row for outcome in found.outcomes for row in rows_of(outcome)]
    print(table(HEADINGS, map(shown, rows)))
    if found.kept:
        print(table(KEPT_HEADINGS, map(shown_kept, found.kept)))
    if found.syncs:
        print(table(SYNC_HEADINGS, map(shown_syncs, found.syncs)))
    if found.kept:
        for short in found.kept[0].short():
            print(f"below the floor: kept: {short}")
    for row in rows:
        if row.is_short:
            print(
                f"below the floor: {row.case}: {row.ratio:.2f} x {row.system}, {row.floor:g} asked"
            )
    for void in found.void:
        print(f"VOID: {void}")
    if given.report is not None:
        told = {
            "commit": commit_now(),
            "disk": kind,
            "machine_us": machine,
            "rows": [asdict(row) for row in rows],
            "kept": [asdict(one) for one in found.kept],
            "syncs": [one._asdict() for one in found.syncs],
            "void": found.void,
        }
        given.report.write_text(json.dumps(told, indent=1) + "\n")
    if given.note and not found.void:
        for row in rows:
            note(row)
        for one in found.kept:
            note_kept(one)
        for synced in found.syncs:
            note_figure(COMMAND, f"{synced.case} {synced.system}: syncs an entry", synced.each)
    return 1 if found.void else 0


if __name__ == "__main__":
    sys.exit(main())
