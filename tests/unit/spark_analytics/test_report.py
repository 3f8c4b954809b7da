"""What the report says, without Spark: epochs by force, names for numbers, what was not checked."""

from pathlib import Path
from typing import Any

import msgpack
import pytest

from quipu.dumps.checking import CheckedDump
from quipu.dumps.manifest import DumpFile, Manifest
from quipu.dumps.places import LocalPlace
from quipu.dumps.segments import write_rows
from quipu.spark_analytics import page, report, rosters
from quipu.spark_analytics.findings import CHECKS, Finding
from quipu.spark_analytics.report import CheckResult, Report

MEMBERS = [[1, b"\1" * 32, "n1", []], [4, b"\4" * 32, "<n4>", []]]
COPY = {"copy": "n1", "node_id": "01" * 32, "dump": 1, "events": 9, "read": 9, "as_of_ms": 0}


def made(**changed: Any) -> Report:
    fields: dict[str, Any] = {
        "made_ms": 1_700_000_000_000,
        "engine": "dataframe",
        "settle_s": 60.0,
        "cluster_id": "ab" * 32,
        "copies": [COPY],
        "epochs": [],
        "nodes": {1: "n1", 4: "<n4>"},
        "results": [CheckResult(check) for check in CHECKS],
        "problems": [],
        "measures": {"events": 9},
        "algorithms": {},
        "skipped": [],
        "seconds": {},
    }
    return Report(**fields | changed)


def document(version: int) -> bytes:
    fields = [version, bytes(32), 2, bytes(32), 0, "majority", MEMBERS, [], [], 0]
    packed: bytes = msgpack.packb(fields)
    return packed


@pytest.mark.parametrize(("version", "is_forced"), [(1, False), (2, True)])
def test_an_epoch_by_force_is_told_by_its_document(
    tmp_path: Path, version: int, is_forced: bool
) -> None:
    genesis = msgpack.packb(
        [1, "c", 0, "majority", [[b"\1" * 32, "n1", []], [b"\2" * 32, "n2", []]], bytes(16), []]
    )
    rows = [(1, genesis, []), (2, document(version), [b"a seal"])]
    file = write_rows(tmp_path, "config", "dump-000001", rows)
    told = rosters.epochs([_dump(tmp_path, file)])
    assert [(row["epoch"], row["members"], row["seals"]) for row in told] == [
        (1, "n1 n2", 0),
        (2, "n1 <n4>", 1),
    ]
    assert [row["forced"] for row in told] == [False, is_forced]


def _dump(folder: Path, file: DumpFile) -> CheckedDump:
    manifest = Manifest(
        cluster_id="ab" * 32, node_id="01" * 32, genesis_sha256="", number=1, previous="",
        taken_ms=0, as_of_ms=0, feed_from=1, feed_upto=0, events=0, read=0, entries="described",
        absent=(), receipt_marks=(), files=(file,),
    )  # fmt: skip
    return CheckedDump(LocalPlace(folder), manifest, [])


def test_force_is_said_for_ever_and_is_no_finding() -> None:
    epoch = {"epoch": 2, "members": "n1", "policy": "majority", "seals": 1, "forced": True}
    sound = made(epochs=[epoch])
    assert sound.exit_code == report.AGREE
    assert sound.verdict.endswith("every check passed; epoch 2 opened by force.")
    assert "quipu_analysis_forced_epochs 1" in report.as_prometheus(sound)
    assert report.as_json(sound)["epochs"] == [epoch]
    told = page.as_html(sound)
    assert "✕ by force" in told
    assert "only lost members had signed for" in told
    assert "by force" not in page.as_html(made(epochs=[epoch | {"forced": False}]))


def test_numbers_of_nodes_are_their_names_and_markup_is_text() -> None:
    told = page.as_html(made(measures={"events": 9, "authors": [{"author_no": 4, "events": 9}]}))
    assert "&lt;n4&gt;" in told
    assert "<n4>" not in told


def test_a_time_that_nobody_can_have_is_still_shown() -> None:
    rows = [
        {"from_ms": time_ms, "events": 1, "width": 1.0}
        for time_ms in (1_700_000_000_000, 2**48 - 1)
    ]
    told = page.as_html(made(measures={"events": 2, "timeline": rows}))
    assert "2023-11-14 22:13:20 UTC" in told
    assert "281,474,976,710,655 ms" in told


def test_what_was_found_comes_first_and_what_was_not_made_does_not_hold() -> None:
    wrong = [CheckResult(check) for check in CHECKS]
    wrong[0] = CheckResult(
        wrong[0].check, 3, [Finding(wrong[0].check, "n1", "a.parquet", "<torn>")]
    )
    told = page.as_html(made(results=wrong, skipped=["order.*: no dump has a journal"]))
    assert told.index("Findings") < told.index("Copies")
    assert "&lt;torn&gt;" in told
    assert "and 2 more, in <code>violations/</code>" in told
    order = sum(check.startswith("order.") for check in CHECKS)
    made_ones = len(CHECKS) - order
    assert f"{made_ones - 1} of {made_ones} hold; {order} were not made" in told
