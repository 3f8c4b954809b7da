"""Each safeguard of epochs is taken out, and the judge must notice: by a property, not a crash."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from quipu.ledger.order.safeguards import ALL, RosterSafeguards
from tests.simulation.epochs.handmade import WORLDS
from tests.simulation.epochs.runs import CHECKPOINTS, GROW, LIARS_KIND, generate, run_scenario
from tests.simulation.violation import Property, Violation

SEEDS_MAX = 40


@dataclass(frozen=True, slots=True)
class Trouble:
    """What brings a safeguard into play: a kind of world, or one made by hand."""

    kind: str = CHECKPOINTS
    liar: str = ""
    handmade: str = ""


TROUBLES: dict[str, Trouble] = {
    "cut_recomputed": Trouble(handmade="a_master_lies_about_the_cut"),
    "rows_wait": Trouble(handmade="a_seal_names_what_the_master_lacks"),
    "older_attempt_void": Trouble(handmade="an_open_of_an_older_attempt"),
    "cut_held_first": Trouble(GROW),
    "lowered": Trouble(handmade="seals_without_a_parent"),
    "silent_counted": Trouble(),
    "forks_left_out": Trouble(LIARS_KIND, "EpochEquivocator"),
    "due_bounds_cut": Trouble(handmade="seals_of_what_comes_after_due"),
}


@dataclass(frozen=True, slots=True)
class Caught:
    safeguard: str
    broken: Property | None
    seeds: int
    detail: str


def names() -> list[str]:
    return [field.name for field in fields(RosterSafeguards)]


def ablate(name: str, seeds_max: int = SEEDS_MAX) -> Caught:
    guards = replace(ALL, **{name: False})
    trouble = TROUBLES[name]
    if trouble.handmade:
        return _by_hand(name, trouble.handmade, guards)
    for seed in range(1, seeds_max + 1):
        scenario = generate(seed, trouble.kind)
        if trouble.liar:
            scenario.liar = trouble.liar
        done = run_scenario(scenario, guards)
        if done.broken is not None and done.broken is not Property.CORE_ERROR:
            return Caught(name, done.broken, seed, done.detail)
    return Caught(name, None, seeds_max, "every seed held")


def _by_hand(name: str, made: str, guards: RosterSafeguards) -> Caught:
    try:
        WORLDS[made](guards)
    except Violation as violation:
        return Caught(name, violation.property, 1, str(violation))
    return Caught(name, None, 1, "the world made by hand held")
