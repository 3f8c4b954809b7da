"""Seeded worlds: safety at every step, then convergence. `SIM_SEEDS` says how many."""

import os

import pytest

from tests.simulation.runs import run_seed

SEEDS = int(os.environ.get("SIM_SEEDS", "300"))
CHUNK = 10


@pytest.mark.parametrize("first", range(1, SEEDS + 1, CHUNK))
def test_seeds(first: int) -> None:
    for seed in range(first, min(first + CHUNK, SEEDS + 1)):
        result = run_seed(seed)
        assert result.broken is None, (
            f"seed {seed}: {result.violation}\n{result.describe}\nagain: make replay SEED={seed}"
        )
