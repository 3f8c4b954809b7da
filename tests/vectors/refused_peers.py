"""What must be refused of the peer protocol, and for which cause: written by hand."""

from collections.abc import Iterator
from typing import Any

from nacl.secret import SecretBox

from quipu.p2p import decen, gossip
from quipu.p2p.addresses import encode_endpoint, sign_endpoint
from quipu.p2p.bodies import encode_body
from quipu.p2p.decen import encode_command
from quipu.p2p.hello import NO_CLUSTER
from quipu.p2p.words import Endpoint
from tests.peer_samples import (
    ASKED,
    BODIES,
    CAST_KEY,
    CLUSTER_ID,
    COMMANDS,
    FOREIGN,
    OLD_SECRET,
    OTHER_CLUSTER_ID,
    SECRET,
    START,
    casts,
    contents,
    endpoint_of,
    finished,
    guest_hello,
    hello_of,
    link_key,
    messages,
    origin,
)
from tests.small_ledger import key_of
from tests.vectors.refused import Case, Parts, Raw, case, changed, fields, pack, parts

NO_HOSTS = (
    *("", "0.0.0.0", "::", "fe80::1%eth0", "[::1]", "1.2.3.4.5", "1.2.3", "256.1.1.1"),
    *("a b", "a..b", "-a", "a-", ".", "a.", "a/b", "\u017e", "h" * 64, "a." * 127),
)
NO_POINT = b"\x02" + bytes(31)  # no point of the curve has this as its encoding


def refused_peers() -> list[dict[str, Any]]:
    cases = [*_frames(), *_commands(), *_hellos(), *_endpoints(), *_casts()]
    cases += [*_contents(), *_gossip()]
    rows: list[dict[str, Any]] = [
        {"name": n, "kind": k, "reason": r, "inputs": i} for n, k, r, i in cases
    ]
    for name, kind, inputs in _cut_short():
        told = [parts(data) for data in inputs]
        reason = "truncated" if kind in ("frame", "command") else "malformed"
        rows.append({"name": name, "kind": kind, "reason": reason, "inputs": told, "cut": 0})
    names = [row["name"] for row in rows]
    assert len(set(names)) == len(names), sorted(n for n in names if names.count(n) > 1)
    return rows


def _cut_short() -> Iterator[tuple[str, str, list[bytes]]]:
    yield "frame cut short", "frame", [bytes(7) + b"\x03abc"]
    for name in ("hello", "alive", "broadcast", "join", "leave", "ping", "decenack"):
        yield f"{name} cut short", "command", [encode_command(COMMANDS[name])]
    yield "endpoint cut short", "endpoint", [encode_endpoint(endpoint_of("n1")), CLUSTER_ID]
    yield "content cut short", "content", [contents()["a later version"]]
    ledger = gossip.encode_gossip(messages()["ledger"])
    yield "message cut short", "gossip", [ledger, CLUSTER_ID]


def _frames() -> Iterator[Case]:
    yield case("frame: n is less than what follows", "frame", "trailing-bytes", bytes(7) + b"\1ab")
    yield case("frame: n 0, and something follows", "frame", "trailing-bytes", bytes(9))
    yield case("frame: n in the other order of octets", "frame", "truncated", bytes(6) + b"\1\0x")


# --- multicast ----------------------------------------------------------------------------------
def _casts() -> Iterator[Case]:
    def bad(name: str, cause: str, data: bytes, key: bytes = CAST_KEY) -> Case:
        return case(f"cast: {name}", "cast", cause, data, key)

    def sealed(part: int, parts: int, inner: bytes) -> bytes:
        head = bytes(16) + bytes([part, parts])
        return head + SecretBox(CAST_KEY).encrypt(inner, head + bytes(6)).ciphertext

    whole = casts()["whole"]
    yield bad("nothing", "foreign-cast", b"")
    yield bad("no more than its beginning", "foreign-cast", whole[:18])
    yield bad("cut short", "foreign-cast", whole[:-1])
    yield bad("one octet more", "foreign-cast", whole + b"\0")
    yield bad("under another key", "foreign-cast", whole, bytes(32))
    for at, name in ((0, "stream"), (8, "number"), (16, "part"), (17, "count of parts")):
        other = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
        yield bad(f"another {name}", "foreign-cast", other)
    yield bad("1,201 octets", "too-large", bytes(1_201))
    yield bad("no parts", "malformed", sealed(0, 0, b"x"))
    yield bad("a part after the last", "malformed", sealed(2, 2, b"x"))
    yield bad("65 parts", "malformed", sealed(64, 65, b"x"))
    yield bad("a short part before the last", "malformed", sealed(0, 2, b"x" * 1_165))


