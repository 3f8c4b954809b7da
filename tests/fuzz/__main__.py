"""`python -m tests.fuzz --minutes M [--each] [--target NAME] [--seed N]`, or --planted, or --replay
HEX."""

import argparse
import sys
from time import perf_counter

from tests.fuzz.engine import Finding, Fuzzer, examine
from tests.fuzz.planted import BUGS, planted
from tests.fuzz.target import Target
from tests.fuzz.targets import peer_targets, targets

PLANTED_SECONDS_MAX = 60.0
FINDINGS_MAX = 20  # then the run is over


def fuzz(chosen: list[Target], seconds: float, seed: int, note: bool) -> int:
    fuzzer = Fuzzer(chosen, seed)
    started = perf_counter()
    seen: dict[tuple[str, str], Finding] = {}
    for finding in fuzzer.run(seconds):
        key = (finding.target, finding.what[:40])
        if key not in seen:
            seen[key] = finding
            print(finding, flush=True)
        if len(seen) >= FINDINGS_MAX:
            break
    passed = perf_counter() - started
    for name, count in fuzzer.executions.items():
        rate = count / max(fuzzer.seconds[name], 1e-9)
        print(f"{name:16} {count:10,} inputs {rate:10,.0f} a second")
    total = sum(fuzzer.executions.values())
    print(f"seed {seed}: {total:,} inputs in {passed:.0f} s, {total / passed:,.0f} a second")
    print(f"{len(seen)} findings")
    if note:
        from bench.figures import note_figure

        told = f"targets={len(chosen)} inputs={total} findings={len(seen)} s={passed:.0f}"
        note_figure(f"fuzz --seed {seed}", told, total)
    return 1 if seen else 0


def time_to_find(bug_number: int, seconds: float, seed: int) -> tuple[float, int, Finding | None]:
    """Seconds and inputs until a planted bug is found."""
    with planted(BUGS[bug_number]):
        fuzzer = Fuzzer(targets(), seed)
        started = perf_counter()
        finding = next(fuzzer.run(seconds), None)
        return perf_counter() - started, sum(fuzzer.executions.values()), finding


def hunt(seconds: float, seed: int) -> int:
    missed = 0
    for number, bug in enumerate(BUGS):
        passed, inputs, finding = time_to_find(number, seconds, seed)
        missed += finding is None
        told = f"{finding.target}: {finding.what[:60]}" if finding else "NOT FOUND"
        print(f"{bug.name:36} {passed:6.2f} s {inputs:9,} inputs  {told}", flush=True)
    print(f"{len(BUGS) - missed} of {len(BUGS)} planted bugs found")
    return 1 if missed else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.fuzz")
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--each", action="store_true", help="that long for each target alone")
    parser.add_argument("--target", action="append", help="only this one; may be given again")
    parser.add_argument("--peers", action="store_true", help="the decoders of the peer protocol")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--planted", action="store_true", help="find each of the planted bugs")
    parser.add_argument("--note", action="store_true", help="append to docs/figures.csv")
    parser.add_argument("--replay", nargs="+", metavar="HEX", help="one input of one target")
    chosen = parser.parse_args()
    known = targets()
    names = [target.name for target in known]
    if chosen.target and set(chosen.target) - set(names):
        parser.error(f"targets are {', '.join(names)}")
    if chosen.planted:
        return hunt(PLANTED_SECONDS_MAX, chosen.seed)
    if chosen.peers:
        known = peer_targets()
    wanted = [t for t in known if not chosen.target or t.name in chosen.target]
    if chosen.replay:
        sample = [bytes.fromhex(part.replace("-", "")) for part in chosen.replay]
        finding = examine(wanted[0], sample)
        print(finding or "nothing is wrong with this input")
        return 1 if finding else 0
    runs = [[target] for target in wanted] if chosen.each else [wanted]
    return max(fuzz(run, chosen.minutes * 60, chosen.seed, chosen.note) for run in runs)


if __name__ == "__main__":
    sys.exit(main())
