"""Events: the signed header, the body, and what is well-formed from the bytes alone.

Well-formed is a function of bytes, ancestors and epoch document; the last two are judged in
`dag`. A node passes its own event through the same functions before it makes it durable.
"""

import itertools
from collections.abc import Sequence
from enum import IntEnum
from hashlib import sha256
from typing import Annotated, NamedTuple

import msgspec

from quipu.ledger import limits, merkle, signing
from quipu.ledger.canonical import Canonical, encode
from quipu.ledger.entry import check_entries
from quipu.ledger.holes import HOLE_HEAD, has_holes, is_hole, leaves_of
from quipu.ledger.refusals import Reason, refuse
from quipu.ledger.words import (
    BranchKey,
    Cord,
    EpochNo,
    EventId,
    Hlc,
    NodeId,
    NodeNo,
    Seq,
    Slot,
)

EVENT_VERSION = 1
KIND_ENTRIES = 0
_TAG = signing.TAG_EVENT

Bytes32 = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
U64 = Annotated[int, msgspec.Meta(ge=0)]


class Header(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    version: U64
    cluster_id: Bytes32
    author: Bytes32
    epoch: U64
    journal: U64
    seq: U64
    prev: Bytes32
    parents: list[Bytes32]
    hlc: U64
    depth: U64
    kind: U64
    entry_count: U64
    body_size: U64
    entries_root: Bytes32


class Standing(IntEnum):
    """What is known of an event's signature."""

    UNCHECKED = 0
    GOOD = 1
    SPARED = 2  # not looked at: the event after it in its cord, whose signature is good, names it


class SignedEvent(NamedTuple):
    """An event as it travels and lies on disk, with what its bytes say."""

    id: EventId
    header: Header
    header_bytes: bytes
    signature: bytes
    body: bytes
    leaves: tuple[bytes, ...] = ()  # leaf hashes of the entries, where somebody has made them
    hollow: bool = False  # an entry was erased; said of what came from outside
    standing: Standing = Standing.UNCHECKED

    @property
    def size(self) -> int:
        return len(self.header_bytes) + len(self.signature) + len(self.body)


class EventMeta(NamedTuple):
    """What the core needs of a stored event: its place and its edges."""

    id: EventId
    slot: Slot
    branch: BranchKey  # of the slot: asked for a dozen times while the event is on its way
    epoch: EpochNo
    prev: EventId
    parents: tuple[EventId, ...]
    hlc: Hlc
    depth: int
    size: int
    entry_count: int

    @property
    def seq(self) -> Seq:
        return self.slot.seq


_headers = Canonical(Header, limits.HEADER_BYTES_MAX)
_bodies = Canonical(list[bytes], limits.EVENT_BYTES_MAX)


def event_id(header_bytes: bytes) -> EventId:
    """As `signing.tagged_hash`, without the calls: it is asked for at every event that is read."""
    return sha256(_TAG + header_bytes).digest()  # type: ignore[return-value]


def signed_part(identity: EventId) -> bytes:
    return signing.TAG_SIG_EVENT + identity


def decode_header(header_bytes: bytes) -> Header:
    """A header that is well-formed by itself."""
    header = _headers.decode(header_bytes)
    if header.version != EVENT_VERSION:
        refuse(Reason.UNKNOWN_VERSION, f"event version {header.version}")
    if header.kind != KIND_ENTRIES:
        refuse(Reason.UNKNOWN_KIND, f"event kind {header.kind}")
    if header.seq < 1:
        refuse(Reason.BAD_SEQ, "seq 0")
    if header.seq == 1 and header.prev != header.cluster_id:
        refuse(Reason.BAD_PREV, "prev of seq 1 is the cluster id")
    if header.parents:
        _check_parents(header)
    if not 1 <= header.entry_count <= limits.EVENT_ENTRIES_MAX:
        refuse(Reason.BAD_BODY, f"{header.entry_count} entries")
    if header.body_size > limits.EVENT_BYTES_MAX:
        refuse(Reason.TOO_LARGE, f"body of {header.body_size} bytes")
    return header


def _check_parents(header: Header) -> None:
    parents = header.parents
    if len(parents) > limits.PARENTS_MAX:
        refuse(Reason.BAD_PARENTS, f"{len(parents)} parents")
    if any(a >= b for a, b in itertools.pairwise(parents)):
        refuse(Reason.BAD_PARENTS, "not sorted and unique")
    if header.prev in parents:
        refuse(Reason.BAD_PARENTS, "prev among the parents")


def decode_body(header: Header, body: bytes) -> list[bytes]:
    """The entries' canonical bytes, checked against the header and each other; holes where some
    were erased."""
    return read_body(header, body)[0]


def read_body(header: Header, body: bytes) -> tuple[list[bytes], tuple[bytes, ...]]:
    """The same, and the leaf hashes that this has cost."""
    has_size = len(body) == header.body_size
    if not has_size and HOLE_HEAD not in body:
        refuse(Reason.BAD_BODY, f"{len(body)} bytes, the header says {header.body_size}")
    entries = _bodies.decode(body)
    if len(entries) != header.entry_count:
        refuse(Reason.BAD_BODY, f"{len(entries)} entries, the header says {header.entry_count}")
    if has_holes(body, entries):
        leaves, left = leaves_of(entries), [entry for entry in entries if not is_hole(entry)]
    else:
        leaves, left = merkle.leaf_hashes(entries), entries
        if not has_size:
            refuse(Reason.BAD_BODY, f"{len(body)} bytes, the header says {header.body_size}")
    if merkle.root_of(leaves) != header.entries_root:
        refuse(Reason.BAD_ROOT)
    check_entries(left)
    return entries, leaves


def decode_event(header_bytes: bytes, signature: bytes, body: bytes) -> SignedEvent:
    """Everything but the signature, which costs the most and is checked last."""
    header = decode_header(header_bytes)
    if len(signature) != signing.SIGNATURE_BYTES:
        refuse(Reason.MALFORMED, f"signature of {len(signature)} bytes")
    entries, leaves = read_body(header, body)
    hollow = has_holes(body, entries)
    return SignedEvent(
        event_id(header_bytes), header, header_bytes, signature, body, leaves, hollow
    )


def with_standing(event: SignedEvent, standing: Standing) -> SignedEvent:
    return SignedEvent._make((*event[:-1], standing))


def meta_of(event: SignedEvent, author_no: NodeNo, branch_number: int) -> EventMeta:
    """Written flat: 1.1 us, and 2.3 with names and casts."""
    header = event.header
    slot = Slot(author_no, header.journal, header.seq, branch_number)  # type: ignore[arg-type]
    return EventMeta(
        event.id,
        slot,
        slot.branch,
        header.epoch,  # type: ignore[arg-type]
        header.prev,  # type: ignore[arg-type]
        tuple(header.parents),  # type: ignore[arg-type]
        header.hlc,  # type: ignore[arg-type]
        header.depth,
        len(event.header_bytes) + len(event.signature) + len(event.body),
        header.entry_count,
    )


class Place(NamedTuple):
    """Where a new event goes."""

    cluster_id: bytes
    epoch: EpochNo
    cord: Cord
    seq: Seq
    prev: EventId
    parents: tuple[EventId, ...]  # sorted
    hlc: Hlc
    depth: int


def build_event(key: signing.KeyPair, place: Place, entries: Sequence[bytes]) -> SignedEvent:
    body = encode(entries)
    leaves = merkle.leaf_hashes(entries)
    header = Header(
        version=EVENT_VERSION,
        cluster_id=place.cluster_id,
        author=key.node_id,
        epoch=place.epoch,
        journal=place.cord.journal,
        seq=place.seq,
        prev=place.prev,
        parents=list(place.parents),
        hlc=place.hlc,
        depth=place.depth,
        kind=KIND_ENTRIES,
        entry_count=len(entries),
        body_size=len(body),
        entries_root=merkle.root_of(leaves),
    )
    header_bytes = encode(header)
    identity = event_id(header_bytes)
    signature = key.sign(signed_part(identity))
    return SignedEvent(identity, header, header_bytes, signature, body, leaves)


def has_valid_signature(event: SignedEvent, verify: signing.Verifier) -> bool:
    return verify(event.header.author, signed_part(event.id), event.signature)


def author_of(event: SignedEvent) -> NodeId:
    return NodeId(event.header.author)
