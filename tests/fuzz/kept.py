"""Targets: what a node finds on its disk, and what an analyst finds in a dump.

Damage there is told as what it is; it never ends a program with an error of another kind.
"""

import json
from hashlib import sha256
from random import Random
from struct import Struct, error
from typing import Any
from zlib import crc32

import msgpack
import msgspec

from quipu.dumps import headers, manifest
from quipu.ledger.effects import PutOwnState
from quipu.ledger.event import EventMeta
from quipu.ledger.history import BranchRecord, SignerRecord
from quipu.ledger.refusals import Reason, Refused, refuse
from quipu.ledger.words import (
    BranchKey,
    EpochNo,
    EventId,
    Hlc,
    InvNumber,
    Journal,
    NodeNo,
    Seq,
    Slot,
)
from quipu.p2p import kept as kept_peers
from quipu.storage import event_blob, event_piece, keyed, keys, records
from quipu.storage.store import StoreCorrupt
from tests.fuzz.mutate import Sample, fields_of
from tests.fuzz.target import Agreement, Reader, Target, Unsure
from tests.small_ledger import key_of
from tests.vectors.check import (
    KIB,
    Bad,
    exactly,
    just,
    leaf_of,
    maybe,
    need,
    octets,
    root_of,
    row,
    signed,
    some,
    tagged,
    unpack,
    whole,
)
from tests.vectors.refused import pack

ID = exactly(32)
KEY = key_of("n1")
DIGEST, N1 = bytes([9]) * 32, bytes([1]) * 32
FIXED = Struct(">BHII32s64s")
HEADER_AT = FIXED.size + 4


def corrupt_is_refused(reader: Reader) -> Reader:
    def read(*inputs: bytes) -> Any:
        try:
            return reader(*inputs)
        except StoreCorrupt as found:
            raise Refused(Reason.MALFORMED, str(found)) from found

    return read


# --- records, each with a checksum over its key and itself ----------------------------------------
def record(name: str) -> Reader:
    """Reads, and what it gives can be written and gives the same again."""
    decode, encode = f"decode_{name}", f"encode_{name}"

    def read(key: bytes, value: bytes) -> None:
        found = getattr(records, decode)(key, value)
        parts = found if name == "epoch" else (found,)
        again = getattr(records, encode)(key, *parts)
        assert getattr(records, decode)(key, again) == found

    return corrupt_is_refused(read)


def guarded(key: bytes, value: bytes) -> None:
    need(len(value) >= 4 and crc32(key + value[4:]).to_bytes(4, "big") == value[:4], "checksum")


def repair_record(random: Random, sample: Sample) -> Sample:
    """The checksum fits what is there, of the same key or of another one."""
    key, value = sample
    if random.random() < 0.1:
        return sample
    payload = value[4:]
    return [key, crc32(key + payload).to_bytes(4, "big") + payload]


def record_samples() -> dict[str, list[Sample]]:
    branch, place = keys.branch_key(BranchKey(NodeNo(1), Journal(7), 0)), BranchKey
    signer, epoch = keys.signer_key(NodeNo(2)), b"\0" * 7 + b"\2"
    key = place(NodeNo(1), Journal(7), 0)
    full = BranchRecord(
        key, Seq(0), 0, Seq(9), EventId(DIGEST), Hlc(2**60), Seq(8), EventId(N1), Seq(3), Seq(9),
        True, b"", 2**40, {NodeNo(2): (Seq(9), InvNumber(2**60))}, Seq(1), Seq(4), Seq(2),
    )  # fmt: skip
    told = SignerRecord(NodeNo(2), InvNumber(5), DIGEST, EpochNo(3), b"")
    own = PutOwnState(Journal(2**50), False, EpochNo(4))
    return {
        "branch": [[branch, records.encode_branch(branch, full)]],
        "signer": [[signer, records.encode_signer(signer, told)]],
        "epoch": [[epoch, records.encode_epoch(epoch, b"document", (b"seal", b""))]],
        "own_state": [[b"own", records.encode_own_state(b"own", own)]],
    }


# --- events as they lie in the store --------------------------------------------------------------
SLOT = Slot(NodeNo(1), Journal(7), Seq(3), 0)


def own_blob(blob: bytes) -> dict[str, object]:
    """Read in each of the five ways that there are, which agree."""
    stored = event_blob.open_blob(SLOT, memoryview(blob))
    event = stored.event()
    whole_event, entries = event_blob.event_and_entries(SLOT, memoryview(blob))
    assert (whole_event, entries) == (event, event_blob.entries_of(event))
    assert event_blob.meta_of_blob(SLOT, memoryview(blob)) == stored.meta()
    assert isinstance(stored.meta(), EventMeta)
    held = event_blob.held_of(SLOT.branch, SLOT.seq, memoryview(blob))
    assert held.data.body == event.body
    piece = event_piece.checked([keys.slot_key(SLOT)], [blob])
    assert (piece.entries, list(piece.header_bytes)) == ([entries], [event.header_bytes])
    for index in (0, len(entries) - 1, len(entries)):
        try:
            one = stored.entry(index)
        except StoreCorrupt:  # its table alone is damaged
            continue
        assert one == (entries[index] if 0 <= index < len(entries) else None)
    assert list(keyed.scopes_of(entries)) is not None
    return {"id": event.id.hex(), "entries": [entry.hex() for entry in entries]}