# --- commands -----------------------------------------------------------------------------------
def _command(name: str, cause: str, data: bytes) -> Case:
    return case(f"command: {name}", "command", cause, data)


def _commands() -> Iterator[Case]:
    ping, join = encode_command(COMMANDS["ping"]), encode_command(COMMANDS["join"])
    yield _command("marker of ZRE's other half", "bad-marker", b"\xaa\xa0" + ping[2:])
    yield _command("marker swapped", "bad-marker", b"\xa1\xaa" + ping[2:])
    yield _command("number 0", "unknown-command", b"\xaa\xa1\0\1\0\0")
    yield _command("number 8", "unknown-command", b"\xaa\xa1\x08\1\0\0")
    yield _command("number 255", "unknown-command", b"\xaa\xa1\xff\1\0\0")
    yield _command("version 0", "unsupported-version", b"\xaa\xa1\6\0\0\0")
    yield _command("version 2", "unsupported-version", b"\xaa\xa1\6\2\0\0")
    yield _command("version 2 of an unknown number", "unsupported-version", b"\xaa\xa1\x08\2\0\0")
    for name in ("hello", "alive", "broadcast", "join", "leave", "ping", "decenack"):
        data = encode_command(COMMANDS[name])
        yield _command(f"{name} and one octet", "trailing-bytes", data + b"\0")
    yield _command("join twice", "trailing-bytes", join + join)
    for what, text in (
        ("a byte that is no UTF-8", b"\xff"),
        ("a cut letter", b"\xc3"),
        ("a surrogate", b"\xed\xa0\x80"),
        ("an overlong letter", b"\xc0\xaf"),
        ("a line break", b"a\nb"),
        ("an escape", b"\x1b[31m"),
        ("a NUL", b"\0"),
        ("DEL", b"\x7f"),
        ("a control character above ASCII", b"\xc2\x9b"),
    ):
        data = b"\xaa\xa1\3\1\0\0" + bytes([len(text)]) + text
        yield _command(f"broadcast to a pool with {what}", "bad-text", data)
    for number, name in ((3, "broadcast"), (4, "join"), (5, "leave")):
        data = b"\xaa\xa1" + bytes([number]) + b"\1\0\0\0" + b"\0" * (number > 3)
        yield _command(f"{name} of a pool without a name", "malformed", data)
    yield from _hello_forms()


def _hello_forms() -> Iterator[Case]:
    start = b"\xaa\xa1\1\1\0\0"

    def form(pools: list[bytes], headers: list[bytes], host: bytes = b"n1") -> bytes:
        said = [bytes([len(items)]) + b"".join(bytes([len(i)]) + i for i in items)
                for items in (pools, headers)]  # fmt: skip
        return start + bytes([len(host)]) + host + b"\0\1" + said[0] + b"\0" + said[1]

    many_pools = [b"%03d" % i for i in range(129)]
    many_headers = [b"%02d=" % i for i in range(33)]
    for name, cause, data in (
        ("a pool without a name", "malformed", form([b"a", b""], [])),
        ("a pool twice", "malformed", form([b"a", b"b", b"a"], [])),
        ("129 pools", "too-large", form(many_pools, [])),
        ("33 headers", "too-large", form([], many_headers)),
        ("a header without =", "malformed", form([], [b"name"])),
        ("a header without a name", "malformed", form([], [b"=n1"])),
        ("an empty header", "malformed", form([], [b""])),
        ("a header twice", "malformed", form([], [b"a=1", b"a=1"])),
        ("a header with two values", "malformed", form([], [b"a=1", b"b=", b"a=2"])),
        ("a header with a line break", "bad-text", form([], [b"a=1\n"])),
        ("a host that is no UTF-8", "bad-text", form([], [], b"\xff")),
        ("a pool that is no UTF-8", "bad-text", form([b"\xff"], [])),
    ):
        yield _command(f"hello with {name}", cause, data)


