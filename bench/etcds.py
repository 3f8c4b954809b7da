"""etcd beside which ours is measured: three processes, each write synced by a majority.

It is asked through its JSON gateway: the nearest that it has to what our API does.
"""

import json
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.go_builds import built
from bench.others import Others, await_ready, running
from bench.servers import Answering
from quipu.devnet.ports import HOST

SOURCE = Path(__file__).parent / "etcd"


def put(key: str, size: int) -> bytes:
    return _posted("/v3/kv/put", f'{{"key":"{_text(key)}","value":"{_text("x" * size)}"}}')


def put_many(key: str, size: int, count: int) -> bytes:
    """One transaction of so many puts."""
    value = _text("x" * size)
    puts = ",".join(
        f'{{"requestPut":{{"key":"{_text(f"{key}{number}")}","value":"{value}"}}}}'
        for number in range(count)
    )
    return _posted("/v3/kv/txn", f'{{"success":[{puts}]}}')


def get(key: str) -> bytes:
    """As one of them has it, without asking the others."""
    return _posted("/v3/kv/range", f'{{"key":"{_text(key)}","serializable":true}}')


def _text(plain: str) -> str:
    return b64encode(plain.encode()).decode()


def _posted(path: str, body: str) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()


@contextmanager
def etcds(count: int, disk: Path) -> Iterator[Others]:
    """Raises `NotHere`."""
    program = str(built(SOURCE))

    def command(folder: Path, at: int, ports: list[int]) -> list[str]:
        clients, peers = ports[:count], ports[count:]
        cluster = ",".join(f"etcd{i}=http://{HOST}:{port}" for i, port in enumerate(peers))
        client, peer = f"http://{HOST}:{clients[at]}", f"http://{HOST}:{peers[at]}"
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
        return [program, *(f"--{flag}={text}" for flag, text in flags.items())]

    with running("etcd", disk, count, 2, command) as found:
        await_ready(found, _is_healthy)
        yield found


def _is_healthy(server: Answering) -> bool:
    try:
        with urllib.request.urlopen(
            f"http://{server.host}:{server.port}/health", timeout=2
        ) as said:
            return b'"true"' in said.read()
    except OSError:
        return False


def versions(server: Answering, key: str) -> int:
    """How often a key was put."""
    body = json.dumps({"key": _text(key)}).encode()
    with urllib.request.urlopen(f"http://{server.host}:{server.port}/v3/kv/range", body) as said:
        found = json.load(said).get("kvs", [])
    return int(found[0]["version"]) if found else 0
