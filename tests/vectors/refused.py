"""What must be refused, and why: made by hand from what is valid."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgpack
import msgspec

from quipu.ledger import merkle
from quipu.ledger.canonical import encode
from quipu.ledger.entry import encode_entry
from quipu.ledger.event import Header, SignedEvent
from quipu.ledger.evidence import AuthorProof, SignerProof
from quipu.ledger.inv import decode_inv
from quipu.ledger.messages import encode_message
from tests.small_ledger import JOURNAL, key_of
from tests.vectors import generate

Parts = list[list[Any]]  # pairs of hex and how often
Case = tuple[str, str, str, list[Parts]]  # name, kind, reason, inputs
DEEP = 100_000
BIG = 2**64 - 1
FLOAT_2_64 = b"\xcb\x43\xf0\x00\x00\x00\x00\x00\x00"  # the least integer that msgpack cannot say


class Raw(bytes):
    """Bytes that stand in a value as they are, canonical or not."""


def pack(value: Any) -> bytes:
    """Like the canonical encoding, but with `Raw` where a test wants something else."""
    if isinstance(value, Raw):
        return bytes(value)
    if isinstance(value, list | tuple):
        assert len(value) < 2**32
        head = msgpack.Packer().pack_array_header(len(value))
        return bytes(head) + b"".join(pack(item) for item in value)
    return bytes(msgpack.packb(value))


REPEATED = re.compile(rb"(.{1,64}?)\1{31,}", re.DOTALL)


def parts(data: bytes) -> Parts:
    """The bytes, with what is repeated told once."""
    found: Parts = []
    at = 0
    for run in REPEATED.finditer(data):
        unit = run[1]
        found += [[data[at : run.start()].hex(), 1], [unit.hex(), len(run[0]) // len(unit)]]
        at = run.end()
    return [*found, [data[at:].hex(), 1]]


def fields(data: bytes) -> list[Any]:
    found: list[Any] = msgspec.msgpack.decode(data)
    return found


def changed(data: bytes, *changes: tuple[int, Any]) -> bytes:
    value = fields(data)
    for at, new in changes:
        value[at] = new
    return pack(value)


def case(name: str, kind: str, reason: str, *inputs: bytes) -> Case:
    return name, kind, reason, [parts(data) for data in inputs]


def refused(world: "generate.World") -> generate.Rows:
    rows: generate.Rows = []
    samples = dict(_samples(world))
    for kind, inputs in samples.items():
        # An event's cut body is seen by its size before anything is decoded.
        reason = "bad-body" if kind == "event" else "malformed"
        cut = len(inputs) - 1 if kind == "event" else 0
        told = [parts(data) for data in inputs]
        rows.append(
            {
                "name": f"{kind} cut short",
                "kind": kind,
                "reason": reason,
                "inputs": told,
                "cut": cut,
            }
        )
    cases: list[Case] = []
    for kind, inputs in samples.items():
        if kind != "event":
            cases += _of_any_kind(kind, inputs)
    for make in (_entries, _headers, _events, _rosters, _receipts, _messages, _proofs, _bundles):
        cases += make(world)
    rows += [{"name": n, "kind": k, "reason": r, "inputs": i} for n, k, r, i in cases]
    names = [row["name"] for row in rows]
    assert len(set(names)) == len(names), sorted(n for n in names if names.count(n) > 1)
    return rows


def _samples(world: "generate.World") -> Iterator[tuple[str, list[bytes]]]:
    a1 = world.events["first of a cord"]
    yield "entry", [encode_entry(generate.ENTRIES["with submitter and key"])]
    yield "header", [world.events["with two parents"].header_bytes]
    yield "event", [a1.header_bytes, a1.signature, a1.body]
    yield "genesis", [world.ledger.genesis]
    yield "document", [world.ledger.documents[0][0]]
    yield "inv", [world.receipts["of the author, three cords"].data]
    yield "message", [encode_message(generate.messages_of(world)["sync"])]
    yield "proof", [world.author_proof, world.fork_cluster]
    yield "bundle", [generate.bundles_of(world)["headers between"]]


LIMITS = {
    "entry": 1 << 20,
    "header": 4096,
    "genesis": 1 << 20,
    "document": 1 << 20,
    "inv": 128 << 10,
    "message": 5 << 20,
    "proof": 5 << 20,
    "bundle": 16 << 20,
}


def _of_any_kind(kind: str, inputs: list[bytes]) -> Iterator[Case]:
    data, rest = inputs[0], inputs[1:]
    value = fields(data)

    def with_data(name: str, reason: str, new: bytes) -> Case:
        return case(f"{kind}: {name}", kind, reason, new, *rest)

    yield with_data("nothing", "malformed", b"")
    yield with_data("a trailing byte", "malformed", data + b"\0")
    yield with_data("twice", "malformed", data + data)
    yield with_data("a field too many", "malformed", pack([*value, None]))
    yield with_data("a field too few", "malformed", pack(value[:-1]))
    yield with_data("nil", "malformed", b"\xc0")
    yield with_data("the byte that means nothing", "malformed", b"\xc1")
    yield with_data("a map", "malformed", msgpack.packb(dict(enumerate(value))))
    yield with_data("an extension", "malformed", b"\xc7\x04\x05" + data[:4])
    yield with_data("a huge array announced", "malformed", b"\xdd\xff\xff\xff\xff" + data[1:])
    yield with_data("a long array head", "not-canonical", b"\xdc\x00" + _count(value) + data[1:])
    longer = b"\xdd\x00\x00\x00" + _count(value) + data[1:]
    yield with_data("the longest array head", "not-canonical", longer)
    rest_parts = [parts(item) for item in rest]
    over: Parts = [["00", LIMITS[kind] + 1]]
    yield f"{kind}: oversized", kind, "too-large", [over, *rest_parts]
    deep: Parts = [["91", DEEP], ["90", 1]]
    reason = "too-large" if LIMITS[kind] < DEEP else "malformed"
    yield f"{kind}: {DEEP} levels deep", kind, reason, [deep, *rest_parts]
    yield from _deep_inside(kind, value, rest)


def _count(value: Sequence[Any]) -> bytes:
    assert len(value) < 16
    return bytes([len(value)])


def _deep_inside(kind: str, value: list[Any], rest: list[bytes]) -> Iterator[Case]:
    """Deep nesting in the place of each field, as deep as the limit of bytes lets it be."""
    levels = min(1000, LIMITS[kind] - 3000) if kind != "header" else 1000
    for at in range(len(value)):
        deep = pack([*value[:at], Raw(b"\x91" * levels + b"\x90"), *value[at + 1 :]])
        yield case(f"{kind}: field {at} nested deeply", kind, "malformed", deep, *rest)


def _wrong_types(
    kind: str, data: bytes, at: int, sorts: Sequence[tuple[str, Any]], *rest: bytes
) -> Iterator[Case]:
    for name, new in sorts:
        name = f"{kind}: field {at} is {name}"
        yield case(name, kind, "malformed", changed(data, (at, new)), *rest)


NOT_INTEGERS: tuple[tuple[str, Any], ...] = (
    ("a float", 1.0),
    ("a short float", Raw(b"\xca\x3f\x80\x00\x00")),
    ("2^64 as a float", Raw(FLOAT_2_64)),
    ("true", True),
    ("a text", "1"),
    ("negative", -1),
    ("a map", Raw(b"\x80")),
    ("a timestamp", Raw(b"\xd6\xff\x00\x00\x00\x01")),
    ("an extension", Raw(b"\xd4\x01\x01")),
)


def _long_integers(kind: str, data: bytes, at: int, number: int) -> Iterator[Case]:
    """Every encoding of a small integer that is longer than need be."""
    forms = {
        "8 bits": b"\xcc" + number.to_bytes(1, "big"),
        "16 bits": b"\xcd" + number.to_bytes(2, "big"),
        "32 bits": b"\xce" + number.to_bytes(4, "big"),
        "64 bits": b"\xcf" + number.to_bytes(8, "big"),
        "signed 8 bits": b"\xd0" + number.to_bytes(1, "big"),
        "signed 16 bits": b"\xd1" + number.to_bytes(2, "big"),
        "signed 32 bits": b"\xd2" + number.to_bytes(4, "big"),
        "signed 64 bits": b"\xd3" + number.to_bytes(8, "big"),
    }
    for name, form in forms.items():
        name = f"{kind}: field {at} is {number} in {name}"
        yield case(name, kind, "not-canonical", changed(data, (at, Raw(form))))


def _entries(world: "generate.World") -> Iterator[Case]:
    data = encode_entry(generate.ENTRIES["smallest"])
    for at in (1, 4, 5, 7, 10):
        yield from _wrong_types("entry", data, at, NOT_INTEGERS[:7])
    yield from _long_integers("entry", data, 1, 0)
    yield from _long_integers("entry", data, 4, 5)
    texts: tuple[tuple[str, Any], ...] = (
        ("bytes", b"orders"),
        ("a number", 1),
        ("nil", None),
        ("a list", []),
    )
    yield from _wrong_types("entry", data, 2, texts)
    yield from _wrong_types("entry", data, 9, (("a text", "data"), ("nil", None)))
    malformed: dict[str, tuple[int, Any]] = {
        "salt of 15 bytes": (0, bytes(15)),
        "salt of 17 bytes": (0, bytes(17)),
        "kind 3": (1, 3),
        "submitter empty": (3, ""),
        "client id 2^32": (4, 2**32),
        "idempotency key empty": (6, ""),
        "content type 5": (8, 5),
        "signature type 256": (10, 256),
        "signature of 513 bytes": (11, bytes(513)),
        "stream is not UTF-8": (2, Raw(b"\xa2\xc3\x28")),
        "stream is a lone surrogate": (2, Raw(b"\xa3\xed\xa0\x80")),
        "stream is overlong UTF-8": (2, Raw(b"\xa2\xc0\xaf")),
        "submitter is not UTF-8": (3, Raw(b"\xa1\xff")),
        "submitter of 129 characters": (3, "s" * 129),
        "idempotency key of 257 characters": (6, "k" * 257),
    }
    for name, change in malformed.items():
        yield case(f"entry: {name}", "entry", "malformed", changed(data, change))
    longer: dict[str, tuple[int, Any]] = {
        "text of 8 bits": (2, Raw(b"\xd9\x07default")),
        "text of 16 bits": (2, Raw(b"\xda\x00\x07default")),
        "text of 32 bits": (2, Raw(b"\xdb\x00\x00\x00\x07default")),
        "bytes of 16 bits": (9, Raw(b"\xc5\x00\x01x")),
        "bytes of 32 bits": (9, Raw(b"\xc6\x00\x00\x00\x01x")),
    }
    for name, change in longer.items():
        yield case(f"entry: {name}", "entry", "not-canonical", changed(data, change))
    yield from _bad_entries(data)


def _bad_entries(data: bytes) -> Iterator[Case]:
    names = ["", ".a", "-a", "_a", "A", "a b", "a/b", "a\n", "a\0", "ä", "a" * 129, "aB"]
    for name in names:
        shown = f"entry: stream {name[:8]!a}" + (f" x {len(name)}" if len(name) > 8 else "")
        yield case(shown, "entry", "bad-entry", changed(data, (2, name)))
    for name in ["", "t" * 129, "text/plain\r\nx: y", "a\0", "té/x", "\x7f"]:
        shown = f"entry: content type {name[:12]!a}"
        yield case(shown, "entry", "bad-entry", changed(data, (8, name)))
    wide = {"submitter of 130 bytes": (3, "é" * 65), "key of 258 bytes": (6, "é" * 129)}
    for shown, change in wide.items():
        yield case(f"entry: {shown}", "entry", "bad-entry", changed(data, change))


def _headers(world: "generate.World") -> Iterator[Case]:
    top = world.events["with two parents"]
    second = world.events["second of a cord"]
    data = second.header_bytes
    for at in (0, 3, 4, 5, 8, 9, 10, 11, 12):
        yield from _wrong_types("header", data, at, NOT_INTEGERS)
    yield from _long_integers("header", data, 5, 2)
    for at in (1, 2, 6, 13):
        sorts = (
            ("31 bytes", bytes(31)),
            ("33 bytes", bytes(33)),
            ("text", "a" * 32),
            ("nil", None),
        )
        yield from _wrong_types("header", data, at, sorts)
    low, high = sorted(second.header.parents)
    ids = [bytes([i]) * 32 for i in range(1, 9)]
    one_of_first = changed(world.events["first of a cord"].header_bytes, (6, bytes(32)))
    wrong: dict[str, tuple[str, bytes]] = {
        "version 0": ("unknown-version", changed(data, (0, 0))),
        "version 2": ("unknown-version", changed(data, (0, 2))),
        "version 2^64 - 1": ("unknown-version", changed(data, (0, BIG))),
        "kind 1": ("unknown-kind", changed(data, (10, 1))),
        "seq 0": ("bad-seq", changed(data, (5, 0))),
        "prev of seq 1 is not the cluster": ("bad-prev", one_of_first),
        "parents not sorted": ("bad-parents", changed(data, (7, [high, low]))),
        "a parent twice": ("bad-parents", changed(data, (7, [low, low]))),
        "eight parents": ("bad-parents", changed(data, (7, ids))),
        "prev among parents": ("bad-parents", changed(data, (7, [second.header.prev]))),
        "a parent of 31 bytes": ("malformed", changed(data, (7, [bytes(31)]))),
        "parents nil": ("malformed", changed(data, (7, None))),
        "no entries": ("bad-body", changed(data, (11, 0))),
        "10,001 entries": ("bad-body", changed(data, (11, 10_001))),
        "body of 4 MiB and a byte": ("too-large", changed(data, (12, (4 << 20) + 1))),
        "ids of 16-bit length": ("not-canonical", _long_binary(top)),
    }
    for name, (reason, bad) in wrong.items():
        yield case(f"header: {name}", "header", reason, bad)


def _long_binary(event: SignedEvent) -> bytes:
    return changed(event.header_bytes, (1, Raw(b"\xc5\x00\x20" + event.header.cluster_id)))


def _events(world: "generate.World") -> Iterator[Case]:
    event = world.events["first of a cord"]
    head, signature, body = event.header_bytes, event.signature, event.body
    items = fields(body)

    def with_body(name: str, reason: str, new: bytes, *changes: tuple[int, Any]) -> Case:
        header = changed(head, (12, len(new)), *changes)
        return case(f"event: {name}", "event", reason, header, signature, new)

    yield case(
        "event: another root", "event", "bad-root", changed(head, (13, bytes(32))), signature, body
    )
    yield with_body("entries swapped", "bad-root", pack([items[1], items[0], items[2]]))
    yield with_body("an entry changed", "bad-root", pack([*items[:2], items[0]]))
    yield with_body("an entry missing", "bad-body", pack(items[:2]))
    yield with_body("an entry too many", "bad-body", pack([*items, items[0]]))
    yield with_body("a trailing byte", "malformed", body + b"\0")
    yield with_body("a long array head", "not-canonical", b"\xdc\x00\x03" + body[1:])
    yield with_body("entries as texts", "malformed", pack(["a", "b", "c"]))
    yield with_body("entries as arrays", "malformed", pack([[1], [2], [3]]))
    yield with_body("a map", "malformed", b"\x83" + body[1:])
    yield with_body("nested deeply", "malformed", b"\x91" * 100_000 + b"\x90")
    bad_items = [*items[:2], b"\xc0"]
    root = _root(bad_items)
    yield with_body("an entry that is none", "malformed", pack(bad_items), (13, root))
    bad_items = [*items[:2], items[2].replace(b"orders", b"ORDERS")]
    yield with_body("a stream in capitals", "bad-entry", pack(bad_items), (13, _root(bad_items)))
    big = b"\xc6" + ((1 << 20) + 1).to_bytes(4, "big")
    large: Parts = [["91" + big.hex(), 1], ["00", (1 << 20) + 1]]
    size = (1 << 20) + 7
    large_root = _root([bytes((1 << 20) + 1)])
    large_head = changed(head, (11, 1), (12, size), (13, large_root))
    yield "event: an entry over 1 MiB", "event", "too-large", [
        parts(large_head), parts(signature), large,
    ]  # fmt: skip
    for length in (0, 63, 65):
        name = f"event: signature of {length} bytes"
        yield case(name, "event", "malformed", head, bytes(length), body)
    yield from _signed_events(event)


def _root(items: list[bytes]) -> bytes:
    return merkle.root_of([merkle.leaf_hash(item) for item in items])


def _signed_events(event: SignedEvent) -> Iterator[Case]:
    head, signature, body = event.header_bytes, event.signature, event.body
    flipped = bytes([signature[0] ^ 1]) + signature[1:]
    over_id = key_of("n1").sign(event.id)
    as_receipt = key_of("n1").sign(b"quipu/sig/inv/1\0" + event.id)
    of_other = key_of("n2").sign(b"quipu/sig/event/1\0" + event.id)
    # Verifies wherever S is not asked to be below the order: a second signature without the key.
    order = 2**252 + 27742317777372353535851937790883648493
    larger = int.from_bytes(signature[32:], "little") + order
    malleable = signature[:32] + larger.to_bytes(32, "little")
    wrong = {
        "zeros": bytes(64),
        "one bit": flipped,
        "without its tag": over_id,
        "with the tag of receipts": as_receipt,
        "of another key": of_other,
        "with S + L": malleable,
    }
    for name, bad in wrong.items():
        yield case(f"event: signature {name}", "signed-event", "bad-signature", head, bad, body)
    no_key = changed(head, (2, bytes(32)))
    yield case("event: author is no key", "signed-event", "bad-signature", no_key, signature, body)


def _rosters(world: "generate.World") -> Iterator[Case]:
    genesis, document = world.ledger.genesis, world.ledger.documents[0][0]
    founders = fields(genesis)[4]
    members = fields(document)[6]
    for at in (0, 2):
        yield from _wrong_types("genesis", genesis, at, NOT_INTEGERS)
    for at in (0, 2, 4, 9):
        yield from _wrong_types("document", document, at, NOT_INTEGERS)
    many = [[bytes([i]) * 32, "n", []] for i in range(33)]
    for kind, data, roster_at, policy_at, name in (
        ("genesis", genesis, 4, 3, "genesis"),
        ("document", document, 6, 5, "document"),
    ):
        roster = founders if kind == "genesis" else members
        twice = [*roster[:2], [*roster[1]]]
        if kind == "document":
            twice[2][0] = 9
        numbered = many if kind == "genesis" else [[i, *row] for i, row in enumerate(many, 1)]
        bad_row = [*roster[0]]
        bad_row[-2] = "é" * 65
        long_role = [*roster[0]]
        long_role[-1] = ["é" * 65]
        wrong: dict[str, tuple[str, tuple[int, Any]]] = {
            "version 3": ("unknown-version", (0, 3)),
            "no members": ("malformed", (roster_at, [])),
            "33 members": ("malformed", (roster_at, numbered)),
            "a member twice": ("malformed", (roster_at, twice)),
            "a name of 130 bytes": ("malformed", (roster_at, [bad_row])),
            "a role of 130 bytes": ("malformed", (roster_at, [long_role])),
            "an unknown policy": ("malformed", (policy_at, "most")),
            "policy 0": ("malformed", (policy_at, "0")),
            "policy 01": ("malformed", (policy_at, "01")),
            "policy -1": ("malformed", (policy_at, "-1")),
            "policy 9": ("malformed", (policy_at, "9")),
            "policy in Arabic digits": ("malformed", (policy_at, "\u0661")),
            "policy empty": ("malformed", (policy_at, "")),
        }
        for what, (reason, change) in wrong.items():
            yield case(f"{name}: {what}", kind, reason, changed(data, change))
    yield from _geneses(genesis)
    yield from _documents(document, members)


def _geneses(genesis: bytes) -> Iterator[Case]:
    wrong: dict[str, tuple[int, Any]] = {
        "name empty": (1, ""),
        "name of 129 characters": (1, "n" * 129),
        "name of 130 bytes": (1, "é" * 65),
        "name is not UTF-8": (1, Raw(b"\xa1\x80")),
        "salt of 15 bytes": (5, bytes(15)),
        "salt is a text": (5, "s" * 16),
        "a stream in capitals": (6, ["A"]),
        "streams not sorted": (6, ["b", "a"]),
        "a stream twice": (6, ["a", "a"]),
        "257 streams": (6, [f"s{i:03}" for i in range(257)]),
        "streams are nil": (6, None),
    }
    for name, change in wrong.items():
        yield case(f"genesis: {name}", "genesis", "malformed", changed(genesis, change))


def _documents(document: bytes, members: list[Any]) -> Iterator[Case]:
    row = [1, JOURNAL, 1, bytes(32)]
    unsorted = [[2, *row[1:]], row]
    wrong: dict[str, tuple[str, tuple[int, Any]]] = {
        "number 1": ("malformed", (2, 1)),
        "number 0": ("malformed", (2, 0)),
        "member number 0": ("malformed", (6, [[0, *members[0][1:]]])),
        "member number 2^32": ("malformed", (6, [[2**32, *members[0][1:]]])),
        "members not sorted": ("malformed", (6, members[::-1])),
        "a stream in capitals": ("malformed", (7, ["A"])),
        "streams not sorted": ("malformed", (7, ["b", "a"])),
        "a stream twice": ("malformed", (7, ["a", "a"])),
        "257 streams": ("malformed", (7, [f"s{i:03}" for i in range(257)])),
        "cut not sorted": ("bad-rows", (8, unsorted)),
        "a cut row twice": ("bad-rows", (8, [row, row])),
        "a cut row of seq 0": ("bad-rows", (8, [[1, JOURNAL, 0, bytes(32)]])),
        "a cut row of author 0": ("malformed", (8, [[0, JOURNAL, 1, bytes(32)]])),
    }
    for name, (reason, change) in wrong.items():
        yield case(f"document: {name}", "document", reason, changed(document, change))
    rows = [row] * 4097
    yield case("document: 4,097 cut rows", "document", "malformed", changed(document, (8, rows)))


def _receipts(world: "generate.World") -> Iterator[Case]:
    data = world.receipts["of the author, three cords"].data
    rows = fields(data)[6]
    for at in (0, 3, 4):
        yield from _wrong_types("inv", data, at, NOT_INTEGERS)
    for at in (1, 2, 7):
        yield from _wrong_types("inv", data, at, (("short", bytes(31)), ("a text", "a" * 32)))
    wrong: dict[str, tuple[str, tuple[int, Any]]] = {
        "version 2": ("unknown-version", (0, 2)),
        "close of 31 bytes": ("malformed", (5, bytes(31))),
        "rows not sorted": ("bad-rows", (6, rows[::-1])),
        "two rows of a cord": ("bad-rows", (6, [rows[0], rows[0]])),
        "two rows of a cord that differ": (
            "bad-rows",
            (6, [rows[0], [*rows[0][:2], 9, bytes(32)]]),
        ),
        "a row of seq 0": ("bad-rows", (6, [[*rows[0][:2], 0, rows[0][3]]])),
        "a row of author 0": ("malformed", (6, [[0, *rows[0][1:]]])),
        "a row of author 2^32": ("malformed", (6, [[2**32, *rows[0][1:]]])),
        "a row without id": ("malformed", (6, [rows[0][:3]])),
        "1,025 rows": ("malformed", (6, rows[:1] * 1025)),
    }
    for name, (reason, change) in wrong.items():
        yield case(f"inv: {name}", "inv", reason, changed(data, change))
    of_event = key_of("n1").sign(b"quipu/sig/event/1\0" + decode_inv(data).id)
    for name, change in {
        "a row left out": (6, rows[1:]),
        "another number": (4, 1),
        "made a seal": (5, bytes(32)),
        "with the tag of events": (7, of_event),
        "of another signer": (2, key_of("n2").node_id),
    }.items():
        yield case(f"inv: signed, {name}", "signed-inv", "bad-signature", changed(data, change))


def _messages(world: "generate.World") -> Iterator[Case]:
    made = {n: encode_message(m) for n, m in generate.messages_of(world).items()}
    sync, get, answer = made["sync"], made["get"], made["answer"]
    for at in (1, 2, 3, 5, 8, 11):
        yield from _wrong_types("message", sync, at, NOT_INTEGERS)
    id16, id32 = bytes(16), bytes(32)
    want = [1, JOURNAL, [], 1, id16]
    event = fields(made["event"])[1]
    wrong: dict[str, tuple[str, bytes]] = {
        "kind 0": ("unknown-kind", changed(sync, (0, 0))),
        "kind 13": ("unknown-kind", changed(sync, (0, 13))),
        "kind 2^64 - 1": ("unknown-kind", changed(sync, (0, BIG))),
        "kind is a float": ("malformed", changed(sync, (0, 4.0))),
        "kind is a text": ("malformed", changed(sync, (0, "4"))),
        "kind is true": ("malformed", changed(sync, (0, True))),
        "kind in 16 bits": ("not-canonical", changed(sync, (0, Raw(b"\xcd\x00\x04")))),
        "empty array": ("malformed", b"\x90"),
        "sync, more is 1": ("malformed", changed(sync, (12, 1))),
        "sync, 65 leaves": ("malformed", changed(sync, (4, [id32] * 65))),
        "sync, a leaf of 16 bytes": ("malformed", changed(sync, (4, [id16]))),
        "sync, 4,097 rows": ("malformed", changed(sync, (6, [[1, 1, 1, id16, 1]] * 4097))),
        "sync, 257 receipts": ("malformed", changed(sync, (7, [[1, 1, id16]] * 257))),
        "sync, a row of author 0": ("malformed", changed(sync, (6, [[0, 1, 1, id16, 1]]))),
        "sync, an id of 32 bytes": ("malformed", changed(sync, (6, [[1, 1, 1, id32, 1]]))),
        "sync, a row of four": ("malformed", changed(sync, (6, [[1, 1, 1, id16]]))),
        "sync, digest of 16 bytes": ("malformed", changed(sync, (9, id16))),
        "get, 257 ids": ("malformed", changed(get, (2, [id32] * 257))),
        "get, 65 ranges": ("malformed", changed(get, (3, [want] * 65))),
        "get, 33 anchors": ("malformed", changed(get, (3, [[1, 1, [[1, id16]] * 33, 1, id16]]))),
        "get, an anchor of three": (
            "malformed",
            changed(get, (3, [[1, 1, [[1, id16, 1]], 1, id16]])),
        ),
        "get, 257 wants of receipts": ("malformed", changed(get, (4, [[1, 1]] * 257))),
        "get, 257 wants of covers": ("malformed", changed(get, (5, [[1, 1, 1, id16]] * 257))),
        "answer, more is nil": ("malformed", changed(answer, (5, None))),
        "answer, 4,097 events": ("malformed", changed(answer, (3, [[b"", b"", b""]] * 4097))),
        "answer, 257 missing": ("malformed", changed(answer, (4, [id32] * 257))),
        "answer, an inv as array": ("malformed", changed(answer, (2, [[1]]))),
        "event of two parts": ("malformed", pack([1, event[:2]])),
        "event of four parts": ("malformed", pack([1, [*event, b""]])),
        "inv as text": ("malformed", pack([2, "inv"])),
    }
    for name, (reason, data) in wrong.items():
        yield case(f"message: {name}", "message", reason, data)
    # Each field within its limit, all of them together over that of the request.
    anchors = [[BIG, bytes([255]) * 16]] * 32
    big_get = changed(get, (3, [[2**32 - 1, BIG, anchors, BIG, id16]] * 64), (2, [id32] * 256))
    yield case("message: get over 64 KiB", "message", "too-large", big_get)


def _proofs(world: "generate.World") -> Iterator[Case]:
    cluster = world.fork_cluster
    author = msgspec.msgpack.decode(world.author_proof, type=AuthorProof)
    swapped = AuthorProof(
        author.header_high, author.signature_high, author.header_low, author.signature_low
    )
    same = msgspec.structs.replace(
        author, header_high=author.header_low, signature_high=author.signature_low
    )
    a2 = world.events["second of a cord"]
    slots = msgspec.structs.replace(
        author, header_high=a2.header_bytes, signature_high=a2.signature
    )
    forged = msgspec.structs.replace(author, signature_high=bytes(64))
    version = changed(author.header_high, (0, 2))
    newer = msgspec.structs.replace(author, header_high=version)
    wrong: dict[str, tuple[str, bytes]] = {
        "kind 3": ("malformed", changed(world.author_proof, (0, 3))),
        "author, not in order": ("no-proof", encode(swapped)),
        "author, the same event twice": ("no-proof", encode(same)),
        "author, two slots": ("no-proof", encode(slots)),
        "author, forged": ("bad-signature", encode(forged)),
        "author, of another version": ("unknown-version", encode(newer)),
    }
    for name, (reason, data) in wrong.items():
        yield case(f"proof: {name}", "proof", reason, data, cluster)
    yield case("proof: of another cluster", "proof", "wrong-cluster", world.author_proof, bytes(32))
    yield from _signer_proofs(world, world.signer_parts)


def _signer_proofs(world: "generate.World", good: SignerProof) -> Iterator[Case]:
    cluster = world.fork_cluster
    replace: Callable[..., SignerProof] = msgspec.structs.replace
    unsigned = changed(good.inv_low, (7, bytes(64)))
    other = world.receipts["of another member"].data
    mine = world.receipts["of a third"].data
    header = msgspec.msgpack.decode(good.chain_high[0], type=Header)
    foreign = encode(msgspec.structs.replace(header, journal=1))
    wrong: dict[str, tuple[str, SignerProof]] = {
        "not in order": (
            "no-proof",
            SignerProof(
                good.author_no, good.journal, good.seq,
                good.inv_high, good.chain_high, good.inv_low, good.chain_low,
            ),
        ),
        "the same receipt twice": ("no-proof", replace(good, inv_high=good.inv_low, chain_high=[])),
        "headers missing": ("no-proof", replace(good, chain_high=[])),
        "a header too many": ("no-proof", replace(good, chain_high=good.chain_high * 2)),
        "headers of another journal": ("no-proof", replace(good, chain_high=[foreign])),
        "headers below the slot": ("no-proof", replace(good, seq=3)),
        "no row for the cord": ("no-proof", replace(good, author_no=9)),
        "no row in that receipt": ("no-proof", replace(good, inv_low=mine)),
        "two signers": ("no-proof", replace(good, seq=1, inv_low=other, inv_high=other)),
        "forged": ("bad-signature", replace(good, inv_low=unsigned)),
    }  # fmt: skip
    for name, (reason, proof) in wrong.items():
        yield case(f"proof: signer, {name}", "proof", reason, encode(proof), cluster)
    long = encode(replace(good, chain_high=good.chain_high * 257))
    yield case("proof: signer, 257 headers", "proof", "malformed", long, cluster)
    data = encode(good)
    name = "proof: signer, of another cluster"
    yield case(name, "proof", "wrong-cluster", data, bytes(32))


def _bundles(world: "generate.World") -> Iterator[Case]:
    made = generate.bundles_of(world)
    data = made["headers between"]
    _, _, _, head, signature, _, _, path, chain, invs = fields(data)
    other_head = world.events["of another author"]
    wrong: dict[str, tuple[str, tuple[int, Any]]] = {
        "version 2": ("unknown-version", (0, 2)),
        "genesis of another cluster": ("wrong-cluster", (1, world.alone.genesis)),
        "header of another event": ("bad-signature", (3, other_head.header_bytes)),
        "header of an unknown epoch": ("epoch-unknown", (3, changed(head, (3, 2)))),
        "author is no member": ("not-a-member", (3, changed(head, (2, key_of("n5").node_id)))),
        "signature forged": ("bad-signature", (4, bytes(64))),
        "signature of 63 bytes": ("malformed", (4, signature[:63])),
        "another index": ("bad-root", (5, 1)),
        "index outside": ("bad-root", (5, 3)),
        "index 2^64 - 1": ("bad-root", (5, BIG)),
        "another entry": ("bad-root", (6, encode_entry(generate.ENTRIES["json"]))),
        "path too short": ("bad-root", (7, path[:-1])),
        "path too long": ("bad-root", (7, [*path, bytes(32)])),
        "path with a wrong step": ("bad-root", (7, [bytes(32), *path[1:]])),
        "chain missing": ("no-proof", (8, [])),
        "chain cut": ("no-proof", (8, chain[:-1])),
        "chain with a hole": ("no-proof", (8, chain[1:])),
        "chain twice": ("no-proof", (8, [*chain, chain[-1]])),
        "no receipts": ("no-proof", (9, [])),
        "the author's receipt alone": ("no-proof", (9, invs[:1])),
        "without the author's receipt": ("no-proof", (9, invs[1:])),
        "receipts not sorted": ("no-proof", (9, invs[::-1])),
        "a receipt twice": ("no-proof", (9, [invs[0], invs[0], *invs[1:]])),
        "a receipt without the row": (
            "no-proof",
            (9, [world.receipts["without rows"].data, *invs]),
        ),
        "a receipt of another epoch": ("no-proof", (9, [*invs[:2], world.seal.data])),
        "a forged receipt": ("bad-signature", (9, [changed(invs[0], (7, bytes(64))), *invs[1:]])),
    }
    for name, (reason, change) in wrong.items():
        yield case(f"bundle: {name}", "bundle", reason, changed(data, change))
    tall = changed(made["no headers between"], (8, [world.below_cut.header_bytes]))
    yield case("bundle: a header too many", "bundle", "no-proof", tall)
    stranger = fields(made["one member"])
    strange_inv = world.alone.sign(2, world.first).data
    stranger[9] = [strange_inv]
    yield case("bundle: a receipt of no member", "bundle", "not-a-member", pack(stranger))
    yield from _epoch_bundles(made)


def _epoch_bundles(made: dict[str, bytes]) -> Iterator[Case]:
    data = made["by the second epoch"]
    document, seals = fields(data)[2][0]
    cut = made["by a cut"]
    cut_document, cut_seals = fields(cut)[2][0]
    moved = changed(cut_document, (8, fields(cut_document)[8][1:]))
    forged = changed(seals[0], (7, bytes(64)))
    policy = changed(document, (5, "majority"))
    number = changed(document, (2, 3))
    foreign = changed(document, (1, bytes(32)))
    wrong: dict[str, tuple[str, bytes, tuple[int, Any]]] = {
        "documents missing": ("epoch-unknown", data, (2, [])),
        "a document twice": ("epoch-unknown", data, (2, [[document, seals]] * 2)),
        "no seals": ("no-proof", data, (2, [[document, []]])),
        "too few seals": ("no-proof", data, (2, [[document, seals[:1]]])),
        "a seal twice": ("no-proof", data, (2, [[document, [seals[0], seals[0]]]])),
        "33 seals": ("malformed", data, (2, [[document, [seals[0]] * 33]])),
        "a seal forged": ("bad-signature", data, (2, [[document, [forged, seals[1]]]])),
        "seals of another roster": ("no-proof", data, (2, [[policy, seals]])),
        "document of another number": ("epoch-unknown", data, (2, [[number, seals]])),
        "document of another cluster": ("wrong-cluster", data, (2, [[foreign, seals]])),
        "receipts of the epoch before": ("no-proof", data, (9, fields(made["headers between"])[9])),
        "a cut without the row": ("no-proof", cut, (2, [[moved, cut_seals]])),
        "an event above the cut": ("no-proof", data, (9, [])),
    }
    for name, (reason, whole, change) in wrong.items():
        yield case(f"bundle: {name}", "bundle", reason, changed(whole, change))
