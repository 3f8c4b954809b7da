"""Valid things of the peer protocol, always the same: for vectors, tests and the fuzzer."""

from quipu.ledger.words import Hlc, NodeId
from quipu.p2p import bodies, cast, decen, gossip, hello
from quipu.p2p.addresses import SignedEndpoint, sign_endpoint
from quipu.p2p.link_keys import link_key_of
from quipu.p2p.words import Endpoint, GossipId, LinkKey, PoolName, Start
from tests.small_ledger import START_MS, key_of

CLUSTER_ID = bytes(range(32))
OTHER_CLUSTER_ID = bytes(range(1, 33))
SECRET, OLD_SECRET, THIRD_SECRET = b"s" * 32, b"o" * 32, b"t" * 32
START = Start(START_MS << 20 | 5)
HLC = Hlc(START_MS << 16)
POOLS = hello.Pools((PoolName("Orders"), PoolName("orders"), PoolName("žluťoučký kůň")), 255)


def endpoint_of(name: str, host: str = "127.0.0.1", port: int = 8471) -> SignedEndpoint:
    return sign_endpoint(key_of(name), CLUSTER_ID, Endpoint(host, port), START)


def guest_hello() -> decen.Hello:
    """Of a node that does not know the cluster yet."""
    key = key_of("n3")
    signed = sign_endpoint(key, hello.NO_CLUSTER, Endpoint("127.0.0.1", 8473), START)
    card = hello.Card(key.node_id, "n3", START, "0.1.0", signed, (SECRET,))
    return hello.build_hello(card, key_of("n2").node_id, 0, hello.Pools((), 0))


def card_of(name: str, *secrets: bytes) -> hello.Card:
    node_id = key_of(name).node_id
    return hello.Card(node_id, name, START, "0.1.0", endpoint_of(name), secrets or (SECRET,))


def link_key(name: str) -> LinkKey:
    key = link_key_of(key_of(name).node_id)
    assert key is not None
    return key


def hello_of(sender: str, receiver: str, *secrets: bytes) -> decen.Hello:
    card = card_of(sender, *secrets)
    return hello.build_hello(card, key_of(receiver).node_id, 0, POOLS)


LONGEST_HELLO = decen.Hello(
    65535,
    "2001:db8::1",
    65535,
    tuple(PoolName("p" * 252 + f"{i:03}") for i in range(128)),
    255,
    tuple((f"h{i:02}", "v" * 251) for i in range(32)),
)
COMMANDS: dict[str, decen.Command] = {
    "hello": hello_of("n1", "n2"),
    "hello, shortest": decen.Hello(0, "", 0, (), 0, ()),
    "hello, odd headers": decen.Hello(
        256, "n1", 1, (), 0, (("a", ""), ("b", "="), ("c", "x=y"), ("é", "ž"))
    ),
    "alive": decen.Alive(0),
    "alive, last sequence": decen.Alive(65535),
    "broadcast": decen.Broadcast(258, PoolName("orders")),
    "broadcast, longest name": decen.Broadcast(1, PoolName("p" * 255)),
    "broadcast, 255 octets of UTF-8": decen.Broadcast(1, PoolName("é" * 127 + "e")),
    "join": decen.Join(2, PoolName("Orders"), 1),
    "join, status wrapped": decen.Join(2, PoolName("orders"), 0),
    "leave": decen.Leave(3, PoolName("orders"), 255),
    "ping": decen.Ping(4),
    "decenack": decen.DecenAck(5),
}


def origin(sender: str = "n1", number: int = 1) -> gossip.Origin:
    return gossip.Origin(key_of(sender).node_id, gossip.gossip_id(START, number), HLC)


