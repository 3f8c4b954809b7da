"""`quipu export` as a command: beside a running node, alone, and `--verify` with its exit codes."""

import json
from pathlib import Path

import pyarrow.parquet as pq

from quipu.node.exits import Exit
from tests.process.command import RunningCommand, quipu


def test_beside_a_node_and_alone_and_verified(tmp_path: Path) -> None:
    data, dump = tmp_path / "data", tmp_path / "dump"
    with RunningCommand(data) as node:
        api = node.facts["api"]
        for number in range(3):
            stored = quipu("submit", f"{number}", "--wait", "ordered", "--url", api)
            assert stored.returncode == Exit.OK, stored.stderr
        first = quipu("export", str(dump), "--data-dir", str(data), "--json")
        assert first.returncode == Exit.OK, first.stderr
        assert json.loads(first.stdout)["read"] == 3
        [journal] = (dump / "journal").iterdir()
        ordered = [row["event"] for row in pq.read_table(journal).to_pylist() if row["event"]]
        assert len(set(ordered)) == len(ordered) == 3
        node.stop()
    again = quipu("export", str(dump), "--data-dir", str(data), "--json")
    assert again.returncode == Exit.OK, again.stderr
    assert (json.loads(again.stdout)["dump"], json.loads(again.stdout)["added"]) == (2, 0)
    sound = quipu("export", str(dump), "--verify", "--signatures", "--json")
    assert sound.returncode == Exit.OK, sound.stdout
    assert json.loads(sound.stdout)["problems"] == 0
    file = next((dump / "members").iterdir())
    file.write_bytes(file.read_bytes()[:-1])
    cut = quipu("export", str(dump), "--verify")
    assert cut.returncode == Exit.PARTLY
    assert f"{file}: " in cut.stdout
    stray = dump / "events" / "more.parquet"
    stray.write_bytes(b"")
    both = quipu("export", str(dump), "--verify")
    assert both.returncode == Exit.NOT_VERIFIED
    assert str(stray) in both.stdout
    wrong = quipu("export", str(dump), "--data-dir", str(data), "--entries", "half")
    assert wrong.returncode == Exit.USAGE
