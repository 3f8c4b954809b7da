"""Scenarios: from a seed to a roster, a policy, liars, faults, epochs and apps at work."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.simulation import faults as f
from tests.simulation.faults import Fault
from tests.simulation.liars import LIARS, Liar
from tests.simulation.network import Weather
from tests.simulation.node import CrashPoint
from tests.simulation.record import confirms_needed, seals_needed

FAULTS_MS = 16_000
YEAR_2099_MS = 2_300_000_000_000
HOUR_MS = 3_600_000
JOIN = "join"  # an epoch change that adds a fresh node
REPLACE = "replace"  # one that puts a fresh node in the place of a dead one


@dataclass(slots=True)
class Scenario:
    """Everything that is not random inside the world itself."""

    seed: int
    n: int
    policy: str
    liars: list[type[Liar]] = field(default_factory=list)
    weather: Weather = Weather()
    faults: list[tuple[int, Fault]] = field(default_factory=list)  # at ms
    changes: list[tuple[int, str, int]] = field(default_factory=list)  # at ms, what, how many
    bursts: list[tuple[int, int]] = field(default_factory=list)  # at ms, submissions
    clocks: list[tuple[int, int]] = field(default_factory=list)  # drift ppm, offset ms
    faults_ms: int = FAULTS_MS
    losses: int = 0  # disks lost
    written: list[tuple[int, int, int]] = field(default_factory=list)  # at ms, author, reader
    peered: bool = False  # messages travel through peer machines
    soon_ms: int = 0  # what is in `written` is Read at its reader after this

    @property
    def honest(self) -> int:
        return self.n - len(self.liars)

    @property
    def confirms(self) -> int:
        return confirms_needed(self.policy, self.n)

    @property
    def spare(self) -> int:
        """Disks that may be lost without losing what is Read."""
        return max(0, self.confirms - len(self.liars))

    def shorten(self, faults_ms: int) -> None:
        self.faults_ms = faults_ms
        self.faults = [item for item in self.faults if item[0] < faults_ms]
        self.bursts = [item for item in self.bursts if item[0] < faults_ms]

    def describe(self) -> str:
        liars = ", ".join(liar.__name__ for liar in self.liars) or "none"
        kinds = sorted({type(fault).__name__ for _, fault in self.faults})
        return (
            f"{'peered: ' if self.peered else ''}n={self.n} {self.policy}; liars: {liars}; "
            f"faults: {', '.join(kinds) or 'none'}; "
            f"changes: {[what for _, what, _ in self.changes]}"
        )


def generate(seed: int, only: str = "") -> Scenario:
    """`only` narrows the mixture to one kind of trouble."""
    rng = random.Random(f"{seed}/scenario")
    kinds = [only] if only else rng.sample(MIXED, rng.choice((1, 2, 2, 3)))
    scenario = _roster(seed, rng, "liars" in kinds)
    _apps(scenario, rng)
    scenario.weather = _weather(rng) if rng.random() < 0.5 else Weather()
    scenario.clocks = [(rng.randint(-200, 200), rng.randint(-800, 800)) for _ in range(scenario.n)]
    for kind, shape in KINDS.items():
        if kind in kinds:
            shape(scenario, rng)
    scenario.faults.sort(key=lambda item: item[0])
    return scenario


def generate_peered(seed: int) -> Scenario:
    """Networks and restarts; disks that are lost, clocks and liars have worlds of their own."""
    scenario = generate(seed, "network")
    rng = random.Random(f"{seed}/peered")
    scenario.peered, scenario.n = True, max(scenario.n, 2)
    scenario.clocks = []
    for _ in range(rng.randint(0, 5)):
        point = rng.choice(tuple(CrashPoint))
        crash = f.Crash(rng.randrange(scenario.n), point, rng.randint(50, 5_000))
        scenario.faults.append((_when(scenario, rng), crash))
    if rng.random() < 0.3:
        scenario.faults.append((_when(scenario, rng), f.CrashAll(rng.randint(100, 3_000))))
    scenario.faults.sort(key=lambda item: item[0])
    return scenario


def _roster(seed: int, rng: random.Random, with_liars: bool) -> Scenario:
    n = rng.choice((3, 4, 4, 5, 7) if with_liars else (1, 2, 3, 3, 3, 4, 5, 5, 7))
    policies = ["majority", "majority", "two-thirds", "all"] if n > 1 else ["majority"]
    if with_liars and n >= 4:
        policies = ["majority", "two-thirds", "two-thirds"]
    if n >= 5 and not with_liars:
        policies.append("3")
    return Scenario(seed, n, rng.choice(policies))


def _apps(scenario: Scenario, rng: random.Random) -> None:
    for _ in range(rng.randint(15, 50)):
        scenario.bursts.append((rng.randrange(500, scenario.faults_ms), rng.randint(1, 6)))
    scenario.bursts.sort()


def _weather(rng: random.Random) -> Weather:
    return Weather(
        base_us=rng.choice((500, 2_000, 20_000)),
        jitter_us=rng.choice((500, 5_000, 60_000)),
        loss=rng.choice((0.0, 0.02, 0.1, 0.3)),
        duplicate=rng.choice((0.0, 0.05)),
        spike=rng.choice((0.0, 0.02)),
        spike_us=1_500_000,
        ordered=rng.random() < 0.3,
    )


def _when(scenario: Scenario, rng: random.Random) -> int:
    return rng.randrange(200, scenario.faults_ms)


def _network(scenario: Scenario, rng: random.Random) -> None:
    n = scenario.n
    for _ in range(rng.randint(3, 10) if n > 1 else 0):
        one, other = rng.sample(range(n), 2)
        for_ms = rng.randint(300, 8_000)
        fault: Fault = rng.choice(
            (
                f.OneWayCut(one, other, for_ms),
                f.Partition(tuple(sorted(rng.sample(range(n), n // 2))), for_ms),
                f.Partition((one,), for_ms),
                f.Flapping(one, other, rng.randint(2, 6), rng.randint(300, 2_000)),
                f.Storm(_weather(rng), for_ms),
            )
        )
        scenario.faults.append((_when(scenario, rng), fault))


def _disks(scenario: Scenario, rng: random.Random) -> None:
    honest = range(scenario.honest)
    for _ in range(rng.randint(2, 9)):
        point = rng.choice(tuple(CrashPoint))
        loss = f.CLONE_AFTER if rng.random() < 0.1 else f.NOTHING
        crash = f.Crash(rng.choice(honest), point, rng.randint(50, 5_000), loss)
        scenario.faults.append((_when(scenario, rng), crash))
    if rng.random() < 0.3:
        scenario.faults.append((_when(scenario, rng), f.CrashAll(rng.randint(100, 3_000))))
    if rng.random() < 0.6:
        _lose_a_disk(scenario, rng)
    elif rng.random() < 0.3 and scenario.spare and not scenario.losses:
        node = rng.choice(honest)
        scenario.losses += 1  # what the clone alone has goes with it
        scenario.faults.append((_when(scenario, rng), f.Clone(node, rng.randint(500, 4_000))))


def _lose_a_disk(scenario: Scenario, rng: random.Random) -> None:
    """One disk a scenario, and only where enough others can tell what it had signed."""
    if not scenario.spare or scenario.liars or scenario.losses:
        return
    node, at_ms = rng.randrange(scenario.honest), rng.randrange(2_000, scenario.faults_ms)
    loss = rng.choice((f.WIPE, f.ROLL_BACK))
    if loss == f.ROLL_BACK:
        scenario.faults.append((rng.randrange(200, at_ms), f.TakeImage(node)))
    point = rng.choice(tuple(CrashPoint))
    scenario.faults.append((at_ms, f.Crash(node, point, rng.randint(50, 3_000), loss)))
    scenario.losses += 1


def _clocks(scenario: Scenario, rng: random.Random) -> None:
    """A minority of clocks far off, and jumps."""
    for node in rng.sample(range(scenario.n), max(1, (scenario.n - 1) // 2)):
        offset_ms = rng.choice((YEAR_2099_MS, HOUR_MS, -HOUR_MS, 5_000, -5_000, 60_000))
        scenario.faults.append((_when(scenario, rng), f.SetClock(node, offset_ms)))
        if rng.random() < 0.6:
            scenario.faults.append((_when(scenario, rng), f.SetClock(node, rng.randint(-900, 900))))


def _liars(scenario: Scenario, rng: random.Random) -> None:
    borne = (scenario.n - 1) // 3
    count = rng.randint(1, max(1, borne)) if scenario.policy == "two-thirds" else 1
    count = min(count, max(1, borne))
    scenario.liars = rng.sample(LIARS, count)


def _epochs(scenario: Scenario, rng: random.Random) -> None:
    borne = (scenario.n - 1) // 3 if scenario.policy == "two-thirds" else 0
    if len(scenario.liars) > borne:
        return  # a seal that takes back a receipt is a lie that only `two-thirds` bears
    at_ms = rng.randrange(1_000, 3_000)
    can_seal = scenario.n - 1 - len(scenario.liars) >= seals_needed(scenario.policy, scenario.n)
    if can_seal and scenario.spare and not scenario.losses and rng.random() < 0.4:
        victim = rng.randrange(scenario.honest)
        scenario.faults.append((at_ms, f.Kill(victim)))
        scenario.changes.append((at_ms + rng.randrange(200, 1_500), REPLACE, victim))
        scenario.losses += 1
    for _ in range(rng.randint(1, 2)):
        if scenario.n < 7:
            at_ms += rng.randrange(500, 4_000)
            scenario.changes.append((at_ms, JOIN, rng.choice((0, 1, 2, 2))))


def _pause(scenario: Scenario, rng: random.Random) -> None:
    """Time passes while one is away: what it then lacks is older than any window."""
    if scenario.n < 3:
        return
    away = rng.randrange(scenario.n)
    scenario.faults.append((2_000, f.Partition((away,), scenario.faults_ms + 3_000)))
    at_ms = rng.randrange(scenario.faults_ms // 2, scenario.faults_ms)
    for node in range(scenario.n):
        scenario.faults.append((at_ms, f.SetClock(node, 20 * 60_000 + rng.randint(-500, 500))))


def _blips(scenario: Scenario, rng: random.Random) -> None:
    """All is well, but a write meets a link that is dead for a moment, or one that is slow."""
    scenario.n = max(scenario.n, 3)
    scenario.policy = rng.choice(("majority", "all", "two-thirds"))
    scenario.weather, scenario.bursts, scenario.clocks = Weather(), [], []
    scenario.soon_ms = 1_500
    for number in range(6):
        at_ms = 4_500 + number * 2_000 + rng.randrange(500)
        author, other = rng.sample(range(scenario.n), 2)
        blip: Fault = f.Partition((author,), 150)
        if rng.random() < 0.5:
            blip = f.SlowLink(author, other, rng.randint(50, 90), 500)
        scenario.faults.append((at_ms, blip))
        reader = other if isinstance(blip, f.SlowLink) else author
        scenario.written.append((at_ms + 10, author, reader))


def _losses(scenario: Scenario, rng: random.Random) -> None:
    """Room for a liar that makes a signer lose its disk at the worst moment."""
    scenario.n, scenario.policy = rng.choice((4, 5)), rng.choice(("majority", "two-thirds"))
    scenario.clocks = []
    scenario.losses += 1


KINDS: dict[str, Callable[[Scenario, random.Random], None]] = {
    "liars": _liars,
    "network": _network,
    "disks": _disks,
    "clocks": _clocks,
    "epochs": _epochs,
    "pause": _pause,
    "blips": _blips,
    "losses": _losses,
}
MIXED = ("liars", "network", "disks", "clocks", "epochs", "pause")