# --- HELLO --------------------------------------------------------------------------------------
def _with_headers(**changes: str | None) -> bytes:
    command = hello_of("n1", "n2")
    headers = dict(command.headers)
    for name, value in changes.items():
        if value is None:
            del headers[name.replace("_", "-")]
        else:
            headers[name.replace("_", "-")] = value
    pairs = tuple(headers.items())
    return encode_command(
        decen.Hello(0, command.host, command.port, command.pools, command.status, pairs)
    )


def _hello(name: str, cause: str, data: bytes, key: str = "n1", secret: bytes = SECRET) -> Case:
    receiver = key_of("n2").node_id
    inputs = (data, link_key(key), receiver, CLUSTER_ID, secret)
    return case(f"hello: {name}", "hello", cause, *inputs)


def _hellos() -> Iterator[Case]:
    good = _with_headers()
    told = dict(hello_of("n1", "n2").headers)
    yield _hello("another command", "not-hello", encode_command(COMMANDS["ping"]))
    yield _hello("link of another node", "wrong-key", good, key="n3")
    yield _hello("another secret", "wrong-secret", good, secret=OLD_SECRET)
    yield _hello("no secret", "wrong-secret", good, secret=b"")
    for_another = encode_command(hello_of("n1", "n3"))
    yield _hello("meant for another receiver", "wrong-secret", for_another)
    itself = encode_command(hello_of("n2", "n2"))
    yield _hello("the receiver's own id", "own-identity", itself, key="n2")
    for name in sorted(told):
        for what, value in (("missing", None), ("empty", "")):
            data = _with_headers(**{name.replace("-", "_"): value})
            yield _hello(f"{name} {what}", "malformed", data)
    for name in ("cluster", "node", "hmac", "signature"):
        value = told[name]
        for what, bad in (
            ("in capitals", value.upper()),
            ("one digit short", value[:-1]),
            ("two digits short", value[:-2]),
            ("two digits long", value + "00"),
            ("with a space", " " + value[1:]),
            ("with 0x", "0x" + value[2:]),
        ):
            yield _hello(f"{name} {what}", "malformed", _with_headers(**{name: bad}))
    for name in ("start", "stamp", "protocol_min", "protocol_max"):
        for bad in ("-1", "+1", "01", "1.0", "1_0", "0x1", " 1", "\u0661", str(2**64), "9" * 21):
            data = _with_headers(**{name: bad})
            yield _hello(f"{name} {bad[:4]!a} of {len(bad)}", "malformed", data)
    other = OTHER_CLUSTER_ID.hex()
    yield _hello("another cluster", "wrong-cluster", _with_headers(cluster=other))
    yield _hello("another node", "wrong-key", _with_headers(node=key_of("n3").node_id.hex()))
    yield _hello("a node id that is no key", "wrong-key", _with_headers(node=NO_POINT.hex()))
    yield _hello("another start", "wrong-secret", _with_headers(start=str(START + 1)))
    yield _hello("only later versions", "no-common-version",
                 _with_headers(protocol_min="2", protocol_max="3"))  # fmt: skip
    yield _hello("only version 0", "no-common-version",
                 _with_headers(protocol_min="0", protocol_max="0"))  # fmt: skip
    yield _hello("versions upside down", "malformed",
                 _with_headers(protocol_min="2", protocol_max="1"))  # fmt: skip
    yield _hello("protocol above one octet", "malformed", _with_headers(protocol_max="256"))
    yield _hello("an HMAC and nothing", "malformed", _with_headers(hmac=told["hmac"] + ","))
    yield _hello("another stamp", "bad-signature", _with_headers(stamp=str(START + 1)))
    yield _hello("a name of 129 bytes", "malformed", _with_headers(name="n" * 129))
    yield _hello("a name of 130 bytes", "malformed", _with_headers(name="é" * 65))
    yield _hello("a version of 65 bytes", "malformed", _with_headers(version="1" * 65))
    yield from _hello_endpoints()


