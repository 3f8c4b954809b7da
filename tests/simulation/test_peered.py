"""Seeded worlds of cores that talk through peer machines: the same properties hold as without."""

import time
from collections.abc import Callable

import pytest

from quipu.p2p.links import Links
from tests.simulation.runs import run_peered

SEEDS = 40
CHUNK = 5


@pytest.mark.parametrize("first", range(1, SEEDS + 1, CHUNK))
def test_seeds(first: int, record_property: Callable[[str, object], None]) -> None:
    begun = time.perf_counter()
    for seed in range(first, first + CHUNK):
        result = run_peered(seed)
        assert result.broken is None, (
            f"seed {seed}: {result.violation}\n{result.describe}\n"
            f"again: make replay SEED={seed} PEERS=1"
        )
        assert result.events > 0
    record_property("seeds", CHUNK)
    record_property("seed_seconds", time.perf_counter() - begun)


def test_same_seed_same_digest() -> None:
    assert run_peered(3).digest == run_peered(3).digest != run_peered(4).digest


def test_a_machine_that_never_dials_again_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Links, "closed", lambda links, link, now_ms: False)
    assert any(run_peered(seed).broken for seed in range(1, 6))
