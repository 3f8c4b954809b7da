"""One Spark session for all tests of a run; without Java or the jar they are left out, and fail
where the suite decides."""

import gc
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import reduce
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from quipu.spark_analytics import limits
from quipu.spark_analytics.pipeline import Analysis, Order
from quipu.spark_analytics.report import Report
from quipu.spark_analytics.requirements import Missing, java_command
from quipu.spark_analytics.session import GRAPHFRAMES, SparkWish, spark_session

# What runs for seconds is not worth the second compiler: it takes half of the CPU.
QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
WISH = SparkWish(
    master="local[2]",
    engine=GRAPHFRAMES,
    memory="1g",
    settings={"spark.driver.extraJavaOptions": f"{QUICK_JVM} -Xmn400m"},
)
Analyse = Callable[..., Report]


def found_in(parts: Iterable[DataFrame]) -> set[tuple[str, str, str]]:
    """Check, copy and subject of findings: all parts in one job."""
    rows = reduce(DataFrame.union, parts).collect()
    return {(row.check, row.copy, row.subject) for row in rows}


@contextmanager
def or_left_out() -> Iterator[None]:
    """Where the suite decides, nothing that is missing is passed over."""
    try:
        yield
    except Missing as missing:
        lacking = f"{missing.what}. {missing.next_step}"
        if os.environ.get("CI") == "true":
            pytest.fail(lacking, pytrace=False)
        pytest.skip(lacking)


@pytest.fixture(scope="session")
def java() -> None:
    with or_left_out():
        java_command()


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """With GraphFrames, for both engines."""
    session = spark_session(WISH, 1)
    with or_left_out():
        opened = session.__enter__()
    yield opened
    session.__exit__(None, None, None)
    _collect()


# py4j leaves its sockets to the garbage collector: here, and not in somebody else's test.
OF_SPARK = (
    "ignore:unclosed:ResourceWarning",
    "ignore::DeprecationWarning:(pyspark|graphframes|py4j).*",
    "ignore::UserWarning:(pyspark|graphframes).*",
)


@pytest.hookimpl(tryfirst=True)  # xdist reads the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("spark"))
            for form in OF_SPARK:
                item.add_marker(pytest.mark.filterwarnings(form))


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    yield
    _collect()


def _collect() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture
def analyse(spark: SparkSession, tmp_path: Path) -> Analyse:
    def run(dumps: list[Path], engine: str, settle_s: float = limits.SETTLE_S) -> Report:
        order = Order(dumps, tmp_path / "out", SparkWish(engine=engine), settle_s)
        return Analysis(order).run(spark)

    return run
