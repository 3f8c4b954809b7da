"""Redis beside which ours is measured: a primary and two replicas, each write synced by each of
them before it is answered, and waited for with WAIT 2. No consensus: who is primary is a setting.
"""

import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.go_builds import NotHere
from bench.others import Others, await_ready, running
from bench.servers import Answering
from quipu.devnet.ports import HOST

WAIT_MS = "1000"


def command_of(*words: str) -> bytes:
    parts = [f"${len(word)}\r\n{word}\r\n" for word in words]
    return f"*{len(words)}\r\n{''.join(parts)}".encode()


def add(stream: str, size: int, count: int = 1) -> bytes:
    """So many entries of a stream in one pipeline, and the wait for two copies."""
    entry = command_of("XADD", stream, "*", "v", "x" * size)
    return entry * count + command_of("WAIT", "2", WAIT_MS)


def get(key: str) -> bytes:
    return command_of("GET", key)


@contextmanager
def redises(count: int, disk: Path) -> Iterator[Others]:
    """Raises `NotHere`."""
    program = shutil.which("redis-server")
    if program is None:
        raise NotHere("no Redis here: apt-get install redis-server")

    def command(folder: Path, at: int, ports: list[int]) -> list[str]:
        flags = {
            "bind": HOST,
            "port": str(ports[at]),
            "dir": str(folder / str(at)),
            "appendonly": "yes",
            "appendfsync": "always",
            "save": "",
            "repl-diskless-sync-delay": "0",
        }
        words = [part for flag, text in flags.items() for part in (f"--{flag}", text)]
        return [program, *words, *(("--replicaof", HOST, str(ports[0])) if at else ())]

    with running("redis", disk, count, 1, command) as found:
        await_ready(found, _is_linked)
        yield found


def ask(server: Answering, *words: str) -> str:
    """One answer that is no array."""
    with socket.create_connection((server.host, server.port), timeout=10) as sock:
        sock.sendall(command_of(*words))
        return sock.recv(1 << 16).decode()


def length(server: Answering, stream: str) -> int:
    return int(ask(server, "XLEN", stream).removeprefix(":"))


def _is_linked(server: Answering) -> bool:
    try:
        told = ask(server, "INFO", "replication")
    except OSError:
        return False
    return "connected_slaves:2" in told or "master_link_status:up" in told
