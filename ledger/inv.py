"""Inv: a member's signed statement "I hold durably these cords up to (seq, id)".

It says held and well-formed, never "I agree". Cumulative: a row covers its event and the
ancestors of it in the cord, on that branch and no other.
"""

import itertools
from collections.abc import Sequence
from typing import Annotated, NamedTuple

import msgspec

from quipu.ledger import limits, signing
from quipu.ledger.canonical import Canonical, encode
from quipu.ledger.event import U64, Bytes32
from quipu.ledger.refusals import Reason, refuse
from quipu.ledger.words import Cord, EpochNo, EventId, InvNumber, Journal, NodeId, NodeNo, Seq

INV_VERSION = 1
Number32 = Annotated[int, msgspec.Meta(ge=1, le=2**32 - 1)]
Signature = Annotated[bytes, msgspec.Meta(min_length=64, max_length=64)]


class InvRow(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    author_no: Number32
    journal: U64
    seq: U64
    id: Bytes32

    @property
    def cord(self) -> Cord:
        return Cord(NodeNo(self.author_no), Journal(self.journal))


class InvArray(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    version: U64
    cluster_id: Bytes32
    signer: Bytes32
    epoch: U64
    number: U64
    close: Bytes32 | None
    rows: Annotated[list[InvRow], msgspec.Meta(max_length=limits.INV_ROWS_MAX)]
    signature: Signature


class Inv(NamedTuple):
    id: bytes  # hash of the unsigned part
    array: InvArray
    data: bytes  # as it travels

    @property
    def number(self) -> InvNumber:
        return InvNumber(self.array.number)

    @property
    def signer(self) -> NodeId:
        return NodeId(self.array.signer)

    @property
    def epoch(self) -> EpochNo:
        return EpochNo(self.array.epoch)

    @property
    def rows(self) -> list[InvRow]:
        return self.array.rows


_codec = Canonical(InvArray, limits.INV_BYTES_MAX)
_unchecked = msgspec.msgpack.Decoder(InvArray)


def unsigned_part(array: InvArray) -> bytes:
    """What is hashed and signed."""
    return encode(
        [
            array.version,
            array.cluster_id,
            array.signer,
            array.epoch,
            array.number,
            array.close,
            array.rows,
        ]
    )


def _inv_id(unsigned: bytes) -> bytes:
    return signing.tagged_hash(signing.TAG_INV, unsigned)


def decode_inv(data: bytes) -> Inv:
    """Everything but the signature."""
    array = _codec.decode(data)
    if array.version != INV_VERSION:
        refuse(Reason.UNKNOWN_VERSION, f"Inv version {array.version}")
    places = [(row.author_no, row.journal) for row in array.rows]
    if any(a >= b for a, b in itertools.pairwise(places)):
        refuse(Reason.BAD_ROWS, "rows are sorted, one a cord")
    if any(row.seq < 1 for row in array.rows):
        refuse(Reason.BAD_ROWS, "seq 0")
    return Inv(_inv_id(unsigned_part(array)), array, data)


def peek_inv(data: bytes) -> InvArray | None:
    """What an Inv claims, unchecked: whoever takes it later decides. None: it is none."""
    try:
        return _unchecked.decode(data)
    except msgspec.DecodeError:
        return None


def has_valid_signature(inv: Inv, verify: signing.Verifier) -> bool:
    return verify(inv.array.signer, signing.TAG_SIG_INV + inv.id, inv.array.signature)


def build_inv(
    key: signing.KeyPair,
    cluster_id: bytes,
    epoch: EpochNo,
    number: InvNumber,
    rows: Sequence[tuple[Cord, Seq, EventId]],
    close: bytes | None = None,
) -> Inv:
    """`rows` sorted by cord."""
    array = InvArray(
        version=INV_VERSION,
        cluster_id=cluster_id,
        signer=key.node_id,
        epoch=epoch,
        number=number,
        close=close,
        rows=[InvRow(cord.author_no, cord.journal, seq, identity) for cord, seq, identity in rows],
        signature=bytes(signing.SIGNATURE_BYTES),
    )
    identity = _inv_id(unsigned_part(array))
    signature = key.sign(signing.TAG_SIG_INV + identity)
    signed = msgspec.structs.replace(array, signature=signature)
    return Inv(identity, signed, encode(signed))
