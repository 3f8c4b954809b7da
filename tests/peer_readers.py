"""The product's decoders of the peer protocol, each as one function to a value that JSON can tell.

The form is that of `tests/vectors/check_peers.py`, which shares no code with them. What decodes is
encoded again on the way: other bytes than the given ones are a bug.
"""

from collections.abc import Callable
from typing import Any, assert_never

import msgspec

from quipu.ledger.signing import verify
from quipu.ledger.words import NodeId
from quipu.p2p import addresses, bodies, cast, decen, frame, gossip, hello
from quipu.p2p.refusals import Cause, refuse
from quipu.p2p.words import LinkKey, Start


# The product's functions are looked up at each call, so that a planted bug is met.
def read_frame(data: bytes) -> list[Any]:
    head = frame.decode_head(data)
    assert frame.encode_head(head.node_no, head.command, head.metadata) == data
    return list(head)


def read_command(data: bytes) -> list[Any]:
    command = decen.decode_command(data)
    assert decen.encode_command(command) == data
    return value_of(command)


def value_of(command: decen.Command) -> list[Any]:
    match command:
        case decen.Hello(sequence, host, port, pools, status, headers):
            pairs = [list(pair) for pair in headers]
            return ["HELLO", sequence, host, port, list(pools), status, pairs]
        case decen.Alive(sequence):
            return ["ALIVE", sequence]
        case decen.Broadcast(sequence, pool):
            return ["BROADCAST", sequence, pool]
        case decen.Join(sequence, pool, status):
            return ["JOIN", sequence, pool, status]
        case decen.Leave(sequence, pool, status):
            return ["LEAVE", sequence, pool, status]
        case decen.Ping(sequence):
            return ["PING", sequence]
        case decen.DecenAck(sequence):
            return ["DECENACK", sequence]
        case _:
            assert_never(command)


def read_hello(
    data: bytes, key: bytes, receiver: bytes, cluster_id: bytes, secret: bytes
) -> dict[str, Any]:
    command = decen.decode_command(data)
    if not isinstance(command, decen.Hello):
        refuse(Cause.NOT_HELLO)
    endpoint = addresses.SignedEndpoint(cluster_id, receiver, "n1", 1, 0, bytes(64))
    card = hello.Card(NodeId(receiver), "n1", Start(0), "0", endpoint, (secret,))
    found = hello.verify_hello(command, LinkKey(key), card)
    return {
        "peer": found.peer.hex(),
        "name": found.name,
        "start": found.start,
        "version": found.version,
        "protocol": found.protocol,
        "stamp": found.endpoint.stamp,
        "pools": list(found.pools.names),
        "status": found.pools.status,
    }


def read_endpoint(data: bytes, cluster_id: bytes) -> Any:
    endpoint = addresses.decode_endpoint(data)
    addresses.check_endpoint(endpoint, cluster_id, verify)
    assert addresses.encode_endpoint(endpoint) == data
    return fields_of(endpoint)


def fields_of(struct: msgspec.Struct) -> Any:
    return msgspec.to_builtins(struct, builtin_types=(bytes,))


def read_content(data: bytes) -> list[Any]:
    messages = gossip.decode_content(data)
    pieces = [
        m.data if isinstance(m, gossip.Foreign) else gossip.encode_gossip(m) for m in messages
    ]
    assert gossip.join_content(pieces) == data
    return [list(m[:3]) if isinstance(m, gossip.Foreign) else fields_of(m) for m in messages]


def read_gossip(data: bytes, cluster_id: bytes) -> list[Any]:
    """One message, through all that a receiver asks of it."""
    (message,) = gossip.decode_content(gossip.join_content([data]))
    if isinstance(message, gossip.Foreign):
        refuse(Cause.UNSUPPORTED_VERSION, str(message.version))
    rule = gossip.rule_of(message)
    value: list[Any] = fields_of(message)
    if rule.body is not None:
        body = gossip.body_of(message)
        assert bodies.encode_body(body) == message.body
        value[8] = fields_of(body)
    if rule.is_signed and not gossip.has_valid_signature(message, cluster_id, verify):
        refuse(Cause.BAD_SIGNATURE)
    return value


def read_cast(data: bytes, key: bytes) -> list[Any]:
    return list(cast.open_piece(data, key))


READERS: dict[str, Callable[..., Any]] = {
    "cast": lambda *inputs: read_cast(*inputs),
    "frame": lambda *inputs: read_frame(*inputs),
    "command": lambda *inputs: read_command(*inputs),
    "hello": lambda *inputs: read_hello(*inputs),
    "endpoint": lambda *inputs: read_endpoint(*inputs),
    "content": lambda *inputs: read_content(*inputs),
    "gossip": lambda *inputs: read_gossip(*inputs),
}
