"""Seeded worlds: safety at every step, then convergence. `SIM_SEEDS` says how many."""

import os
import time
from collections.abc import Callable

import pytest

from tests.simulation.runs import run_seed

SEEDS = int(os.environ.get("SIM_SEEDS", "300"))
CHUNK = 10


@pytest.mark.parametrize("first", range(1, SEEDS + 1, CHUNK))
def test_seeds(first: int, record_property: Callable[[str, object], None]) -> None:
    seeds = range(first, min(first + CHUNK, SEEDS + 1))
    begun = time.perf_counter()
    for seed in seeds:
        result = run_seed(seed)
        assert result.broken is None, (
            f"seed {seed}: {result.violation}\n{result.describe}\nagain: make replay SEED={seed}"
        )
    record_property("seeds", len(seeds))
    record_property("seed_seconds", time.perf_counter() - begun)
