"""Each safeguard taken out is noticed, by a property; with all of them the same worlds hold."""

import pytest

from tests.simulation import ablation
from tests.simulation.runs import run_scenario
from tests.simulation.violation import Property

WITH_ALL = 6  # seeds of the same troubles with nothing taken out


@pytest.mark.parametrize("safeguard", ablation.names())
def test_its_absence_is_noticed(safeguard: str) -> None:
    caught = ablation.ablate(safeguard)
    assert caught.broken is not None, caught.detail
    assert caught.broken is not Property.CORE_ERROR


@pytest.mark.parametrize("safeguard", ["restore_guard", "resend_unread", "wants_bounded"])
def test_the_same_troubles_are_borne(safeguard: str) -> None:
    for seed in range(1, WITH_ALL + 1):
        result = run_scenario(ablation.scenario_for(safeguard, seed))
        assert result.broken is None, f"seed {seed}: {result.violation}\n{result.describe}"


def test_every_safeguard_has_its_trouble() -> None:
    assert sorted(ablation.TROUBLES) == sorted(ablation.names())
