"""Proof that a serializer lied: two of its own signed statements that no honest node signs both.

Three kinds. Two ACCEPTED with equal (regime, index) and different digests; or, since a PROMISE
signs the greatest (regime, index) its node ever accepted, a PROMISE and an ACCEPTED of a regime
below the promised one with a greater pair, or with the same pair and another digest.
"""

from enum import StrEnum
from typing import NamedTuple

import msgspec

from quipu.ledger import limits, signing
from quipu.ledger.canonical import Canonical, encode
from quipu.ledger.log.statements import (
    Accepted,
    Promise,
    decode_accepted,
    decode_promise,
    is_signed,
)
from quipu.ledger.log.words import Place
from quipu.ledger.refusals import Reason, refuse
from quipu.ledger.words import NodeId, NodeNo


class Lie(StrEnum):
    TWO_DIGESTS = "two-digests"
    PROMISE_HIDES = "promise-hides"
    PROMISE_CHANGES = "promise-changes"


class SerializerProof(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    accepted: bytes
    other: bytes  # an ACCEPTED, or a PROMISE
    other_is_promise: bool


class LogConviction(NamedTuple):
    culprit: NodeNo
    lie: Lie
    data: bytes


_codec = Canonical(SerializerProof, 4 * limits.LOG_STATEMENT_BYTES_MAX)


def contradiction(accepted: Accepted, other: Accepted | Promise) -> Lie | None:
    """Of two statements with valid signatures."""
    if accepted.signer != other.signer:
        return None
    if isinstance(other, Accepted):
        same = accepted.place == other.place and accepted.digest != other.digest
        return Lie.TWO_DIGESTS if same else None
    if accepted.regime >= other.regime:
        return None
    if accepted.place > other.accepted:
        return Lie.PROMISE_HIDES
    if accepted.place == other.accepted and accepted.digest != other.accepted_digest:
        return Lie.PROMISE_CHANGES
    return None


def prove(accepted: Accepted, other: Accepted | Promise) -> bytes:
    return encode(SerializerProof(encode(accepted), encode(other), isinstance(other, Promise)))


def check_log_proof(
    data: bytes, cluster_id: bytes, keys: dict[NodeNo, NodeId], verify: signing.Verifier
) -> LogConviction:
    found, statements = _read(data)
    if found.culprit not in keys:
        refuse(Reason.NOT_A_MEMBER)
    for statement in statements:
        if not is_signed(statement, cluster_id, keys[found.culprit], verify):
            refuse(Reason.BAD_SIGNATURE)
    return found


def kept_conviction(data: bytes) -> LogConviction:
    """Of a proof that was checked before it was kept."""
    return _read(data)[0]


def _read(data: bytes) -> tuple[LogConviction, tuple[Accepted, Accepted | Promise]]:
    proof = _codec.decode(data)
    accepted = decode_accepted(proof.accepted)
    other = decode_promise(proof.other) if proof.other_is_promise else decode_accepted(proof.other)
    lie = contradiction(accepted, other)
    if lie is None:
        refuse(Reason.NO_PROOF, "these two may both be signed")
    return LogConviction(NodeNo(accepted.signer), lie, data), (accepted, other)


class Watch:
    """Compares what each signer signs with what it signed before, as far as that is kept."""

    def __init__(self) -> None:
        self._accepted: dict[NodeNo, dict[Place, Accepted]] = {}
        self._promises: dict[NodeNo, dict[int, Promise]] = {}

    def knows(self, statement: Accepted) -> bool:
        """Whether this very statement was seen, so that its signature is good."""
        kept = self._accepted.get(NodeNo(statement.signer), {})
        return kept.get(statement.place) == statement

    def knows_promise(self, promise: Promise) -> bool:
        return self._promises.get(NodeNo(promise.signer), {}).get(promise.regime) == promise

    def see(self, statement: Accepted | Promise) -> bytes | None:
        """A proof, if this contradicts anything seen before."""
        signer = NodeNo(statement.signer)
        accepted = self._accepted.setdefault(signer, {})
        promises = self._promises.setdefault(signer, {})
        if isinstance(statement, Promise):
            found = next((a for a in accepted.values() if contradiction(a, statement)), None)
            if found is not None:
                return prove(found, statement)
            promises[statement.regime] = statement
            while len(promises) > limits.LOG_STATEMENTS_KEPT:
                del promises[next(iter(promises))]
            return None
        place = statement.place
        same = accepted.get(place)
        for other in ([same] if same is not None else []) + list(promises.values()):
            if contradiction(statement, other):
                return prove(statement, other)
        accepted[place] = statement
        while len(accepted) > limits.LOG_STATEMENTS_KEPT:
            del accepted[next(iter(accepted))]
        return None