def _hello_endpoints() -> Iterator[Case]:
    command = hello_of("n1", "n2")
    rest = (command.pools, command.status, command.headers)
    for name, cause, host, port in (
        ("another host", "bad-signature", "127.0.0.2", command.port),
        ("another port", "bad-signature", command.host, command.port + 1),
        ("port 0", "bad-endpoint", command.host, 0),
        ("no host", "bad-endpoint", "", command.port),
        ("host everywhere", "bad-endpoint", "0.0.0.0", command.port),
    ):
        yield _hello(name, cause, encode_command(decen.Hello(0, host, port, *rest)))
    stranger = sign_endpoint(key_of("n3"), CLUSTER_ID, Endpoint(command.host, command.port), START)
    guest = encode_command(guest_hello())
    yield _hello("a guest's, of no cluster", "wrong-cluster", guest, key="n3")
    as_member = encode_command(decen.Hello(0, command.host, command.port, *rest))
    elsewhere = (as_member, link_key("n1"), key_of("n2").node_id, NO_CLUSTER, SECRET)
    yield case("hello: a member's, as a guest's", "hello", "wrong-cluster", *elsewhere)
    data = _with_headers(signature=stranger.signature.hex())
    yield _hello("endpoint signed by another", "bad-signature", data)


# --- endpoints ----------------------------------------------------------------------------------
def _endpoints() -> Iterator[Case]:
    good = encode_endpoint(endpoint_of("n1"))

    def bad(name: str, cause: str, data: bytes) -> Case:
        return case(f"endpoint: {name}", "endpoint", cause, data, CLUSTER_ID)

    for host in NO_HOSTS:
        data = encode_endpoint(endpoint_of("n1", host))
        yield bad(f"host {host[:12]!a} of {len(host)}", "bad-endpoint", data)
    yield bad("port 0", "bad-endpoint", encode_endpoint(endpoint_of("n1", port=0)))
    yield bad("of another cluster", "wrong-cluster", changed(good, (0, OTHER_CLUSTER_ID)))
    yield bad("of another node", "bad-signature", changed(good, (1, key_of("n2").node_id)))
    yield bad("another host", "bad-signature", changed(good, (2, "127.0.0.2")))
    yield bad("another port", "bad-signature", changed(good, (3, 1)))
    yield bad("another stamp", "bad-signature", changed(good, (4, START + 1)))
    yield bad("signature of zeros", "bad-signature", changed(good, (5, bytes(64))))
    untagged = key_of("n1").sign(pack(fields(good)[:5]))
    yield bad("signed without its tag", "bad-signature", changed(good, (5, untagged)))
    yield bad("node id is no key", "bad-signature", changed(good, (1, NO_POINT)))
    for name, cause, change in (
        ("port 65536", "malformed", (3, 65536)),
        ("port -1", "malformed", (3, -1)),
        ("port as a float", "malformed", (3, 1.0)),
        ("host as bytes", "malformed", (2, b"n1")),
        ("signature of 63 bytes", "malformed", (5, bytes(63))),
        ("node id of 31 bytes", "malformed", (1, bytes(31))),
        ("host that is no UTF-8", "malformed", (2, Raw(b"\xa1\xff"))),
        ("host of 8-bit length", "not-canonical", (2, Raw(b"\xd9\x09127.0.0.1"))),
        ("port in 32 bits", "not-canonical", (3, Raw(b"\xce\0\0\x21\x17"))),
    ):
        yield bad(name, cause, changed(good, change))
    yield bad("a field too many", "malformed", pack([*fields(good), None]))
    yield bad("a field too few", "malformed", pack(fields(good)[:-1]))
    yield bad("a trailing byte", "malformed", good + b"\0")
    yield "endpoint: oversized", "endpoint", "too-large", [
        [["00", (128 << 10) + 1]], parts(CLUSTER_ID),
    ]  # fmt: skip


