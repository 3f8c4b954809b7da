"""The fuzzer in small: some seconds of it find nothing, and it finds what is planted."""

import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

from quipu.ledger import event
from tests.fuzz.__main__ import main
from tests.fuzz.engine import Fuzzer, examine
from tests.fuzz.planted import BUGS, planted
from tests.fuzz.target import Target
from tests.fuzz.targets import targets
from tests.tree import ROOT

SMOKE_SECONDS = 10.0
PLANTED_SECONDS = 60.0  # a bound for a busy machine; alone the slowest takes a few


def named(name: str) -> Target:
    return next(target for target in targets() if target.name == name)


def test_some_seconds_find_nothing() -> None:
    fuzzer = Fuzzer(targets(), seed=1)
    assert [str(finding) for finding in islice(fuzzer.run(SMOKE_SECONDS), 3)] == []
    assert all(count > 0 for count in fuzzer.executions.values())


@pytest.mark.parametrize("number", range(len(BUGS)), ids=[bug.name for bug in BUGS])
def test_a_planted_bug_is_found(number: int) -> None:
    """By the one target nearest to it; `--planted` lets all targets search."""
    bug = BUGS[number]
    target = named(bug.nearest)
    with planted(bug):
        finding = next(Fuzzer([target], seed=1).run(PLANTED_SECONDS), None)
        assert finding is not None
        assert examine(target, finding.sample) is not None
    assert examine(target, finding.sample) is None


def test_a_bug_is_gone_when_its_test_is_over() -> None:
    before = event.decode_header
    with planted(BUGS[3]):
        assert event.decode_header is not before
    assert event.decode_header is before


def test_the_same_seed_makes_the_same_inputs() -> None:
    def inputs(seed: int) -> list[list[bytes]]:
        fuzzer = Fuzzer([named("bundle")], seed)
        return [fuzzer.next_sample(fuzzer.targets[0]) for _ in range(200)]

    assert inputs(5) == inputs(5) != inputs(6)


def test_another_hash_seed_makes_the_same_inputs() -> None:
    program = (
        "from hashlib import sha256; from tests.fuzz.engine import Fuzzer;"
        "from tests.fuzz.targets import targets; fuzzer = Fuzzer(targets(), 3);"
        "made = [b''.join(fuzzer.next_sample(t)) for t in fuzzer.targets for _ in range(50)];"
        "print(sha256(b''.join(made)).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


def test_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["tests.fuzz", *arguments])
        return main()

    assert run("--minutes", "0.005", "--target", "entry", "--seed", "3") == 0
    assert "0 findings" in capsys.readouterr().out
    assert run("--target", "entry", "--replay", "90") == 0
    with planted(BUGS[0]):
        assert run("--minutes", "0.05", "--target", "entry") == 1
        found = capsys.readouterr().out
        replay = found[found.index("--target") :].splitlines()[0].split()
        assert run(*replay) == 1
    assert run(*replay) == 0
    with pytest.raises(SystemExit):
        run("--target", "nothing")


def test_slowness_and_other_values_are_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Target("told", lambda data: {"size": len(data)}, lambda data: {"size": 0}, [[b""]])
    assert examine(told, [b""]) is None
    found = examine(told, [b"x"])
    assert found is not None
    assert "the oracle" in found.what
    monkeypatch.setattr("tests.fuzz.engine.SECONDS_MAX", -1.0)
    found = examine(told, [b""])
    assert found is not None
    assert "takes" in found.what


def test_there_are_vectors_for_every_target() -> None:
    assert Path(ROOT / "tests/vectors/refused.json").exists()
    assert all(target.corpus for target in targets())
