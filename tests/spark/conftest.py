"""One Spark session for all tests of a worker; without Java or the jar they are left out."""

import gc
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from quipu.spark_analytics import limits
from quipu.spark_analytics.pipeline import Analysis, Order
from quipu.spark_analytics.report import Report
from quipu.spark_analytics.requirements import Missing
from quipu.spark_analytics.session import GRAPHFRAMES, SparkWish, spark_session

WISH = SparkWish(master="local[2]", engine=GRAPHFRAMES, memory="2g")
Analyse = Callable[..., Report]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """With GraphFrames, for both engines."""
    session = spark_session(WISH, 1)
    try:
        opened = session.__enter__()
    except Missing as missing:
        pytest.skip(f"{missing.what}. {missing.next_step}")
    yield opened
    session.__exit__(None, None, None)
    _collect()


# py4j leaves its sockets to the garbage collector: here, and not in somebody else's test.
OF_SPARK = (
    "ignore:unclosed:ResourceWarning",
    "ignore::DeprecationWarning:(pyspark|graphframes|py4j).*",
    "ignore::UserWarning:(pyspark|graphframes).*",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
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