def blob_of(blob: bytes) -> dict[str, object]:
    """From outside: the fixed part, the header that gives the id, the body that gives the root."""
    try:
        version, header_size, count, body_size, identity, _ = FIXED.unpack(blob[: FIXED.size])
    except error as misfit:
        raise Bad(str(misfit)) from misfit
    need(version == 1, "version")
    need(blob[FIXED.size : HEADER_AT] == crc32(blob[: FIXED.size]).to_bytes(4, "big"), "checksum")
    need(len(blob) == HEADER_AT + header_size + 36 * count + body_size, "size")
    header_bytes = blob[HEADER_AT : HEADER_AT + header_size]
    need(tagged("event", header_bytes) == identity, "id")
    body = blob[len(blob) - body_size :]
    entries = unpack(body, 1 << 30)
    some(octets())(entries)
    try:
        fields = msgpack.unpackb(header_bytes)
    except (ValueError, msgpack.UnpackException) as misfit:
        raise Bad(str(misfit)) from misfit
    need(type(fields) is list and len(fields) == 14, "header")
    need(fields[4:6] == [7, 3], "slot")
    need(root_of([leaf_of(entry) for entry in entries]) == fields[13], "root")
    return {"id": identity.hex(), "entries": [entry.hex() for entry in entries]}


def repair_blob(random: Random, sample: Sample) -> Sample:
    """Sizes, id and checksum of the fixed part fit what follows, mostly; then the root as well."""
    blob = sample[0]
    if len(blob) < HEADER_AT or random.random() < 0.1:
        return sample
    version, header_size, count, body_size, identity, signature = FIXED.unpack(blob[: FIXED.size])
    header_bytes = blob[HEADER_AT : HEADER_AT + header_size]
    if random.random() < 0.7:
        body_size = max(len(blob) - HEADER_AT - header_size - 36 * count, 0) % 2**32
    body = blob[len(blob) - body_size :] if body_size else b""
    fields, entries = fields_of(header_bytes), fields_of(body)
    are_entries = entries is not None and all(type(entry) is bytes for entry in entries)
    if fields and len(fields) == 14 and entries is not None and are_entries:
        fields[13] = root_of([leaf_of(entry) for entry in entries])
        header_bytes = pack(fields) if random.random() < 0.7 else header_bytes
    if random.random() < 0.9:
        identity = tagged("event", header_bytes)
    fixed = FIXED.pack(version, len(header_bytes) % 2**16, count, body_size, identity, signature)
    rest = blob[HEADER_AT + header_size :]
    return [fixed + crc32(fixed).to_bytes(4, "big") + header_bytes + rest]


def blobs(*bodies: list[bytes]) -> list[Sample]:
    made: list[Sample] = []
    for entries in bodies:
        body, leaves = pack(entries), [leaf_of(entry) for entry in entries]
        header_bytes = pack(
            [1, N1, DIGEST, 1, 7, 3, N1, [DIGEST], 2**60, 4, 0, len(entries), len(body),
             root_of(leaves)]
        )  # fmt: skip
        at, offsets = 1, b""
        for entry in entries:
            offsets += at.to_bytes(4, "big")
            at += len(entry) + (2 if len(entry) < 256 else 3)
        fixed = FIXED.pack(
            1, len(header_bytes), len(entries), len(body), tagged("event", header_bytes), bytes(64)
        )
        crc = crc32(fixed).to_bytes(4, "big")
        made.append([fixed + crc + header_bytes + b"".join(leaves) + offsets + body])
    return made


# --- what else there is ---------------------------------------------------------------------------
ENDPOINT = row(ID, ID, lambda value: need(type(value) is str, "host"), whole(65_535), whole(),
               exactly(64))  # fmt: skip
KEPT = row(just(1), whole(), some(row(ID, maybe(ENDPOINT), whole(), whole(), whole()), 1_024))


def own_kept(data: bytes) -> None:
    kept_peers.decode_kept(data)


def kept(data: bytes) -> None:
    KEPT(unpack(data, 512 * KIB))


def own_dump_header(data: bytes) -> dict[str, object]:
    found = headers.decode(data)
    if found is None:
        refuse(Reason.MALFORMED)
    return {"parents": list(found.parents), "fields": len(found.columns)}


