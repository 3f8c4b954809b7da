"""`python -m tests.simulation`: run, replay, digest, demo, ablation, cost, table."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

from tests.simulation import ablation, cost, figures
from tests.simulation.demo import run_demo
from tests.simulation.runs import Result, run_peered, run_scenario, run_seed
from tests.simulation.scenario import generate, generate_peered

TRACE_LINES = 60
FAILURES_SHOWN = 10


def run_seeds(seeds: range, jobs: int, peered: bool) -> Iterator[Result]:
    run = run_peered if peered else run_seed
    if jobs == 1:
        yield from map(run, seeds)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(run, seeds, chunksize=4)


def failure_text(result: Result) -> str:
    flags = " PEERS=1" if result.describe.startswith("peered") else ""
    return (
        f"seed {result.seed}: {result.violation}\n  {result.describe}\n"
        f"  again: make replay SEED={result.seed}{flags}"
    )


def command_run(options: argparse.Namespace) -> int:
    started = time.monotonic()
    failed: list[Result] = []
    done = cpu_s = steps = worst_ms = 0.0
    seeds = range(options.start, options.start + options.seeds)
    for result in run_seeds(seeds, options.jobs, options.peers):
        done += 1
        cpu_s += result.cpu_s
        steps += result.steps
        worst_ms = max(worst_ms, result.converged_ms)
        if result.broken is not None:
            failed.append(result)
            if len(failed) <= FAILURES_SHOWN:
                print(failure_text(result), flush=True)
    elapsed_s = time.monotonic() - started
    print(
        f"{done:.0f} seeds, {len(failed)} failed; {done * 60 / elapsed_s:.0f} seeds a minute, "
        f"{cpu_s / max(1, done):.2f} s of CPU and {steps / max(1, done):.0f} steps a seed; "
        f"the slowest converged {worst_ms / 1000:.1f} s after healing"
    )
    if failed:
        print("failing seeds:", *(result.seed for result in failed[:100]))
    return bool(failed)


def command_replay(options: argparse.Namespace) -> int:
    lines: list[str] = []
    peered = options.peers
    scenario = generate_peered(options.seed) if peered else generate(options.seed, options.only)
    result = run_scenario(scenario, transcript=lines)
    shown = lines if options.trace else lines[-TRACE_LINES:]
    print("\n".join(shown))
    print(
        f"\n{result.describe}\n{result.steps} steps, {result.events} events, {result.cpu_s:.2f} s"
    )
    print(f"digest {result.digest}")
    print(failure_text(result) if result.broken else "all properties hold")
    return result.broken is not None


def command_digest(options: argparse.Namespace) -> int:
    print(run_seed(options.seed).digest)
    return 0


def command_demo(options: argparse.Namespace) -> int:
    del options
    return run_demo(lambda line: print(line, flush=True))


def command_cost(options: argparse.Namespace) -> int:
    del options
    print("\n".join(cost.table()))
    return 0


def command_figures(options: argparse.Namespace) -> int:
    """Writes the tables of docs/simulation.md anew."""
    return figures.write(options.jobs, options.seeds)


def command_ablation(options: argparse.Namespace) -> int:
    chosen = [options.only] if options.only else ablation.names()
    missed = []
    for caught in ablation.ablate_all(chosen, options.jobs):
        found = caught.broken or "NOT CAUGHT"
        print(f"{caught.safeguard:<26} {found:<24} {caught.seeds:>4} seeds", flush=True)
        if options.verbose or caught.broken is None:
            print(f"    {caught.detail[:240]}", flush=True)
        if caught.broken is None:
            missed.append(caught.safeguard)
    print(f"{len(chosen) - len(missed)} of {len(chosen)} safeguards are missed when they are off")
    return bool(missed)


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    commands = top.add_subparsers(required=True)
    run = commands.add_parser("run", help="many seeds")
    run.add_argument("--seeds", type=int, default=300)
    run.add_argument("--from", type=int, default=1, dest="start")
    run.add_argument("--jobs", type=int, default=2)
    run.add_argument("--peers", action="store_true", help="worlds with peer machines")
    run.set_defaults(command=command_run)
    replay = commands.add_parser("replay", help="one seed again, with its last steps")
    replay.add_argument("seed", type=int)
    replay.add_argument("--trace", action="store_true", help="all that the transcript holds")
    replay.add_argument("--only", default="", help="one kind of trouble")
    replay.add_argument("--peers", action="store_true", help="a world with peer machines")
    replay.set_defaults(command=command_replay)
    digest = commands.add_parser("digest", help="the digest of one seed")
    digest.add_argument("seed", type=int)
    digest.set_defaults(command=command_digest)
    out = commands.add_parser("ablation", help="take each safeguard out; the judge must notice")
    out.add_argument("--only", default="", choices=["", *ablation.names()], metavar="SAFEGUARD")
    out.add_argument("--jobs", type=int, default=2)
    out.add_argument("--verbose", action="store_true")
    out.set_defaults(command=command_ablation)
    commands.add_parser("demo", help="a world told line by line").set_defaults(command=command_demo)
    commands.add_parser("cost", help="bytes and messages").set_defaults(command=command_cost)
    for name in ("table", "figures"):
        out = commands.add_parser(name, help="write the tables of docs/simulation.md")
        out.add_argument("--jobs", type=int, default=2)
        out.add_argument("--seeds", type=int, default=300)
        out.set_defaults(command=command_figures)
    return top


def main() -> int:
    options = parser().parse_args()
    return int(options.command(options))


if __name__ == "__main__":
    sys.exit(main())
