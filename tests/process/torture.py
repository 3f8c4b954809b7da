"""Torture: a cluster of real nodes under mixed load and every kind of harm, drawn by a seed.

`python -m tests.process.torture --seed 7 --nodes 5` is one run; with `--minutes` runs follow each
other, seed after seed, and each leaves a row in docs/figures.csv. A run counts only if every kind
of its schedule took effect and enough entries were Read under it.
"""

import argparse
import random
import shutil
import tempfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.figures import note_figure
from tests.process import promises
from tests.process.disk import build
from tests.process.harmed import Harmed, harmed
from tests.process.load import Load
from tests.process.torments import KINDS, OF_LINKS, OF_MACHINES, TAKES_A_DISK, Torments

LENGTHS_S = (0.5, 3.0)
READ_MIN = 1_000
TOGETHER = 0.3  # part of the harms to links and machines that come with one to a process
UNHEALED = 0.3  # part of the harms that the next one follows at once
CALM_S = 1.5  # of load before the first harm and after the last
NODES = (3, 5)


@dataclass(slots=True)
class Run:
    """What one run did and found; `failure`: why it counts as failed, or not at all."""

    seed: int
    nodes: int
    effects: dict[str, int] = field(default_factory=dict)  # by kind: how often it was felt
    harms: int = 0
    kills: int = 0
    power_cuts: int = 0
    acked: int = 0
    read: int = 0
    ordered: int = 0
    published: int = 0
    proofs: int = 0
    lost_stored: int = 0
    told_again: int = 0
    slowest_s: float = 0.0
    took_s: float = 0.0
    failure: str = ""

    @property
    def command(self) -> str:
        return f"torture --seed {self.seed} --nodes {self.nodes}"

    @property
    def summary(self) -> str:
        counts = (
            f"harms={self.harms} kinds={len(self.effects)} kills={self.kills} "
            f"power-cuts={self.power_cuts} acknowledged={self.acked} read={self.read} "
            f"ordered={self.ordered} numbers={self.published} proofs={self.proofs} "
            f"stored-lost={self.lost_stored} slowest-equal-s={self.slowest_s:.1f} "
            f"took-s={self.took_s:.0f}"
        )
        return f"{'failed' if self.failure else 'passed'} {counts}"


def schedule(dice: random.Random, kinds: Sequence[str]) -> list[tuple[str, ...]]:
    """Each kind once, some of them two at a time: one to links or machines, then one more."""
    order = dice.sample(kinds, len(kinds))
    outer = [name for name in order if KINDS[name] in (*OF_LINKS, *OF_MACHINES)]
    inner = [name for name in order if name not in outer]
    planned: list[tuple[str, ...]] = [(name,) for name in outer]
    for name in inner:
        together = KINDS[name] not in TAKES_A_DISK and outer and dice.random() < TOGETHER
        planned.append((name, dice.choice(outer)) if together else (name,))
    dice.shuffle(planned)
    return planned


def run(folder: Path, made: Run, kinds: Sequence[str] = tuple(KINDS)) -> None:
    """Raises AssertionError where a promise is broken."""
    begun_s = time.monotonic()
    libraries = build(folder)
    with harmed(folder / "net", made.nodes, made.seed, libraries) as world:
        load = Load({n: world.net.node(n).api for n in world.numbers})
        try:
            _torment(world, load, made, folder, kinds)
        finally:
            made.took_s = time.monotonic() - begun_s
            load.end()


def _torment(world: Harmed, load: Load, made: Run, folder: Path, kinds: Sequence[str]) -> None:
    dice = random.Random(made.seed)
    at = Torments(world, random.Random(made.seed), folder, LENGTHS_S)
    load.follow()
    load.begin()
    time.sleep(CALM_S)
    at.back_up()
    try:
        for names in schedule(dice, kinds):
            takes_disk = KINDS[names[0]] in TAKES_A_DISK
            if takes_disk:
                _settle(world, load, made)
                load.begin()
                time.sleep(CALM_S)
            for name in names:
                say(f"{name} …")
                made.effects[name] = made.effects.get(name, 0) + KINDS[name](at)
                made.harms += 1
            if takes_disk or dice.random() >= UNHEALED:
                _settle(world, load, made)
                load.begin()
            else:
                world.heal()
        time.sleep(CALM_S)
        _settle(world, load, made)
    finally:
        made.kills, made.power_cuts = at.kills, at.power_cuts
    _judge(world, load, made, at)


def _settle(world: Harmed, load: Load, made: Run) -> None:
    """Nobody writes; all is healed; soon all have the same."""
    world.heal()
    load.pause()
    took_s = promises.settled_s(world, time.monotonic())
    made.slowest_s = max(made.slowest_s, took_s)
    say(f"    equal and ordered after {took_s:.1f} s")


def _judge(world: Harmed, load: Load, made: Run, at: Torments) -> None:
    history = load.history
    kept = promises.entries_are_kept(world, history, at.lost)
    made.read, made.lost_stored = kept.read, len(kept.lost)
    made.acked, made.published = len(history.acked), len(history.published)
    made.proofs = promises.proofs_verify(world, history, at.random)
    made.told_again = promises.followers_saw_all(world, history)
    made.ordered = promises.order_is_one(world, history)
    promises.nobody_broke(world)
    promises.dumps_agree(world, at.folder)
    for text in kept.lost:
        say(f"    stored only, gone with its disk: {text}")
    unfelt = [name for name, count in made.effects.items() if not count]
    assert not unfelt, f"took no effect: {', '.join(unfelt)}"
    assert made.read >= READ_MIN or len(made.effects) < len(KINDS), f"{made.read} entries Read"


def say(text: str) -> None:
    print(text, flush=True)


# --- for long -------------------------------------------------------------------------------------
def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.process.torture", description=__doc__)
    parser.add_argument("--minutes", type=float, help="run after run for so long; without: one")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--nodes", type=int, choices=NODES, help="without: 3 and 5 in turn")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=tuple(KINDS))
    parser.add_argument("--note", action="store_true", help="append to docs/figures.csv")
    chosen = parser.parse_args()
    end_s = time.monotonic() + (chosen.minutes or 0) * 60
    failed, seed = 0, chosen.seed
    while True:
        made = Run(seed, chosen.nodes or NODES[seed % len(NODES)])
        one(made, chosen.kinds, chosen.note)
        failed += bool(made.failure)
        seed += 1
        if time.monotonic() >= end_s:
            return failed


def one(made: Run, kinds: Sequence[str], is_noted: bool) -> None:
    """The folder of a failed run stays."""
    say(f"seed {made.seed}, {made.nodes} nodes")
    folder = Path(tempfile.mkdtemp(prefix="quipu-torture-"))
    try:
        run(folder, made, kinds)
    except Exception:  # noqa: BLE001 - whatever it was, it is a finding
        made.failure = traceback.format_exc()
        say(f"{made.failure}\nall of it is in {folder}")
    else:
        shutil.rmtree(folder)
    say(f"{made.command}: {made.summary}")
    if is_noted:
        note_figure(made.command, made.summary, made.read)


if __name__ == "__main__":
    raise SystemExit(main())
