"""Faults by a seed, one after the other, on a cluster under load; after each all is to be well.

`python -m tests.process.faults --minutes 10` runs them for long.
"""

import argparse
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from quipu.devnet.processes import until
from quipu.node import clock
from tests.process.chaos import FAIR, Weather
from tests.process.shaken import AGAIN_S_MAX, Apps, Shaken, Written, shaken

HOUR_S = 3_600
CUT = replace(FAIR, is_cut=True)
FAR = Weather(delay_s=2.0, jitter_s=0.2)
LOSSY = Weather(jitter_s=0.02, loss=0.3)
NARROW = Weather(bytes_per_s=50_000.0)
SHORT_S = (1.0, 4.0)
LONG_S = (1.0, 30.0)
MINUTE_S = 60.0


class Outcome(NamedTuple):
    fault: str
    lasted_s: float
    equal_s: float  # from its end to equal Models


class Faults:
    """Draws faults for one cluster, and applies them."""

    def __init__(self, world: Shaken, seed: int, lengths_s: tuple[float, float] = SHORT_S) -> None:
        self.world = world
        self.random = random.Random(seed)
        self.written: list[Written] = []
        self.outcomes: list[Outcome] = []
        self._lengths_s = lengths_s

    def one(self, name: str) -> Outcome:
        """The fault under load, its end, and what has to hold then."""
        world = self.world
        apps = Apps(world.net, world.numbers)
        begun_s = time.monotonic()
        try:
            (FAULTS | ONLY_FOR_LONG)[name](self)
        finally:
            world.chaos.clear()
            ended_s = time.monotonic()
            written = apps.end()
        self.written += written
        outcome = Outcome(name, ended_s - begun_s, world.await_equal(ended_s))
        self.outcomes.append(outcome)
        world.check_kept(written)
        assert world.farewells() == 0, "somebody is believed to have left"
        assert written, "the apps wrote nothing at all"
        return outcome

    # --- drawing --------------------------------------------------------------------------------
    def length_s(self) -> float:
        return self.random.uniform(*self._lengths_s)

    def some(self) -> int:
        return self.random.choice(self.world.numbers)

    def pair(self) -> tuple[int, int]:
        first, second = self.random.sample(self.world.numbers, 2)
        return first, second

    def all_pairs(self) -> list[tuple[int, int]]:
        return [(a, b) for a in self.world.numbers for b in self.world.numbers if a != b]

    def halves(self) -> tuple[list[int], list[int]]:
        numbers = self.random.sample(self.world.numbers, len(self.world.numbers))
        middle = len(numbers) // 2
        return numbers[:middle], numbers[middle:]


def lasts(length_s: float) -> None:
    end_s = time.monotonic() + length_s
    until(lambda: time.monotonic() >= end_s, 2 * length_s + 1)


# --- each fault, to its end -----------------------------------------------------------------------
def killed(faults: Faults) -> None:
    number = faults.some()
    faults.world.net.kill(number)
    lasts(faults.length_s())
    faults.world.net.start(number)


def all_killed(faults: Faults) -> None:
    """All at once; within some seconds of their start they find to each other and are Read."""
    world = faults.world
    world.net.kill(*world.numbers)
    begun_s = time.monotonic()
    world.net.start(*world.numbers)
    await_read(world, AGAIN_S_MAX - (time.monotonic() - begun_s))


def paused(faults: Faults) -> None:
    number = faults.some()
    faults.world.net.pause(number)
    lasts(faults.length_s())
    faults.world.net.resume(number)


def one_node_cut(faults: Faults) -> None:
    number = faults.some()
    rest = [n for n in faults.world.numbers if n != number]
    with parted(faults.world, [number], rest):
        lasts(faults.length_s())


def halves_cut(faults: Faults) -> None:
    with parted(faults.world, *faults.halves()):
        lasts(faults.length_s())


def one_pair_cut(faults: Faults) -> None:
    """Both still talk with all others."""
    first, second = faults.pair()
    _during(faults, [(first, second), (second, first)], CUT)


def one_way_cut(faults: Faults) -> None:
    _during(faults, [faults.pair()], CUT)


def deaf(faults: Faults) -> None:
    """One hears nobody, and all hear it."""
    number = faults.some()
    _during(faults, [(n, number) for n in faults.world.numbers if n != number], CUT)


def far_away(faults: Faults) -> None:
    """Two seconds each way, from and to one node."""
    number = faults.some()
    _during(faults, [pair for pair in faults.all_pairs() if number in pair], FAR)


