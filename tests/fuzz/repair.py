"""Puts right what hangs on a changed value: sizes, counts, roots, hashes, signatures.

Only where the bytes still have the form at all, and each only most of the time: the check that is
left to fail is then another one every time. Signing is by the keys of the vectors.
"""

import hmac
from random import Random
from typing import Any

from nacl.secret import SecretBox

from quipu.ledger.merkle import leaf_hash, root_of
from quipu.ledger.signing import KeyPair, tagged_hash
from tests.fuzz.mutate import Sample, fields_of
from tests.small_ledger import key_of
from tests.vectors.check import Bad, close_of
from tests.vectors.check_peers import command, command_of, signed_part
from tests.vectors.refused import pack

KEYS: dict[bytes, KeyPair] = {key_of(f"n{i}").node_id: key_of(f"n{i}") for i in range(1, 7)}
MOSTLY = 0.85


def event(random: Random, sample: Sample) -> Sample:
    """The header says what the body is, and is signed."""
    header_bytes, signature, body = sample
    header, items = fields_of(header_bytes), fields_of(body)
    if header is None or len(header) != 14:
        return sample
    if items is not None and all(type(item) is bytes for item in items):
        made: dict[int, Any] = {
            11: len(items),
            12: len(body),
            13: root_of([leaf_hash(item) for item in items]),
        }
        for at, value in made.items():
            if random.random() < MOSTLY and header[at] != value:
                header[at] = value
                header_bytes = pack(header)
    return [header_bytes, _event_signature(random, header_bytes, signature), body]


def body(random: Random, sample: Sample) -> Sample:
    header, _, data = event(random, [sample[0], b"", sample[1]])
    return [header, data]


def _event_signature(random: Random, header_bytes: bytes, signature: bytes) -> bytes:
    header = fields_of(header_bytes)
    key = _key(header, 14, 2)
    if key is None or random.random() > MOSTLY:
        return signature
    return key.sign(b"quipu/sig/event/1\0" + tagged_hash(b"quipu/event/1\0", header_bytes))


def _key(fields: list[Any] | None, count: int, at: int) -> KeyPair | None:
    if fields is None or len(fields) != count or type(fields[at]) is not bytes:
        return None
    return KEYS.get(fields[at])


def inv(random: Random, sample: Sample) -> Sample:
    return [_inv(random, sample[0])]


def _inv(random: Random, data: Any, close: bytes | None = None) -> Any:
    fields = fields_of(data) if type(data) is bytes else None
    key = _key(fields, 8, 2)
    if fields is None or key is None or random.random() > MOSTLY:
        return data
    if close is not None:
        fields[5] = close
    identity = tagged_hash(b"quipu/inv/1\0", pack(fields[:7]))
    signature = key.sign(b"quipu/sig/inv/1\0" + identity)
    if fields[7] == signature:
        return data
    fields[7] = signature
    return pack(fields)


def proof(random: Random, sample: Sample) -> Sample:
    fields = fields_of(sample[0])
    if fields is None:
        return sample
    if len(fields) == 5:
        for at in (1, 3):
            if type(fields[at]) is bytes and type(fields[at + 1]) is bytes:
                fields[at + 1] = _event_signature(random, fields[at], fields[at + 1])
        if random.random() < 0.5 and all(type(field) is bytes for field in fields[1:]):
            pairs = sorted(
                [fields[1:3], fields[3:5]], key=lambda p: tagged_hash(b"quipu/event/1\0", p[0])
            )
            fields = [fields[0], *pairs[0], *pairs[1]]
    elif len(fields) == 8:
        fields[4], fields[6] = _inv(random, fields[4]), _inv(random, fields[6])
    return [pack(fields), sample[1]]


def bundle(random: Random, sample: Sample) -> Sample:
    fields = fields_of(sample[0])
    if fields is None or len(fields) != 10:
        return sample
    if type(fields[3]) is bytes and type(fields[4]) is bytes:
        fields[4] = _event_signature(random, fields[3], fields[4])
    if isinstance(fields[9], list):
        fields[9] = [_inv(random, item) for item in fields[9]]
    if isinstance(fields[2], list):
        fields[2] = [_sealed(random, item) for item in fields[2]]
    return [pack(fields)]


def _sealed(random: Random, item: Any) -> Any:
    if not isinstance(item, list) or len(item) != 2 or not isinstance(item[1], list):
        return item
    document = fields_of(item[0]) if type(item[0]) is bytes else None
    close = None
    if document is not None and len(document) == 10 and random.random() < 0.5:
        close = close_of(document)
    return [item[0], [_inv(random, seal, close) for seal in item[1]]]


def frame(random: Random, sample: Sample) -> Sample:
    """n counts what follows, mostly."""
    data = sample[0]
    if len(data) < 8 or random.random() > MOSTLY:
        return sample
    return [data[:6] + (len(data) - 8 & 0xFFFF).to_bytes(2, "big") + data[8:]]


def cast(random: Random, sample: Sample) -> Sample:
    """Sealed again, whatever it says now."""
    data, key = sample
    if len(data) < 34 or len(key) != 32 or random.random() > MOSTLY:
        return sample
    inner = data[18:-16] if random.random() < 0.5 else bytes(random.choice([0, 1_165, 1_166]))
    return [data[:18] + SecretBox(key).encrypt(inner, data[:18] + bytes(6)).ciphertext, key]


def hello(random: Random, sample: Sample) -> Sample:
    """HMAC and signature fit what the other fields say, where their node is one of ours."""
    data, link_key, receiver, cluster_id, secret = sample
    try:
        name, sequence, *rest = command(data)
        host, port, pools, status, pairs = rest
        told = dict(pairs)
        key = KEYS[bytes.fromhex(told["node"])]
        start, stamp = int(told["start"]).to_bytes(8, "big"), int(told["stamp"])
        endpoint = pack([cluster_id, key.node_id, host, port, stamp])
    except (Bad, KeyError, ValueError, OverflowError):
        return sample
    if random.random() < MOSTLY:
        message = b"hello" + key.node_id + receiver + start
        told["hmac"] = hmac.digest(secret, message, "sha256").hex()
    if random.random() < MOSTLY:
        told["signature"] = key.sign(b"quipu/sig/endpoint/1\0" + endpoint).hex()
    headers = [list(pair) for pair in told.items()]
    made = command_of([name, sequence, host, port, pools, status, headers])
    return [made, link_key, receiver, cluster_id, secret]


def gossip(random: Random, sample: Sample) -> Sample:
    fields = fields_of(sample[0])
    key = _key(fields, 10, 3)
    if fields is None or key is None or type(fields[9]) is not bytes or random.random() > MOSTLY:
        return sample
    fields[9] = key.sign(signed_part(fields, sample[1]))
    return [pack(fields), sample[1]]


def endpoint(random: Random, sample: Sample) -> Sample:
    fields = fields_of(sample[0])
    key = _key(fields, 6, 1)
    if fields is None or key is None or random.random() > MOSTLY:
        return sample
    fields[5] = key.sign(b"quipu/sig/endpoint/1\0" + pack(fields[:5]))
    return [pack(fields), sample[1]]