# --- gossip -------------------------------------------------------------------------------------
def _contents() -> Iterator[Case]:
    ledger = gossip.encode_gossip(messages()["ledger"])

    def bad(name: str, cause: str, data: bytes) -> Case:
        return case(f"content: {name}", "content", cause, data)

    yield bad("nothing", "malformed", b"")
    yield bad("nil", "malformed", b"\xc0")
    yield bad("a message, not in an array", "malformed", ledger)
    yield bad("the byte that means nothing", "malformed", b"\xc1")
    yield bad("a trailing byte", "malformed", b"\x90\0")
    yield bad("a map", "malformed", b"\x80")
    yield bad("a huge array announced", "malformed", b"\xdd\xff\xff\xff\xff")
    yield bad("an empty message", "malformed", b"\x91\x90")
    yield bad("a message of two fields", "malformed", b"\x91\x92\x02\xc4\x10" + ASKED)
    yield bad("a message that is nil", "malformed", b"\x92\xc0" + ledger)
    yield bad("16-bit head of one message", "not-canonical", b"\xdc\0\1" + ledger)
    yield bad("16-bit head, a later version", "not-canonical", b"\xdc\0\1" + FOREIGN)
    deep = b"\x91\x94\x02\xc4\x10" + ASKED + b"\x03" + b"\x91" * 1000 + b"\x90"
    yield bad("a later version, nested", "malformed", deep)
    text = b"\x91\x94\x02\xc4\x10" + ASKED + b"\x03\xa1x"
    yield bad("a later version with a text", "malformed", text)
    long = b"\x91\xdc\0\x41\x02\xc4\x10" + ASKED + b"\x03" * 63
    yield bad("a later version of 65 fields", "malformed", long)
    yield bad("version 256", "malformed", b"\x91\x93\xcd\1\0\xc4\x10" + ASKED + b"\x03")
    yield bad(
        "id of 15 bytes, a later version", "malformed", b"\x91\x93\2\xc4\x0f" + bytes(15) + b"\3"
    )
    wide: Parts = [["dc1001", 1], [ledger.hex(), 4097]]
    yield "content: 4,097 messages", "content", "malformed", [wide]
    yield "content: oversized", "content", "too-large", [[["00", (5 << 20) + 1]]]
    later = gossip.encode_gossip(messages()["leaving, of a later version"])
    for name, cause, change in (
        ("to one node", "malformed", (4, bytes(32))),
        ("with another action", "malformed", (5, 0)),
        ("with a body", "malformed", (8, b"x")),
        ("without a signature", "malformed", (9, None)),
        ("with hlc in more bytes", "not-canonical", (6, Raw(b"\xcf" + bytes(7) + b"\1"))),
    ):
        data = b"\x91" + changed(later, change)
        yield bad(f"leaving of a later version {name}", cause, data)


def _bad(name: str, cause: str, data: bytes) -> Case:
    return case(f"gossip: {name}", "gossip", cause, data, CLUSTER_ID)


def _gossip() -> Iterator[Case]:
    ledger, lost = (gossip.encode_gossip(messages()[name]) for name in ("ledger", "lost"))
    for at, name in enumerate(
        ["version", "id", "kind", "sender", "target", "action", "hlc", "hop limit", "body",
         "signature"]):  # fmt: skip
        for what, new in (("a text", "x"), ("a float", 1.0), ("true", True), ("an array", [])):
            yield _bad(f"{name} is {what}", "malformed", changed(lost, (at, new)))
    for name, cause, change in (
        ("version 0", "unsupported-version", (0, 0)),
        ("version 2", "unsupported-version", (0, 2)),
        ("id of 15 bytes", "malformed", (1, bytes(15))),
        ("kind 0", "unknown-kind", (2, 0)),
        ("kind 19", "unknown-kind", (2, 19)),
        ("kind 255", "unknown-kind", (2, 255)),
        ("kind 256", "malformed", (2, 256)),
        ("sender of 31 bytes", "malformed", (3, bytes(31))),
        ("no sender", "malformed", (3, None)),
        ("target of 33 bytes", "malformed", (4, bytes(33))),
        ("an action for nothing to do", "wrong-action", (5, 1)),
        ("action 5", "wrong-action", (5, 5)),
        ("hop limit 17", "malformed", (7, 17)),
        ("no body", "malformed", (8, None)),
        ("signature where none belongs", "bad-signature", (9, bytes(64))),
        ("hlc in more bytes", "not-canonical", (6, Raw(b"\xcf" + bytes(7) + b"\1"))),
    ):
        yield _bad(f"ledger: {name}", cause, changed(ledger, change))
    yield from _signatures(lost)
    yield from _leavings()
    yield from _bodies()


def _signatures(lost: bytes) -> Iterator[Case]:
    yield _bad("lost without a signature", "bad-signature", changed(lost, (9, None)))
    for name, change in (
        ("id", (1, bytes(16))),
        ("sender", (3, key_of("n2").node_id)),
        ("target", (4, bytes(32))),
        ("hlc", (6, 1)),
        ("body", (8, pack([key_of("n2").node_id, START, 10_000]))),
        ("signature", (9, bytes(64))),
    ):
        yield _bad(f"lost with another {name}", "bad-signature", changed(lost, change))
    message = messages()["lost"]
    elsewhere = gossip.signed(message, OTHER_CLUSTER_ID, key_of("n1"))
    yield _bad("signed for another cluster", "bad-signature", gossip.encode_gossip(elsewhere))
    as_joined = changed(gossip.encode_gossip(messages()["joined"]), (2, 3), (8, message.body))
    yield _bad("signature of another kind", "bad-signature", as_joined)


