"""Vectors of the peer protocol, made by the product's codecs; `check_peers.py` makes them again."""

from typing import Any

from quipu.ledger.words import NodeNo
from quipu.p2p.addresses import encode_endpoint
from quipu.p2p.decen import encode_command
from quipu.p2p.frame import encode_head
from quipu.p2p.gossip import encode_gossip
from quipu.p2p.hello import NO_CLUSTER
from tests.peer_readers import READERS
from tests.peer_samples import (
    CAST_KEY,
    CLUSTER_ID,
    COMMANDS,
    OLD_SECRET,
    SECRET,
    THIRD_SECRET,
    casts,
    contents,
    endpoint_of,
    guest_hello,
    hello_of,
    link_key,
    messages,
)
from tests.small_ledger import key_of
from tests.vectors.check import plain

Rows = list[dict[str, Any]]
HOSTS = (
    "127.0.0.1",
    "::1",
    "2001:db8::1",
    "n1",
    "n1.example.org",
    "a_b-c.d",
    "1.example",
    "h" * 63,
)


def row(name: str, kind: str, *inputs: bytes) -> dict[str, Any]:
    value = plain(READERS[kind](*inputs))
    return {"name": name, "kind": kind, "inputs": [i.hex() for i in inputs], "value": value}


def hello_inputs(receiver_secret: bytes = SECRET, *sender_secrets: bytes) -> list[bytes]:
    data = encode_command(hello_of("n1", "n2", *sender_secrets))
    return [data, link_key("n1"), key_of("n2").node_id, CLUSTER_ID, receiver_secret]


def guest_inputs() -> list[bytes]:
    data = encode_command(guest_hello())
    return [data, link_key("n3"), key_of("n2").node_id, NO_CLUSTER, SECRET]


def endpoint_inputs(host: str) -> list[bytes]:
    return [encode_endpoint(endpoint_of("n1", host)), CLUSTER_ID]


def peers() -> Rows:
    alive = encode_command(COMMANDS["alive"])
    return [
        row("frame, no command", "frame", encode_head(NodeNo(0), b"")),
        row("frame, alive", "frame", encode_head(NodeNo(1), alive)),
        row("frame, edges", "frame", encode_head(NodeNo(2**32 - 1), b"x", 2**16 - 1)),
        row("frame, order of octets", "frame", encode_head(NodeNo(0x01020304), b"\0" * 6, 0x0506)),
        row("frame, n above one octet", "frame", encode_head(NodeNo(1), b"x" * 258)),
        *(row(name, "command", encode_command(command)) for name, command in COMMANDS.items()),
        row("an old secret", "hello", *hello_inputs(OLD_SECRET, SECRET, OLD_SECRET)),
        row("a third secret", "hello", *hello_inputs(THIRD_SECRET, SECRET, THIRD_SECRET)),
        row("one secret", "hello", *hello_inputs()),
        row("a guest", "hello", *guest_inputs()),
        *(row(f"host {host[:20]}", "endpoint", *endpoint_inputs(host)) for host in HOSTS),
        *(row(f"cast, {name}", "cast", data, CAST_KEY) for name, data in casts().items()),
        *(row(name, "content", data) for name, data in contents().items()),
        *(
            row(name, "gossip", encode_gossip(message), CLUSTER_ID)
            for name, message in messages().items()
        ),
    ]
