"""One seed: a world is built, suffers, is healed, and must then become one."""

from __future__ import annotations

import time
from dataclasses import dataclass

from quipu.ledger.safeguards import ALL, Safeguards
from tests.simulation.clock import US_PER_MS
from tests.simulation.convergence import Convergence, quiet, transfer_us
from tests.simulation.keys import key_pair
from tests.simulation.node import SimNode
from tests.simulation.peered import PeeredWorld
from tests.simulation.scenario import REPLACE, Scenario, generate, generate_peered
from tests.simulation.transcript import Transcript
from tests.simulation.violation import Property, Violation
from tests.simulation.workload import Submission
from tests.simulation.world import World

SYNC_PERIODS = 3
SYNC_PERIOD_US = 2_000_000
SETTLE_MS = 3_500  # the last crashed node has listened (START_WAIT) before the heal
CHANGE_MAX_MS = 15_000  # an epoch change that was under way ends by then
LOOK_MS = 250


@dataclass(slots=True)
class Result:
    seed: int
    broken: Property | None
    violation: str  # in words
    digest: str
    steps: int
    events: int
    converged_ms: int  # after healing
    cpu_s: float
    describe: str


class Run:
    def __init__(self, scenario: Scenario, safeguards: Safeguards = ALL) -> None:
        self.scenario = scenario
        kind = PeeredWorld if scenario.peered else World
        self.world = kind(scenario.seed, scenario.n, scenario.policy, safeguards)
        self.converged_ms = 0
        self.strict_losses = scenario.losses <= scenario.spare
        self._build()

    def _build(self) -> None:
        scenario, world = self.scenario, self.world
        kinds: list[type[SimNode]] = [world.kind] * scenario.honest
        world.add_founders([*kinds, *scenario.liars])
        liars = [liar.__name__ for liar in scenario.liars]
        # One liar cannot move the lower median; its clock in the mouth of a second one can.
        world.clocks_judged = not {"FutureDater", "Replayer"} <= set(liars)
        borne = (scenario.n - 1) // 3 if scenario.policy == "two-thirds" else 0
        world.one_branch_judged = len(scenario.liars) <= borne
        world.network.weather = scenario.weather
        for node, (drift_ppm, offset_ms) in zip(world.nodes, scenario.clocks, strict=False):
            node.clock.drift_ppm, node.clock.offset_ms = drift_ppm, offset_ms
        for node in world.nodes:
            world.scheduler.at(node.rng.randrange(500) * US_PER_MS, node.start)
        for at_ms, fault in scenario.faults:
            world.scheduler.at(at_ms * US_PER_MS, world.faults.strike, fault)
        for at_ms, count in scenario.bursts:
            world.scheduler.at(at_ms * US_PER_MS, world.workload.burst, count)
        for at_ms, author, reader in scenario.written:
            world.scheduler.at(at_ms * US_PER_MS, self._write, author, reader)
        for at_ms, what, argument in scenario.changes:
            world.scheduler.at(at_ms * US_PER_MS, self._change, what, argument)

    def _write(self, author: int, reader: int) -> None:
        submission = self.world.workload.submit(self.world.nodes[author], 1)
        soon_us = self.scenario.soon_ms * US_PER_MS
        self.world.scheduler.after(soon_us, self._is_read, submission, self.world.nodes[reader])

    def _is_read(self, submission: Submission, reader: SimNode) -> None:
        if submission.stored not in reader.shadow.read:
            detail = f"ticket {submission.ticket} of {submission.node} is not Read at {reader}"
            detail += f" after {self.scenario.soon_ms} ms"
            raise Violation(Property.READ_SOON, detail, self.world.scheduler.now_us)

    def _change(self, what: str, argument: int) -> None:
        """New nodes come up as observers and are made members."""
        world = self.world
        count = 1 if what == REPLACE else argument
        for _ in range(count):
            name = f"n{len(world.nodes) + 1}"
            world.add_node(key_pair(name), name).start()
        places = [
            n for n in world.nodes if n.index not in world.clones and n.index not in world.dead
        ]
        world.registrar.change(places)

    # --- the two phases -------------------------------------------------------------------------
    def run(self) -> None:
        world = self.world
        world.run_ms(self.scenario.faults_ms)
        self._end_faults()
        world.run_ms(SETTLE_MS)
        world.network.heal()
        world.registrar.hurry = True
        healed_us = world.scheduler.now_us
        while self._changing() and world.scheduler.now_us - healed_us < CHANGE_MAX_MS * US_PER_MS:
            world.run_ms(LOOK_MS)
        if world.registrar.busy:
            detail = f"the change to epoch {world.record.newest.number + 1} never ends: "
            raise Violation(Property.EPOCHS_EQUAL, detail + world.registrar.explain())
        self._converge(healed_us)

    def _changing(self) -> bool:
        newest = self.world.record.newest.number
        told = all(node.shadow.epoch == newest for node in self.world.honest() if node.up)
        return self.world.registrar.busy or not told

    def _end_faults(self) -> None:
        world = self.world
        world.faults.active = False
        for index in list(world.clones):
            if index not in world.dead:
                world.faults.end_clone(world.nodes[index])
        for node in world.nodes:
            node.armed = None
            world.faults.restart(node)

    def _converge(self, healed_us: int) -> None:
        world = self.world
        judge = Convergence(world, self.strict_losses)
        start_us = world.scheduler.now_us
        deadline_us = start_us + SYNC_PERIODS * SYNC_PERIOD_US + transfer_us(world)
        found = judge.differences()
        while found and world.scheduler.now_us < deadline_us:
            world.run_ms(LOOK_MS)
            found = judge.differences()
        if found:
            broken, detail = found[0]
            more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
            raise Violation(broken, detail + more, world.scheduler.now_us)
        self.converged_ms = (world.scheduler.now_us - healed_us) // US_PER_MS
        judge.final()
        if isinstance(world, PeeredWorld):
            world.ask_all()
        quiet(world)
        found = judge.differences()  # and so it stays
        if found:
            raise Violation(*found[0], world.scheduler.now_us)


def run_scenario(
    scenario: Scenario, safeguards: Safeguards = ALL, transcript: list[str] | None = None
) -> Result:
    started = time.process_time()
    run = Run(scenario, safeguards)
    world = run.world
    if transcript is not None:
        world.transcript = Transcript(world)
    violation: Violation | None = None
    try:
        run.run()
    except Violation as found:
        violation = found
    if transcript is not None and world.transcript is not None:
        transcript.extend(world.transcript.lines)
    return Result(
        seed=scenario.seed,
        broken=violation.property if violation else None,
        violation=str(violation or ""),
        digest=world.judge.digest.hexdigest(),
        steps=world.judge.steps,
        events=len(world.record.events),
        converged_ms=run.converged_ms,
        cpu_s=time.process_time() - started,
        describe=scenario.describe(),
    )


def run_seed(seed: int) -> Result:
    return run_scenario(generate(seed))


def run_peered(seed: int) -> Result:
    return run_scenario(generate_peered(seed))
