"""NATS JetStream beside which ours is measured: a stream with three replicas on three servers.

`sync_interval: always` syncs each write before it counts; the default syncs every two minutes.
"""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.go_builds import NotHere, built
from bench.others import Others, await_ready, running
from bench.servers import Answering
from bench.wires import NATS_INBOX
from quipu.devnet.ports import HOST
from quipu.devnet.processes import until

SOURCE = Path(__file__).parent / "nats"
STREAM = "bench"
MADE_S = 60.0
API = "$JS.API.STREAM"


def publish(subject: str, size: int, count: int = 1) -> bytes:
    """So many at once, each with an acknowledgement of its own."""
    head = f"PUB {STREAM}.{subject} {NATS_INBOX.decode()} {size}\r\n"
    return (head + "x" * size + "\r\n").encode() * count


@contextmanager
def natses(count: int, disk: Path, *, sync: bool) -> Iterator[Others]:
    """Raises `NotHere`."""
    program = str(built(SOURCE))
    name = "nats" if sync else "nats-unsynced"

    def command(folder: Path, at: int, ports: list[int]) -> list[str]:
        clients, peers = ports[:count], ports[count:]
        routes = ", ".join(f"nats-route://{HOST}:{port}" for port in peers)
        settings = folder / f"{at}.conf"
        settings.write_text(
            f"server_name: {name}{at}\nlisten: {HOST}:{clients[at]}\n"
            f'jetstream {{ store_dir: "{folder / str(at)}"'
            f"{', sync_interval: always' if sync else ''} }}\n"
            f"cluster {{ name: bench, listen: {HOST}:{peers[at]}, routes: [{routes}] }}\n"
        )
        return [program, "-c", str(settings)]

    with running(name, disk, count, 2, command) as found:
        await_ready(found, _answers)
        _make_stream(found.servers[0], count)
        yield found


def stored(server: Answering, subject: str) -> int:
    wanted = {"subjects_filter": f"{STREAM}.{subject}"}
    state = ask(server, f"{API}.INFO.{STREAM}", wanted)["state"]
    return int(state.get("subjects", {}).get(f"{STREAM}.{subject}", 0))


def ask(server: Answering, subject: str, body: dict[str, Any], timeout_s: float = 5.0) -> Any:
    payload = json.dumps(body)
    with socket.create_connection((server.host, server.port), timeout=timeout_s) as sock:
        sock.sendall(
            b'CONNECT {"verbose":false}\r\nSUB _INBOX.ask 1\r\n'
            + f"PUB {subject} _INBOX.ask {len(payload)}\r\n{payload}\r\n".encode()
        )
        file = sock.makefile("rb")
        while line := file.readline():
            if line.startswith(b"MSG "):
                return json.loads(file.read(int(line.split()[-1])))
    raise ConnectionError("it was closed")


def _answers(server: Answering) -> bool:
    try:
        with socket.create_connection((server.host, server.port), timeout=2) as sock:
            sock.sendall(b"PING\r\n")
            return sock.recv(1 << 12).startswith(b"INFO")
    except OSError:
        return False


def _make_stream(server: Answering, replicas: int) -> None:
    """Once the servers have found a leader of their own."""
    wanted = {
        "name": STREAM,
        "subjects": [f"{STREAM}.>"],
        "num_replicas": replicas,
        "storage": "file",
    }
    told: list[str] = []

    def is_made() -> bool:
        try:
            answer = ask(server, f"{API}.CREATE.{STREAM}", wanted)
        except (OSError, ValueError) as error:
            told.append(str(error))
            return False
        told.append(str(answer.get("error")))
        return "error" not in answer

    if not until(is_made, MADE_S):
        raise NotHere(f"NATS made no stream within {MADE_S:g} s: {told[-1]}")
