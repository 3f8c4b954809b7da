"""What multicast saves and costs: `python -m bench.multicast [--nodes 3 5] [--seconds 10]`.

Real nodes on a local network of their own, once with a copy to each peer and once with
`p2p.multicast`; the same load at one of them. Bytes and packets are those of the cables.
"""

import argparse
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench import requests
from bench.cases import BATCH_ENTRIES, ENTRY_BYTES
from bench.lan import ALONE, Lan, lan, traffic
from bench.load import Load
from bench.lock import one_benchmark_at_a_time
from bench.servers import ROOT, run_load

GROUP = "p2p.multicast=239.77.0.9:8474"
READ = "?wait=read"
CONNECTIONS = 16
WARM_UP_S = 4.0  # until each has reported that it hears


@dataclass(frozen=True)
class Case:
    name: str
    request: bytes
    rate: float | None  # None: as fast as it goes


CASES = (
    Case("POSTs, 100 a second", requests.post("single", ENTRY_BYTES, READ), 100.0),
    Case(
        "batches of 100, 20 a second", requests.batch("b", ENTRY_BYTES, BATCH_ENTRIES, READ), 20.0
    ),
    Case("POSTs, 16 connections", requests.post("fast", ENTRY_BYTES, READ), None),
)
HEADINGS = (
    "load", "nodes", "way", "requests/s", "p50 ms", "bytes sent", "packets sent",
    "bytes received", "packets received", "CPU us", "repaired",
)  # fmt: skip


def measure(made: Lan, case: Case, seconds: float, way: str) -> str:
    """A request, over all nodes."""
    server = made.servers[0]
    load = Load(server.host, server.port, [case.request], CONNECTIONS, seconds)
    load.warm_up_s, load.rate = 0.0, case.rate
    before, cpu, repaired = traffic(made.count), _cpu_s(made), _repaired(made)
    result = run_load(load)
    used = traffic(made.count).since(before)
    cpu, repaired = _cpu_s(made) - cpu, _repaired(made) - repaired
    count = max(result.accepted_all, 1)
    if result.accepted_all != result.sent:
        raise SystemExit(f"{case.name}: {result.statuses}, {result.unanswered} unanswered")
    cells = [
        case.name, str(made.count), way, f"{result.accepted_all / result.seconds:,.0f}",
        f"{result.latency_ms['p50']:.1f}", f"{used.sent_bytes / count:,.0f}",
        f"{used.sent_packets / count:.1f}", f"{used.received_bytes / count:,.0f}",
        f"{used.received_packets / count:.1f}", f"{cpu / count * 1e6:,.0f}", str(repaired),
    ]  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def _cpu_s(made: Lan) -> float:
    return sum(server.cpu_s() for server in made.servers)


def _repaired(made: Lan) -> int:
    return sum(made.figure(n, "peer_casts_repaired_total") for n in range(1, made.count + 1))


def run(nodes: list[int], seconds: float) -> None:
    print("| " + " | ".join(HEADINGS) + " |\n|" + " --- |" * len(HEADINGS), flush=True)
    with tempfile.TemporaryDirectory(prefix="quipu-lan-") as folder:
        for count in nodes:
            for way in ("links", "multicast"):
                inner = ["bench.multicast", "--nodes", str(count), "--seconds", str(seconds)]
                inner += ["--inside", way, "--folder", str(Path(folder) / f"{count}-{way}")]
                subprocess.run([*ALONE, sys.executable, "-m", *inner], cwd=ROOT, check=True)


def run_inside(folder: Path, count: int, seconds: float, way: str) -> None:
    """In a network namespace where there is nothing yet."""
    with lan(folder, count, *([GROUP] if way == "multicast" else [])) as made:
        server = made.servers[0]
        warm = Load(server.host, server.port, [CASES[0].request], CONNECTIONS, WARM_UP_S)
        warm.rate = CASES[0].rate
        run_load(warm)
        for case in CASES:
            print(measure(made, case, seconds, way), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.multicast", description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=[3, 5])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--inside", choices=("links", "multicast"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.inside:
        run_inside(chosen.folder, chosen.nodes[0], chosen.seconds, chosen.inside)
        return
    with one_benchmark_at_a_time():
        run(chosen.nodes, chosen.seconds)


if __name__ == "__main__":
    main()
