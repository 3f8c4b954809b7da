"""Writes docs/simulation.md: what the judge demands, what the ablation found, what things cost."""

from __future__ import annotations

import inspect
import re
import time
from collections.abc import Callable
from pathlib import Path

from tests.simulation import ablation, cost, peers_figures, violation
from tests.simulation.liars import LIARS
from tests.simulation.runs import Result, run_peered, run_seed

DOCUMENT = Path(__file__).parents[2] / "docs" / "simulation.md"


def property_rows() -> list[str]:
    """Each property with the comment beside its name."""
    source = inspect.getsource(violation.Property)
    found = re.findall(r'= "([a-z-]+)"(?:  # (.*))?', source)
    return ["| property | what it demands |", "| --- | --- |"] + [
        f"| {name} | {meaning or name.replace('-', ' ')} |" for name, meaning in found
    ]


def liar_rows() -> list[str]:
    rows = [f"| {liar.__name__} | {(liar.__doc__ or '').splitlines()[0]} |" for liar in LIARS]
    return ["| liar | what it does |", "| --- | --- |", *rows]


def ablation_rows(jobs: int) -> list[str]:
    lines = ["| safeguard | caught by | seeds it took |", "| --- | --- | ---: |"]
    return lines + [
        f"| {caught.safeguard} | {caught.broken or 'NOT CAUGHT'} | {caught.seeds} |"
        for caught in ablation.ablate_all(ablation.names(), jobs)
    ]


def seed_lines(seeds: int, run: Callable[[int], Result], what: str) -> list[str]:
    started, worst_ms, steps, failed = time.process_time(), 0, 0, 0
    for seed in range(1, seeds + 1):
        result = run(seed)
        worst_ms = max(worst_ms, result.converged_ms)
        steps += result.steps
        failed += result.broken is not None
    cpu_s = (time.process_time() - started) / seeds
    return [
        (
            f"{seeds} {what}: {failed} failed, {steps // seeds} steps, {cpu_s:.2f} s of CPU each; "
            f"the slowest was equal everywhere {worst_ms / 1000:.1f} s after healing."
        )
    ]


def write(jobs: int, seeds: int) -> int:
    ablated = ablation_rows(jobs)
    parts = [
        "# The simulator",
        "",
        "Written by `make figures`. N cores in one process, a virtual clock, a seeded network,",
        "disks that lose power, and liars; a judge checks every step and does not share the",
        "core's decisions. `make sim SEEDS=1000` runs seeds, `make replay SEED=n` runs one again.",
        "",
        "## Seeds",
        *seed_lines(seeds, run_seed, "seeds"),
        "",
        "Messages of the cores go from one to the other there. With `PEERS=1` they travel through",
        "real peer machines, their HELLOs, frames and queries, in some worlds by multicast:",
        *seed_lines(seeds // 3, run_peered, "seeds through peer machines"),
        "",
        "## What must hold",
        *property_rows(),
        "",
        "## Liars",
        *liar_rows(),
        "",
        "## Ablation: each safeguard taken out",
        *ablated,
        "",
        "## What agreement costs",
        *cost.table(),
        "",
        "## Peers",
        *peers_figures.table(),
        "",
    ]
    DOCUMENT.write_text("\n".join(parts), encoding="utf-8")
    return any("NOT CAUGHT" in line for line in ablated)
