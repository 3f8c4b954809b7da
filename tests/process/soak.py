"""A cluster of three under mixed load for hours, sampled: what grows, by how much, and with what.

`make soak HOURS=8`. Memory and disk are judged by what they grow for each entry; descriptors,
threads and latency by what they would come to over the whole run: straight lines through the
samples by least squares. The first part is left out: caches fill then, and a store takes room.
"""

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

from bench.figures import note_figure
from quipu.client import QuipuError
from quipu.devnet import Devnet
from tests.process.cluster import client_of, cluster
from tests.process.load import Load

NODES = 3
SAMPLES = 120  # of a run, at least
INTERVAL_S_MAX = 60.0
WARM_PART = 0.3  # of the samples: left out
LATENCY_TRIES = 3
READ_S_MAX = 30.0


class Sample(NamedTuple):
    """Of one node at one time."""

    at_s: float
    entries: int  # acknowledged by all nodes so far
    memory: int  # bytes of its own: what it maps of files is the kernel's to take back
    descriptors: int
    threads: int
    disk: int  # bytes of its data directory
    latency_ms: float  # of a POST to Read, the median of a few


class Bounds(NamedTuple):
    """What the lines may come to."""

    memory: float = 64.0  # bytes an entry
    disk: float = 3_000.0  # bytes an entry
    descriptors: float = 6.0  # more at the end than after the first part
    threads: float = 3.0
    latency: float = 1.0  # growth over the run, as a part of the median


class Line(NamedTuple):
    """What one figure of one node did."""

    node: int
    what: str
    value: float
    bound: float

    @property
    def holds(self) -> bool:
        return self.value <= self.bound

    def __str__(self) -> str:
        verdict = "holds" if self.holds else "GROWS"
        return f"n{self.node} {self.what:34} {self.value:12.2f}  at most {self.bound:g}: {verdict}"


def slope(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Of the straight line with the least squares; flat where there is nothing to go by."""
    x_mean, y_mean = fmean(xs), fmean(ys)
    spread = sum((x - x_mean) ** 2 for x in xs)
    together = sum((x - x_mean) * (y - y_mean) for x, y in zip(xs, ys, strict=True))
    return together / spread if spread else 0.0


def lines_of(node: int, samples: Sequence[Sample], bounds: Bounds) -> list[Line]:
    kept = samples[int(len(samples) * WARM_PART) :]
    at_s, entries = [one.at_s for one in kept], [float(one.entries) for one in kept]
    run_s = at_s[-1] - at_s[0]

    def over(xs: Sequence[float], of: Callable[[Sample], float]) -> float:
        return slope(xs, [of(one) for one in kept])

    middle_ms = median(one.latency_ms for one in kept)
    return [
        Line(node, "memory, bytes an entry", over(entries, lambda s: s.memory), bounds.memory),
        Line(node, "disk, bytes an entry", over(entries, lambda s: s.disk), bounds.disk),
        Line(
            node, "descriptors over the run", over(at_s, lambda s: s.descriptors) * run_s,
            bounds.descriptors,
        ),
        Line(node, "threads over the run", over(at_s, lambda s: s.threads) * run_s, bounds.threads),
        Line(
            node, "latency over the run, of its median",
            over(at_s, lambda s: s.latency_ms) * run_s / middle_ms, bounds.latency,
        ),
    ]  # fmt: skip


@dataclass(slots=True)
class Soak:
    """One run: samples by node, and what was acknowledged."""

    net: Devnet
    load: Load
    begun_s: float = field(default_factory=time.monotonic)
    entries: int = 0
    samples: dict[int, list[Sample]] = field(default_factory=dict)

    def take(self) -> None:
        history = self.load.history
        self.entries += len(history.acked)
        history.acked.clear()  # hours of them would fill the memory of the test
        for seen in history.followed.values():
            seen.clear()
        for number, node in enumerate(self.net.nodes, start=1):
            assert node.running is not None
            status = status_of(node.running.pid)
            sample = Sample(
                time.monotonic() - self.begun_s,
                self.entries,
                status["RssAnon"] * 1_024,
                len(os.listdir(f"/proc/{node.running.pid}/fd")),
                status["Threads"],
                disk_bytes(self.net.data_of(node)),
                self._latency_ms(number),
            )
            self.samples.setdefault(number, []).append(sample)

    def _latency_ms(self, number: int) -> float:
        took: list[float] = []
        with client_of(self.net, number) as client:
            for _ in range(LATENCY_TRIES):
                begun_s = time.monotonic()
                try:
                    client.submit("sample", wait="read", timeout=READ_S_MAX)
                except QuipuError as error:
                    say(f"n{number}: {error}")
                took.append((time.monotonic() - begun_s) * 1_000)
        return median(took)

    def lines(self, bounds: Bounds) -> list[Line]:
        return [line for n, kept in self.samples.items() for line in lines_of(n, kept, bounds)]


def status_of(pid: int) -> dict[str, int]:
    """The numbers of /proc/PID/status; sizes in KiB."""
    found: dict[str, int] = {}
    for text in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, rest = text.partition(":")
        number = rest.split()[:1]
        if number and number[0].isdigit():
            found[name] = int(number[0])
    return found


def disk_bytes(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.lstat().st_blocks * 512
        except FileNotFoundError:
            continue  # a file that was replaced meanwhile
    return total


def soak(folder: Path, seconds: float, samples: int = SAMPLES) -> Soak:
    """Raises AssertionError where what was written is not in one order on all nodes."""
    interval_s = min(seconds / samples, INTERVAL_S_MAX)
    with cluster(folder, NODES) as net:
        load = Load({number: net.node(number).api for number in range(1, NODES + 1)})
        try:
            load.follow()
            load.begin()
            made = Soak(net, load)
            while (passed_s := time.monotonic() - made.begun_s) < seconds:
                made.take()
                due_s = interval_s - (time.monotonic() - made.begun_s - passed_s)
                time.sleep(max(due_s, 0.0))
            load.pause()
            made.take()
        finally:
            load.end()
    return made


def say(text: str) -> None:
    print(text, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.process.soak", description=__doc__)
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--note", action="store_true", help="append to docs/figures.csv")
    chosen = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="quipu-soak-"))
    made = soak(folder / "net", chosen.hours * 3_600)
    lines = made.lines(Bounds())
    for line in lines:
        say(str(line))
    failed = [line for line in lines if not line.holds]
    taken = len(made.samples[1])
    say(f"{made.entries:,} entries acknowledged, {taken} samples, {len(failed)} figures grow")
    if chosen.note:
        command = f"soak {chosen.hours:g} h"
        note_figure(command, "entries acknowledged", made.entries)
        for line in lines:
            note_figure(command, f"n{line.node} {line.what}", line.value)
    if failed:
        say(f"all of it is in {folder}")
    else:
        shutil.rmtree(folder)
    return len(failed)


if __name__ == "__main__":
    raise SystemExit(main())
