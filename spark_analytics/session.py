"""A Spark session for this work: on any master, in UTC, with partitions for the data at hand."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from quipu.spark_analytics import limits
from quipu.spark_analytics.jars import graphframes_jar
from quipu.spark_analytics.requirements import check_graphframes, check_pyspark, java_command

GRAPHFRAMES, DATAFRAME = "graphframes", "dataframe"
ENGINES = (GRAPHFRAMES, DATAFRAME)
# Where compiling a plan, planning it again and a job for each table that is sent around cost more
# than the rows: half of the CPU of a small analysis.
SMALL_WAY = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}


@dataclass(frozen=True, slots=True)
class SparkWish:
    master: str | None = None  # None: what spark-submit says, else local[*]
    engine: str = GRAPHFRAMES
    jar: Path | None = None
    memory: str | None = None  # of the driver, as 3g
    settings: Mapping[str, str] = field(default_factory=dict)  # of Spark, by its own names


@contextmanager
def spark_session(wish: SparkWish, rows: int) -> Iterator[SparkSession]:
    """One of our own, ended afterwards, or that of spark-submit. Raises `Missing`."""
    java_command()
    check_pyspark()
    checkpoints = Path(tempfile.mkdtemp(prefix="quipu-spark-"))
    spark = None
    try:
        spark = _builder(wish).getOrCreate()
        suit(spark, rows)
        spark.sparkContext.setCheckpointDir(str(checkpoints))
        yield spark
    finally:
        if spark is not None:
            spark.stop()
        shutil.rmtree(checkpoints, ignore_errors=True)


def _builder(wish: SparkWish) -> SparkSession.Builder:
    builder: SparkSession.Builder = SparkSession.builder.appName("quipu analyse")
    if wish.master is not None or "SPARK_ENV_LOADED" not in os.environ:
        builder = builder.master(wish.master or "local[*]")
    if (wish.master or "local").startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else it takes any python3
    if wish.engine == GRAPHFRAMES:
        check_graphframes()
        builder = builder.config("spark.jars", str(graphframes_jar(wish.jar)))
    if wish.memory is not None:
        builder = builder.config("spark.driver.memory", wish.memory)
    for name, value in wish.settings.items():
        builder = builder.config(name, value)
    return (
        builder.config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        # Pictures of the lineage are drawn even without a page to show them on: a third of the CPU
        # of graph algorithms, whose lineage grows by each round.
        .config("spark.ui.dagGraph.retainedRootRDDs", "0")
        .config("spark.ui.liveUpdate.period", "-1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.files.ignoreCorruptFiles", "false")
        .config("spark.sql.files.ignoreMissingFiles", "false")
        .config("spark.sql.parquet.enableVectorizedReader", "true")
    )


def suit(spark: SparkSession, rows: int) -> None:
    """Partitions for so many rows; and what must not be otherwise, whoever made the session."""
    partitions = min(limits.PARTITIONS_MAX, 1 + rows // limits.ROWS_PER_PARTITION)
    cores = spark.sparkContext.defaultParallelism
    few = partitions if rows < limits.ROWS_SMALL else max(partitions, cores)
    spark.conf.set("spark.sql.shuffle.partitions", str(few))
    for name, value in SMALL_WAY.items():
        if rows < limits.ROWS_SMALL:
            spark.conf.set(name, value)
        else:
            spark.conf.unset(name)
    # What is kept lies as it was laid out, and is joined where it lies.
    spark.conf.set("spark.sql.optimizer.canChangeCachedPlanOutputPartitioning", "false")
    spark.conf.set("spark.sql.requireAllClusterKeysForCoPartition", "false")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    for name in ("spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles"):
        spark.conf.set(name, "false")