def lossy(faults: Faults) -> None:
    _during(faults, faults.all_pairs(), LOSSY)


def narrow(faults: Faults) -> None:
    _during(faults, faults.all_pairs(), NARROW)


def flapping(faults: Faults) -> None:
    world, end_s = faults.world, time.monotonic() + faults.length_s()
    number = faults.some()
    pairs = [pair for pair in faults.all_pairs() if number in pair]
    while time.monotonic() < end_s:
        world.chaos.set(pairs, CUT)
        lasts(faults.random.uniform(0.1, 0.8))
        world.chaos.set(pairs, FAIR)
        lasts(faults.random.uniform(0.1, 0.8))


def resets(faults: Faults) -> None:
    end_s = time.monotonic() + faults.length_s()
    while time.monotonic() < end_s:
        faults.world.chaos.reset()
        lasts(faults.random.uniform(0.1, 0.8))


def wrong_clock(faults: Faults) -> None:
    """One starts an hour off, and starts again with the right time."""
    number, net = faults.some(), faults.world.net
    offset_s = faults.random.choice((HOUR_S, -HOUR_S))
    net.kill(number)
    net.start(number, environment={clock.VARIABLE: str(offset_s)})
    lasts(faults.length_s())
    net.kill(number)
    net.start(number)


def _during(faults: Faults, pairs: list[tuple[int, int]], weather: Weather) -> None:
    faults.world.chaos.set(pairs, weather)
    lasts(faults.length_s())


FAULTS: dict[str, Callable[[Faults], None]] = {
    made.__name__: made
    for made in (
        killed,
        all_killed,
        paused,
        one_node_cut,
        halves_cut,
        one_pair_cut,
        one_way_cut,
        deaf,
        far_away,
        lossy,
        narrow,
        flapping,
        resets,
        wrong_clock,
    )
}


def a_minute_apart(faults: Faults) -> None:
    """Each side has held the other for dead for half of it: dialling never ends."""
    with parted(faults.world, *faults.halves()):
        lasts(MINUTE_S)


ONLY_FOR_LONG = {a_minute_apart.__name__: a_minute_apart}


# --- for tests of one fault -----------------------------------------------------------------------
@contextmanager
def parted(world: Shaken, *groups: list[int]) -> Iterator[float]:
    """Since when."""
    world.chaos.part(*groups)
    try:
        yield time.monotonic()
    finally:
        world.chaos.clear()


def await_read(world: Shaken, limit_s: float) -> None:
    """A write to each node that runs is Read on all of them, and so is all before it."""
    apps = Apps(world.net, world.running())

    def are_read() -> bool:
        read = {one.node for one in tuple(apps.written) if one.state == "read"}
        return read == set(world.running())

    try:
        assert until(are_read, limit_s), f"a write is not Read:\n{world.described()}"
    finally:
        apps.end()


# --- for long -------------------------------------------------------------------------------------
def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.process.faults", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--longest", type=float, default=LONG_S[1], help="seconds of a fault")
    parser.add_argument("--nodes", type=int, default=3)
    known = (*FAULTS, *ONLY_FOR_LONG)
    parser.add_argument("--faults", nargs="+", choices=known, default=known)
    chosen = parser.parse_args()
    print(f"seed {chosen.seed}", flush=True)
    end_s = time.monotonic() + chosen.minutes * 60
    with (
        tempfile.TemporaryDirectory(prefix="quipu-faults-") as folder,
        shaken(Path(folder) / "net", chosen.nodes, chosen.seed) as world,
    ):
        faults = Faults(world, chosen.seed, (LONG_S[0], chosen.longest))
        order: list[str] = []
        while time.monotonic() < end_s:
            order = order or faults.random.sample(chosen.faults, len(chosen.faults))
            outcome = faults.one(order.pop())
            print(
                f"{outcome.fault:14} {outcome.lasted_s:5.1f} s; "
                f"equal after {outcome.equal_s:4.1f} s",
                flush=True,
            )
        world.check_kept(faults.written)
    states = Counter(one.state for one in faults.written)
    slowest = max(outcome.equal_s for outcome in faults.outcomes)
    print(
        f"{len(faults.outcomes)} faults; acknowledged: {dict(states)}, none lost; "
        f"slowest to equal Models {slowest:.1f} s"
    )


if __name__ == "__main__":
    main()
