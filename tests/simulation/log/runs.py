"""One seed from faults to healing: safety at every step, then liveness.

`python -m tests.simulation.log --seeds 100` runs many.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass

from quipu.ledger.log.roles import Role
from quipu.ledger.log.safeguards import ALL, LogSafeguards
from tests.simulation.log.faults import KINDS, LogFaults
from tests.simulation.log.history import LogHistory
from tests.simulation.log.judge import LogProperty, LogViolation
from tests.simulation.log.world import LogWorld

FAULTS_MS = 10_000
SETTLE_MS = 3_000  # after healing order goes on within this
CALM_MS = 5_000
GAP_MS = 600  # and from then on without a longer pause, while there is work
WORK_MS = 25
PACE_MS = 400
SIZES = ((3, 3), (3, 3), (4, 3), (5, 5), (5, 3), (2, 2), (4, 4), (6, 3))


@dataclass(frozen=True, slots=True)
class LogRun:
    seed: int
    broken: LogProperty | None
    detail: str
    chosen: int
    regimes: int
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LogScenario:
    seed: int
    nodes: int
    serializers: int
    kinds: tuple[str, ...] = KINDS
    work_ms: int = WORK_MS
    pace_ms: int = PACE_MS


def generate(seed: int) -> LogScenario:
    rng = random.Random(f"{seed}/scenario")
    nodes, serializers = rng.choice(SIZES)
    kinds: tuple[str, ...] = KINDS
    if rng.random() < 0.5:  # many of few kinds find what one of each does not
        kinds = tuple(rng.sample(KINDS, 4))
    return LogScenario(seed, nodes, serializers, kinds)


def run(scenario: LogScenario, guards: LogSafeguards = ALL) -> LogRun:
    return live_out(scenario, guards)[0]


def live_out(scenario: LogScenario, guards: LogSafeguards = ALL) -> tuple[LogRun, LogHistory]:
    """What came of it, and what the apps of this world saw."""
    world = LogWorld(scenario.seed, scenario.nodes, scenario.serializers, guards)
    faults = LogFaults(world, scenario.kinds)
    broken, detail = None, ""
    try:
        live(world, faults, scenario)
    except LogViolation as violation:
        broken, detail = violation.property, str(violation)
    except AssertionError as error:
        broken, detail = LogProperty.ERROR, repr(error)
    regimes = max(world.judge.masters, default=0)
    told = LogRun(
        scenario.seed, broken, detail, len(world.history.chosen), regimes, tuple(faults.log)
    )
    return told, world.history


def live(world: LogWorld, faults: LogFaults, scenario: LogScenario) -> None:
    end_ms = FAULTS_MS + SETTLE_MS + CALM_MS
    world.scheduler.after(0, world.work, scenario.work_ms, end_ms)
    world.scheduler.after(0, faults.unleash, FAULTS_MS, scenario.pace_ms)
    world.run_ms(FAULTS_MS)
    faults.heal()
    world.run_ms(SETTLE_MS + CALM_MS)
    goes_on(world)
    world.run_ms(SETTLE_MS)
    logs_are_equal(world)
    world.judge.at_end()


def goes_on(world: LogWorld) -> None:
    """From 3 s after healing on, entries come to be chosen without a long pause."""
    begin_us, end_us = (FAULTS_MS + SETTLE_MS) * 1000, (FAULTS_MS + SETTLE_MS + CALM_MS) * 1000
    times = [t for t in world.judge.chosen_us if begin_us - GAP_MS * 1000 <= t <= end_us]
    marks = [begin_us, *(t for t in times if t > begin_us), end_us]
    longest = max(b - a for a, b in itertools.pairwise(marks)) // 1000
    if longest > GAP_MS:
        world.judge.fail(LogProperty.GOES_ON, f"nothing was chosen for {longest} ms")


def logs_are_equal(world: LogWorld) -> None:
    ends = {n: node.machine.state.chosen for n, node in world.nodes.items()}
    if len(set(ends.values())) != 1:
        world.judge.fail(LogProperty.EQUAL, f"chosen: {ends}")
    recovering = [n for n, x in world.nodes.items() if x.machine.state.role is Role.RECOVERING]
    if recovering:
        world.judge.fail(LogProperty.EQUAL, f"still recovering: {recovering}")
