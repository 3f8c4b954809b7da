"""`python -m quipu.verify`: 0 verified, 9 not verified, 2 wrong usage."""

import base64
import json
import subprocess
import sys
from pathlib import Path

import pytest

from quipu.ledger.bundle_build import build_bundle
from quipu.verify.__main__ import main
from tests.small_ledger import SmallLedger
from tests.tree import ROOT


@pytest.fixture
def ledger() -> SmallLedger:
    return SmallLedger(3)


@pytest.fixture
def file(ledger: SmallLedger, tmp_path: Path) -> Path:
    event = ledger.write(2, ["hello"])
    for i in (2, 3):
        ledger.sign(i, event)
    path = tmp_path / "bundle"
    path.write_bytes(build_bundle(ledger, ledger.lineage, event.id, 0))
    return path


def test_as_a_process(file: Path) -> None:
    command = [sys.executable, "-m", "quipu.verify", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "final      yes" in done.stdout
    assert "not pinned" in done.stdout


def test_the_cluster_is_pinned_by_genesis_or_id(
    ledger: SmallLedger, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pinned = tmp_path / "genesis"
    for data in (ledger.genesis, ledger.cluster_id.hex().encode() + b"\n"):
        pinned.write_bytes(data)
        assert main([str(file), "--genesis", str(pinned)]) == 0
        assert "not pinned" not in capsys.readouterr().out
    pinned.write_bytes(SmallLedger(1).genesis)
    assert main([str(file), "--genesis", str(pinned)]) == 9
    assert "another cluster" in capsys.readouterr().err


def test_json(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(file), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["verified"] is True
    assert base64.b64decode(found["data_base64"]) == b"hello"
    assert (found["confirmed"], found["required"], found["author"]["name"]) == (1, 1, "n2")


def test_what_is_not_verified(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_bytes(file.read_bytes()[:-1])
    assert main([str(file)]) == 9
    assert capsys.readouterr().err.startswith("not verified: bundle")
    assert main([str(file), "--json"]) == 9
    told = json.loads(capsys.readouterr().out)
    assert told["verified"] is False
    assert told["reason"]


def test_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "nothing")]) == 2
    assert "cannot read" in capsys.readouterr().err
    with pytest.raises(SystemExit) as left:
        main([])
    assert left.value.code == 2


def test_a_cut_is_told_from_receipts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger = SmallLedger(3)
    event = ledger.write(1)
    document = ledger.document([2, 3], "majority", [event])
    ledger.open(document, ledger.seal(document, [2, 3]))
    path = tmp_path / "bundle"
    path.write_bytes(build_bundle(ledger, ledger.lineage, event.id, 0))
    assert main([str(path)]) == 0
    assert "by 2 seals over the cut: 'n2', 'n3'" in capsys.readouterr().out


def test_names_cannot_write_on_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = SmallLedger(1, name="\x1b[2Jevil")
    event = ledger.write(1)
    ledger.sign(1, event)
    path = tmp_path / "bundle"
    path.write_bytes(build_bundle(ledger, ledger.lineage, event.id, 0))
    assert main([str(path)]) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_as_a_module(file: Path) -> None:
    command = [sys.executable, "-m", "quipu.verify", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "confirmed" in done.stdout
