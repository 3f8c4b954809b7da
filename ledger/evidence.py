"""Proofs of misbehaviour: self-contained, checked by anybody who holds the roster.

An author's proof is two signed headers for one slot. A signer's proof is two of its receipts for
one slot, with the headers that lead from their rows down to that slot. Of several proofs against
one node the least one is kept, so that every honest node ends with the same.
"""

from typing import Annotated, NamedTuple

import msgspec

from quipu.ledger import limits, signing
from quipu.ledger.canonical import Canonical, encode
from quipu.ledger.event import U64, Header, decode_header, event_id, signed_part
from quipu.ledger.inv import Inv, decode_inv, has_valid_signature
from quipu.ledger.refusals import Reason, refuse
from quipu.ledger.words import EventId, Journal, NodeId, Seq

Signature = Annotated[bytes, msgspec.Meta(min_length=64, max_length=64)]
Chain = Annotated[list[bytes], msgspec.Meta(max_length=limits.PROOF_HEADERS_MAX)]


class AuthorProof(msgspec.Struct, array_like=True, frozen=True, tag=1, forbid_unknown_fields=True):
    header_low: bytes  # of the event with the lower id
    signature_low: Signature
    header_high: bytes
    signature_high: Signature


class SignerProof(msgspec.Struct, array_like=True, frozen=True, tag=2, forbid_unknown_fields=True):
    author_no: U64
    journal: U64
    seq: U64  # the slot for which the signer acknowledged two ids
    inv_low: bytes  # the one that leads to the lower id
    chain_low: Chain  # headers from the row's event down to the slot; the row's own first
    inv_high: bytes
    chain_high: Chain


class Conviction(NamedTuple):
    """What a proof says: who, where, and the place of the proof in the order of proofs."""

    culprit: NodeId
    as_signer: bool
    journal: Journal
    seq: Seq
    low: EventId
    high: EventId
    data: bytes

    @property
    def rank(self) -> tuple[int, int, bytes, bytes, bytes]:
        """The least is kept; of two that prove the same, the one of lesser bytes."""
        return (self.journal, self.seq, self.low, self.high, self.data)


Proof = AuthorProof | SignerProof
_codec: Canonical[Proof] = Canonical(Proof, limits.MESSAGE_BYTES_MAX)  # type: ignore[arg-type]


def prove_author(one: tuple[bytes, bytes, EventId], other: tuple[bytes, bytes, EventId]) -> bytes:
    """From two (header, signature, id) of one slot."""
    low, high = sorted((one, other), key=lambda item: item[2])
    return encode(AuthorProof(low[0], low[1], high[0], high[1]))


def check_proof(data: bytes, cluster_id: bytes, verify: signing.Verifier) -> Conviction:
    proof = _codec.decode(data)
    if isinstance(proof, AuthorProof):
        return _check_author(proof, data, cluster_id, verify)
    return _check_signer(proof, data, cluster_id, verify)


def _header_of(data: bytes, cluster_id: bytes) -> tuple[Header, EventId]:
    header = decode_header(data)
    if header.cluster_id != cluster_id:
        refuse(Reason.WRONG_CLUSTER)
    return header, event_id(data)


def _check_author(
    proof: AuthorProof, data: bytes, cluster_id: bytes, verify: signing.Verifier
) -> Conviction:
    low, low_id = _header_of(proof.header_low, cluster_id)
    high, high_id = _header_of(proof.header_high, cluster_id)
    if (low.author, low.journal, low.seq) != (high.author, high.journal, high.seq):
        refuse(Reason.NO_PROOF, "two different slots")
    if not low_id < high_id:
        refuse(Reason.NO_PROOF, "not two different events in order")
    for identity, signature in ((low_id, proof.signature_low), (high_id, proof.signature_high)):
        if not verify(low.author, signed_part(identity), signature):
            refuse(Reason.BAD_SIGNATURE)
    return Conviction(
        NodeId(low.author), False, Journal(low.journal), Seq(low.seq), low_id, high_id, data
    )


def _check_signer(
    proof: SignerProof, data: bytes, cluster_id: bytes, verify: signing.Verifier
) -> Conviction:
    low_inv, low = _acknowledged(proof, proof.inv_low, proof.chain_low, cluster_id, verify)
    high_inv, high = _acknowledged(proof, proof.inv_high, proof.chain_high, cluster_id, verify)
    if low_inv.signer != high_inv.signer:
        refuse(Reason.NO_PROOF, "two different signers")
    if not low < high:
        refuse(Reason.NO_PROOF, "not two different events in order")
    return Conviction(low_inv.signer, True, Journal(proof.journal), Seq(proof.seq), low, high, data)


def _acknowledged(
    proof: SignerProof,
    inv_bytes: bytes,
    chain: list[bytes],
    cluster_id: bytes,
    verify: signing.Verifier,
) -> tuple[Inv, EventId]:
    """The id that this Inv acknowledges for the slot of the proof."""
    inv = decode_inv(inv_bytes)
    if inv.array.cluster_id != cluster_id:
        refuse(Reason.WRONG_CLUSTER)
    if not has_valid_signature(inv, verify):
        refuse(Reason.BAD_SIGNATURE)
    for row in inv.rows:
        if (row.author_no, row.journal) == (proof.author_no, proof.journal):
            break
    else:
        refuse(Reason.NO_PROOF, "the Inv has no row for that cord")
    seq, identity = row.seq, EventId(row.id)
    for header_bytes in chain:
        header, found = _header_of(header_bytes, cluster_id)
        if found != identity or (header.journal, header.seq) != (proof.journal, seq):
            refuse(Reason.NO_PROOF, "the headers do not lead to the slot")
        if seq == proof.seq:
            refuse(Reason.NO_PROOF, "headers below the slot")
        seq, identity = seq - 1, EventId(header.prev)
    if seq != proof.seq:
        refuse(Reason.NO_PROOF, "the headers do not reach the slot")
    return inv, identity
