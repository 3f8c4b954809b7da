"""Requests of clients, signed beforehand: each is one transaction on the executors' database.

One client a connection, and the requests of all of them in turn, so that each client's ids come in
order but for what is under way. A request is sent once: its repetition would be answered from what
is kept.
"""

import base64
import json
import socket
from collections.abc import Iterator
from hashlib import sha256

import msgspec
from nacl.bindings import crypto_sign, crypto_sign_seed_keypair

from bench import requests
from bench.servers import Answering
from quipu.client import Client
from quipu.client.sessions import SIGNATURE_BYTES, TAG_REQUEST, packed
from quipu.devnet.processes import until

MADE = "CREATE TABLE IF NOT EXISTS {} (n INTEGER PRIMARY KEY, who INTEGER, what TEXT)"
ADDED = "INSERT INTO {} (who, what) VALUES (?, ?)"
WHAT = "x" * 200
BEGUN_S = 60.0
WAITED = "?wait=executed"
_pack = msgspec.msgpack.encode


class App:
    """One client, known to the cluster."""

    def __init__(self, of: Client, cluster: bytes, seed: bytes) -> None:
        public, self._secret = crypto_sign_seed_keypair(seed)
        self.number = int(of.new_client(public.hex())["client"])
        self._cluster, self._next = cluster, 1

    def request(self, *statements: tuple[object, ...]) -> bytes:
        messages, number = packed(list(statements)), self._next
        self._next += 1
        fields = [self._cluster, self.number, number, sha256(messages).digest()]
        signature = crypto_sign(TAG_REQUEST + _pack(fields), self._secret)[:SIGNATURE_BYTES]
        body = {
            "message_id": str(number),
            "messages_base64": base64.b64encode(messages).decode(),
            "signature_base64": base64.b64encode(signature).decode(),
        }
        path = f"/v1/clients/{self.number}/messages{WAITED}"
        return requests.posted(path, json.dumps(body))


def signed(
    servers: list[Answering], table: str, clients: int, statements: int, count: int
) -> list[bytes]:
    """So many requests of so many statements each; the table is there."""
    table = table.replace("-", "_")
    until(lambda: all(_is_at_work(server) for server in servers), BEGUN_S)
    with Client([f"http://{server.host}:{server.port}" for server in servers]) as of:
        cluster = bytes.fromhex(of.node()["cluster_id"])
        seeds = _seeds(table, of.clients(limit=1_000)["items"])
        apps = [App(of, cluster, next(seeds)) for _ in range(clients)]
        _ask_once(servers[0], apps[0].request((MADE.format(table),)))
    rows = [(ADDED.format(table), number, WHAT) for number in range(statements)]
    return [apps[at % clients].request(*rows) for at in range(count)]


def _is_at_work(server: Answering) -> bool:
    found = server.ask("/v1/journal")
    return found["state"] == "WRK" and found["master"] is not None


def _seeds(table: str, there: list[object]) -> Iterator[bytes]:
    """Other keys in each round."""
    at = len(there)
    while True:
        at += 1
        yield sha256(f"{table} {at}".encode()).digest()


def _ask_once(server: Answering, request: bytes) -> None:
    with socket.create_connection((server.host, server.port), timeout=60) as line:
        line.sendall(request)
        answer = line.recv(1 << 16)
    if b" 201 " not in answer[:32]:
        raise SystemExit(f"the table could not be made: {answer[:500]!r}")


def rows_of(servers: list[Answering], table: str) -> list[int]:
    """How many rows each node's own executor has."""
    found = []
    for server in servers:
        with Client([f"http://{server.host}:{server.port}"]) as of:
            answer = of.sql(f"SELECT count(*) FROM {table.replace('-', '_')}", consistency="linear")
            found.append(int(answer["rows"][0][0]))
    return found
