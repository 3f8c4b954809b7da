"""Rosters, checkpoints and forced attempts over the quorum log: faults, then healing."""

from dataclasses import replace

import pytest

from quipu.ledger.order.safeguards import ALL
from tests.simulation.epochs import ablation, forced, handmade
from tests.simulation.epochs.runs import KINDS, EpochScenario, generate, run_scenario
from tests.simulation.violation import Property, Violation

SEEDS = range(1, 4)  # of each kind
# Found faults once: receipts that complete a certificate were cut off, where many forks were.
FORMER_FAULTS = ((27, "liars", "EpochDoubleSigner"),)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_epochs_change_under_faults_and_all_become_one(kind: str, seed: int) -> None:
    done = run_scenario(generate(seed, kind))
    assert done.broken is None, f"seed {seed}: {done.detail}\n{done.describe}"
    assert done.epochs > 1


@pytest.mark.parametrize(("seed", "kind", "liar"), FORMER_FAULTS)
def test_former_faults(seed: int, kind: str, liar: str) -> None:
    scenario = generate(seed, kind)
    scenario.liar = liar
    done = run_scenario(scenario)
    assert done.broken is None, done.detail


def test_one_three_five_three() -> None:
    done = run_scenario(EpochScenario(5, "grow", 1, "majority"))
    assert done.broken is None, done.detail
    assert done.epochs == 4


def test_the_same_seed_is_the_same_world() -> None:
    assert run_scenario(generate(3)) == run_scenario(generate(3))


# --- worlds made by hand ------------------------------------------------------------------------
def test_nobody_accepts_a_cut_that_is_not_what_the_seals_make() -> None:
    world = handmade.a_master_lies_about_the_cut()
    assert world.record.newest.number == 1
    assert all(node.shadow.epoch == 1 for node in world.nodes)


def test_a_seal_waits_until_all_that_it_names_is_held() -> None:
    """The counter-example of ADR 17 holds; without the wait a Read event is lost."""
    handmade.a_seal_names_what_the_master_lacks()
    with pytest.raises(Violation, match="read-lost"):
        handmade.a_seal_names_what_the_master_lacks(replace(ALL, rows_wait=False))


def test_an_open_of_an_older_attempt_is_void() -> None:
    world = handmade.an_open_of_an_older_attempt()
    assert world.epoch_judge.voids >= 1
    assert sorted(world.record.newest.members) == [1, 2, 3]


def test_what_names_a_parent_outside_of_the_cut_is_outside_too() -> None:
    handmade.seals_without_a_parent()


def test_what_comes_after_due_is_outside() -> None:
    handmade.seals_of_what_comes_after_due()


def test_who_leaves_is_asked_until_its_leaving_is_chosen() -> None:
    handmade.the_last_word_of_a_leaver_is_late()


# --- force --------------------------------------------------------------------------------------
def test_who_is_left_goes_on_by_force_and_who_comes_back_stands_still() -> None:
    world = forced.two_of_three_are_lost()
    forced.the_lost_come_back(world)
    n1, *lost = world.members()
    for node in lost:
        core, machine = node.core, node.machine
        assert core is not None
        assert machine is not None
        assert not core.recovery.may_sign
        assert machine.state.master is None
    world.run_ms(forced.APART_MS)
    assert world.master() is n1
    assert [forced.is_overruled(node) for node in world.members()] == [False, True, True]
    for node in lost:  # it outlives a restart
        node.crash()
        node.start()
        assert forced.is_overruled(node)
    forced.they_follow_and_are_members_again(world)


def test_force_takes_the_place_of_a_change_that_the_lost_would_have_to_seal() -> None:
    world = forced.two_of_three_are_lost("forced amid a change", amid_change=True)
    assert [*world.record.newest.members] == [1]


# --- safeguards ---------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ablation.names())
def test_the_absence_of_a_safeguard_is_noticed(name: str) -> None:
    caught = ablation.ablate(name)
    assert caught.broken is not None, caught.detail
    assert caught.broken is not Property.CORE_ERROR


def test_every_safeguard_has_its_trouble() -> None:
    assert sorted(ablation.TROUBLES) == sorted(ablation.names())
