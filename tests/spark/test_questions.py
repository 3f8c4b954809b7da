"""The notebook of the documents, run as it stands."""

import runpy
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from quipu.spark_analytics.source import register
from tests import tree
from tests.spark.ledgers import World, add_event, write_all

ROUNDS = 4


@pytest.fixture
def world() -> World:
    world = World()
    world.live(ROUNDS)
    return world


@pytest.fixture
def dumps(world: World, tmp_path: Path) -> list[Path]:
    """The first copy has one event more, which is on its way."""
    copies = world.dumps()
    add_event(world, copies[0], world.ledger.write(2, ["on its way"]))
    return write_all(world, copies, tmp_path)


def test_the_notebook_answers_its_ten_questions(
    spark: SparkSession, world: World, dumps: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["questions.py", *map(str, dumps)])
    found = runpy.run_path(str(tree.ROOT / "docs" / "questions.py"))
    events = 3 * ROUNDS + 1
    written = {row.author_no: row.events for row in found["written"].collect()}
    assert written == {1: ROUNDS, 2: ROUNDS + 1, 3: ROUNDS}
    (stream,) = found["streams"].collect()
    assert stream.stream == "orders"
    assert sum(row.entries for row in found["minutes"].collect()) == stream.entries
    assert {row.signer_no for row in found["latency"].collect()} == {1, 2, 3}
    assert all(row.p50_p95_p99_ms[0] >= 1 for row in found["latency"].collect())
    (lacking,) = found["lacking"].collect()
    assert (lacking.holders, lacking.lacking) == (["n1"], ["n2", "n3"])
    (unread,) = found["unread"].collect()
    assert (unread["copy"], unread.author_no, unread.events) == ("n1", 2, 1)
    assert found["builds"].count() == 6
    assert found["forks"].count() == 0
    assert found["shape"].first().longest_chain == max(e.header.depth for e in world.read)
    assert found["spread"]["events_above"] == events - 1


def test_spark_reads_the_format_by_its_name(spark: SparkSession, dumps: list[Path]) -> None:
    register(spark)
    events = spark.read.format("quipu").load(str(dumps[0]))
    assert events.where("state = 'read'").count() == 3 * ROUNDS
    edges = spark.read.format("quipu").option("table", "edges").load(str(dumps[0]))
    assert edges.join(events, edges.child == events.id, "left_anti").isEmpty()
    path = next((dumps[1] / "events").iterdir())
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(Exception, match="file-cut"):
        spark.read.format("quipu").load(str(dumps[1])).count()
