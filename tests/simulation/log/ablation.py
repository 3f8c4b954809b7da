"""Each safeguard of the log is taken out, and the judge must notice: by a property, not a crash."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from quipu.ledger.log.safeguards import ALL, LogSafeguards
from tests.simulation.log import handmade
from tests.simulation.log.faults import KINDS
from tests.simulation.log.judge import LogProperty, LogViolation
from tests.simulation.log.runs import LogScenario, run

SEEDS_MAX = 120


@dataclass(frozen=True, slots=True)
class Trouble:
    """What brings a safeguard into play: kinds of faults, or a world made by hand."""

    kinds: tuple[str, ...] = KINDS
    sizes: tuple[int, int] = (3, 3)
    work_ms: int = 8
    pace_ms: int = 150
    handmade: str = ""


STORMY = ("kill_master", "isolate_master", "cut", "one_way", "storm")
TROUBLES: dict[str, Trouble] = {
    "durable_before_spoken": Trouble(("kill", "kill_master")),
    "one_promise_a_regime": Trouble(("kill_master", "isolate_master", "kill_all")),
    "own_regime_first": Trouble(handmade="older_entry_by_count"),
    "drop_from_difference": Trouble(("storm",)),
    "greatest_log_adopted": Trouble(STORMY),
    "joint_majority": Trouble(("change", *STORMY), (5, 1)),
    "promises_counted_again": Trouble(handmade="implement_in_a_promise"),
    "lower_regime_refused": Trouble(STORMY),
    "recovery_waits": Trouble(("wipe", "kill_master", "isolate_master")),
    "lives_compared": Trouble(handmade="promise_of_a_lost_disk"),
    "reads_confirmed": Trouble(handmade="read_at_an_old_master"),
    "model_checked": Trouble(("storm",)),
}


@dataclass(frozen=True, slots=True)
class Caught:
    safeguard: str
    broken: LogProperty | None
    seeds: int
    detail: str


def names() -> list[str]:
    return [field.name for field in fields(LogSafeguards)]


def ablate(name: str, seeds_max: int = SEEDS_MAX) -> Caught:
    guards = replace(ALL, **{name: False})
    trouble = TROUBLES[name]
    if trouble.handmade:
        return _by_hand(name, trouble.handmade, guards)
    nodes, serializers = trouble.sizes
    crashes = ""
    for seed in range(1, seeds_max + 1):
        scenario = LogScenario(
            seed, nodes, serializers, trouble.kinds, trouble.work_ms, trouble.pace_ms
        )
        done = run(scenario, guards)
        if done.broken is LogProperty.ERROR:
            crashes = done.detail
        elif done.broken is not None:
            return Caught(name, done.broken, seed, done.detail)
    return Caught(name, None, seeds_max, crashes or "every seed held")


def _by_hand(name: str, made: str, guards: LogSafeguards) -> Caught:
    try:
        handmade.WORLDS[made](guards)
    except LogViolation as violation:
        return Caught(name, violation.property, 1, str(violation))
    return Caught(name, None, 1, "the world made by hand held")
