"""The peer protocol read from outside: struct, msgpack, hashlib and PyNaCl, nothing of quipu.

`python -m tests.vectors.check_peers [FOLDER]` takes every vector of `peers.json` apart, makes its
bytes again from the value told beside it, and sees that `peers_refused.json` is refused. Written
from docs/peers.md, as a stranger would; it is the fuzzer's oracle too.
"""

import argparse
import hmac
import ipaddress
import json
import re
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
from nacl.bindings import crypto_sign_ed25519_pk_to_curve25519
from nacl.exceptions import CryptoError
from nacl.secret import SecretBox
from nacl.signing import VerifyKey

from tests.vectors.check import (
    ID,
    KIB,
    MIB,
    U64,
    Bad,
    exactly,
    just,
    maybe,
    need,
    octets,
    packed,
    plain,
    refused_cases,
    row,
    some,
    text,
    unpack,
    whole,
)

FOLDER = Path(__file__).parent
NAMES = ("HELLO", "ALIVE", "BROADCAST", "JOIN", "LEAVE", "PING", "DECENACK")
SIGNATURE = exactly(64)


# --- the head of a frame ------------------------------------------------------------------------
def frame(data: bytes) -> list[Any]:
    need(len(data) >= 8, "header")
    node_no, metadata, size = struct.unpack("!IHH", data[:8])
    need(len(data) == 8 + size, "n")
    return [node_no, metadata, data[8:]]


def frame_of(value: list[Any]) -> bytes:
    return struct.pack("!IHH", value[0], value[1], len(value[2])) + bytes(value[2])


# --- commands -----------------------------------------------------------------------------------
def visible(value: str) -> bool:
    return not any(ord(letter) < 32 or 127 <= ord(letter) < 160 for letter in value)


class Reader:
    def __init__(self, data: bytes) -> None:
        self.left = data

    def number(self, form: str) -> int:
        size = struct.calcsize(form)
        need(len(self.left) >= size, "cut short")
        (value,) = struct.unpack(form, self.left[:size])
        self.left = self.left[size:]
        return int(value)

    def string(self) -> str:
        size = self.number("!B")
        need(len(self.left) >= size, "cut short")
        try:
            value = self.left[:size].decode("utf-8")
        except UnicodeDecodeError:
            raise Bad("UTF-8") from None
        need(visible(value), "control character")
        self.left = self.left[size:]
        return value

    def strings(self, most: int) -> list[str]:
        count = self.number("!B")
        need(count <= most, "too many")
        return [self.string() for _ in range(count)]

    def pool(self) -> str:
        name = self.string()
        need(name != "", "pool")
        return name


def command(data: bytes) -> list[Any]:
    """Name, sequence, and the fields of that command."""
    reader = Reader(data)
    need(reader.number("!H") == 0xAAA1, "marker")
    number, version = reader.number("!B"), reader.number("!B")
    need(version == 1 and 1 <= number <= 7, "command")
    value: list[Any] = [NAMES[number - 1], reader.number("!H")]
    if number == 1:
        value += [reader.string(), reader.number("!H"), reader.strings(128), reader.number("!B")]
        need(len(set(value[4])) == len(value[4]) and "" not in value[4], "pools")
        headers = [item.split("=", 1) for item in reader.strings(32)]
        need(all(len(pair) == 2 and pair[0] for pair in headers), "name=value")
        need(len({name for name, _ in headers}) == len(headers), "headers")
        value.append(headers)
    elif number in (3, 4, 5):
        value.append(reader.pool())
    if number in (4, 5):
        value.append(reader.number("!B"))
    need(reader.left == b"", "left over")
    return value


def string_of(value: str) -> bytes:
    data = value.encode()
    return struct.pack("!B", len(data)) + data


def strings_of(values: list[str]) -> bytes:
    return struct.pack("!B", len(values)) + b"".join(map(string_of, values))


def command_of(value: list[Any]) -> bytes:
    name, sequence, *rest = value
    data = b"\xaa\xa1" + struct.pack("!BBH", NAMES.index(name) + 1, 1, sequence)
    if name == "HELLO":
        host, port, pools, status, headers = rest
        data += string_of(host) + struct.pack("!H", port) + strings_of(pools)
        return data + struct.pack("!B", status) + strings_of(["=".join(pair) for pair in headers])
    if rest:
        data += string_of(rest[0])
    return data + bytes(rest[1:])


# --- endpoints ----------------------------------------------------------------------------------
ENDPOINT = row(ID, ID, text(BODY := 128 * KIB, 0), whole(65535), whole(), SIGNATURE)


def is_signed(public: bytes, message: bytes, signature: bytes) -> bool:
    try:
        VerifyKey(public).verify(message, signature)
    except (CryptoError, ValueError):
        return False
    return True


