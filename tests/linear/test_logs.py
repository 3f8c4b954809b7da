"""Simulated worlds of logs under faults, judged by porcupine, and by our checker beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linear.histories import ILLEGAL, OK, seen_of, verdicts
from tests.simulation.log.history import HistoryError
from tests.simulation.log.runs import generate, live_out
from tests.unit.ledger.log.test_history import MUTATIONS, good

FIRST_SEED = 1_001  # others than those of the simulator's own tests
SEEDS_EACH = 15
CHUNKS = 12


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_worlds_under_faults_are_linear(porcupine: Path, chunk: int) -> None:
    first = FIRST_SEED + chunk * SEEDS_EACH
    lived = [live_out(generate(seed)) for seed in range(first, first + SEEDS_EACH)]
    broken = [f"seed {run.seed}: {run.detail}" for run, _ in lived if run.broken is not None]
    assert broken == []
    histories = [seen_of(history) for _, history in lived]
    assert min(len(history) for history in histories) > 100
    assert verdicts(porcupine, histories) == [OK] * SEEDS_EACH


# What breaks the order in time or place; the others are no histories of any list.
LINEAR = ("is at", "asked after", "a read at")


def test_what_our_checker_passes_passes(porcupine: Path) -> None:
    good().check()
    assert verdicts(porcupine, [seen_of(good())]) == [OK]


@pytest.mark.parametrize("mutation", LINEAR)
def test_both_checkers_find_a_mutated_history(porcupine: Path, mutation: str) -> None:
    history = good()
    MUTATIONS[mutation](history)
    with pytest.raises(HistoryError):
        history.check()
    assert verdicts(porcupine, [seen_of(history)]) == [ILLEGAL]
