"""The servers that are measured, each a process of its own on a free port of loopback."""

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from bench.load import Load, Result
from quipu.devnet.processes import until

ROOT = Path(__file__).parent.parent
STOP_S = 20.0
SETTLED_S = 30.0
UNREAD = "/v1/entries?state=stored&limit=1"
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
KIB = 1024
MIB = 1024 * KIB
ANY_PORTS = tuple(
    part for face in ("api", "p2p", "ops") for part in (f"--{face}-listen", "127.0.0.1:0")
)


@dataclass
class Answering:
    """A process that answers HTTP at `host` and `port`."""

    name: str
    pid: int
    host: str
    port: int

    def cpu_s(self) -> float:
        """Of all its threads, in user and system mode."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_S

    def rss_bytes(self) -> int:
        """Its own memory: the map of the store is not counted, which the kernel takes back."""
        return self._status_kib("RssAnon") * KIB

    def resident_bytes(self) -> int:
        """With all that it maps and that is in memory."""
        return self._status_kib("VmRSS") * KIB

    def _status_kib(self, name: str) -> int:
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition(f"{name}:")[2].split()[0])

    def ask(self, path: str) -> Any:
        """The JSON of a GET that must be answered."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            body = answer.read()
        finally:
            connection.close()
        if answer.status != 200:
            raise SystemExit(
                f"{self.name}: GET {path} was answered {answer.status}: {body[:300]!r}"
            )
        return json.loads(body)

    def stored(self, stream: str) -> int:
        """How many entries of a stream are held, once all that it took is final."""
        until(lambda: not self.ask(UNREAD)["items"], SETTLED_S)
        rows = self.ask("/v1/streams")["items"]
        return next((int(row["entries"]) for row in rows if row["name"] == stream), 0)


class Server(Answering):
    """Invariant: its process runs until `stop`."""

    def __init__(self, name: str, command: list[str]) -> None:
        environment = {key: text for key, text in os.environ.items() if key[:6] != "QUIPU_"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", *command],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{name} did not start: {' '.join(command)}")
        self.said: dict[str, Any] = json.loads(line)
        address = urlsplit(self.said["api"])
        super().__init__(name, self.process.pid, str(address.hostname), int(address.port or 0))

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())
        self.process.stdin.flush()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.process.communicate()


@contextmanager
def both(folder: Path) -> Iterator[tuple[Server, Server]]:
    """The bare loop and a node, each with an empty directory on the same disk."""
    (folder / "bare").mkdir()
    bare = Server("bare", ["bench.bare", str(folder / "bare")])
    try:
        node = new_node(folder / "node")
        try:
            yield bare, node
        finally:
            node.stop()
    finally:
        bare.stop()


def new_node(data_dir: Path) -> Server:
    flags = ["--json", "--data-dir", str(data_dir), *ANY_PORTS, "--set", "log.level=error"]
    return Server("node", ["quipu.cli", "run", *flags])


def run_load(load: Load) -> Result:
    """In a process of its own, to its end."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.load"],
        cwd=ROOT,
        input=msgspec.msgpack.encode(load),
        stdout=subprocess.PIPE,
        check=True,
    )
    return msgspec.msgpack.decode(done.stdout, type=Result)