N2, N3 = NodeId(key_of("n2").node_id), NodeId(key_of("n3").node_id)
ASKED = GossipId(bytes(range(16)))
CAST_KEY = bytes(range(32, 64))
BODIES: dict[str, bodies.Body] = {
    "discovered": bodies.Discovered(endpoint_of("n1"), "n1"),
    "joined": bodies.Joined(endpoint_of("n3", "2001:db8::3"), START),
    "lost": bodies.Lost(N3, START, 10_000),
    "health query": bodies.HealthQuery(N3),
    "health answer": bodies.HealthAnswer(ASKED, N3, START, 4_999),
    "health answer, never": bodies.HealthAnswer(ASKED, N3, 0, None),
    "query": bodies.Query("frontier", b"\x90"),
    "answer": bodies.Answer(ASKED, b"all well"),
    "ack": bodies.Ack(ASKED, endpoint_of("n1", "n1.example.org", 65535)),
    "ack, no endpoint": bodies.Ack(ASKED, None),
    "addresses": bodies.Addresses([endpoint_of("n2"), endpoint_of("n3", "n3", 1)]),
    "addresses, none": bodies.Addresses([]),
    "cast key": bodies.CastKey(CAST_KEY, 258),
    "cast report": bodies.CastReport(b"a stream", 258, [260, 2**63]),
    "unsupported": bodies.Unsupported(ASKED, 255, 2),
    "version mismatch": bodies.VersionMismatch(1, 1, "0.1.0"),
}


def finished(message: gossip.Gossip) -> gossip.Gossip:
    is_signed = gossip.RULES[message.kind].is_signed
    return gossip.signed(message, CLUSTER_ID, key_of("n1")) if is_signed else message


def messages() -> dict[str, gossip.Gossip]:
    found = {
        name: finished(gossip.compose_body(origin(), body, None, 4))
        for name, body in BODIES.items()
    }
    found["lost, to one node"] = finished(gossip.compose_body(origin(), BODIES["lost"], N2, 16))
    found["leaving"] = leaving(1)
    found["leaving, of a later version"] = leaving(7)
    found["pool"] = gossip.compose(origin(), gossip.Kind.POOL, b"something for all")
    found["ledger"] = gossip.compose(origin(), gossip.Kind.LEDGER, b"\x92\x02\xc4\x01x", N2)
    found["ledger, 300 bytes"] = gossip.compose(origin(), gossip.Kind.LEDGER, b"x" * 300, N2)
    found["log"] = gossip.compose(origin(), gossip.Kind.LOG, b"\x93\x01\x02\x00", N2)
    found["genesis"] = gossip.compose(origin(), gossip.Kind.GENESIS, b"\x97\x01", N3)
    return found


def leaving(version: int) -> gossip.Gossip:
    message = gossip.compose(origin(), gossip.Kind.LEAVING, b"", None, 4)
    sender, identity, hlc = message.sender, message.id, message.hlc
    of_version = gossip.Gossip(version, identity, 4, sender, None, 2, hlc, 4, b"", None)
    return finished(of_version)


FOREIGN = b"\x96\x02\xc4\x10" + ASKED + b"\x03\xcd\x01\x00\xc0\xc4\x01x"


def casts() -> dict[str, bytes]:
    """Datagrams, each of the end or the whole of a frame, and the first one of a long one."""
    stream = cast.stream_of(key_of("n1").node_id, CAST_KEY)
    long = cast.seal_frame(stream, 2**64 - 1, bytes(64 * 1_166))
    return {
        "empty": cast.seal_frame(stream, 1, b"")[0],
        "whole": cast.seal_frame(stream, 258, b"a frame")[0],
        "full": cast.seal_frame(stream, 259, b"f" * 1_166)[0],
        "first of many": long[0],
        "last of many": long[-1],
    }


def contents() -> dict[str, bytes]:
    pieces = {name: gossip.encode_gossip(message) for name, message in messages().items()}
    ledger = pieces["ledger"]
    return {
        "empty": gossip.join_content([]),
        "one": gossip.join_content([ledger]),
        "fifteen": gossip.join_content([ledger] * 15),
        "sixteen": gossip.join_content([ledger] * 16),
        "every kind": gossip.join_content(list(pieces.values())),
        "a later version": gossip.join_content([ledger, FOREIGN, pieces["lost"]]),
        "leaving in a later version": gossip.join_content(
            [pieces["leaving, of a later version"], FOREIGN]
        ),
    }
