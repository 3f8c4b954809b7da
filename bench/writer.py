"""`python -m bench.writer`: the writer in a thread of its own against inline, on this disk.

The load spends on each entry what an HTTP request costs the loop, so that what the writer takes
from it shows. Rounds of both alternate: what else the machine does meets them alike.
"""

import argparse
import asyncio
import io
import statistics
import tempfile
import time
from pathlib import Path
from typing import Literal, NamedTuple

import uvloop

from quipu.ledger.entry import data_entry, encode_entry
from quipu.node.logs import open_log
from quipu.node.program import opened
from quipu.node.settings import LogSettings, NodeSettings, Settings, StoreSettings

WRITERS: tuple[Literal["thread", "inline"], ...] = ("thread", "inline")
REQUEST_CPU_S = 40e-6  # what aiohttp and JSON take for a POST of 256 bytes
ENTRY = encode_entry(data_entry(bytes(256)))


TIMER_S = 1e-3
Kind = Literal["thread", "inline"]


class Round(NamedTuple):
    answers_s: list[float]
    late_s: list[float]


async def round_of(kind: Kind, apps: int, seconds: float, disk: Path | None) -> "Round":
    """Seconds of each answer, and by how much a timer of a millisecond was late meanwhile."""
    with tempfile.TemporaryDirectory(prefix="quipu-writer-", dir=disk) as folder:
        settings = Settings(
            node=NodeSettings(data_dir=Path(folder) / "data"), store=StoreSettings(writer=kind)
        )
        async with opened(settings, open_log(LogSettings(level="error"), io.StringIO())) as node:
            ends = time.perf_counter() + seconds
            taken: list[float] = []
            late: list[float] = []

            async def app() -> None:
                while (begun := time.perf_counter()) < ends:
                    _work()
                    await node.ledger.submit([ENTRY])
                    taken.append(time.perf_counter() - begun)

            async def reader() -> None:
                while (begun := time.perf_counter()) < ends:
                    await asyncio.sleep(TIMER_S)
                    late.append(time.perf_counter() - begun - TIMER_S)

            await asyncio.gather(reader(), *(app() for _ in range(apps)))
    return Round(taken, late)


def _work() -> None:
    until = time.perf_counter() + REQUEST_CPU_S
    while time.perf_counter() < until:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.writer", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--disk", type=Path, help="a folder on the disk to measure")
    chosen = parser.parse_args()
    print("| apps | writer | entries/s | p50 ms | p99 ms | a read waits, p99 ms |")
    print("| --- | --- | --- | --- | --- | --- |")
    for apps in (1, 64, 512):
        found: dict[Kind, list[Round]] = {kind: [] for kind in WRITERS}
        for _ in range(chosen.rounds):
            for kind in WRITERS:
                found[kind].append(uvloop.run(round_of(kind, apps, chosen.seconds, chosen.disk)))
        for name, rounds in found.items():
            rate = statistics.median(len(r.answers_s) for r in rounds) / chosen.seconds
            p50, p99 = (_cut([r.answers_s for r in rounds], i) for i in (50, 99))
            late = _cut([r.late_s for r in rounds], 99)
            print(f"| {apps} | {name} | {rate:,.0f} | {p50:.1f} | {p99:.1f} | {late:.1f} |")


def _cut(samples: list[list[float]], percent: int) -> float:
    """The median over the rounds, in milliseconds."""
    return 1e3 * statistics.median(statistics.quantiles(s, n=100)[percent - 1] for s in samples)


if __name__ == "__main__":
    main()
