"""Messages: what crosses the wire between cores.

Each is an array whose first field is its kind. An envelope (who, to whom, version) is put around
them by the peer protocol; the link says who the peer is.
"""

from typing import Annotated

import msgspec

from quipu.ledger import limits
from quipu.ledger.canonical import Canonical, encode
from quipu.ledger.event import U64, Bytes32, SignedEvent
from quipu.ledger.refusals import Reason, Refused, refuse

PREFIX_BYTES = 16  # how much of an id stands in rows and anchors

Bytes16 = Annotated[bytes, msgspec.Meta(min_length=PREFIX_BYTES, max_length=PREFIX_BYTES)]
Number32 = Annotated[int, msgspec.Meta(ge=1, le=2**32 - 1)]


class EventBytes(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    header: bytes
    signature: bytes
    body: bytes


class EventMessage(msgspec.Struct, array_like=True, frozen=True, tag=1, forbid_unknown_fields=True):
    event: EventBytes


class InvMessage(msgspec.Struct, array_like=True, frozen=True, tag=2, forbid_unknown_fields=True):
    inv: bytes


class RangeWant(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """The events of a cord up to `last`, from the newest anchor that lies on the same branch."""

    author_no: Number32
    journal: U64
    anchors: Annotated[
        list[tuple[U64, Bytes16]], msgspec.Meta(max_length=limits.GET_ANCHORS_MAX)
    ]  # newest first
    last_seq: U64
    last: Bytes16


class InvWant(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """The newest Inv of a signer, from `number` up; 0: every Inv of it that anything rests on."""

    signer_no: Number32
    number: U64


class CoverWant(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """The receipts that made this event, and all below it on its branch, Read."""

    author_no: Number32
    journal: U64
    seq: U64
    tip: Bytes16  # an event of the branch at or above seq


class GetData(msgspec.Struct, array_like=True, frozen=True, tag=3, forbid_unknown_fields=True):
    request_id: U64
    ids: Annotated[list[Bytes32], msgspec.Meta(max_length=limits.GET_IDS_MAX)]
    ranges: Annotated[list[RangeWant], msgspec.Meta(max_length=limits.GET_RANGES_MAX)]
    invs: Annotated[list[InvWant], msgspec.Meta(max_length=limits.GET_RECEIPTS_MAX)]
    covers: Annotated[list[CoverWant], msgspec.Meta(max_length=limits.GET_RECEIPTS_MAX)]
    bytes_max: U64


class Answer(msgspec.Struct, array_like=True, frozen=True, tag=5, forbid_unknown_fields=True):
    """What was asked for, in causal order, and whether there is more of it."""

    request_id: U64
    invs: Annotated[list[bytes], msgspec.Meta(max_length=limits.GET_RECEIPTS_MAX)]
    events: Annotated[
        list[EventBytes],
        msgspec.Meta(max_length=limits.ANSWER_EVENTS_MAX),
    ]
    missing: Annotated[list[Bytes32], msgspec.Meta(max_length=limits.GET_IDS_MAX)]
    more: bool


class SyncRow(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """The tip of one branch of a cord; all branches of a cord are sent together."""

    author_no: Number32
    journal: U64
    seq: U64
    id: Bytes16
    read_seq: U64


class ReceiptRow(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    signer_no: Number32
    number: U64
    inv: Bytes16


class SyncEvent(msgspec.Struct, array_like=True, frozen=True, tag=4, forbid_unknown_fields=True):
    number: U64  # of this SyncEvent on this link
    heard: U64  # the highest number received from the peer
    base: U64  # rows are those changed since the SyncEvent of this number; 0: all rows
    leaves: Annotated[list[Bytes32], msgspec.Meta(max_length=limits.SYNC_LEAVES_MAX)]
    leaf_count: U64
    rows: Annotated[list[SyncRow], msgspec.Meta(max_length=limits.SYNC_ROWS_MAX)]
    receipts: Annotated[list[ReceiptRow], msgspec.Meta(max_length=limits.SYNC_RECEIPTS_MAX)]
    epoch: U64
    digest: Bytes32  # over all rows with full ids
    proofs: Bytes16  # over all proofs of misbehaviour held; zeros: none
    wall_ms: U64
    recovering: bool


class EvidenceMessage(
    msgspec.Struct, array_like=True, frozen=True, tag=6, forbid_unknown_fields=True
):
    proof: bytes


class EpochWant(msgspec.Struct, array_like=True, frozen=True, tag=7, forbid_unknown_fields=True):
    """The document of that epoch, with what proves it."""

    number: Number32


class EpochMessage(msgspec.Struct, array_like=True, frozen=True, tag=8, forbid_unknown_fields=True):
    document: bytes
    seals: Annotated[list[bytes], msgspec.Meta(max_length=limits.SEALS_MAX)]


class EpochOffer(msgspec.Struct, array_like=True, frozen=True, tag=9, forbid_unknown_fields=True):
    """The cut that the master has computed from these seals: who holds it signs for it."""

    document: bytes
    seals: Annotated[list[bytes], msgspec.Meta(max_length=limits.SEALS_MAX)]


class ReadyWant(msgspec.Struct, array_like=True, frozen=True, tag=10, forbid_unknown_fields=True):
    """Whether the peer is ready for that epoch."""

    number: Number32


class ReadyMessage(
    msgspec.Struct, array_like=True, frozen=True, tag=11, forbid_unknown_fields=True
):
    statement: bytes


class Pruned(msgspec.Struct, array_like=True, frozen=True, tag=12, forbid_unknown_fields=True):
    """Some of what was asked for lies below the checkpoint that this node begins with."""

    request_id: U64
    epoch: Number32


Message = (
    EventMessage
    | InvMessage
    | GetData
    | Answer
    | SyncEvent
    | EvidenceMessage
    | EpochWant
    | EpochMessage
    | EpochOffer
    | ReadyWant
    | ReadyMessage
    | Pruned
)

_SIGNED_BEGINNINGS = (b"\x92\x01", b"\x92\x02")  # arrays of two, EventMessage and InvMessage

_codec: Canonical[Message] = Canonical(Message, limits.MESSAGE_BYTES_MAX)  # type: ignore[arg-type]


_INV_HEAD = encode(InvMessage(b""))[:2]  # an array of two, and the tag
_EVENT_HEAD = encode(EventMessage(EventBytes(b"", b"", b"")))[:2]
_unchecked_receipts = msgspec.msgpack.Decoder(InvMessage)


def encode_message(message: Message) -> bytes:
    return encode(message)


def is_receipt(data: bytes) -> bool:
    """Whether a message that is not decoded yet is an Inv."""
    return data.startswith(_INV_HEAD)


def receipt_in(data: bytes) -> bytes:
    """What is within such a message, unchecked; empty: nothing that could be read."""
    try:
        return _unchecked_receipts.decode(data).inv
    except msgspec.DecodeError:
        return b""


def is_event(data: bytes) -> bool:
    """Whether a message that is not decoded yet is an event that its author pushed."""
    return data.startswith(_EVENT_HEAD)


def decode_message(data: bytes) -> Message:
    try:
        message = _codec.decode(data)
    except Refused as refusal:
        if refusal.reason is Reason.MALFORMED and "Invalid value" in refusal.detail:
            refuse(Reason.UNKNOWN_KIND, refusal.detail)
        raise
    if isinstance(message, GetData) and len(data) > limits.GET_BYTES_MAX:
        refuse(Reason.TOO_LARGE, "GetData")
    return message


def proves_itself(data: bytes) -> bool:
    """An event, or an Inv: signed by its author, so that it is all the same who brings it."""
    return data[:2] in _SIGNED_BEGINNINGS


def bytes_of(event: SignedEvent) -> EventBytes:
    return EventBytes(event.header_bytes, event.signature, event.body)
