"""A node that is asked for too much, and by clients that mean no good. `make bench-abuse`.

The flood asks for twice the peak over ten times the connections. Each abuse is measured in pairs:
a normal load at half of the peak alone, and the same load beside it. Figures count only where every
acknowledged entry is found afterwards. Abusers that compete for a core measure the machine's
scheduler, so the node and the load run before them where that is allowed (`--realtime`).
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from bench import abuse, overload, requests
from bench.cases import ENTRY_BYTES, Plan
from bench.figures import note_figure
from bench.load import Load
from bench.lock import one_benchmark_at_a_time
from bench.servers import Server, new_node, run_load

COMMAND = "bench-abuse"
FLOOD = "overload"
NAMES = (FLOOD, *abuse.KINDS)


def run_abuses(kinds: list[str], node: Server, plan: Plan) -> tuple[list[abuse.Abuse], str]:
    """And why it does not count, where it does not."""
    if not kinds:
        return [], ""
    made = [requests.post(abuse.STREAM, ENTRY_BYTES)]
    peak = run_load(Load(node.host, node.port, made, abuse.CONNECTIONS, plan.seconds))
    acknowledged = peak.accepted_all
    found = []
    for kind in kinds:
        print(f"abuse: {kind}", file=sys.stderr)
        one, count = abuse.measure(node, kind, abuse.LOAD_SHARE * peak.rate, plan)
        found.append(one)
        acknowledged += count
    held = node.stored(abuse.STREAM)
    return found, "" if held >= acknowledged else f"{acknowledged} acknowledged, {held} held"


def note_all(flood: overload.Overload | None, abuses: list[abuse.Abuse]) -> None:
    if flood is not None:
        note_figure(COMMAND, "overload: goodput of peak", flood.goodput_share)
        note_figure(COMMAND, "overload: p99 of the accepted, times", flood.p99_times)
    for one in abuses:
        for share in one.times:
            note_figure(COMMAND, f"{one.kind}: {share}, times", one.median_of(share))


def asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.resilience", description=__doc__)
    parser.add_argument(
        "--cases", nargs="+", choices=NAMES, default=NAMES, metavar="CASE", help=", ".join(NAMES)
    )
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement (4)")
    parser.add_argument("--rounds", type=int, default=5, help="pairs of each abuse (5)")
    parser.add_argument("--disk", type=Path, default=Path.cwd(), help="a folder on that disk (.)")
    parser.add_argument(
        "--realtime",
        action="store_true",
        help="run before all else on this machine, abusers behind node and load; needs root",
    )
    parser.add_argument("--note", action="store_true", help="append to docs/figures.csv")
    return parser.parse_args()


def main() -> int:
    given = asked()
    plan = Plan(given.seconds, given.rounds)
    if given.realtime:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(abuse.PRIORITY + 1))
    folder = tempfile.TemporaryDirectory(prefix=".quipu-bench-", dir=given.disk)
    with one_benchmark_at_a_time(), folder as path:
        node = new_node(Path(path) / "node")
        try:
            flood = overload.measure(node, plan) if FLOOD in given.cases else None
            kinds = [kind for kind in abuse.KINDS if kind in given.cases]
            abuses, void = run_abuses(kinds, node, plan)
        finally:
            node.stop()
    wrong = [f"abuse: void: {void}"] if void else []
    if flood is not None:
        print(flood.text())
        wrong += [f"overload: {what}" for what in flood.short_of()]
    for one in abuses:
        print(one.line())
        wrong += [f"{one.kind}: slower than allowed"] if one.is_too_slow else []
    for line in wrong:
        print(f"NOT AS IT SHOULD BE: {line}")
    is_void = any("void" in line for line in wrong)
    if given.note and not is_void:
        note_all(flood, abuses)
    return 1 if is_void else 0


if __name__ == "__main__":
    sys.exit(main())
