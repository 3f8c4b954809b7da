"""What all clusters of others have in common: processes on loopback, and a folder on that disk."""

import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.go_builds import NotHere
from bench.servers import Answering
from quipu.devnet.ports import HOST, HeldPorts
from quipu.devnet.processes import until

READY_S = 90.0
STOP_S = 20.0

Command = Callable[[Path, int, list[int]], list[str]]  # of the process at that place


class Others:
    """Invariant: its processes run until the block that gave it ends."""

    def __init__(self, name: str, servers: list[Answering], folder: Path) -> None:
        self.name = name
        self.servers = servers
        self.folder = folder


@contextmanager
def running(
    name: str, disk: Path, count: int, ports_each: int, command: Command
) -> Iterator[Others]:
    """`ports` of a command: those for clients of all, then those for peers of all."""
    begun: list[subprocess.Popen[bytes]] = []
    place = tempfile.TemporaryDirectory(prefix=f".quipu-{name}-", dir=disk)
    with place as folder, HeldPorts(count * ports_each) as ports:
        try:
            for at in range(count):
                (Path(folder) / str(at)).mkdir()
                begun.append(
                    subprocess.Popen(
                        command(Path(folder), at, ports.numbers),
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL,
                    )
                )
            servers = [
                Answering(f"{name}{at}", process.pid, HOST, ports.numbers[at])
                for at, process in enumerate(begun)
            ]
            yield Others(name, servers, Path(folder))
        finally:
            _end(begun)


def await_ready(others: Others, is_ready: Callable[[Answering], bool]) -> None:
    """Raises `NotHere`."""
    if not until(lambda: all(map(is_ready, others.servers)), READY_S):
        raise NotHere(f"{others.name} was not ready within {READY_S:g} s")


def _end(begun: list[subprocess.Popen[bytes]]) -> None:
    for process in begun:
        process.send_signal(signal.SIGTERM)
    for process in begun:
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
