"""Four that judge the same copies: both engines, plain Python, and SQL in DuckDB."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from quipu.dumps.tables import TABLES
from quipu.spark_analytics import limits
from quipu.spark_analytics.pipeline import read_findings
from quipu.spark_analytics.session import DATAFRAME, GRAPHFRAMES, SMALL_WAY
from tests.spark import duckdb_oracle, python_oracle
from tests.spark.conftest import Analyse
from tests.spark.duckdb_oracle import BEYOND_SQL
from tests.spark.faults import planted
from tests.spark.ledgers import DumpRows, World, write_all
from tests.spark.python_oracle import Triple
from tests.spark.tampering import FAULTS, seen, tampered

SEED, FAULTS_OF_ONE = 39, 60  # of one ledger that both engines judge: with a fault of every kind
EXAMPLES, FAULTS_OF_EACH = 12, 24
# How Spark may be told to go about it, and what has to come out the same.
PLAIN_WAY = SMALL_WAY | {"spark.sql.shuffle.partitions": "1"}
OTHER_WAY = {  # as with large ledgers: compiled, planned again, small tables sent around
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.autoBroadcastJoinThreshold": "10MB",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.shuffle.partitions": "3",
}


def in_python(world: World, dumps: list[DumpRows]) -> set[Triple]:
    cluster_id = bytes(world.ledger.cluster_id)
    return python_oracle.findings(seen(world, dumps), cluster_id, limits.SETTLE_S)


def in_sql(paths: list[Path], world: World, dumps: list[DumpRows]) -> set[Triple]:
    names = [copy.name for copy in seen(world, dumps)]
    return duckdb_oracle.findings(paths, names, limits.SETTLE_S)


def within_sql(found: set[Triple]) -> set[Triple]:
    return {finding for finding in found if finding[0] not in BEYOND_SQL}


@contextmanager
def told(spark: SparkSession, way: dict[str, str]) -> Iterator[None]:
    before = {name: spark.conf.get(name) for name in way}
    try:
        for name, value in way.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            spark.conf.set(name, str(old))


def shuffled(dumps: list[DumpRows], seed: int) -> None:
    for dump in dumps:
        for table in TABLES:
            Random(seed).shuffle(dump.tables.get(table, []))


@settings(max_examples=EXAMPLES)
@given(seed=st.integers(0, 2**32))
def test_the_oracles_agree(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    world, dumps = tampered(seed, FAULTS_OF_EACH)
    paths = write_all(world, dumps, tmp_path_factory.mktemp("dumps"))
    assert within_sql(in_python(world, dumps)) == in_sql(paths, world, dumps)


def test_the_oracles_find_what_was_planted(tmp_path: Path) -> None:
    world, dumps, expected = planted()
    every = {finding for found in expected.values() for finding in found}
    rows = list(dumps.values())
    paths = write_all(world, rows, tmp_path)
    assert in_python(world, rows) == {f for f in every if not f[0].startswith("config.")}
    assert in_sql(paths, world, rows) == within_sql(every)


def test_both_engines_and_both_oracles_agree(
    spark: SparkSession, analyse: Analyse, tmp_path: Path
) -> None:
    """The second engine reads other files: rows in another order, spread over three, planned and
    partitioned another way."""
    drawn: set[str] = set()
    world, dumps = tampered(SEED, FAULTS_OF_ONE, drawn.add)
    assert drawn == {fault.__name__ for fault in FAULTS}
    expected = in_python(world, dumps)
    assert len({check for check, _, _ in expected}) > 25
    paths = write_all(world, dumps, tmp_path / "dumps")
    with told(spark, PLAIN_WAY):
        analyse(paths, GRAPHFRAMES)
    assert {finding[:3] for finding in read_findings(tmp_path / "out")} == expected
    shuffled(dumps, SEED)
    paths = write_all(world, dumps, tmp_path / "shuffled", files=3)
    with told(spark, OTHER_WAY):
        analyse(paths, DATAFRAME)
    assert {finding[:3] for finding in read_findings(tmp_path / "out")} == expected
