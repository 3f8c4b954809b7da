"""What torture does to a cluster: each kind by name, drawn by a seed, and whether it took effect.

Those that take a disk away come one at a time, and only while all have the same: what is promised
is that a Read entry survives the loss of so many disks, not of all one after the other.
"""

import random
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from quipu.devnet.processes import ProcessState, ended, send, until
from tests.process.badnode import refusals
from tests.process.chaos import FAIR
from tests.process.command import RunningCommand, quipu_at_length
from tests.process.disk import lose_power
from tests.process.faults import CUT, FAR, LOSSY, NARROW, lasts
from tests.process.harmed import Harmed
from tests.process.test_damaged import branch_pages

SLOW_S = 0.3
JUMPS_S = (-3_600.0, -5.0, 5.0, 90.0, 3_600.0)
TAKEN_S = 30.0  # until a fault shows that it has been felt


@dataclass(slots=True)
class Torments:
    """`backups`: the oldest copy of each store, taken before anything happened to it."""

    world: Harmed
    random: random.Random
    folder: Path
    lengths_s: tuple[float, float]
    backups: dict[int, Path] = field(default_factory=dict)
    lost: list[int] = field(default_factory=list)  # whose disk went, in order
    kills: int = 0
    power_cuts: int = 0

    def length_s(self) -> float:
        return self.random.uniform(*self.lengths_s)

    def some(self) -> int:
        return self.random.choice(self.world.numbers)

    def kill(self, *numbers: int) -> bool:
        """Whether they had run, and are no more."""
        ran = [self.world.net.state(n) is not ProcessState.STOPPED for n in numbers]
        self.world.net.kill(*numbers)
        self.kills += len(numbers)
        return all(ran)

    def cut(self, pairs: Sequence[tuple[int, int]]) -> bool:
        before = self.world.chaos.touched["cut"]
        self.world.chaos.set(pairs, CUT)
        lasts(self.length_s())
        return self.world.chaos.touched["cut"] > before

    def pairs(self) -> list[tuple[int, int]]:
        return [(a, b) for a in self.world.numbers for b in self.world.numbers if a != b]

    def felt(self, is_so: Callable[[], bool]) -> bool:
        """A fault ends only once the node has met it: what it was due is never left out."""
        return until(is_so, TAKEN_S)

    def back_up(self) -> None:
        for number in self.world.numbers:
            target = self.folder / f"backup-{number}"
            data = self.world.net.data_of(self.world.net.node(number))
            done = quipu_at_length("store", "backup", str(target), "--data-dir", str(data))
            assert done.returncode == 0, done.stderr
            self.backups[number] = target


Kind = Callable[[Torments], bool]


# --- processes ------------------------------------------------------------------------------------
def killed(at: Torments) -> bool:
    number = at.some()
    was = at.kill(number)
    lasts(at.length_s())
    at.world.net.begin(number)
    return was


def all_killed(at: Torments) -> bool:
    was = at.kill(*at.world.numbers)
    for number in at.world.numbers:
        at.world.net.begin(number)
    return was


def paused(at: Torments) -> bool:
    number = at.some()
    at.world.net.pause(number)
    lasts(at.length_s())
    was = at.world.net.state(number) is ProcessState.PAUSED
    at.world.net.resume(number)
    return was


def restarted(at: Torments) -> bool:
    number = at.some()
    running = at.world.net.node(number).running
    send(running, signal.SIGTERM)
    was = ended(running, 30.0)
    at.world.net.begin(number)
    return was


def cloned(at: Torments) -> bool:
    """A second process with its key, genesis and secret, while the first one runs."""
    number = at.some()
    ours, clone = at.world.net.data_of(at.world.net.node(number)), at.folder / "clone"
    shutil.rmtree(clone, ignore_errors=True)
    shutil.copytree(ours, clone, ignore=shutil.ignore_patterns("store*", "*.lock", "admin.sock"))
    watched = number % len(at.world.numbers) + 1
    before = refusals(at.world.net, watched)
    with RunningCommand(clone, "--name", f"n{number}"):
        was = at.felt(lambda: bool((refusals(at.world.net, watched) - before).total()))
    at.kill(number)
    at.world.net.begin(number)
    return was


# --- disks ----------------------------------------------------------------------------------------
def wiped(at: Torments) -> bool:
    number = at.some()
    at.kill(number)
    store = at.world.net.store_of(number)
    was = (store / "data.mdb").exists()
    shutil.rmtree(store)
    at.lost.append(number)
    at.world.net.begin(number)
    return was


def restored(at: Torments) -> bool:
    """To what it was when all began."""
    number = at.some()
    at.kill(number)
    data = at.world.net.data_of(at.world.net.node(number))
    backup = str(at.backups[number])
    done = quipu_at_length("store", "restore", backup, "--set-aside", "--data-dir", str(data))
    assert done.returncode == 0, done.stderr
    at.lost.append(number)
    at.world.net.begin(number)
    return True


