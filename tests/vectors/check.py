"""Checks the vectors from outside: hashlib, PyNaCl and msgpack alone, nothing of quipu.

`python tests/vectors/check.py [FOLDER]` recomputes every id, hash, signature, Merkle root and path
and every canonical byte, and sees that what should be refused is. It is written from the formats'
description, as a stranger would, and is the fuzzer's oracle too.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgpack
from nacl.exceptions import CryptoError
from nacl.signing import SigningKey, VerifyKey

KIB, MIB = 1 << 10, 1 << 20
U32, U64 = 2**32 - 1, 2**64 - 1
Form = Callable[[Any], None]


class Bad(Exception):
    """These bytes are not of the format."""


def need(holds: bool, why: str) -> None:
    if not holds:
        raise Bad(why)


# --- forms --------------------------------------------------------------------------------------
def whole(most: int = U64, least: int = 0) -> Form:
    def check(value: Any) -> None:
        need(type(value) is int and least <= value <= most, "integer")

    return check


def octets(most: int | None = None, least: int = 0) -> Form:
    def check(value: Any) -> None:
        need(type(value) is bytes and least <= len(value) <= (most or 1 << 40), "bytes")

    return check


def exactly(size: int) -> Form:
    return octets(size, size)


def text(most: int, least: int = 1) -> Form:
    def check(value: Any) -> None:
        need(type(value) is str and least <= len(value.encode()) <= most, "text")

    return check


def some(item: Form, most: int | None = None, least: int = 0) -> Form:
    def check(value: Any) -> None:
        need(type(value) is list and least <= len(value) <= (most or 1 << 40), "array")
        for element in value:
            item(element)

    return check


def row(*fields: Form) -> Form:
    def check(value: Any) -> None:
        need(type(value) is list and len(value) == len(fields), "fields")
        for field, element in zip(fields, value, strict=True):
            field(element)

    return check


def maybe(form: Form) -> Form:
    return lambda value: None if value is None else form(value)


def flag(value: Any) -> None:
    need(type(value) is bool, "true or false")


def just(number: int) -> Form:
    return whole(number, number)


def stream(value: Any) -> None:
    text(128)(value)
    need(set(value) <= set("abcdefghijklmnopqrstuvwxyz0123456789._-"), "stream")
    need(value[0] not in "._-", "stream")


def media_type(value: Any) -> None:
    if type(value) is int:
        return whole(4)(value)
    text(128)(value)
    return need(all(" " <= letter <= "~" for letter in value), "content type")


def policy(value: Any, members: int) -> None:
    text(16)(value)
    if value not in ("majority", "two-thirds", "all"):
        need(all(digit in "0123456789" for digit in value), "policy")
        need(value == "0" or value[0] != "0", "policy")
        need(0 < int(value) < members or (int(value) == 0 and members == 1), "policy")


def rising(values: Sequence[Any], what: str) -> None:
    need(all(values[i] < values[i + 1] for i in range(len(values) - 1)), f"{what} do not rise")


ID = exactly(32)
PREFIX = exactly(16)
EVENT = row(octets(), octets(), octets())
MEMBER_ROW = (ID, text(128), some(text(128), 8))
PLACE = (whole(U32, 1), whole())  # author number, journal
ENTRY = row(
    maybe(exactly(16)),
    whole(2),
    stream,
    maybe(text(128)),
    maybe(whole(U32)),
    maybe(whole()),
    maybe(text(256)),
    maybe(whole()),
    media_type,
    octets(),
    whole(255),
    maybe(octets(512)),
)
HEADER = row(
    just(1), ID, ID, whole(), whole(), whole(U64, 1), ID, some(ID, 7), whole(), whole(),
    just(0), whole(10_000, 1), whole(4 * MIB), ID,
)  # fmt: skip
GENESIS = row(
    just(1), text(128), whole(), text(16), some(row(*MEMBER_ROW), 32, 1), exactly(16),
    some(stream, 256),
)  # fmt: skip
DOCUMENT = row(
    whole(2, 1), ID, whole(U64, 2), ID, whole(), text(16),
    some(row(whole(U32, 1), *MEMBER_ROW), 32, 1),
    some(stream, 256), some(row(*PLACE, whole(U64, 1), ID), 4096), whole(),
)  # fmt: skip
INV = row(
    just(1), ID, ID, whole(), whole(), maybe(ID),
    some(row(*PLACE, whole(U64, 1), ID), 1024), exactly(64),
)  # fmt: skip
BUNDLE = row(
    just(1), octets(), some(row(octets(), some(octets(), 32)), 4096), octets(), exactly(64),
    whole(), octets(), some(ID), some(octets(), 1024), some(octets(), 32),
)  # fmt: skip
PROOFS = {
    1: row(just(1), octets(), exactly(64), octets(), exactly(64)),
    2: row(
        just(2), whole(), whole(), whole(), octets(), some(octets(), 256), octets(),
        some(octets(), 256),
    ),
}  # fmt: skip
MESSAGES = {
    1: row(just(1), EVENT),
    2: row(just(2), octets()),
    3: row(
        just(3), whole(), some(ID, 256),
        some(row(*PLACE, some(row(whole(), PREFIX), 32), whole(), PREFIX), 64),
        some(row(whole(U32, 1), whole()), 256),
        some(row(*PLACE, whole(), PREFIX), 256), whole(),
    ),
    4: row(
        just(4), whole(), whole(), whole(), some(ID, 64), whole(),
        some(row(*PLACE, whole(), PREFIX, whole()), 4096),
        some(row(whole(U32, 1), whole(), PREFIX), 256), whole(), ID, PREFIX, whole(), flag,
    ),
    5: row(just(5), whole(), some(octets()), some(EVENT, 4096), some(ID, 256), flag),
    6: row(just(6), octets()),
    7: row(just(7), whole(U32, 1)),
    8: row(just(8), octets(), some(octets(), 32)),
    9: row(just(9), octets(), some(octets(), 32)),
    10: row(just(10), whole(U32, 1)),
    11: row(just(11), octets()),
    12: row(just(12), whole(), whole(U32, 1)),
}  # fmt: skip
MESSAGE_BYTES_MAX = {3: 64 * KIB}


# --- bytes --------------------------------------------------------------------------------------
def no_map(_: Any) -> None:
    raise ValueError("map")


def unpack(data: bytes, most: int) -> Any:
    need(len(data) <= most, "too large")
    try:
        value = msgpack.unpackb(data, raw=False, object_pairs_hook=no_map)
        again = msgpack.packb(value)
    except (ValueError, msgpack.UnpackException) as error:
        raise Bad(str(error)) from error
    need(again == data, "not canonical")
    return value


def tagged(tag: str, data: bytes) -> bytes:
    return sha256(f"quipu/{tag}/1".encode() + b"\0" + data).digest()


def signed(public: bytes, tag: str, identity: bytes, signature: bytes) -> bool:
    try:
        VerifyKey(public).verify(f"quipu/sig/{tag}/1".encode() + b"\0" + identity, signature)
    except (CryptoError, ValueError):
        return False
    return True


def leaf_of(data: bytes) -> bytes:
    return sha256(b"\0" + data).digest()


def root_of(leaves: Sequence[bytes]) -> bytes:
    """RFC 6962 section 2.1, word by word."""
    if len(leaves) < 2:
        return leaves[0] if leaves else sha256(b"").digest()
    half = 1 << (len(leaves) - 1).bit_length() - 1
    return sha256(b"\1" + root_of(leaves[:half]) + root_of(leaves[half:])).digest()


def climb(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes:
    """The root above a leaf, by the definition of PATH in RFC 6962 section 2.1.1, from the top."""
    need(0 <= index < size, "no such leaf")
    if size == 1:
        need(not path, "path too long")
        return leaf
    need(len(path) > 0, "path too short")
    half = 1 << (size - 1).bit_length() - 1
    if index < half:
        pair = climb(leaf, index, half, path[:-1]) + path[-1]
    else:
        pair = path[-1] + climb(leaf, index - half, size - half, path[:-1])
    return sha256(b"\1" + pair).digest()


# --- decoders -----------------------------------------------------------------------------------
def entry(data: bytes) -> Any:
    value = unpack(data, MIB)
    ENTRY(value)
    return value


def header(data: bytes) -> Any:
    value = unpack(data, 4 * KIB)
    HEADER(value)
    cluster_id, seq, prev, parents = value[1], value[5], value[6], value[7]
    need(seq > 1 or prev == cluster_id, "prev of seq 1")
    rising(parents, "parents")
    need(prev not in parents, "prev among parents")
    return value


def body(header_bytes: bytes, data: bytes) -> Any:
    fields = header(header_bytes)
    need(len(data) == fields[12], "body size")
    entries = unpack(data, 4 * MIB)
    some(octets())(entries)
    need(len(entries) == fields[11], "entry count")
    need(root_of([leaf_of(item) for item in entries]) == fields[13], "entries root")
    for item in entries:
        entry(item)
    return entries


def event(header_bytes: bytes, signature: bytes, data: bytes) -> Any:
    need(len(signature) == 64, "signature size")
    return body(header_bytes, data)


def signed_event(header_bytes: bytes, signature: bytes, data: bytes) -> Any:
    event(header_bytes, signature, data)
    author = header(header_bytes)[2]
    need(signed(author, "event", tagged("event", header_bytes), signature), "signature")


def genesis(data: bytes) -> Any:
    value = unpack(data, MIB)
    GENESIS(value)
    check_members([member[0] for member in value[4]], value[3])
    rising(value[6], "streams")
    return value


def document(data: bytes) -> Any:
    value = unpack(data, MIB)
    DOCUMENT(value)
    check_members([member[1] for member in value[6]], value[5])
    rising([member[0] for member in value[6]], "member numbers")
    rising(value[7], "streams")
    rising(value[8], "cut rows")
    return value


def check_members(node_ids: list[bytes], rule: str) -> None:
    need(len(set(node_ids)) == len(node_ids), "member twice")
    policy(rule, len(node_ids))


def inv(data: bytes) -> Any:
    value = unpack(data, 128 * KIB)
    INV(value)
    rising([place[:2] for place in value[6]], "rows")
    return value


def inv_id(fields: list[Any]) -> bytes:
    return tagged("inv", msgpack.packb(fields[:7]))


def signed_inv(data: bytes) -> Any:
    fields = inv(data)
    need(signed(fields[2], "inv", inv_id(fields), fields[7]), "signature")
    return fields


def of_kind(value: Any, kinds: dict[int, Form]) -> int:
    need(type(value) is list and len(value) > 0 and type(value[0]) is int, "kind")
    need(value[0] in kinds, "unknown kind")
    kinds[value[0]](value)
    return int(value[0])


def message(data: bytes) -> Any:
    value = unpack(data, 5 * MIB)
    kind = of_kind(value, MESSAGES)
    need(len(data) <= MESSAGE_BYTES_MAX.get(kind, 5 * MIB), "too large")
    return value


def close_of(fields: list[Any]) -> bytes:
    forced = [True] if fields[0] == 2 else []
    return tagged("close", msgpack.packb([*fields[1:8], *forced]))


# --- proofs -------------------------------------------------------------------------------------
def proof(data: bytes, cluster_id: bytes) -> dict[str, Any]:
    value = unpack(data, 5 * MIB)
    if of_kind(value, PROOFS) == 1:
        return author_proof(value, cluster_id)
    _, author_no, journal, seq, inv_low, chain_low, inv_high, chain_high = value
    slot = (author_no, journal, seq)
    low_signer, low = acknowledged(slot, inv_low, chain_low, cluster_id)
    high_signer, high = acknowledged(slot, inv_high, chain_high, cluster_id)
    need(low_signer == high_signer and low < high, "no two ids of one signer")
    return {
        "culprit": low_signer.hex(), "as_signer": True, "journal": journal, "seq": seq,
        "low": low.hex(), "high": high.hex(),
    }  # fmt: skip


def author_proof(value: Any, cluster_id: bytes) -> dict[str, Any]:
    ids, slots = [], []
    for header_bytes, signature in (value[1:3], value[3:5]):
        fields = header(header_bytes)
        need(fields[1] == cluster_id, "cluster")
        ids.append(tagged("event", header_bytes))
        slots.append((fields[2], fields[4], fields[5]))
        need(signed(fields[2], "event", ids[-1], signature), "signature")
    need(slots[0] == slots[1], "two slots")
    need(ids[0] < ids[1], "one event, or not in order")
    author, journal, seq = slots[0]
    return {
        "culprit": author.hex(), "as_signer": False, "journal": journal, "seq": seq,
        "low": ids[0].hex(), "high": ids[1].hex(),
    }  # fmt: skip


def acknowledged(
    slot: tuple[int, int, int], inv_bytes: bytes, chain: list[bytes], cluster_id: bytes
) -> tuple[bytes, bytes]:
    fields = signed_inv(inv_bytes)
    need(fields[1] == cluster_id, "cluster")
    rows = [place for place in fields[6] if tuple(place[:2]) == slot[:2]]
    need(len(rows) == 1, "no row")
    seq, identity = rows[0][2:]
    for header_bytes in chain:
        above = header(header_bytes)
        need(above[1] == cluster_id and tagged("event", header_bytes) == identity, "chain")
        need((above[4], above[5]) == (slot[1], seq) and seq > slot[2], "chain")
        seq, identity = seq - 1, above[6]
    need(seq == slot[2], "the slot is not reached")
    return fields[2], identity


# --- bundles ------------------------------------------------------------------------------------
def confirms(rule: str, n: int) -> int:
    return {"majority": n // 2, "two-thirds": 2 * n // 3, "all": n - 1}.get(rule) or (
        int(rule) if rule.isdigit() else 0
    )


def bundle(data: bytes) -> dict[str, Any]:
    value = unpack(data, 16 * MIB)
    BUNDLE(value)
    _, founding, documents, header_bytes, signature, index, entry_data, path, chain, invs = value
    cluster_id = tagged("genesis", founding)
    first = genesis(founding)
    rosters = [(first[3], {m[0]: i for i, m in enumerate(first[4], 1)})]
    ever, cut, seals = dict(rosters[0][1]), [], {}
    last_hash = cluster_id
    for number, (document_bytes, sealed) in enumerate(documents, start=2):
        fields = document(document_bytes)
        need(fields[1:4] == [cluster_id, number, last_hash], "lineage")
        seals = read_seals(sealed, cluster_id, number - 1, rosters[-1], close_of(fields))
        need(len(seals) >= (1 if fields[0] == 2 else seals_needed(rosters[-1])), "too few seals")
        roster = {m[1]: m[0] for m in fields[6]}
        for node, node_no in roster.items():
            need(ever.setdefault(node, node_no) == node_no, "number of a node changed")
        need(len(set(ever.values())) == len(ever), "node number used twice")
        rosters.append((fields[5], roster))
        cut, last_hash = fields[8], tagged("epoch", document_bytes)
    top = header(header_bytes)
    need(top[1] == cluster_id and 1 <= top[3] <= len(rosters), "event's cluster and epoch")
    need(top[2] in rosters[top[3] - 1][1], "author")
    ids = [tagged("event", header_bytes)]
    need(signed(top[2], "event", ids[0], signature), "signature")
    entry(entry_data)
    need(climb(leaf_of(entry_data), index, top[11], path) == top[13], "path")
    for above in chain:
        fields = header(above)
        need(fields[1:3] == top[1:3] and fields[4] == top[4], "chain")
        need(fields[5:7] == [top[5] + len(ids), ids[-1]], "chain")
        ids.append(tagged("event", above))
    line = Line([ever[top[2]], top[4]], top[5], ids)
    proven = by_receipts(invs, line, rosters, cluster_id) if invs else by_cut(
        line, rosters, (cut, seals), top[3]
    )  # fmt: skip
    return {
        "cluster_id": cluster_id.hex(), "event": ids[0].hex(), "index": index,
        "data": entry(entry_data)[9].hex(), **proven,
    }  # fmt: skip


class Line:
    """A cord from an event upwards."""

    def __init__(self, cord: list[int], seq: int, ids: list[bytes]) -> None:
        self.cord, self.seq, self.ids = cord, seq, ids

    def highest(self, rows: list[Any]) -> int:
        found = -1
        for *cord, seq, identity in rows:
            at = seq - self.seq
            if cord == self.cord and 0 <= at < len(self.ids) and self.ids[at] == identity:
                found = max(found, at)
        return found


Roster = tuple[str, dict[bytes, int]]


def read_seals(
    sealed: list[bytes], cluster_id: bytes, epoch: int, roster: Roster, close: bytes
) -> dict[int, list[Any]]:
    _, numbers = roster
    found: dict[int, list[Any]] = {}
    for data in sealed:
        fields = signed_inv(data)
        need(fields[1] == cluster_id and fields[3] == epoch and fields[5] == close, "seal")
        need(fields[2] in numbers and numbers[fields[2]] not in found, "sealer")
        found[numbers[fields[2]]] = fields[6]
    return found


def seals_needed(roster: Roster) -> int:
    rule, n = roster[0], len(roster[1])
    return 2 * n // 3 + 1 if rule == "two-thirds" else max(n // 2 + 1, n - confirms(rule, n))


def by_receipts(
    invs: list[bytes], line: Line, rosters: list[Roster], cluster_id: bytes
) -> dict[str, Any]:
    rule, numbers = rosters[-1]
    signers, tops = [], []
    for data in invs:
        fields = signed_inv(data)
        need(fields[1] == cluster_id and fields[3] == len(rosters), "receipt's epoch")
        need(fields[2] in numbers, "signer")
        signers.append(numbers[fields[2]])
        tops.append(line.highest(fields[6]))
    need(min(tops) >= 0 and max(tops) == len(line.ids) - 1, "cover")
    rising(signers, "signers")
    needed = confirms(rule, len(numbers))
    need(line.cord[0] in signers and len(signers) > needed, "certificate")
    signers.remove(line.cord[0])
    return {"epoch": len(rosters), "by": "receipts", "confirmed": signers, "required": needed}


def by_cut(
    line: Line, rosters: list[Roster], closing: tuple[list[Any], dict[int, list[Any]]], born: int
) -> dict[str, Any]:
    cut, seals = closing
    need(len(rosters) > 1 and born < len(rosters), "no cut above")
    rule, numbers = rosters[-2]
    at = line.highest(cut)
    need(at >= 0, "no row of the cut")
    tops = {number: line.highest(rows) for number, rows in sorted(seals.items())}
    covering = [number for number, top in tops.items() if top >= at]
    n = len(numbers)
    liars = (n - 1) // 3 if rule == "two-thirds" else 0
    needed = max(1, confirms(rule, n) + 1 - (n - len(seals)) - liars)
    need(len(covering) >= needed, "cut is not possible with these seals")
    need(max([at, *(tops[number] for number in covering)]) == len(line.ids) - 1, "slack")
    return {"epoch": len(rosters) - 1, "by": "cut", "confirmed": covering, "required": needed}


# --- the vectors --------------------------------------------------------------------------------
DECODERS: dict[str, Callable[..., Any]] = {
    "entry": entry,
    "header": header,
    "body": body,
    "event": event,
    "signed-event": signed_event,
    "genesis": genesis,
    "document": document,
    "inv": inv,
    "signed-inv": signed_inv,
    "message": message,
    "proof": proof,
    "bundle": bundle,
}


def joined(parts: list[list[Any]]) -> bytes:
    """Bytes told as pairs of hex and how often it is repeated."""
    return b"".join(bytes.fromhex(piece) * times for piece, times in parts)


def plain(value: Any) -> Any:
    """A value as the vectors tell it in JSON: bytes as {"hex": ...}."""
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def packed(value: Any) -> bytes:
    """The other way round, to bytes."""

    def back(item: Any) -> Any:
        if isinstance(item, dict):
            return bytes.fromhex(item["hex"])
        return [back(element) for element in item] if isinstance(item, list) else item

    return bytes(msgpack.packb(back(value)))


class Checker:
    """Every check is counted; the first that fails ends the run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0
        self.keys = {
            key["name"]: SigningKey(bytes.fromhex(key["seed"])) for key in self.read("keys")
        }

    def read(self, name: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads((self.folder / f"{name}.json").read_text())
        return found

    def same(self, one: object, other: object, where: str) -> None:
        self.count += 1
        if one != other:
            raise SystemExit(f"{where}: {one!r:.300} is not {other!r:.300}")

    def value(self, item: dict[str, Any], kind: str) -> tuple[bytes, Any]:
        data = bytes.fromhex(item["hex"])
        fields = DECODERS[kind](data)
        self.same(packed(item["value"]), data, item["name"] + ": canonical bytes")
        self.same(plain(fields), item["value"], item["name"] + ": value")
        return data, fields

    def signature(self, item: dict[str, Any], tag: str, identity: bytes, found: bytes) -> None:
        key = self.keys[item["signer"]]
        made = key.sign(f"quipu/sig/{tag}/1".encode() + b"\0" + identity).signature
        self.same(made.hex(), found.hex(), item["name"] + ": signature")
        self.same(signed(bytes(key.verify_key), tag, identity, found), True, item["name"])

    def check_keys(self) -> None:
        for key in self.read("keys"):
            public = bytes(self.keys[key["name"]].verify_key).hex()
            self.same(public, key["public"], key["name"])

    def check_entries(self) -> None:
        for item in self.read("entries"):
            data, _ = self.value(item, "entry")
            self.same(leaf_of(data).hex(), item["leaf"], item["name"] + ": leaf")

    def check_events(self) -> None:
        for item in self.read("events"):
            header_bytes, fields = self.value(item, "header")
            identity = tagged("event", header_bytes)
            self.same(identity.hex(), item["id"], item["name"] + ": id")
            signature = bytes.fromhex(item["signature"])
            self.signature(item, "event", identity, signature)
            entries = event(header_bytes, signature, bytes.fromhex(item["body"]))
            self.same([e.hex() for e in entries], item["entries"], item["name"] + ": entries")
            self.same(fields[13].hex(), item["root"], item["name"] + ": root")

    def check_merkle(self) -> None:
        for item in self.read("merkle"):
            size = item["size"]
            leaves = [leaf_of(b"leaf %d" % i) for i in range(size)]
            self.same(root_of(leaves).hex(), item["root"], f"root of {size}")
            for told in item["paths"]:
                path = [bytes.fromhex(step) for step in told["path"]]
                found = climb(leaves[told["index"]], told["index"], size, path)
                self.same(found.hex(), item["root"], f"path {told['index']} of {size}")

    def check_rosters(self) -> None:
        for item in self.read("genesis"):
            data, _ = self.value(item, "genesis")
            self.same(tagged("genesis", data).hex(), item["cluster_id"], item["name"])
        for item in self.read("documents"):
            data, fields = self.value(item, "document")
            self.same(tagged("epoch", data).hex(), item["hash"], item["name"] + ": hash")
            self.same(close_of(fields).hex(), item["close"], item["name"] + ": close")

    def check_receipts(self) -> None:
        for item in self.read("receipts"):
            _, fields = self.value(item, "inv")
            self.same(inv_id(fields).hex(), item["id"], item["name"] + ": id")
            self.signature(item, "inv", inv_id(fields), fields[7])

    def check_proofs(self) -> None:
        for item in self.read("proofs"):
            data = bytes.fromhex(item["hex"])
            self.same(packed(item["value"]), data, item["name"] + ": canonical bytes")
            found = proof(data, bytes.fromhex(item["cluster_id"]))
            self.same(found, item["proves"], item["name"])

    def check_messages(self) -> None:
        for item in self.read("messages"):
            self.value(item, "message")

    def check_bundles(self) -> None:
        for item in self.read("bundles"):
            self.same(bundle(bytes.fromhex(item["hex"])), item["proves"], item["name"])

    def check_refused(self) -> None:
        for name, kind, _, inputs in refused_cases(self.read("refused")):
            try:
                DECODERS[kind](*inputs)
            except Bad:
                self.count += 1
            else:
                raise SystemExit(f"{name}: {kind} is taken, and should not be")

    def check_all(self) -> int:
        self.check_keys()
        self.check_entries()
        self.check_events()
        self.check_merkle()
        self.check_rosters()
        self.check_receipts()
        self.check_proofs()
        self.check_messages()
        self.check_bundles()
        self.check_refused()
        return self.count


def refused_cases(
    items: list[dict[str, Any]],
) -> Iterator[tuple[str, str, str, list[bytes]]]:
    """Name, kind, reason and inputs of each; `cut` says which input to cut short at every byte."""
    for item in items:
        inputs = [joined(parts) for parts in item["inputs"]]
        if "cut" not in item:
            yield item["name"], item["kind"], item["reason"], inputs
            continue
        at = item["cut"]
        for size in range(len(inputs[at])):
            shortened = [*inputs[:at], inputs[at][:size], *inputs[at + 1 :]]
            yield f"{item['name']} at {size}", item["kind"], item["reason"], shortened


def main() -> int:
    parser = argparse.ArgumentParser(description="check the vectors without quipu")
    parser.add_argument("folder", type=Path, nargs="?", default=Path(__file__).parent)
    try:
        count = Checker(parser.parse_args().folder).check_all()
    except Bad as bad:
        print(f"a valid vector is refused: {bad}", file=sys.stderr)
        return 1
    print(f"{count} checks passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
