"""The order of made journals: faults in the rows of single copies, each found as what it is."""

from hashlib import sha256
from pathlib import Path

from pyspark.sql import SparkSession

from quipu.dumps.checking import check_files
from quipu.spark_analytics import order_checks
from quipu.spark_analytics.reading import Ledger, named_copies
from quipu.spark_analytics.rosters import node_names
from tests.spark.conftest import found_in
from tests.spark.ledgers import DumpRows, World, certificate, journal_of, write_all

Found = set[tuple[str, str, str]]


def findings(spark: SparkSession, dumps: list[DumpRows], world: World, folder: Path) -> Found:
    checked = [check_files(path) for path in write_all(world, dumps, folder)]
    ledger = Ledger(spark, named_copies(checked, node_names(checked)))
    try:
        return found_in(order_checks.checks(ledger))
    finally:
        ledger.release()


def planted() -> tuple[World, list[DumpRows], Found]:
    world = World()
    world.live(6)
    dumps = world.dumps()
    for dump in dumps:
        dump.tables["journal"] = journal_of(world)
    one, two, three = dumps
    lost = two.tables["journal"].pop(6)["event"]
    expected = {("order.gap", "n2", "7")}
    expected |= {("order.extension", "n2", child.hex()) for child in two.children(lost)}
    swapped, nobody = three.tables["journal"][11], sha256(b"nobody").digest()
    above = three.children(swapped["event"])
    swapped["event"] = nobody
    expected |= {("order.unknown", "n3", nobody.hex()), ("order.diverges", "*", "12/0")}
    expected |= {("order.extension", "n3", child.hex()) for child in above}
    three.tables["journal"][14]["prev_hash"] = bytes(32)
    expected |= {("order.chain", "n3", "15/0")}
    two.tables["journal"][14]["regime"] = 0
    expected |= {("order.regime", "n2", "16/0")}
    last, again = one.tables["journal"][-1], one.tables["journal"][2]
    one.tables["journal"].append({**again, "index": 19, "prev_hash": last["message_hash"]})
    expected |= {("order.extension", "n1", again["event"].hex())}
    two.tables["journal"][-1]["certificate"] = certificate(world, [1], 18, last["message_hash"])
    three.tables["journal"][-1]["certificate"] = certificate(world, [1, 2, 3], 18, bytes(32))
    expected |= {("order.certificate", name, "18") for name in ("n2", "n3")}
    return world, dumps, expected


def test_each_fault_of_an_order_is_found(spark: SparkSession, tmp_path: Path) -> None:
    world, dumps, expected = planted()
    assert findings(spark, dumps, world, tmp_path / "dumps") == expected


def test_one_order_everywhere_has_no_finding(spark: SparkSession, tmp_path: Path) -> None:
    world = World()
    world.live(3)
    dumps = world.dumps()
    for dump in dumps:
        dump.tables["journal"] = journal_of(world)
    assert findings(spark, dumps, world, tmp_path / "dumps") == set()
