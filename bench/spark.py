"""The analysis on Spark, beside DuckDB and rustworkx: rates, growth, memory.

    python -m bench.spark [--events N ...] [--memory 4g] [--graphframes-upto N] [--note]

For each size: one export by the node's own exporter, the checks of structure and copies over three
nodes with equal digests and with unequal ones, hashing anew, components by both engines, and the
same work on the same files without Spark. Every run has to find nothing.
"""

import argparse
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import rustworkx as rx
from pyspark.sql import DataFrame, SparkSession

from bench.figures import note_figure
from bench.lock import one_benchmark_at_a_time
from bench.spark_dumps import GENESIS, NODES, OWNER, Exported, exported, three_dumps
from bench.spark_work import last_stage, work_since
from quipu.dumps.checking import check_files
from quipu.ledger.effects import PutBranch
from quipu.spark_analytics import copies_checks, events_checks, limits
from quipu.spark_analytics.engine import Engine
from quipu.spark_analytics.pipeline import engine_named
from quipu.spark_analytics.reading import Ledger, named_copies
from quipu.spark_analytics.rosters import node_names
from quipu.spark_analytics.session import DATAFRAME, ENGINES, SparkWish, spark_session, suit
from quipu.spark_analytics.structure_checks import Structure
from quipu.storage.lmdb_store import open_store
from tests.spark import duckdb_oracle

COMMAND = "bench-spark"
LARGE_ENTRIES = 256
ALONE_S = 3.0  # of commits without an export beside them
GRAPHFRAMES_UPTO = (
    200_000  # events, so that a run of all sizes ends in time; any number may be asked for
)
LARGE_SHARE = 64  # of large events there are so many times fewer
WITHOUT_SPARK = ("DuckDB, all but loops and islands", "rustworkx, loops and islands")
# What SQL can do without walking the graph an edge at a time.
IN_SQL = [
    check
    for check in duckdb_oracle.QUERIES
    if check.startswith(("dag.", "copies.")) and check not in {"dag.loop", "dag.island"}
]


@dataclass(frozen=True, slots=True)
class Goal:
    least: float | None = None
    most: float | None = None
    events: int = 0  # it is said for so many events of each node; 0: for any number

    def verdict(self, value: float, events: int) -> str:
        if self.events not in {0, events}:
            return ""
        if self.least is not None:
            return f"{'met' if value >= self.least else 'MISSED'}: at least {self.least:,g}"
        return f"{'met' if value <= (self.most or 0) else 'MISSED'}: at most {self.most:,g}"


MILLION = 10**6
GOALS = {
    "export: single entries/s": Goal(least=60_000, events=MILLION),
    "export: large events, entries/s": Goal(least=300_000, events=MILLION),
    "structure, dataframe: s": Goal(most=150, events=MILLION),
    "structure, dataframe, equal digests: s": Goal(most=70, events=MILLION),
    "hashed anew: events/s": Goal(least=300_000, events=MILLION),
    "peak MB": Goal(most=8_000, events=MILLION),
    "growth of structure": Goal(most=1.1),
    "growth of components": Goal(most=1.25),
}


@dataclass(slots=True)
class Table:
    """What was measured: a line each, and a row of docs/figures.csv."""

    is_noted: bool
    seconds: dict[tuple[str, int], float] = field(default_factory=dict)

    def add(self, events: int, figure: str, value: float, more: str = "") -> None:
        goal = GOALS.get(figure)
        said = goal.verdict(value, events) if goal else ""
        print(f"{events:>10,}  {figure:<44} {value:>12,.2f}  {more:<44} {said}", flush=True)
        if self.is_noted:
            note_figure(COMMAND, f"{events} events: {figure}", value)

    def timed(self, events: int, figure: str, work: Callable[[], object]) -> float:
        began, cpu = time.monotonic(), cpu_s()
        work()
        took, used = time.monotonic() - began, cpu_s() - cpu
        self.seconds[figure, events] = took
        self.add(events, f"{figure}: s", took, f"{used:,.1f} s of CPU")
        return took

    def worked(
        self, events: int, figure: str, spark: SparkSession, work: Callable[[], object]
    ) -> float:
        """The same, with what Spark says of it."""
        before = last_stage(spark)
        took = self.timed(events, figure, work)
        said = work_since(spark, before)
        self.add(events, f"{figure}: processing s", said.run_s, str(said))
        self.add(events, f"{figure}: shuffles", said.shuffles)
        return took

    def growth(self, figure: str, of: str, sizes: list[int]) -> None:
        """The exponent between the smallest and the largest."""
        first, last = sizes[0], sizes[-1]
        if first != last:
            ratio = self.seconds[of, last] / self.seconds[of, first]
            self.add(last, figure, math.log(ratio) / math.log(last / first))


