"""The tables of docs/torture.md: what is done to nodes, what it came to, and who lies how."""

import csv
import re
from collections import Counter

from tests import tree
from tests.process.misdeeds import MISDEEDS
from tests.process.torments import OF_LINKS, OF_MACHINES, OF_PROCESSES, TAKES_A_DISK

PAGE = "docs/torture.md"
FIGURES = "docs/figures.csv"
WHAT = {
    "killed": "one node by kill -9",
    "all_killed": "all nodes at once by kill -9",
    "paused": "SIGSTOP, and SIGCONT",
    "restarted": "SIGTERM, and a new start",
    "cloned": "a second process with the key, genesis and secret of one that runs",
    "power_lost": "kill -9, and all or half of the unsynced writes to the store are put back",
    "slow_disk": "each sync of the store takes 0.3 s more",
    "full_disk": "each write to the store finds no room",
    "clock_jumped": "the wall clock of one that runs jumps by 5 s to an hour, and back",
    "wiped": "the store is deleted, the key stays",
    "restored": "`quipu store restore` of a backup from before the first harm",
    "bits_flipped": "bits of branch pages of the store are flipped",
    "halves_cut": "two halves that do not hear each other",
    "one_node_cut": "one node that hears nobody and that nobody hears",
    "ring_cut": "each hears its neighbours on a line alone",
    "one_way_cut": "one direction of one pair",
    "deaf": "one that hears nobody, and all hear it",
    "flapping": "one node cut off and let in again, every 0.1 to 0.8 s",
    "resets": "all connections break, again and again",
    "lossy": "30 % of the pieces come one timeout of TCP later",
    "far_away": "2 s each way, from and to one node",
    "narrow": "50 kB a second for each direction of each pair",
}
TAKEN_BY = {
    "processes": OF_PROCESSES,
    "machines": OF_MACHINES,
    "disks, one at a time": TAKES_A_DISK,
    "links": OF_LINKS,
}
_COUNT = re.compile(r"([a-z-]+)=([0-9.]+)")


def kinds() -> str:
    rows = "".join(
        f"| `{kind.__name__}` | {group} | {WHAT[kind.__name__]} |\n"
        for group, found in TAKEN_BY.items()
        for kind in found
    )
    return f"| kind | done to | what it is |\n| --- | --- | --- |\n{rows}\n"


def misdeeds() -> str:
    rows = "".join(
        f"| `{one.name}` | {'thief' if one.is_of_thief else 'stranger'} | {one.does} | "
        f"{one.attacks} | {f'`{one.counted}`' if one.counted else 'nothing is wrong with it'} |\n"
        for one in MISDEEDS.values()
    )
    head = "| name | by a | what it does | property it attacks | counted as |\n"
    return f"{head}| --- | --- | --- | --- | --- |\n{rows}\n"


def figures() -> str:
    """Added up over docs/figures.csv; a failed run is in the first row and in no other."""
    with (tree.ROOT / FIGURES).open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["command"].startswith("torture ")]
    passed = [row["figure"] for row in rows if row["figure"].startswith("passed")]
    sums: Counter[str] = Counter()
    slowest = 0.0
    for figure in passed:
        found = dict(_COUNT.findall(figure))
        slowest = max(slowest, float(found.pop("slowest-equal-s")))
        sums.update({name: round(float(value)) for name, value in found.items()})
    told = [
        ("runs that passed / that failed", f"{len(passed)} / {len(rows) - len(passed)}"),
        ("harms that took effect", sums["harms"]),
        ("kills with -9, power cuts", f"{sums['kills']}, {sums['power-cuts']}"),
        ("entries acknowledged, Read at the end", f"{sums['acknowledged']}, {sums['read']}"),
        ("events ordered, numbers published", f"{sums['ordered']}, {sums['numbers']}"),
        ("proofs that verified", sums["proofs"]),
        ("stored only, and gone with their author's disk", sums["stored-lost"]),
        ("Read, ordered or published, and lost or twice", 0 if passed else "no run yet"),
        ("slowest to equal Models and order after healing", f"{slowest:.1f} s"),
    ]
    told += [("inputs of `make fuzz`, findings", fuzzed())]
    lines = "".join(f"| {what} | {value} |\n" for what, value in told)
    return f"| what | figure |\n| --- | ---: |\n{lines}\n"


def fuzzed() -> str:
    """Over all runs with --note: inputs that all targets read, and what differed."""
    with (tree.ROOT / FIGURES).open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["command"].startswith("fuzz ")]
    counts = [dict(_COUNT.findall(row["figure"])) for row in rows]
    sums = (sum(int(count[name]) for count in counts) for name in ("inputs", "findings"))
    return ", ".join(f"{number:,}" for number in sums)


PARTS = {"kinds": kinds, "misdeeds": misdeeds, "figures": figures}


def page() -> str:
    """As it has to be; `make figures` writes it."""
    text = tree.read(PAGE)
    for what, made in PARTS.items():
        before, begin, rest = text.partition(f"<!-- {what}: begin -->\n")
        _, end, after = rest.partition(f"<!-- {what}: end -->\n")
        text = before + begin + "\n" + made() + end + after
    return text


if __name__ == "__main__":
    (tree.ROOT / PAGE).write_text(page(), encoding="utf-8")
