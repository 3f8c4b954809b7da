"""Clients that mean no good, beside others that do. `python -m bench.abuse KIND HOST PORT SECONDS`
is one of them: bounded in count and time, and never faster than its pauses.
"""

import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from statistics import median

from bench import requests
from bench.cases import ENTRY_BYTES, Plan
from bench.load import Load, Result
from bench.servers import ROOT, Server, run_load

SLOW_CONNECTIONS = 500
HUGE_CONNECTIONS = 8
HUGE_BYTES = 1 << 30  # what is announced; a few MiB of it are sent
IDLE_CONNECTIONS = 5_000
PIPELINES = 4
PIPELINED = 500  # requests in one write
PAUSE_S = 0.1
DRIP_S = 1.0
WARM_UP_S = 1.0  # the abuse begins when it is over, and all that it does is measured
TIMES_MAX = 1.5
PRIORITY = 1  # of an abuser, where node and load run before all else on the machine
LOAD_SHARE = 0.5  # of the peak: room is left for what the abuse costs itself
CONNECTIONS = 64
STREAM = "abused"
Address = tuple[str, int]


# --- the abusers ----------------------------------------------------------------------------------
def _opened(address: Address, count: int) -> list[socket.socket]:
    return [socket.create_connection(address) for _ in range(count)]


def _send(sock: socket.socket, data: bytes) -> bool:
    """False: the server has closed it."""
    try:
        sock.send(data)
    except BlockingIOError:
        pass
    except OSError:
        return False
    return True


def _drip(address: Address, begin: bytes, ends_s: float) -> None:
    """A byte a second, on connections that are opened anew when they are closed."""
    socks: list[socket.socket] = []
    while time.monotonic() < ends_s:
        while len(socks) < SLOW_CONNECTIONS:
            sock = socket.create_connection(address)
            sock.setblocking(False)
            _send(sock, begin)
            socks.append(sock)
        socks = [sock for sock in socks if _send(sock, b"x")]
        time.sleep(DRIP_S)


def slow_header(address: Address, ends_s: float) -> None:
    _drip(address, b"POST /v1/entries HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ", ends_s)


def slow_body(address: Address, ends_s: float) -> None:
    head = "POST /v1/entries HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n\r\n"
    _drip(address, head.encode(), ends_s)


def huge_body(address: Address, ends_s: float) -> None:
    head = f"POST /v1/entries HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {HUGE_BYTES}\r\n\r\n"
    while time.monotonic() < ends_s:
        for sock in _opened(address, HUGE_CONNECTIONS):
            with sock, suppress(OSError):
                sock.sendall(head.encode() + bytes(1 << 20))
        time.sleep(PAUSE_S)


def connections(address: Address, ends_s: float) -> None:
    socks = _opened(address, IDLE_CONNECTIONS)
    while time.monotonic() < ends_s:
        time.sleep(PAUSE_S)
    for sock in socks:
        sock.close()


def pipelining(address: Address, ends_s: float) -> None:
    """Many requests in one write; the answers are read only now and then."""
    many = requests.get("/v1/node") * PIPELINED
    socks: list[socket.socket] = []
    while time.monotonic() < ends_s:
        for sock in socks:
            sock.close()
        socks = _opened(address, PIPELINES)
        for sock in socks:
            sock.setblocking(False)
            _send(sock, many)
        time.sleep(PAUSE_S)
        for sock in select.select(socks, (), (), 0)[0]:
            with suppress(OSError):
                sock.recv(1 << 16)
        time.sleep(1.0)


def nothing(address: Address, ends_s: float) -> None:
    """How far two runs differ by chance on this machine."""
    while time.monotonic() < ends_s:
        time.sleep(PAUSE_S)


KINDS: dict[str, Callable[[Address, float], None]] = {
    "nothing": nothing,
    "slow-header": slow_header,
    "slow-body": slow_body,
    "huge-body": huge_body,
    "connections": connections,
    "pipelining": pipelining,
}


@contextmanager
def abused(node: Server, kind: str, seconds: float) -> Iterator[None]:
    command = [sys.executable, "-m", "bench.abuse", kind, node.host, str(node.port), f"{seconds}"]
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


# --- beside a normal load -------------------------------------------------------------------------
@dataclass
class Abuse:
    kind: str
    times: dict[str, list[float]] = field(default_factory=lambda: {"p50": [], "p99": []})
    refused: int = 0

    def add(self, calm: Result, beside: Result) -> None:
        for name, found in self.times.items():
            found.append(beside.latency_ms[name] / max(calm.latency_ms[name], 1e-3))
        self.refused += sum(beside.statuses.values()) - beside.accepted

    def median_of(self, share: str) -> float:
        return median(self.times[share])

    def line(self) -> str:
        p50, p99 = (self.median_of(name) for name in ("p50", "p99"))
        refused = f", {self.refused} refused" if self.refused else ""
        return f"abuse {self.kind:12} p50 {p50:.2f} x, p99 {p99:.2f} x of without{refused}"

    @property
    def is_too_slow(self) -> bool:
        return any(self.median_of(share) > TIMES_MAX for share in self.times)


def measure(node: Server, kind: str, rate: float, plan: Plan) -> tuple[Abuse, int]:
    """Pairs of a normal load alone and beside the abuse; how many entries were acknowledged."""
    made = [requests.post(STREAM, ENTRY_BYTES)]
    found, acknowledged = Abuse(kind), 0
    for _ in range(plan.rounds):
        load = Load(node.host, node.port, made, CONNECTIONS, plan.seconds, WARM_UP_S, rate)
        calm = run_load(load)
        with abused(node, kind, plan.seconds):
            beside = run_load(load)
        found.add(calm, beside)
        acknowledged += calm.accepted_all + beside.accepted_all
    return found, acknowledged


def main() -> int:
    kind, host, port, seconds = sys.argv[1:]
    if os.sched_getscheduler(0) == os.SCHED_RR:  # it takes what node and load leave of the cores
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(PRIORITY))
    time.sleep(WARM_UP_S)
    KINDS[kind]((host, int(port)), time.monotonic() + float(seconds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
