"""One seed of epochs over the log: faults while rosters change, healing, and then one ledger.

`python -m tests.simulation.epochs --seeds 100` runs many.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from quipu import verify as offline
from quipu.ledger.bundle_build import Lineage, build_bundle
from quipu.ledger.order.safeguards import ALL, RosterSafeguards
from quipu.ledger.order.wishes import Candidate
from tests.simulation import faults as f
from tests.simulation.clock import US_PER_MS
from tests.simulation.convergence import Convergence, transfer_us
from tests.simulation.epochs.liars import LIARS
from tests.simulation.epochs.node import EpochNode
from tests.simulation.epochs.world import EpochWorld
from tests.simulation.faults import Fault
from tests.simulation.keys import key_pair
from tests.simulation.network import Weather
from tests.simulation.node import CrashPoint
from tests.simulation.record import seals_needed
from tests.simulation.transcript import Transcript
from tests.simulation.violation import Property, Violation

FAULTS_MS = 24_000
SETTLE_MS = 4_000
CHANGE_MAX_MS = 90_000  # a CLOSE that found no OPEN is replaced after 60 s
CONVERGE_MS = 12_000
LOOK_MS = 250
BUNDLES = 12  # of each node

# --- what a seed does to a cluster --------------------------------------------------------------
GROW = "grow"  # 1 -> 3 -> 5 -> 3
REPLACE = "replace"  # a dead member
CHECKPOINTS = "checkpoints"  # under load, while masters die
STALE = "stale"  # a CLOSE that finds no OPEN
LIARS_KIND = "liars"
KINDS = (GROW, REPLACE, CHECKPOINTS, STALE, LIARS_KIND)


@dataclass(slots=True)
class EpochScenario:
    seed: int
    kind: str
    n: int
    policy: str
    weather: Weather = Weather()
    faults: list[tuple[int, Fault]] = field(default_factory=list)
    master_kills: list[int] = field(default_factory=list)  # at ms
    liar: str = ""

    def describe(self) -> str:
        kinds = sorted({type(fault).__name__ for _, fault in self.faults})
        return (
            f"{self.kind}: n={self.n} {self.policy} {self.liar} "
            f"kills {self.master_kills}, {', '.join(kinds)}"
        )


def generate(seed: int, only: str = "") -> EpochScenario:
    rng = random.Random(f"{seed}/epochs/scenario")
    kind = only or rng.choice(KINDS)
    n = {GROW: 1, REPLACE: rng.choice((3, 4, 5)), LIARS_KIND: rng.choice((4, 5, 7))}.get(
        kind, rng.choice((1, 3, 3, 5))
    )
    policy = rng.choice(("majority", "majority", "two-thirds"))
    if kind == LIARS_KIND:
        policy = "two-thirds"
    if kind == REPLACE and n - 1 < seals_needed(policy, n):
        policy = "majority"  # `two-thirds` of three bears no dead member
    scenario = EpochScenario(seed, kind, n, policy)
    if rng.random() < 0.6:
        scenario.weather = _weather(rng)
    _network(scenario, rng)
    _crashes(scenario, rng)
    if kind == LIARS_KIND:
        scenario.liar = rng.choice(sorted(LIARS))
    scenario.faults.sort(key=lambda item: item[0])
    return scenario


def _weather(rng: random.Random) -> Weather:
    return Weather(
        base_us=rng.choice((500, 2_000, 20_000)),
        jitter_us=rng.choice((500, 5_000, 40_000)),
        loss=rng.choice((0.0, 0.02, 0.1, 0.2)),
        duplicate=rng.choice((0.0, 0.05)),
    )


def _network(scenario: EpochScenario, rng: random.Random) -> None:
    places = max(scenario.n, 3)
    for _ in range(rng.randint(0, 6)):
        at_ms = rng.randrange(4_000, FAULTS_MS)
        one, other = rng.sample(range(places), 2)
        for_ms = rng.randint(300, 6_000)
        fault = rng.choice(
            (
                f.OneWayCut(one, other, for_ms),
                f.Partition((one,), for_ms),
                f.Flapping(one, other, rng.randint(2, 5), rng.randint(300, 2_000)),
            )
        )
        scenario.faults.append((at_ms, fault))


def _crashes(scenario: EpochScenario, rng: random.Random) -> None:
    for _ in range(rng.randint(0, 5)):
        point = rng.choice(tuple(CrashPoint))
        at_ms = rng.randrange(2_000, FAULTS_MS)
        crash = f.Crash(rng.randrange(scenario.n), point, rng.randint(50, 4_000))
        scenario.faults.append((at_ms, crash))
    if rng.random() < 0.2:
        scenario.faults.append(
            (rng.randrange(3_000, FAULTS_MS), f.CrashAll(rng.randint(100, 2_000)))
        )
    if rng.random() < 0.6:
        scenario.master_kills = sorted(
            rng.randrange(4_000, FAULTS_MS) for _ in range(rng.randint(1, 3))
        )


@dataclass(frozen=True, slots=True)
class EpochRun:
    seed: int
    broken: Property | None
    detail: str
    epochs: int
    closes: int
    events: int
    describe: str
    digest: str = ""


class Run:
    def __init__(self, scenario: EpochScenario, guards: RosterSafeguards = ALL) -> None:
        self.scenario = scenario
        self.world = EpochWorld(scenario.seed, scenario.n, scenario.policy, guards)
        self.rng = random.Random(f"{scenario.seed}/epochs/run")
        self._build()

    def _build(self) -> None:
        world, scenario = self.world, self.scenario
        kinds: list[type[EpochNode]] = [EpochNode] * scenario.n
        if scenario.liar:
            kinds[-1] = LIARS[scenario.liar]
        world.add_founders([*kinds])
        world.network.weather = scenario.weather
        for node in world.nodes:
            world.scheduler.at(node.rng.randrange(300) * US_PER_MS, node.start)
        for at_ms, fault in scenario.faults:
            world.scheduler.at(at_ms * US_PER_MS, world.faults.strike, fault)
        for at_ms in scenario.master_kills:
            world.scheduler.at(at_ms * US_PER_MS, self._kill_master)
        world.scheduler.after(500 * US_PER_MS, self._work)
        world.scheduler.after(3_000 * US_PER_MS, self._compact)
        getattr(self, f"_plan_{scenario.kind}")()

    # --- what goes on ---------------------------------------------------------------------------
    def _at(self, at_ms: int, action: object, *args: object) -> None:
        self.world.scheduler.at(at_ms * US_PER_MS, action, *args)  # type: ignore[arg-type]

    def _work(self) -> None:
        if self.world.faults.active:
            self.world.workload.burst(self.rng.randint(1, 3))
            self.world.scheduler.after(self.rng.randint(20, 400) * US_PER_MS, self._work)

    def _compact(self) -> None:
        if self.world.faults.active:
            for node in self.world.members():
                if self.rng.random() < 0.5:
                    node.compact()
            self.world.scheduler.after(self.rng.randint(500, 4_000) * US_PER_MS, self._compact)

    def _kill_master(self) -> None:
        master = self.world.master()
        if master is not None and self.world.faults.active:
            point = self.rng.choice(tuple(CrashPoint))
            master.arm(point, self.rng.randint(300, 4_000) * US_PER_MS, f.NOTHING)

    def _join(self, count: int) -> None:
        for _ in range(count):
            name = f"n{len(self.world.nodes) + 1}"
            self.world.add_node(key_pair(name), name, EpochNode).start()

    def _plan_grow(self) -> None:
        start_ms = self.rng.randrange(2_000, 4_000)
        self._at(start_ms, self._join, 2)
        self._at(start_ms + 500, self._all_members)
        self._at(start_ms + 6_000, self._join, 2)
        self._at(start_ms + 6_500, self._all_members)
        self._at(start_ms + 13_000, self._shrink)

    def _all_members(self) -> None:
        world = self.world
        world.operator.change([n for n in world.members() if n.index not in world.dead])

    def _shrink(self) -> None:
        self.world.operator.change(sorted(self.rng.sample(self.world.members(), 3), key=_index))

    def _plan_replace(self) -> None:
        self._at(self.rng.randrange(3_000, 6_000), self._replace)

    def _replace(self) -> None:
        """While the others can seal; so many more are not lost for good."""
        victim = self.rng.choice(self.world.members())
        victim.crash()
        self.world.dead[victim.index] = None
        self._join(1)
        self._all_members()

    def _plan_checkpoints(self) -> None:
        at_ms = 4_000
        while at_ms < FAULTS_MS:
            self._at(at_ms, self._checkpoint)
            at_ms += self.rng.randint(800, 5_000)

    def _checkpoint(self) -> None:
        """An operator may ask for one: the roster that there is."""
        master = self.world.master()
        if master is not None and master.machine is not None:
            standing = master.book.state.standing
            candidates = [Candidate(m.node_id, m.name, []) for m in standing.members]
            master.wish(candidates, standing.policy)

    def _plan_stale(self) -> None:
        """Most members go right after a CLOSE; they come back when the faults end."""
        self._at(self.rng.randrange(4_000, 6_000), self._join, 1)
        self._at(6_500, self._all_members)
        self._at(6_600, self._watch_close)

    def _watch_close(self) -> None:
        master = self.world.master()
        pending = master.book.state.pending if master is not None else None
        if pending is None:
            self.world.scheduler.after(20 * US_PER_MS, self._watch_close)
            return
        nodes = [n for n in self.world.members() if n.up]
        for node in self.rng.sample(nodes, len(nodes) // 2 + 1):
            node.arm(CrashPoint.NOW, 14_000 * US_PER_MS, f.NOTHING)

    def _plan_liars(self) -> None:
        self._plan_checkpoints()
        if self.scenario.n < 7:
            self._at(self.rng.randrange(4_000, 8_000), self._join, 1)
            self._at(8_500, self._all_members)

    # --- the two phases -------------------------------------------------------------------------
    def run(self) -> None:
        world = self.world
        world.run_ms(FAULTS_MS)
        world.faults.active = False
        for node in world.nodes:
            node.armed = None
            world.faults.restart(node)
        world.network.heal()
        world.run_ms(SETTLE_MS)
        self._finish_changes()
        self._converge()
        self._check_bundles()

    def _finish_changes(self) -> None:
        world = self.world
        end_us = world.scheduler.now_us + CHANGE_MAX_MS * US_PER_MS
        while world.scheduler.now_us < end_us:
            if not world.operator.busy and not self._pending():
                return
            world.run_ms(LOOK_MS)
        detail = f"epoch {world.record.newest.number}: {world.operator.explain()}"
        raise Violation(Property.CHANGE_ENDS, detail, world.scheduler.now_us)

    def _pending(self) -> bool:
        master = self.world.master()
        return master is None or master.book.state.pending is not None

    def _converge(self) -> None:
        world = self.world
        judge = Convergence(world, strict_losses=not world.dead)
        end_us = world.scheduler.now_us + CONVERGE_MS * US_PER_MS + transfer_us(world)
        found = judge.differences()
        while found and world.scheduler.now_us < end_us:
            world.run_ms(LOOK_MS)
            found = judge.differences()
        if found:
            broken, detail = found[0]
            raise Violation(broken, detail, world.scheduler.now_us)
        judge.final()

    def _check_bundles(self) -> None:
        """Some of every epoch, proven from what one disk keeps to a stranger."""
        for node in self.world.honest():
            lineage = Lineage.of(self.world.genesis, node.disk.saved().epochs)
            read = list(node.shadow.read)
            for identity in read[:: max(1, len(read) // BUNDLES)]:
                try:
                    data = build_bundle(node.disk.history, lineage, identity, 0)
                    found = offline.verify(data, self.world.genesis)
                except Exception as error:
                    slot = self.world.record.events[identity].slot
                    raise Violation(Property.BUNDLES_HOLD, f"{node}: {slot}: {error!r}") from error
                if found.event_id != identity:
                    raise Violation(Property.BUNDLES_HOLD, f"{node}: another event")


def _index(node: EpochNode) -> int:
    return node.index


def run_scenario(
    scenario: EpochScenario, guards: RosterSafeguards = ALL, lines: list[str] | None = None
) -> EpochRun:
    run = Run(scenario, guards)
    world, broken, detail = run.world, None, ""
    if lines is not None:
        world.transcript = Transcript(world)
    try:
        run.run()
    except Violation as violation:
        broken, detail = violation.property, str(violation)
    except AssertionError as error:
        broken, detail = Property.CORE_ERROR, repr(error)
    if lines is not None and world.transcript is not None:
        lines.extend(world.transcript.lines)
    return EpochRun(
        scenario.seed,
        broken,
        detail,
        world.record.newest.number,
        world.epoch_judge.closes,
        len(world.record.events),
        scenario.describe(),
        world.judge.digest.hexdigest(),
    )
