"""The same seed is the same world: twice in one process, and under another PYTHONHASHSEED."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.runs import run_seed

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("seed", [3, 7, 15, 29])
def test_same_seed_same_digest(seed: int) -> None:
    assert run_seed(seed).digest == run_seed(seed).digest


@pytest.mark.parametrize("seed", [5, 47])
def test_the_hash_seed_changes_nothing(seed: int) -> None:
    digests = [
        subprocess.run(
            [sys.executable, "-m", "tests.simulation", "digest", str(seed)],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("0", "12345")
    ]
    assert digests[0] == digests[1]
    assert digests[0].strip() == run_seed(seed).digest


def test_other_seeds_are_other_worlds() -> None:
    assert run_seed(1).digest != run_seed(2).digest
