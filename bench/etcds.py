"""etcd beside which the order is measured: three processes on loopback, every write synced.

Built from the Go module proxy, pinned by hashes, into a cache folder outside of the tree.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from bench.servers import Answering
from quipu.devnet.ports import HOST, HeldPorts
from quipu.devnet.processes import until

SOURCE = Path(__file__).parent / "etcd"
BUILD_S_MAX = 1_200  # from nothing, on two busy cores
READY_S = 60.0
STOP_S = 20.0
PORTS_PER_NODE = 2


class NoEtcd(Exception):
    """It cannot be had here, and why."""


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "quipu" / "bench"


def program() -> Path:
    """Built once for each set of pinned modules."""
    if shutil.which("go") is None:
        raise NoEtcd("no Go here: make system installs it")
    mark = sha256(
        b"".join((SOURCE / name).read_bytes() for name in ("main.go", "go.mod", "go.sum"))
    )
    found = cache_folder() / f"etcd-{mark.hexdigest()[:16]}"
    if found.exists():
        return found
    found.parent.mkdir(parents=True, exist_ok=True)
    made = found.with_suffix(".part")
    command = ["go", "build", "-mod=readonly", "-o", str(made), "."]
    try:
        subprocess.run(
            command, cwd=SOURCE, check=True, timeout=BUILD_S_MAX, capture_output=True, text=True
        )
    except subprocess.CalledProcessError as failed:
        reason = failed.stderr.strip().splitlines() or ["go build failed"]
        raise NoEtcd(reason[-1]) from failed
    except subprocess.TimeoutExpired as late:
        raise NoEtcd(f"go build took over {BUILD_S_MAX} s") from late
    made.rename(found)
    return found


def put(key: str, size: int) -> bytes:
    """By its JSON gateway: the nearest that it has to what our API does."""
    return _posted("/v3/kv/put", f'{{"key":"{_text(key)}","value":"{_text("x" * size)}"}}')


def put_many(key: str, size: int, count: int) -> bytes:
    """One transaction of so many puts."""
    value = _text("x" * size)
    puts = ",".join(
        f'{{"requestPut":{{"key":"{_text(f"{key}{number}")}","value":"{value}"}}}}'
        for number in range(count)
    )
    return _posted("/v3/kv/txn", f'{{"success":[{puts}]}}')


def _text(plain: str) -> str:
    return b64encode(plain.encode()).decode()


def _posted(path: str, body: str) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()


class Etcds:
    """Invariant: its processes run until the block of `etcds` ends."""

    def __init__(self, servers: list[Answering]) -> None:
        self.servers = servers
        self.name = "etcd"


@contextmanager
def etcds(count: int, disk: Path) -> Iterator[Etcds]:
    """Raises `NoEtcd`."""
    binary = program()
    begun: list[subprocess.Popen[bytes]] = []
    folder = tempfile.TemporaryDirectory(prefix=".quipu-etcd-", dir=disk)
    with folder as name, HeldPorts(count * PORTS_PER_NODE) as ports:
        peers, clients = ports.numbers[:count], ports.numbers[count:]
        try:
            begun.extend(_started(binary, Path(name), at, peers, clients) for at in range(count))
            servers = [
                Answering(f"etcd{at}", process.pid, HOST, clients[at])
                for at, process in enumerate(begun)
            ]
            if not until(lambda: all(map(_is_healthy, servers)), READY_S):
                raise NoEtcd(f"it was not healthy within {READY_S:g} s")
            yield Etcds(servers)
        finally:
            for process in begun:
                process.send_signal(signal.SIGTERM)
            for process in begun:
                try:
                    process.wait(STOP_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


def _started(
    binary: Path, folder: Path, at: int, peers: list[int], clients: list[int]
) -> "subprocess.Popen[bytes]":
    cluster = ",".join(f"etcd{i}=http://{HOST}:{port}" for i, port in enumerate(peers))
    peer, client = f"http://{HOST}:{peers[at]}", f"http://{HOST}:{clients[at]}"
    flags = {
        "name": f"etcd{at}",
        "data-dir": str(folder / str(at)),
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "initial-cluster": cluster,
        "log-level": "error",
    }
    command = [str(binary), *(f"--{flag}={text}" for flag, text in flags.items())]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _is_healthy(server: Answering) -> bool:
    try:
        with urllib.request.urlopen(
            f"http://{server.host}:{server.port}/health", timeout=2
        ) as said:
            return b'"true"' in said.read()
    except OSError:
        return False