def host(value: str) -> bool:
    if len(value) > 253 or not value.isascii() or "%" in value:
        return False
    try:
        return not ipaddress.ip_address(value).is_unspecified
    except ValueError:
        pass
    labels = value.split(".")
    named = all(re.fullmatch(r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?", p) for p in labels)
    return named and not labels[-1].isdigit()


def check_endpoint(value: Any, cluster_id: bytes) -> None:
    need(value[0] == cluster_id, "cluster")
    need(host(value[2]) and value[3] > 0, "host and port")
    message = b"quipu/sig/endpoint/1\0" + bytes(msgpack.packb(value[:5]))
    need(is_signed(value[1], message, value[5]), "signature")


def endpoint(data: bytes, cluster_id: bytes) -> Any:
    value = unpack(data, BODY)
    ENDPOINT(value)
    check_endpoint(value, cluster_id)
    return value


# --- HELLO --------------------------------------------------------------------------------------
def hello(data: bytes, key: bytes, receiver: bytes, cluster_id: bytes, secret: bytes) -> Any:
    """What a receiver that holds one secret takes from it; `key` is that of the link."""
    name, _, host_told, port, pools, status, pairs = (*command(data), *[None] * 5)[:7]
    need(name == "HELLO", "greeting")
    told = dict(pairs)
    for known in ("cluster", "node", "name", "start", "protocol-min", "protocol-max", "version",
                  "hmac", "stamp", "signature"):  # fmt: skip
        need(known in told, known)
    cluster, node, signature = (told[k] for k in ("cluster", "node", "signature"))
    for value, size in ((cluster, 32), (node, 32), (signature, 64)):
        need(re.fullmatch(f"[0-9a-f]{{{2 * size}}}", value) is not None, "hex")
    numbers = [told[k] for k in ("start", "stamp", "protocol-min", "protocol-max")]
    need(all(re.fullmatch("0|[1-9][0-9]{0,19}", value) for value in numbers), "decimal")
    start, stamp, lowest, highest = map(int, numbers)
    need(max(start, stamp) <= U64 and lowest <= 1 <= highest <= 255, "range")
    node_id = bytes.fromhex(node)
    need(bytes.fromhex(cluster) == cluster_id and node_id != receiver, "cluster and node")
    try:
        need(crypto_sign_ed25519_pk_to_curve25519(node_id) == key, "key")
    except CryptoError:
        raise Bad("no point") from None
    message = b"hello" + node_id + receiver + struct.pack("!Q", start)
    mac = hmac.digest(secret, message, "sha256").hex()
    macs = told["hmac"].split(",")
    need(len(macs) <= 3 and all(re.fullmatch("[0-9a-f]{64}", m) for m in macs), "macs")
    need(mac in macs, "secret")
    signed_by_owner = [cluster_id, node_id, host_told, port, stamp, bytes.fromhex(signature)]
    check_endpoint(signed_by_owner, cluster_id)
    need(0 < len(told["name"].encode()) <= 128, "name")
    need(0 < len(told["version"].encode()) <= 64, "version")
    return {"peer": node, "name": told["name"], "start": start, "version": told["version"],
            "protocol": 1, "stamp": stamp, "pools": pools, "status": status}  # fmt: skip


# --- gossip -------------------------------------------------------------------------------------
ENVELOPE = row(
    just(1), exactly(16), whole(255), ID, maybe(ID), whole(255), whole(), whole(16), octets(),
    maybe(SIGNATURE),
)  # fmt: skip
LEAVING = row(
    whole(255), exactly(16), just(4), ID, lambda value: need(value is None, "to all"), just(2),
    whole(), whole(255), lambda value: need(value == b"", "empty"), SIGNATURE,
)  # fmt: skip
QUERY_ID = exactly(16)
# kind: expected action, whether it is signed, form of the body
KINDS: dict[int, tuple[int, bool, Callable[[Any], None] | None]] = {
    1: (1, True, row(ENDPOINT, text(128))),
    2: (0, True, row(ENDPOINT, whole())),
    3: (0, True, row(ID, whole(), whole())),
    4: (2, True, None),
    5: (3, True, row(ID)),
    6: (0, True, row(QUERY_ID, ID, whole(), maybe(whole()))),
    7: (4, True, row(text(128), octets(4 * KIB))),
    8: (0, True, row(QUERY_ID, octets(64 * KIB))),
    9: (0, False, row(QUERY_ID, maybe(ENDPOINT))),
    10: (0, False, row(some(ENDPOINT, 256))),
    11: (0, False, row(QUERY_ID, whole(255), whole(255))),
    12: (0, False, row(whole(255), whole(255), text(64))),
    13: (0, False, None),
    14: (0, False, None),
    15: (0, False, None),
    16: (0, False, row(exactly(32), whole())),
    17: (0, False, row(exactly(8), whole(), some(whole(), 256))),
    18: (0, False, None),
}
TEXT_AT = {1: 1, 7: 0, 12: 2}  # where the body has a text that people see


def content(data: bytes) -> Any:
    """Messages of this version as arrays; of others their version, id and kind."""
    value = unpack(data, 5 * MIB)
    need(type(value) is list and len(value) <= 4096, "array")
    return [any_version(item) for item in value]


def any_version(item: Any) -> Any:
    need(type(item) is list and 3 <= len(item) <= 64, "array")
    need(all(type(field) in (int, bytes, type(None)) for field in item), "flat")
    row(whole(255), exactly(16), whole(255))(item[:3])
    if item[0] == 1:
        ENVELOPE(item)
    elif item[2] == 4:
        need(len(msgpack.packb(item)) <= 256, "leaving")
        LEAVING(item)
    else:
        return item[:3]
    return item


def gossip(data: bytes, cluster_id: bytes) -> Any:
    """One message, with all that its kind demands."""
    value = unpack(data, 5 * MIB)
    any_version(value)
    need(value[0] == 1 or value[2] == 4, "version")
    kind, action, body, signature = value[2], value[5], value[8], value[9]
    need(kind in KINDS, "kind")
    expected, is_signed_kind, form = KINDS[kind]
    need(action == expected and (signature is not None) == is_signed_kind, "envelope")
    if kind == 4:
        LEAVING(value)
    inner = None
    if form is not None:
        inner = unpack(body, BODY)
        form(inner)
        if kind in TEXT_AT:
            need(visible(inner[TEXT_AT[kind]]), "control character")
    if signature is not None:
        need(is_signed(value[3], signed_part(value, cluster_id), signature), "signature")
    return value if inner is None else [*value[:8], inner, value[9]]


def signed_part(value: list[Any], cluster_id: bytes) -> bytes:
    """All but hop limit and signature."""
    tag = b"quipu/sig/leaving/1\0" if value[2] == 4 else b"quipu/sig/gossip/1\0"
    return tag + cluster_id + bytes(msgpack.packb([*value[:7], value[8]]))


def cast(data: bytes, key: bytes) -> Any:
    """One datagram of a multicast: the nonce is what stands before the sealed part."""
    need(len(data) <= 1_200, "size")
    try:
        inner = SecretBox(key).decrypt(data[18:], data[:18] + bytes(6))
    except (CryptoError, ValueError) as error:
        raise Bad(str(error)) from error
    stream, number, part, parts = data[:8], int.from_bytes(data[8:16]), data[16], data[17]
    need(part < parts <= 64 and (len(inner) == 1_166 or part == parts - 1), "part")
    return [stream, number, part, parts, inner]


DECODERS: dict[str, Callable[..., Any]] = {
    "cast": cast,
    "frame": frame,
    "command": command,
    "hello": hello,
    "endpoint": endpoint,
    "content": content,
    "gossip": gossip,
}


def bytes_of(kind: str, value: Any) -> bytes | None:
    """The bytes made again from the value, where the value says all of them."""
    if kind in ("cast", "hello", "content"):
        return None
    back = msgpack.unpackb(packed(value))
    if kind == "frame":
        return frame_of(back)
    if kind == "command":
        return command_of(back)
    if kind == "gossip" and isinstance(back[8], list):
        back[8] = msgpack.packb(back[8])
    return bytes(msgpack.packb(back))


def check_all(folder: Path) -> int:
    count = 0
    for item in json.loads((folder / "peers.json").read_text()):
        inputs = [bytes.fromhex(part) for part in item["inputs"]]
        found = DECODERS[item["kind"]](*inputs)
        if plain(found) != item["value"]:
            raise SystemExit(f"{item['name']}: {plain(found)} is not {item['value']}")
        if bytes_of(item["kind"], item["value"]) not in (None, inputs[0]):
            raise SystemExit(f"{item['name']}: other bytes for its value")
        count += 1
    for name, kind, _, inputs in refused_cases(
        json.loads((folder / "peers_refused.json").read_text())
    ):
        try:
            DECODERS[kind](*inputs)
        except Bad:
            count += 1
        else:
            raise SystemExit(f"{name}: {kind} is taken, and should not be")
    return count


def main() -> int:
    parser = argparse.ArgumentParser(description="check the vectors of the peer protocol")
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    try:
        count = check_all(parser.parse_args().folder)
    except Bad as bad:
        print(f"a valid vector is refused: {bad}", file=sys.stderr)
        return 1
    print(f"{count} checks passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
