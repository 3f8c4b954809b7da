"""A world of three members and a fourth that lies, told line by line: what `make run` shows."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.simulation.calm import all_read, calm_world, isolate, until, write
from tests.simulation.clock import US_PER_S
from tests.simulation.convergence import Convergence, quiet
from tests.simulation.liars.authors import Equivocator
from tests.simulation.node import SimNode
from tests.simulation.violation import Violation
from tests.simulation.workload import Submission
from tests.simulation.world import World


class Demo:
    def __init__(self, say: Callable[[str], None]) -> None:
        self._out = say
        self._world: World | None = None
        self._submissions: list[Submission] = []

    @property
    def world(self) -> World:
        assert self._world is not None
        return self._world

    def say(self, text: str) -> None:
        seconds = self.world.scheduler.now_us / US_PER_S
        self._out(f"{seconds:7.2f} s  {text}")

    def run(self) -> None:
        self._out("Three members n1, n2, n3; an event is Read once two of them hold it durably.")
        self._world = calm_world(3)
        n1, n2, n3 = self.world.nodes
        self.world.faults.active = False  # nobody strikes but this script
        self._normal(n1, [n1, n2, n3])
        self._killed(n3, [n1, n2])
        self._partition(n1, [n2, n3])
        self._finish("three honest members")
        self._out("")
        self._out("Four members, policy two-thirds; the fourth signs two events for each slot.")
        self._submissions = []
        self._world = calm_world(4, "two-thirds", [Equivocator])
        self._equivocator([node for node in self.world.nodes if node.honest])

    def _submit(self, node: SimNode, count: int) -> list[Submission]:
        made = write(self.world, node, count)
        self._submissions += made
        return made

    def _normal(self, node: SimNode, readers: list[SimNode]) -> None:
        start_us = self.world.scheduler.now_us
        made = self._submit(node, 1)
        until(self.world, lambda: all_read(made, readers), 2_000)
        read_us = max(self.world.history.read_us[s.stored] for s in made if s.stored is not None)
        self.say(f"{node} writes; Read first after {(read_us - start_us) / 1000:.0f} ms")
        made = self._submit(node, 30)
        until(self.world, lambda: all_read(made, readers), 2_000)
        self.say("30 more events are Read at all three")

    def _killed(self, victim: SimNode, others: list[SimNode]) -> None:
        victim.crash()
        self.say(f"{victim} loses power")
        made = self._submit(others[0], 20) + self._submit(others[1], 20)
        until(self.world, lambda: all_read(made, others), 3_000)
        self.say("40 events are Read by the two that are left")
        victim.start()
        took_ms = until(self.world, lambda: all_read(made, [victim]), 10_000)
        self.say(f"{victim} is back and has them all {took_ms / 1000:.1f} s after its start")

    def _partition(self, alone: SimNode, others: list[SimNode]) -> None:
        isolate(self.world, alone)
        self.say(f"{alone} is cut off; it goes on taking writes")
        waiting = self._submit(alone, 10)
        made = self._submit(others[0], 10)
        until(self.world, lambda: all_read(made, others), 3_000)
        read = self.world.history.read_us
        assert not any(s.stored in read for s in waiting if s.stored is not None)
        self.say("the majority's 10 events are Read, those of the other side wait Unread")
        self.world.run_ms(6_000)
        self.world.network.heal()
        took_ms = until(self.world, lambda: all_read(made + waiting, [alone, *others]), 6_000)
        self.say(f"healed: all 20 are Read at all three after {took_ms / 1000:.1f} s")

    def _equivocator(self, honest: list[SimNode]) -> None:
        made: list[Submission] = []
        for node in honest:
            made += self._submit(node, 10)
        self.world.run_ms(2_000)
        self.world.faults.active = False  # from here on it is silent
        until(self.world, lambda: all_read(made, honest), 6_000)
        self.say("30 events of the honest members are Read in spite of it")
        until(self.world, lambda: all(node.disk.proofs for node in honest), 6_000)
        forked = len(self.world.record.forked)
        self.say(f"each honest member holds a signed proof against the liar ({forked} forks seen)")
        self._finish("all honest members")

    def _finish(self, who: str) -> None:
        judge = Convergence(self.world)
        until(self.world, lambda: not judge.differences(), 6_000)
        judge.final()
        quiet(self.world)
        reads = len(self.world.honest()[0].shadow.read)
        self.say(f"{who} hold the same {reads} Read events, each with receipts that prove it")


def run_demo(say: Callable[[str], None]) -> int:
    started = time.monotonic()
    demo = Demo(say)
    try:
        demo.run()
    except (Violation, AssertionError) as found:
        say(f"VERDICT: broken: {found}")
        return 1
    judge = demo.world.judge
    say(
        f"VERDICT: nothing Read was lost, no branch of the liar won over another; every step was "
        f"judged ({judge.steps} in the last world). {time.monotonic() - started:.1f} s"
    )
    return 0
