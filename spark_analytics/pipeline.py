"""From dumps to a report: files first, then what is in them, each check over all copies at once."""

import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from quipu.dumps.checking import CheckedDump, Problem, check_place, check_together
from quipu.dumps.places import LocalPlace, Place
from quipu.spark_analytics import (
    copies_checks,
    events_checks,
    executed_checks,
    horizon,
    limits,
    measures,
    order_checks,
    report,
    rosters,
)
from quipu.spark_analytics.engine import Engine
from quipu.spark_analytics.engine_dataframe import DataFrameEngine
from quipu.spark_analytics.findings import CHECKS, COLUMNS, SCHEMA, Finding, of_rows
from quipu.spark_analytics.hadoop import HadoopPlace, is_of_hadoop
from quipu.spark_analytics.reading import Copy, Ledger, named_copies
from quipu.spark_analytics.report import CheckResult, Report
from quipu.spark_analytics.session import GRAPHFRAMES, SparkWish, spark_session, suit
from quipu.spark_analytics.spread import NoSuchEvent, spread_of
from quipu.spark_analytics.structure_checks import Structure

VIOLATIONS = "violations"
Said = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Order:
    dumps: Sequence[str | Path]  # an address with a scheme is Hadoop's
    out: Path
    wish: SparkWish = SparkWish()
    settle_s: float = limits.SETTLE_S
    event: str = ""  # also tell how this one spread; an id in hex, or how it begins


@dataclass(slots=True)
class Analysis:
    """One run over some dumps."""

    order: Order
    said: Said = lambda what: None
    seconds: dict[str, float] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)

    def run(self, spark: SparkSession | None = None) -> Report:
        """With a session of the caller's, or one of its own. Raises `Missing`."""
        if spark is not None:
            return self._judged(spark, self._checked(spark))
        if any(is_of_hadoop(dump) for dump in self.order.dumps):
            with spark_session(self.order.wish, 1) as own:
                return self._suited(own, self._checked(own))
        dumps = self._checked(None)  # before Spark starts: what is wrong is said at once
        with spark_session(self.order.wish, 1) as own:
            return self._suited(own, dumps)

    def _checked(self, spark: SparkSession | None) -> list[CheckedDump]:
        with self._timed("files"):
            return [check_place(_place(spark, dump)) for dump in self.order.dumps]

    def _suited(self, spark: SparkSession, dumps: list[CheckedDump]) -> Report:
        manifests = [dump.manifest for dump in dumps if dump.manifest is not None]
        suit(spark, sum(file.rows for manifest in manifests for file in manifest.files))
        return self._judged(spark, dumps)

    def _judged(self, spark: SparkSession, dumps: list[CheckedDump]) -> Report:
        problems = [problem for dump in dumps for problem in dump.problems]
        problems += check_together(dumps)
        copies = named_copies(_comparable(dumps), rosters.node_names(dumps))
        plain = [
            Finding("files", _holder(copies, p), p.file, f"{p.what} ({p.flaw})") for p in problems
        ]
        plain += rosters.check(copies, dumps)
        ledger = Ledger(spark, copies)
        engine = engine_named(self.order.wish.engine, ledger)
        figures = measures.Measures()
        try:
            self._begin()
            self._write([of_rows(spark, plain)])
            if copies:
                with self._timed("structure"):
                    self._run_structure(Structure(ledger, engine), of_rows(spark, plain))
                self._run_checks(ledger)
            results = self._results(spark)
            if copies:
                figures = self._measured(ledger, engine)
        finally:
            ledger.release()
        made = Report(
            made_ms=time.time_ns() // 1_000_000,
            engine=engine.name,
            settle_s=self.order.settle_s,
            cluster_id=copies[0].manifest.cluster_id if copies else "",
            copies=[_described(copy) for copy in copies],
            epochs=rosters.epochs(_comparable(dumps)),
            nodes=rosters.names_by_number(_comparable(dumps)),
            results=results,
            problems=problems,
            measures=figures.facts(),
            algorithms=dict(getattr(engine, "used", {})),
            skipped=self.skipped + _skipped(copies),
            seconds=self.seconds,
        )
        report.write(made, self.order.out)
        return made

    def _run_structure(self, structure: Structure, plain: DataFrame) -> None:
        """Copies that are alike are looked at together, and each by itself where that finds
        something."""
        self._write(structure.checks())
        standing = set(structure.alike.values())
        if standing and any(
            finding.check.startswith("dag.") and standing & set(finding.copy.split())
            for finding in read_findings(self.order.out)
        ):
            self._begin()
            structure = Structure(structure.ledger, structure.engine, twins={})
            self._write([plain, *structure.checks()])
        self.skipped += structure.cut

    def _run_checks(self, ledger: Ledger) -> None:
        with self._timed("copies"):
            self._write(copies_checks.checks(ledger, self.order.settle_s))
        with self._timed("events"):
            self._write(events_checks.checks(ledger))
        with self._timed("order"):
            self._write(order_checks.checks(ledger))
            self._write(executed_checks.checks(ledger))

    def _measured(self, ledger: Ledger, engine: Engine) -> measures.Measures:
        with self._timed("measures"):
            figures = measures.measure(ledger, engine)
            if self.order.event:
                try:
                    figures.spread = spread_of(ledger, engine, self.order.event)
                except NoSuchEvent as error:
                    self.skipped.append(f"spread: {error}")
        return figures

    def _begin(self) -> None:
        shutil.rmtree(self._violations, ignore_errors=True)
        self.order.out.mkdir(parents=True, exist_ok=True)

    def _write(self, parts: Iterable[DataFrame]) -> None:
        """One plan a check: one of them all would be planned anew after each of its 100 stages.
        Small ledgers are planned once, and there a job costs more than its work."""
        parts = list(parts)
        if parts and parts[0].sparkSession.conf.get("spark.sql.adaptive.enabled") == "false":
            parts = [reduce(DataFrame.union, parts)]
        for part in parts:
            part.distinct().coalesce(1).write.mode("append").parquet(str(self._violations))

    @property
    def _violations(self) -> Path:
        return self.order.out / VIOLATIONS

    def _results(self, spark: SparkSession) -> list[CheckResult]:
        """A culprit counts once, however many findings name it."""
        written = (
            spark.read.schema(SCHEMA)
            .parquet(str(self._violations))
            .groupBy("check", "copy", "subject")
            .agg(F.min("detail").alias("detail"))
        )
        counts = {row.check: row["count"] for row in written.groupBy("check").count().collect()}
        ordered = F.sort_array(F.collect_list(F.struct("copy", "subject", "detail")))
        named = written.groupBy("check").agg(
            F.slice(ordered, 1, limits.EXAMPLES_MAX).alias("first")
        )
        examples = {
            row.check: [Finding(row.check, *example) for example in row["first"]]
            for row in named.collect()
        }
        return [
            CheckResult(check, counts.get(check, 0), examples.get(check, [])) for check in CHECKS
        ]

    @contextmanager
    def _timed(self, what: str) -> Iterator[None]:
        self.said(what)
        began = time.monotonic()
        yield
        self.seconds[what] = round(time.monotonic() - began, 3)


