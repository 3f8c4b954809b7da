"""The generator of load beside wrk, on the same requests to the same node. `make bench-load`.

A rate that our generator finds and wrk does not would be one of the generator. Both run a closed
loop over as many connections, in turn; the ratio of a round saw both. wrk is Debian's.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench import requests
from bench.cases import BATCH_ENTRIES, ENTRY_BYTES
from bench.figures import note_figure
from bench.load import Load
from bench.lock import one_benchmark_at_a_time
from bench.servers import Server, new_node, run_load

COMMAND = "bench-load"
CASES = {
    "post": (64, requests.post("loaded", ENTRY_BYTES)),
    "batch": (12, requests.batch("loaded", ENTRY_BYTES, BATCH_ENTRIES)),
}
NO_WRK = "no wrk here: apt-get install wrk"
FAILED = re.compile(r"Non-2xx|Socket errors")


class Round(NamedTuple):
    """Requests a second, and CPU of the node for each."""

    ours: float
    wrk: float
    ours_cpu_us: float
    wrk_cpu_us: float

    @property
    def ratio(self) -> float:
        return self.ours / self.wrk


def script_of(request: bytes) -> str:
    """The same request in the words of wrk."""
    head, _, body = request.decode().partition("\r\n\r\n")
    first, *fields = head.split("\r\n")
    _, path, _ = first.split(" ")
    kept = [field.split(": ", 1) for field in fields if field.startswith("Content-Type")]
    named = "".join(f'wrk.headers["{name}"] = "{value}"\n' for name, value in kept)
    return f'wrk.method = "POST"\nwrk.path = "{path}"\nwrk.body = [==[{body}]==]\n{named}'


def rate_said(text: str) -> float:
    """By what wrk prints at its end. Raises `SystemExit` where not all was taken."""
    if FAILED.search(text):
        raise SystemExit(f"wrk was not answered as it should be:\n{text}")
    found = re.search(r"Requests/sec:\s+([0-9.]+)", text)
    if found is None:
        raise SystemExit(f"wrk said no rate:\n{text}")
    return float(found[1])


def wrk(program: str, server: Server, name: str, seconds: float, script: Path) -> float:
    connections, request = CASES[name]
    script.write_text(script_of(request))
    words = [program, "-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", "-s", str(script)]
    url = f"http://{server.host}:{server.port}/"
    done = subprocess.run([*words, url], capture_output=True, text=True, check=True)
    return rate_said(done.stdout)


def ours(server: Server, name: str, seconds: float) -> float:
    connections, request = CASES[name]
    load = Load(server.host, server.port, [request], connections, seconds, warm_up_s=0.0)
    return run_load(load).rate


def one_round(program: str, server: Server, name: str, seconds: float, script: Path) -> Round:
    begun = server.cpu_s()
    own = ours(server, name, seconds)
    between = server.cpu_s()
    other = wrk(program, server, name, seconds, script)
    ended = server.cpu_s()
    own_us = (between - begun) / max(own * seconds, 1) * 1e6
    other_us = (ended - between) / max(other * seconds, 1) * 1e6
    return Round(own, other, own_us, other_us)


def shown(name: str, rounds: list[Round]) -> str:
    middle = [median(values) for values in zip(*rounds, strict=True)]
    ratio = median(one.ratio for one in rounds)
    return (
        f"{name}: ours {middle[0]:,.0f} requests/s, wrk {middle[1]:,.0f}, ours is {ratio:.2f} x; "
        f"the node's CPU for each {middle[2]:.0f} and {middle[3]:.0f} us"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.generator", description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement (4)")
    parser.add_argument("--rounds", type=int, default=3, help="of both in turn (3)")
    parser.add_argument("--disk", type=Path, default=Path.cwd(), help="a folder on that disk (.)")
    parser.add_argument("--note", action="store_true", help="append to docs/figures.csv")
    given = parser.parse_args()
    program = shutil.which("wrk")
    if program is None:
        print(NO_WRK, file=sys.stderr)
        return 2
    folder = tempfile.TemporaryDirectory(prefix=".quipu-bench-", dir=given.disk)
    with one_benchmark_at_a_time(), folder as path:
        node = new_node(Path(path) / "node")
        try:
            for name in CASES:
                ours(node, name, 1.0)  # the first turns of a node are slower
                rounds = [
                    one_round(program, node, name, given.seconds, Path(path) / "wrk.lua")
                    for _ in range(given.rounds)
                ]
                print(shown(name, rounds))
                if given.note:
                    note_figure(COMMAND, f"{name}: of wrk", median(one.ratio for one in rounds))
        finally:
            node.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
