"""The event, its entry, and the Merkle path between them."""

from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise

from quipu.verify.rosters import Lineage
from quipu.verify.values import (
    BODY_BYTES_MAX,
    ENTRIES_MAX,
    ENTRY_BYTES_MAX,
    ENTRY_SIGNATURE_BYTES_MAX,
    HEADER_BYTES_MAX,
    IDEMPOTENCY_KEY_BYTES_MAX,
    NAME_BYTES_MAX,
    PARENTS_MAX,
    U32,
    U64,
    array_of,
    bytes_of,
    decoded,
    int_of,
    is_signed,
    list_of,
    need,
    optional,
    stream_of,
    tagged,
    text_of,
)

MEDIA_TYPES = {
    0: "application/json",
    1: "application/msgpack",
    2: "application/octet-stream",
    3: "text/plain; charset=utf-8",
    4: "application/cloudevents+json",
}
ENTRY_KINDS = {0: "data", 1: "config", 2: "void"}
ERASED = "erased"  # the kind of what is gone: its place and its leaf hash are proven
_HOLE = b"\x91\xc4\x20"  # an array of one leaf hash, in the place of an entry's twelve fields


@dataclass(frozen=True, slots=True)
class VerifiedEntry:
    kind: str
    stream: str
    submitter: str | None
    client_id: int | None
    message_id: int | None
    idempotency_key: str | None
    time_ms: int  # as the app gave it; else the event's
    content_type: str
    data: bytes
    salt: bytes | None
    signature_type: int
    signature: bytes | None
    leaf_hash: bytes  # in the event's tree; all there is of an erased one


@dataclass(frozen=True, slots=True)
class Event:
    id: bytes
    cluster_id: bytes
    author: bytes
    epoch: int
    journal: int
    seq: int
    prev: bytes
    hlc: int
    count: int
    root: bytes


def read_header(data: bytes) -> Event:
    fields = array_of(decoded(data, HEADER_BYTES_MAX, "header"), 14, "header")
    need(int_of(fields[0], U64, "event version") == 1, "event version is unknown")
    event = Event(
        id=tagged("event", data),
        cluster_id=bytes_of(fields[1], "cluster id", 32),
        author=bytes_of(fields[2], "author", 32),
        epoch=int_of(fields[3], U64, "epoch"),
        journal=int_of(fields[4], U64, "journal"),
        seq=int_of(fields[5], U64, "seq", 1),
        prev=bytes_of(fields[6], "prev", 32),
        hlc=int_of(fields[8], U64, "hlc"),
        count=int_of(fields[11], ENTRIES_MAX, "entry count", 1),
        root=bytes_of(fields[13], "entries root", 32),
    )
    named = list_of(fields[7], PARENTS_MAX, "parents")
    parents = [bytes_of(parent, "parent", 32) for parent in named]
    need(all(a < b for a, b in pairwise(parents)), "parents are not sorted")
    need(event.prev not in parents, "prev is among the parents")
    need(event.seq > 1 or event.prev == event.cluster_id, "prev of seq 1 is the cluster id")
    int_of(fields[9], U64, "depth")
    need(int_of(fields[10], U64, "kind") == 0, "event kind is unknown")
    int_of(fields[12], BODY_BYTES_MAX, "body size")
    return event


def read_event(data: bytes, signature: object, lineage: Lineage) -> Event:
    event = read_header(data)
    need(event.cluster_id == lineage.cluster_id, "event of another cluster")
    need(event.epoch in lineage.epochs, f"no document of epoch {event.epoch}")
    members = lineage.epochs[event.epoch].numbers
    need(event.author in members, "the author is not a member of the event's epoch")
    signed = is_signed(event.author, "event", event.id, bytes_of(signature, "signature", 64))
    need(signed, "the event's signature is wrong")
    return event


def _media_type(value: object) -> str:
    if type(value) is int:
        need(value in MEDIA_TYPES, "content type is unknown")
        return MEDIA_TYPES[value]
    text = text_of(value, NAME_BYTES_MAX, "content type")
    need(text.isascii() and text.isprintable(), "content type is not printable ASCII")
    return text


def leaf_of(data: bytes) -> bytes:
    """Of an entry, or of what stands in the place of an erased one."""
    return data[len(_HOLE) :] if _is_hole(data) else sha256(b"\0" + data).digest()


def _is_hole(data: bytes) -> bool:
    return data.startswith(_HOLE) and len(data) == len(_HOLE) + 32


def read_entry(data: bytes, event: Event) -> VerifiedEntry:
    if _is_hole(data):
        nothing, leaf = (None,) * 4, leaf_of(data)
        return VerifiedEntry(ERASED, "", *nothing, event.hlc >> 16, "", b"", None, 0, None, leaf)
    fields = array_of(decoded(data, ENTRY_BYTES_MAX, "entry"), 12, "entry")
    salt, kind, stream, submitter, client_id, message_id, key, time_ms, *rest = fields
    media_type, content, sig_type, signature = rest
    kind = int_of(kind, U64, "entry kind")
    need(kind in ENTRY_KINDS, "entry kind is unknown")
    if signature is not None:
        most = ENTRY_SIGNATURE_BYTES_MAX
        need(len(bytes_of(signature, "entry signature")) <= most, "entry signature is too long")
    return VerifiedEntry(
        kind=ENTRY_KINDS[kind],
        stream=stream_of(stream),
        submitter=optional(text_of, submitter, NAME_BYTES_MAX, "submitter"),
        client_id=optional(int_of, client_id, U32, "client id"),
        message_id=optional(int_of, message_id, U64, "message id"),
        idempotency_key=optional(text_of, key, IDEMPOTENCY_KEY_BYTES_MAX, "idempotency key"),
        time_ms=event.hlc >> 16 if time_ms is None else int_of(time_ms, U64, "time"),
        content_type=_media_type(media_type),
        data=bytes_of(content, "data"),
        salt=None if salt is None else bytes_of(salt, "salt", 16),
        signature_type=int_of(sig_type, 255, "signature type"),
        signature=None if signature is None else bytes_of(signature, "entry signature"),
        leaf_hash=leaf_of(data),
    )


def check_path(entry: object, index: int, path: object, event: Event) -> None:
    """RFC 9162 section 2.1.3.2: from the leaf to the root."""
    need(index < event.count, "there is no such entry")
    steps = [bytes_of(step, "path", 32) for step in list_of(path, 64, "path")]
    position, last = index, event.count - 1
    node = leaf_of(bytes_of(entry, "entry"))
    for step in steps:
        need(last > 0, "the path is too long")
        if position & 1 or position == last:
            node = sha256(b"\1" + step + node).digest()
            while not position & 1 and position:
                position, last = position >> 1, last >> 1
        else:
            node = sha256(b"\1" + node + step).digest()
        position, last = position >> 1, last >> 1
    need(last == 0, "the path is too short")
    need(node == event.root, "the path leads to another root")