def _leavings() -> Iterator[Case]:
    good = gossip.encode_gossip(messages()["leaving"])
    for name, cause, change in (
        ("to one node", "malformed", (4, bytes(32))),
        ("with another action", "wrong-action", (5, 0)),
        ("with a body", "malformed", (8, b"x")),
        ("without a signature", "bad-signature", (9, None)),
        ("of another node", "bad-signature", (3, key_of("n2").node_id)),
        ("of another start", "bad-signature", (1, bytes(16))),
        ("of another version", "bad-signature", (0, 7)),
        ("of another time", "bad-signature", (6, 1)),
    ):
        yield _bad(f"leaving {name}", cause, changed(good, change))
    as_gossip = key_of("n1").sign(gossip.TAG_GOSSIP + CLUSTER_ID + pack([*fields(good)[:7], b""]))
    yield _bad("leaving signed as other gossip", "bad-signature", changed(good, (9, as_gossip)))


def _with_body(kind: gossip.Kind, body: bytes) -> bytes:
    return gossip.encode_gossip(finished(gossip.compose(origin(), kind, body, None, 4)))


def _bodies() -> Iterator[Case]:
    for name, body in BODIES.items():
        kind = gossip.KIND_OF_BODY[type(body)]
        data = encode_body(body)
        value = fields(data)
        for what, cause, bad in (
            ("empty", "malformed", b""),
            ("nil", "malformed", b"\xc0"),
            ("with a field too many", "malformed", pack([*value, None])),
            ("with a field too few", "malformed", pack(value[:-1])),
            ("with a trailing byte", "malformed", data + b"\0"),
            ("with a long head", "not-canonical", b"\xdc\0" + bytes([len(value)]) + data[1:]),
        ):
            yield _bad(f"{name}: body {what}", cause, _with_body(kind, bad))
    of = gossip.Kind
    endpoint = fields(encode_endpoint(endpoint_of("n1")))
    for name, cause, kind, value in (
        ("discovered: no name", "bad-text", of.DISCOVERED, [endpoint, ""]),
        ("discovered: name of 130 bytes", "bad-text", of.DISCOVERED, [endpoint, "é" * 65]),
        ("discovered: name with a line break", "bad-text", of.DISCOVERED, [endpoint, "n1\n"]),
        ("query: no question", "bad-text", of.QUERY, ["", b""]),
        ("query: question of 129 bytes", "bad-text", of.QUERY, ["q" * 129, b""]),
        ("query: argument over 4 KiB", "malformed", of.QUERY, ["q", bytes(4097)]),
        ("answer: over 64 KiB", "malformed", of.ANSWER, [ASKED, bytes((64 << 10) + 1)]),
        ("addresses: 257", "too-large", of.ADDRESSES, [[endpoint] * 900]),
        ("cast key: of 31 bytes", "malformed", of.CAST_KEY, [bytes(31), 0]),
        ("cast report: stream of 9", "malformed", of.CAST_REPORT, [bytes(9), 0, []]),
        ("cast report: 257 wants", "malformed", of.CAST_REPORT, [bytes(8), 0, [1] * 257]),
        ("cast report: a want of -1", "malformed", of.CAST_REPORT, [bytes(8), 0, [-1]]),
        ("health answer: -1 ms ago", "malformed", of.HEALTH_ANSWER, [ASKED, bytes(32), 1, -1]),
        ("mismatch: version with an escape", "bad-text", of.VERSION_MISMATCH, [1, 1, "\x1b"]),
        ("mismatch: version of 65 bytes", "bad-text", of.VERSION_MISMATCH, [1, 1, "1" * 65]),
    ):
        yield _bad(name, cause, _with_body(kind, pack(value)))
    short = [bytes(32), bytes(32), "h", 1, 1, bytes(64)]
    many = pack([[short] * 257])
    yield _bad("addresses: 257 short ones", "malformed", _with_body(of.ADDRESSES, many))
