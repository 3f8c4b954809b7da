"""Worlds of logs: faults, then healing; each safeguard taken out is noticed."""

from dataclasses import replace

import pytest

from quipu.ledger.log.safeguards import ALL
from tests.simulation.log import ablation, handmade
from tests.simulation.log.judge import LogProperty, LogViolation
from tests.simulation.log.runs import LogScenario, generate, run

SEEDS = range(1, 25)
# Found faults once: a voter with another entry where one was chosen, a Confirm that a node behind
# could not prove, a lost election for a regime that another won, the PROMISE of a voter that slept.
FORMER_FAULTS = (62, 67, 130, 131, 135, 144, 1133)


@pytest.mark.parametrize("seed", [*SEEDS, *FORMER_FAULTS])
def test_one_order_under_faults_and_it_goes_on_after(seed: int) -> None:
    done = run(generate(seed))
    assert done.broken is None, f"seed {seed}: {done.detail}\n{done.faults}"
    assert done.chosen > 100


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_masters_are_cut_off_again_and_again(seed: int) -> None:
    done = run(LogScenario(seed, 3, 3, ("isolate_master",), 8, 150))
    assert done.broken is None, f"seed {seed}: {done.detail}"


def test_the_same_seed_is_the_same_world() -> None:
    assert run(generate(7)) == run(generate(7))


@pytest.mark.parametrize("name", ablation.names())
def test_the_absence_of_a_safeguard_is_noticed(name: str) -> None:
    caught = ablation.ablate(name)
    assert caught.broken is not None, caught.detail
    assert caught.broken is not LogProperty.ERROR


def test_every_safeguard_has_its_trouble() -> None:
    assert sorted(ablation.TROUBLES) == sorted(ablation.names())


@pytest.mark.parametrize("name", handmade.WORLDS)
def test_what_was_made_by_hand_holds_with_all_safeguards(name: str) -> None:
    hand = handmade.WORLDS[name](ALL)
    assert hand.refused == []


def test_a_promise_of_a_lost_disk_loses_an_entry_where_lives_are_not_compared() -> None:
    """The counter-example of ADR 15."""
    with pytest.raises(LogViolation, match="one-value"):
        handmade.promise_of_a_lost_disk(replace(ALL, lives_compared=False))