def _place(spark: SparkSession | None, dump: str | Path) -> Place:
    if spark is None or not is_of_hadoop(dump):
        return LocalPlace(Path(dump))
    return HadoopPlace(spark, str(dump))


def engine_named(name: str, ledger: Ledger) -> Engine:
    if name == GRAPHFRAMES:
        from quipu.spark_analytics.engine_graphframes import GraphFramesEngine

        return GraphFramesEngine(ledger)
    return DataFrameEngine(ledger)


def read_findings(out: Path) -> list[Finding]:
    """Every finding of a report, as it was written."""
    import pyarrow.parquet as pq

    rows = pq.read_table(out / VIOLATIONS).to_pylist()
    return sorted({Finding(*[row[name] for name in COLUMNS]) for row in rows})


def _comparable(dumps: Sequence[CheckedDump]) -> list[CheckedDump]:
    """Those of the first dump's cluster: others are named, and not compared."""
    known = [dump.manifest for dump in dumps if dump.manifest is not None]
    return [
        dump
        for dump in dumps
        if dump.manifest is not None and dump.manifest.cluster_id == known[0].cluster_id
    ]


def _holder(copies: Sequence[Copy], problem: Problem) -> str:
    for copy in copies:
        if problem.file.startswith(copy.place.file("")):
            return copy.name
    return ""


def _described(copy: Copy) -> dict[str, object]:
    manifest = copy.manifest
    return {
        "copy": copy.name,
        "node_id": manifest.node_id,
        "dump": manifest.number,
        "events": manifest.events,
        "read": manifest.read,
        "history_from": manifest.history_from,
        "as_of_ms": manifest.as_of_ms,
    }


def _skipped(copies: Sequence[Copy]) -> list[str]:
    skipped = []
    if any(copy.manifest.entries == "none" for copy in copies):
        skipped.append("events.root: a dump was made without entries")
    if not any(copy.manifest.names("journal") for copy in copies):
        skipped.append("order.*: no dump has a journal")
    if not any(copy.manifest.names("results") for copy in copies):
        skipped.append("clients.*, results.*: no dump is of a node with an executor")
    for name, epoch in sorted(horizon.begins(copies).items()):
        skipped.append(f"{name} below checkpoint {epoch}: the node has let it go")
    return skipped
