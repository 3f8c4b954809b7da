"""What a cluster of three needs for 1,000 entries a second: disk, memory, syncs, network, CPU.

`python -m bench.sizing`: real nodes on loopback, one producer, entries of 256 bytes, in batches of
10 and of 100. Read from /metrics and /proc before and after; the rate is held, so that the figures
are for that rate and no peak.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from quipu.client import Client
from quipu.devnet import Devnet, faces

ENTRY = "x" * 240  # about 256 bytes as JSON
NODES = 3
TICKS_A_S = os.sysconf("SC_CLK_TCK")
KIB = 1_024


class Reading(NamedTuple):
    commits: float
    store_bytes: float
    sent_bytes: float
    cpu_s: float
    resident_mib: float


def reading(net: Devnet, number: int) -> Reading:
    node = net.node(number)
    assert node.running is not None
    folder = Path(f"/proc/{node.running.pid}")
    fields = (folder / "stat").read_text().rpartition(")")[2].split()
    status = (folder / "status").read_text()
    resident_kib = int(status.partition("VmRSS:")[2].split()[0])
    names = ("commits_total", "store_used_bytes", "peer_sent_bytes_total")
    commits, stored, sent = (faces.figure(node, name) or 0.0 for name in names)
    cpu_s = (int(fields[11]) + int(fields[12])) / TICKS_A_S
    return Reading(commits, stored, sent, cpu_s, resident_kib / KIB)


def produce(net: Devnet, rate: int, seconds: float, size: int) -> int:
    """Batches of `size`, so many a second over all nodes; how many entries were stored."""
    stored, begun_s = 0, time.monotonic()
    clients = [Client([net.node(number).api]) for number in range(1, NODES + 1)]
    try:
        while (passed_s := time.monotonic() - begun_s) < seconds:
            if stored > rate * passed_s:
                time.sleep(0.001)
                continue
            client = clients[stored // size % NODES]
            client.submit_batch([{"text": ENTRY}] * size, stream="sized")
            stored += size
    finally:
        for client in clients:
            client.close()
    return stored


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.sizing", description=__doc__)
    parser.add_argument("--rate", type=int, default=1_000, help="entries a second")
    parser.add_argument("--seconds", type=float, default=15.0)
    options = parser.parse_args()
    print(
        "| | entries/s | disk, bytes an entry | syncs/s | sent, KiB/s | CPU, cores | memory, MiB |"
    )
    for size in (10, 100):
        with tempfile.TemporaryDirectory(prefix="quipu-sizing-") as folder:
            net = Devnet.make(Path(folder), NODES, 0, (), is_tied=True)
            try:
                produce(net, options.rate, 3, size)
                before = [reading(net, number) for number in range(1, NODES + 1)]
                begun_s = time.monotonic()
                stored = produce(net, options.rate, options.seconds, size)
                took_s = time.monotonic() - begun_s
                after = [reading(net, number) for number in range(1, NODES + 1)]
            finally:
                net.kill(*range(1, NODES + 1))
        gone = [
            Reading(*(new - old for old, new in zip(one, two, strict=True)))
            for one, two in zip(before, after, strict=True)
        ]

        def mean(name: str, rows: list[Reading]) -> float:
            return sum(float(getattr(row, name)) for row in rows) / NODES

        print(
            f"| batches of {size} | {stored / took_s:,.0f} "
            f"| {mean('store_bytes', gone) / stored:,.0f} "
            f"| {mean('commits', gone) / took_s:,.0f} "
            f"| {mean('sent_bytes', gone) / took_s / KIB:,.0f} "
            f"| {mean('cpu_s', gone) / took_s:.2f} "
            f"| {mean('resident_mib', after):,.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
