"""How often each system syncs for an entry, as strace sees it. Part of `make bench`.

Counted are the calls that sync a file, and writes to files that are opened so that each write is
synced. A run of its own: a process that is watched is several times slower.
"""

import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bench import cluster_cases
from bench.cases import Plan
from bench.clusters import NodeCluster
from bench.compare_cases import CASES, OURS, Rivals, asked_of
from bench.servers import Answering
from quipu.devnet.processes import until

CALLS = ("fsync", "fdatasync", "msync", "sync_file_range", "syncfs", "sync")
WRITES = ("write", "pwrite64", "writev", "pwritev", "pwritev2")
O_DSYNC = 0o10000
WATCHED = ("post-64", "batch")
PLAN = Plan(seconds=2.0, rounds=1, warm_up_s=0.0)
ATTACHED_S = 20.0
CALL = re.compile(r"(?:\d+ +)?(\w+)\((\d*)")


class Synced(NamedTuple):
    """Of all nodes of a system."""

    case: str
    system: str
    entries: int
    syncs: int

    @property
    def each(self) -> float:
        return self.syncs / max(self.entries, 1)


def strace() -> str | None:
    return shutil.which("strace")


def counted(lines: Sequence[str], synced_files: frozenset[int]) -> int:
    """The line of a call that was interrupted by another thread counts where it begins."""
    found = 0
    for line in lines:
        match = CALL.match(line)
        if match is None:
            continue
        name, file = match[1], match[2]
        found += name in CALLS or (name in WRITES and file != "" and int(file) in synced_files)
    return found


def synced_files(pid: int) -> frozenset[int]:
    """Descriptors each write to which is synced."""
    found = set[int]()
    for info in Path(f"/proc/{pid}/fdinfo").iterdir():
        try:
            flags = re.search(r"^flags:\s+(\d+)", info.read_text(), re.MULTILINE)
        except FileNotFoundError:
            continue
        if flags is not None and int(flags[1], 8) & O_DSYNC:
            found.add(int(info.name))
    return frozenset(found)


def of_all(program: str, nodes: NodeCluster, rivals: Rivals) -> list[Synced]:
    found = []
    for case in CASES:
        if case.name not in WATCHED:
            continue
        own = cluster_cases.Measured(cluster_case(case.name), nodes)
        with watched(program, nodes.servers) as syncs:
            own.round(PLAN)
        found.append(Synced(case.name, OURS, own.acknowledged, syncs()))
        for name, asked in asked_of(case, rivals).items():
            with watched(program, asked.servers) as syncs:
                asked.round(PLAN)
            found.append(Synced(case.name, name, asked.acknowledged, syncs()))
    return found


def cluster_case(name: str) -> cluster_cases.Case:
    return next(case for case in cluster_cases.CASES if case.name == name)


@contextmanager
def watched(program: str, servers: Sequence[Answering]) -> Iterator[Callable[[], int]]:
    """What it gives says, once the block has ended, how often these processes synced."""
    counts: list[int] = []
    with tempfile.TemporaryDirectory(prefix="quipu-syncs-") as folder:
        files = [Path(folder) / f"{server.pid}.txt" for server in servers]
        begun = [_attached(program, *one) for one in zip(servers, files, strict=True)]
        try:
            yield lambda: sum(counts)
            opened = [synced_files(server.pid) for server in servers]
        finally:
            for process in begun:
                process.send_signal(signal.SIGINT)
                process.wait()
        for file, synced in zip(files, opened, strict=True):
            counts.append(counted(file.read_text().splitlines(), synced))


def _attached(program: str, server: Answering, file: Path) -> "subprocess.Popen[bytes]":
    named = ",".join((*CALLS, *WRITES))
    words = [program, "-f", "-qq", "-s", "0", "-e", f"trace={named}", "-o", str(file)]
    process = subprocess.Popen([*words, "-p", str(server.pid)], stderr=subprocess.DEVNULL)
    status = Path(f"/proc/{server.pid}/status")

    def is_traced() -> bool:
        return "TracerPid:\t0\n" not in status.read_text()

    if not until(is_traced, ATTACHED_S):
        process.kill()
        process.wait()
        raise SystemExit(f"strace does not get hold of {server.name}")
    return process
