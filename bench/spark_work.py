"""What Spark itself says of a piece of work: tasks, their time, what was shuffled.

The makespan is what somebody waits; the processing time is what all cores together were at it.
"""

from typing import Any, NamedTuple

from pyspark.sql import SparkSession

MB = 1_000_000


class Work(NamedTuple):
    stages: int
    shuffles: int  # stages that wrote one
    tasks: int
    run_s: float  # of all tasks
    shuffled_mb: float

    def __str__(self) -> str:
        return (
            f"{self.stages} stages, {self.shuffles} shuffles of {self.shuffled_mb:,.0f} MB,"
            f" {self.tasks} tasks"
        )


def last_stage(spark: SparkSession) -> int:
    return max((stage.stageId() for stage in _stages(spark)), default=-1)


def work_since(spark: SparkSession, stage: int) -> Work:
    """Of the stages behind this one. Spark remembers the last thousand."""
    done = [s for s in _stages(spark) if s.stageId() > stage and s.status().name() == "COMPLETE"]
    return Work(
        len(done),
        sum(1 for stage in done if stage.shuffleWriteBytes() > 0),
        sum(stage.numCompleteTasks() for stage in done),
        sum(stage.executorRunTime() for stage in done) / 1_000,
        sum(stage.shuffleWriteBytes() for stage in done) / MB,
    )


def _stages(spark: SparkSession) -> list[Any]:
    context = spark.sparkContext
    inner: Any = context._jsc.sc()  # noqa: SLF001  # pyspark tells of no stage that has ended
    gateway: Any = context._gateway  # noqa: SLF001
    inner.listenerBus().waitUntilEmpty()
    nothing = gateway.jvm.java.util.ArrayList()
    quantiles = gateway.new_array(gateway.jvm.double, 0)
    found = inner.statusStore().stageList(None, False, False, quantiles, nothing)
    return [found.apply(at) for at in range(found.size())]