def dump_header(data: bytes) -> dict[str, object]:
    """msgspec reads what the product reads there with msgpack."""
    try:
        value = msgspec.msgpack.decode(data)
        again = msgspec.msgpack.encode(value)
    except RecursionError:
        raise Unsure from None
    except (ValueError, TypeError) as misfit:
        raise Bad(str(misfit)) from misfit
    need(again == data and type(value) is list and len(value) == 14, "fields")
    named = value[7] if type(value[7]) is list else [None]
    need(all(type(one) is bytes for one in (value[6], *named)), "bytes")
    return {"parents": named, "fields": 11}


def json_of(data: bytes) -> bytes:
    """Arrays of pairs become objects, bytes become texts; what is none stays as it is."""
    fields = fields_of(data)
    if fields is None:
        return data
    try:
        return json.dumps(_plain(fields), sort_keys=True, separators=(",", ":")).encode()
    except (ValueError, TypeError, RecursionError):
        return data


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if not isinstance(value, list):
        return value
    if value and all(isinstance(v, list) and len(v) == 2 and type(v[0]) is str for v in value):
        return {key: _plain(inner) for key, inner in value}
    return [_plain(inner) for inner in value]


def own_manifest(data: bytes) -> None:
    try:
        found = manifest.from_bytes(json_of(data))
        manifest.check_signature(found)
    except (manifest.ManifestUnreadable, manifest.ManifestWrong) as wrong:
        raise Refused(Reason.MALFORMED, str(wrong)) from wrong


def signed_manifest(data: bytes) -> None:
    """As far as a stranger sees it: an object in its canonical form, signed."""
    try:
        value = json.loads(json_of(data))
        text = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
        need(type(value) is dict and text == json_of(data), "canonical")
        told = {key: inner for key, inner in value.items() if key != "signature"}
        unsigned = json.dumps(told, sort_keys=True, separators=(",", ":")).encode()
        public, signature = bytes.fromhex(value["node_id"]), bytes.fromhex(value["signature"])
    except (ValueError, KeyError, TypeError, RecursionError) as misfit:
        raise Bad(str(misfit)) from misfit
    need(signed(public, "dump", tagged("dump", unsigned), signature), "signature")


def manifests() -> list[Sample]:
    file = [
        ["table", "events"], ["name", "events/part-0001.parquet"], ["rows", 5], ["bytes", 900],
        ["sha256", sha256(b"file").hexdigest()],
    ]  # fmt: skip
    told: dict[str, Any] = {
        "format": "quipudump/1", "cluster_id": DIGEST.hex(), "node_id": KEY.node_id.hex(),
        "genesis_sha256": DIGEST.hex(), "number": 1, "previous": "", "taken_ms": 2**40,
        "as_of_ms": 2**40, "feed_from": 1, "feed_upto": 9, "events": 9, "read": 8,
        "entries": "with data", "absent": ["clients"], "receipt_marks": [[1, 7, 2]],
        "files": [file],
    }  # fmt: skip
    unsigned = json_of(pack(list(map(list, told.items()))))
    told["signature"] = KEY.sign(b"quipu/sig/dump/1\0" + tagged("dump", unsigned)).hex()
    pairs = list(map(list, told.items()))
    return [[pack(pairs)], [json_of(pack(pairs))]]


def repair_manifest(random: Random, sample: Sample) -> Sample:
    """Signed as it stands."""
    fields = fields_of(sample[0])
    if not fields or random.random() < 0.6:
        return sample
    told = [pair for pair in fields if not (isinstance(pair, list) and pair[:1] == ["signature"])]
    unsigned = json_of(pack(told))
    signature = KEY.sign(b"quipu/sig/dump/1\0" + tagged("dump", unsigned)).hex()
    return [pack([*told, ["signature", signature]])]


def targets() -> list[Target]:
    narrower = Agreement.NARROWER
    stored = [
        Target(f"{name.replace('_', '-')}-record", record(name), guarded, samples, repair_record,
               agreement=narrower)
        for name, samples in record_samples().items()
    ]  # fmt: skip
    return [
        *stored,
        Target("event-blob", corrupt_is_refused(own_blob), blob_of,
               blobs([b"one"], [b"one", b"x" * 300, b""], [b"e"] * 20), repair_blob, share=2,
               agreement=narrower),
        Target("kept-peers", own_kept, kept,
               [[pack([1, 2**40, []])],
                [pack([1, 7, [[N1, [DIGEST, N1, "n1.example", 8471, 5, bytes(64)], 3, 2, 1],
                              [DIGEST, None, 0, 0, 0]]])]]),
        Target("dump-header", own_dump_header, dump_header,
               [[pack([1, N1, DIGEST, 1, 7, 3, N1, [DIGEST], 2**60, 4, 0, 1, 9, DIGEST])]],
               agreement=narrower),
        Target("manifest", own_manifest, signed_manifest, manifests(), repair_manifest,
               agreement=narrower),
    ]  # fmt: skip