# --- of the machine -------------------------------------------------------------------------------
def family() -> Iterator[Path]:
    """This process and all below it."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    for pid in parents:
        above = pid
        while above in parents and above != os.getpid():
            above = parents[above]
        if above == os.getpid():
            yield Path(f"/proc/{pid}")


def cpu_s() -> float:
    """Used by this process, the JVM and its workers; of those that have ended, too."""
    ticks = 0
    for place in family():
        try:
            fields = (place / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(int(fields[at]) for at in (11, 12, 13, 14))
    return ticks / os.sysconf("SC_CLK_TCK")


def peak_mb() -> float:
    """The most that each has held, summed up: not less than all held at once."""
    total_kb = 0
    for place in family():
        try:
            status = (place / "status").read_text()
        except OSError:
            continue
        lines = [line for line in status.splitlines() if line.startswith("VmHWM:")]
        total_kb += sum(int(line.split()[1]) for line in lines)
    return total_kb / 1_000


# --- on Spark -------------------------------------------------------------------------------------
@contextmanager
def ledger_of(spark: SparkSession, dumps: list[Path]) -> Iterator[Ledger]:
    checked = [check_files(folder) for folder in dumps]
    problems = [str(problem) for dump in checked for problem in dump.problems]
    if problems:
        raise SystemExit("\n".join(problems))
    ledger = Ledger(spark, named_copies(checked, node_names(checked)))
    suit(spark, sum(file.rows for copy in ledger.copies for file in copy.manifest.files))
    try:
        yield ledger
    finally:
        ledger.release()


def nothing_found(parts: Iterator[DataFrame]) -> None:
    for part in parts:
        found = part.limit(3).collect()
        if found:
            raise SystemExit(f"found in a sound ledger: {found}")


def structure(ledger: Ledger, engine: Engine) -> None:
    nothing_found(
        chain(Structure(ledger, engine).checks(), copies_checks.checks(ledger, limits.SETTLE_S))
    )


def components(ledger: Ledger, engine: Engine) -> None:
    edges = ledger.table("edges").select("ceid", "peid").distinct()
    engine.components(ledger.slim.select("eid").distinct(), edges).write.format("noop").mode(
        "overwrite"
    ).save()


def on_spark(
    table: Table, events: int, dumps: dict[str, list[Path]], wish: SparkWish, engines: list[str]
) -> None:
    with spark_session(wish, NODES * events) as spark:
        for digests, paths in dumps.items():
            for engine in engines:
                with ledger_of(spark, paths) as ledger:
                    made = engine_named(engine, ledger)
                    figure = f"structure, {engine}{digests}"
                    table.worked(events, figure, spark, partial(structure, ledger, made))
        with ledger_of(spark, dumps[""]) as ledger:
            for engine in engines:
                made = engine_named(engine, ledger)
                figure = f"components, {engine}"
                table.worked(events, figure, spark, partial(components, ledger, made))
            ids = events_checks.ids(ledger.table("events"))
            took = table.worked(events, "hashed anew", spark, lambda: nothing_found(iter([ids])))
            table.add(events, "hashed anew: events/s", NODES * events / took)
        table.add(events, "peak MB", peak_mb(), "of Python and the JVM")


# --- without Spark --------------------------------------------------------------------------------
def in_duckdb(dumps: list[Path]) -> None:
    names = [f"n{number}" for number in range(1, NODES + 1)]
    found = duckdb_oracle.findings(dumps, names, limits.SETTLE_S, IN_SQL)
    if found:
        raise SystemExit(f"DuckDB found in a sound ledger: {sorted(found)[:3]}")


def in_rustworkx(dumps: list[Path]) -> None:
    """That each copy has no loop, and into how many components it falls."""
    for dump in dumps:
        eids = pq.read_table(dump / "events", columns=["eid"])["eid"].combine_chunks()
        edges = pq.read_table(dump / "edges", columns=["ceid", "peid"])
        ends = [pc.index_in(edges[end], value_set=eids) for end in ("ceid", "peid")]
        graph = rx.PyDiGraph()
        graph.add_nodes_from(range(len(eids)))
        pairs = zip(*[end.to_pylist() for end in ends], strict=True)
        graph.add_edges_from_no_data(list(pairs))
        if (
            not rx.is_directed_acyclic_graph(graph)
            or rx.number_weakly_connected_components(graph) != 1
        ):
            raise SystemExit("rustworkx found a loop or an island in a sound ledger")


def exports(table: Table, folder: Path, events: int) -> Exported:
    one = exported(folder, events)
    rate = events / one.seconds
    table.add(events, "export: single entries/s", rate, f"{one.cpu_s:,.1f} s of CPU")
    large = exported(folder, max(1, events // LARGE_SHARE), LARGE_ENTRIES)
    rate = large.manifest.read * LARGE_ENTRIES / large.seconds
    table.add(events, "export: large events, entries/s", rate, f"{large.cpu_s:,.1f} s of CPU")
    return one


def beside_a_writer(table: Table, folder: Path, events: int) -> None:
    """Durable commits a second into a store: alone, and while another process dumps it."""
    path, genesis = folder / f"store-{events}-1", folder / "genesis"
    genesis.write_bytes(GENESIS)
    store = open_store(path, OWNER)
    command = [sys.executable, "-m", "quipu.storage", "export", str(path)]
    command += [str(folder / "beside"), "--genesis", str(genesis)]
    try:
        write = partial(store.commit, [PutBranch(store.saved().branches[0])])
        ends = time.monotonic() + ALONE_S
        alone = commits_s(write, lambda: time.monotonic() < ends)
        export = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        beside = commits_s(write, lambda: export.poll() is None)
        if export.wait():
            raise SystemExit("the export beside a writer failed")
    finally:
        store.close()
    table.add(events, "commits/s alone", alone)
    table.add(events, "commits/s beside an export", beside, f"{1 - beside / alone:.0%} slower")


def commits_s(write: Callable[[], object], goes_on: Callable[[], bool]) -> float:
    began, count = time.monotonic(), 0
    while goes_on() or not count:
        write()
        count += 1
    return count / (time.monotonic() - began)


def measure(table: Table, events: int, wish: SparkWish, disk: Path, graphframes_upto: int) -> None:
    print(f"{events:>10,}  events of each of {NODES} nodes: making the ledger …", flush=True)
    began = time.monotonic()
    engines = [e for e in ENGINES if e == DATAFRAME or events <= graphframes_upto]
    with tempfile.TemporaryDirectory(prefix=".quipu-bench-", dir=disk) as scratch:
        folder = Path(scratch)
        one = exports(table, folder, events)
        beside_a_writer(table, folder, events)
        dumps = {}
        for name, alike in (("", False), (", equal digests", True)):
            place = folder / ("alike" if alike else "unlike")
            place.mkdir()
            dumps[name] = three_dumps(one, place, alike=alike)
        sql, graph = WITHOUT_SPARK
        table.timed(events, sql, lambda: in_duckdb(dumps[""]))
        table.timed(events, graph, lambda: in_rustworkx(dumps[""]))
        on_spark(table, events, dumps, wish, engines)
    table.add(events, "this size took: s", time.monotonic() - began)


def crossover(table: Table, sizes: list[int]) -> None:
    """From how many events of each node on Spark is the faster one on this machine, said honestly:
    where it is slower at every size, and where the lines would meet if each went on as it grew."""
    by_size = {
        size: (
            table.seconds[f"structure, {DATAFRAME}", size],
            sum(table.seconds[name, size] for name in WITHOUT_SPARK),
        )
        for size in sizes
    }
    for size, (spark_s, other_s) in by_size.items():
        table.add(size, "Spark over DuckDB and rustworkx: ratio", spark_s / other_s)
    faster = [size for size, (spark_s, other_s) in by_size.items() if spark_s < other_s]
    if faster:
        print(f"crossover: Spark is the faster one from {faster[0]:,} events of each node on")
        return
    first, last = by_size[sizes[0]], by_size[sizes[-1]]
    ratios = [first[0] / first[1], last[0] / last[1]]
    if len(sizes) < 2:
        print("crossover: one size alone does not show it;")
    elif ratios[1] >= ratios[0]:
        print("crossover: none in sight. On one machine DuckDB and rustworkx are the faster ones;")
    else:
        bend = math.log(ratios[0] / ratios[1]) / math.log(sizes[-1] / sizes[0])
        meets = sizes[-1] * ratios[1] ** (1 / bend)
        print(f"crossover: not measured; as both grew it would be at {meets:,.0f} events;")
    print("what Spark is for are ledgers that one machine does not hold, and copies on many.")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.spark", description=__doc__)
    parser.add_argument("--events", type=int, nargs="+", default=[50_000, 200_000, MILLION])
    parser.add_argument("--memory", default="4g", help="of the driver (4g)")
    parser.add_argument(
        "--graphframes-upto",
        type=int,
        default=GRAPHFRAMES_UPTO,
        metavar="N",
        help="larger ledgers are judged by the plain engine alone (200000)",
    )
    parser.add_argument("--disk", type=Path, default=Path.cwd(), help="a folder on that disk (.)")
    parser.add_argument("--note", action="store_true", help="append to docs/figures.csv")
    given = parser.parse_args()
    wish = SparkWish(master=f"local[{os.cpu_count()}]", memory=given.memory)
    table = Table(given.note)
    sizes = sorted(given.events)
    with one_benchmark_at_a_time():
        for events in sizes:
            measure(table, events, wish, given.disk, given.graphframes_upto)
    crossover(table, sizes)
    table.growth("growth of structure", f"structure, {DATAFRAME}", sizes)
    table.growth("growth of components", f"components, {DATAFRAME}", sizes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
