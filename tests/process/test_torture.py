"""One short run of torture, and that its schedules are what they say."""

import random
from pathlib import Path

import pytest

from tests.process.disk import COMPILER
from tests.process.torments import KINDS, TAKES_A_DISK
from tests.process.torture import Run, run, schedule

SEED = 5
SHORT = ("one_node_cut", "full_disk", "power_lost", "clock_jumped", "restored", "killed")


@pytest.mark.skipif(COMPILER is None, reason="a C compiler makes the failing disk: gcc")
def test_a_short_run_keeps_every_promise(tmp_path: Path) -> None:
    made = Run(SEED, 3)
    run(tmp_path, made, SHORT)
    assert set(made.effects) == set(SHORT)
    assert all(made.effects.values())
    assert made.read > 0
    assert made.published > 0
    assert made.proofs > 0
    assert "passed" in made.summary


def test_a_schedule_has_every_kind_and_comes_again_by_its_seed() -> None:
    for seed in range(50):
        planned = schedule(random.Random(seed), tuple(KINDS))
        assert planned == schedule(random.Random(seed), tuple(KINDS))
        named = [name for names in planned for name in names]
        assert set(named) == set(KINDS)
        alone = {kind.__name__ for kind in TAKES_A_DISK}
        assert all(len(names) == 1 for names in planned if alone & set(names))