def bits_flipped(at: Torments) -> bool:
    number = at.some()
    at.kill(number)
    before = at.world.said("set aside")
    branch_pages(at.world.net.store_of(number))
    at.lost.append(number)
    at.world.net.begin(number)
    running = at.world.net.node(number).running
    if not at.felt(lambda: at.world.said("set aside") > before):
        if ended(running, 1.0):  # LMDB ends the process where it meets the damage: once
            at.world.net.begin(number)
            return at.felt(lambda: at.world.said("set aside") > before)
        return False
    return True


def power_lost(at: Torments) -> bool:
    """kill -9, and of what was not synced all or a part is gone."""
    number = at.some()
    at.kill(number)
    undo = at.world.net.harms[number].undo
    if undo.exists():
        chance = at.random.choice((0.5, 1.0))
        data = at.world.net.store_of(number) / "data.mdb"
        lose_power(data, undo, chance, at.random.randrange(1 << 32))
    at.power_cuts += 1
    at.world.net.begin(number)
    return True


def slow_disk(at: Torments) -> bool:
    harm = at.world.net.harms[at.some()]
    before = harm.counted().syncs_slowed
    harm.slow(SLOW_S)
    lasts(at.length_s())
    was = at.felt(lambda: harm.counted().syncs_slowed > before)
    harm.slow(0)
    return was


def full_disk(at: Torments) -> bool:
    harm = at.world.net.harms[at.some()]
    before = harm.counted().writes_refused
    harm.full(True)
    lasts(at.length_s())
    was = at.felt(lambda: harm.counted().writes_refused > before)
    harm.full(False)
    return was


# --- clocks ---------------------------------------------------------------------------------------
def clock_jumped(at: Torments) -> bool:
    """While it runs, and back again."""
    harm = at.world.net.harms[at.some()]
    before = harm.counted().clock_reads_wrong
    harm.clock(at.random.choice(JUMPS_S))
    lasts(at.length_s())
    was = at.felt(lambda: harm.counted().clock_reads_wrong > before)
    harm.clock(0)
    return was


# --- the network ----------------------------------------------------------------------------------
def halves_cut(at: Torments) -> bool:
    numbers = at.random.sample(at.world.numbers, len(at.world.numbers))
    half = set(numbers[: len(numbers) // 2])
    return at.cut([(a, b) for a, b in at.pairs() if (a in half) != (b in half)])


def one_node_cut(at: Torments) -> bool:
    number = at.some()
    return at.cut([pair for pair in at.pairs() if number in pair])


def ring_cut(at: Torments) -> bool:
    """Each hears its neighbours on a line alone."""
    line = at.random.sample(at.world.numbers, len(at.world.numbers))
    far = [(a, b) for a, b in at.pairs() if abs(line.index(a) - line.index(b)) > 1]
    return at.cut(far)


def one_way_cut(at: Torments) -> bool:
    return at.cut([at.random.choice(at.pairs())])


def deaf(at: Torments) -> bool:
    number = at.some()
    return at.cut([(a, b) for a, b in at.pairs() if b == number])


def flapping(at: Torments) -> bool:
    number, touched = at.some(), at.world.chaos.touched
    pairs, before = [pair for pair in at.pairs() if number in pair], touched["cut"]
    end_s = time.monotonic() + at.length_s()
    while time.monotonic() < end_s or touched["cut"] == before:
        at.world.chaos.set(pairs, CUT)
        lasts(at.random.uniform(0.1, 0.8))
        at.world.chaos.set(pairs, FAIR)
        lasts(at.random.uniform(0.1, 0.8))
    return True


def resets(at: Torments) -> bool:
    before, end_s = at.world.chaos.touched["reset"], time.monotonic() + at.length_s()
    while time.monotonic() < end_s:
        at.world.chaos.reset()
        lasts(at.random.uniform(0.1, 0.8))
    return at.world.chaos.touched["reset"] > before


def lossy(at: Torments) -> bool:
    before = at.world.chaos.touched["loss"]
    at.world.chaos.set(at.pairs(), LOSSY)
    lasts(at.length_s())
    return at.world.chaos.touched["loss"] > before


def far_away(at: Torments) -> bool:
    number, before = at.some(), at.world.chaos.touched["delay"]
    at.world.chaos.set([pair for pair in at.pairs() if number in pair], FAR)
    lasts(at.length_s())
    return at.world.chaos.touched["delay"] > before


def narrow(at: Torments) -> bool:
    before = at.world.chaos.touched["narrow"]
    at.world.chaos.set(at.pairs(), NARROW)
    lasts(at.length_s())
    return at.world.chaos.touched["narrow"] > before


TAKES_A_DISK: tuple[Kind, ...] = (wiped, restored, bits_flipped)
OF_PROCESSES: tuple[Kind, ...] = (killed, all_killed, paused, restarted, cloned, power_lost)
OF_MACHINES: tuple[Kind, ...] = (slow_disk, full_disk, clock_jumped)
OF_LINKS: tuple[Kind, ...] = (
    halves_cut, one_node_cut, ring_cut, one_way_cut, deaf, flapping, resets, lossy, far_away, narrow
)  # fmt: skip
KINDS: dict[str, Kind] = {
    kind.__name__: kind for kind in (*OF_PROCESSES, *OF_MACHINES, *TAKES_A_DISK, *OF_LINKS)
}
