"""What serializers sign: ACCEPTED and PROMISE, bound to the cluster and tagged.

ACCEPTED covers its entry and all before it: a majority of them is a certificate. PROMISE binds
its node to one regime and one candidate, and covers the log that travels beside it.
"""

from typing import Annotated

import msgspec

from quipu.ledger import limits, signing
from quipu.ledger.canonical import Canonical, encode
from quipu.ledger.event import U64, Bytes32
from quipu.ledger.inv import Signature
from quipu.ledger.log.words import Index, Life, Place, Regime
from quipu.ledger.messages import Number32
from quipu.ledger.refusals import Reason, refuse
from quipu.ledger.words import EpochNo, NodeNo

U32 = Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]
Lives = Annotated[list[tuple[Number32, U64]], msgspec.Meta(max_length=limits.LOG_LIVES_MAX)]


class Accepted(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """The signer holds durably, as of this regime's master, the log up to this index."""

    epoch: U64
    signer: Number32
    regime: Number32
    index: U64
    digest: Bytes32
    signature: Signature

    @property
    def place(self) -> Place:
        return Place(Regime(self.regime), Index(self.index))


class Promise(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """The signer accepts nothing of a lower regime any more, and of this one from one node."""

    epoch: U64
    signer: Number32
    life: U64
    regime: Number32
    candidate: Number32
    base_index: U64  # the log beside it begins above this
    base_digest: Bytes32
    last_index: U64
    last_digest: Bytes32
    accepted_regime: U32  # the greatest (regime, index) this signer ever signed ACCEPTED for
    accepted_index: U64
    accepted_digest: Bytes32
    lives: Lives  # of others, whose disk was replaced
    signature: Signature

    @property
    def accepted(self) -> Place:
        return Place(Regime(self.accepted_regime), Index(self.accepted_index))


_accepted: Canonical[Accepted] = Canonical(Accepted, limits.LOG_STATEMENT_BYTES_MAX)
_promise: Canonical[Promise] = Canonical(Promise, limits.LOG_STATEMENT_BYTES_MAX)
UNSIGNED = bytes(signing.SIGNATURE_BYTES)


def decode_accepted(data: bytes) -> Accepted:
    return _accepted.decode(data)


def decode_promise(data: bytes) -> Promise:
    promise = _promise.decode(data)
    numbers = [number for number, _ in promise.lives]
    if numbers != sorted(set(numbers)):
        refuse(Reason.MALFORMED, "lives are sorted, one a node")
    if promise.last_index < promise.base_index:
        refuse(Reason.BAD_INDEX, "the log ends before it begins")
    return promise


def _signed_part(cluster_id: bytes, statement: Accepted | Promise) -> bytes:
    fields = [getattr(statement, name) for name in statement.__struct_fields__[:-1]]
    tag = signing.TAG_SIG_ACCEPTED if isinstance(statement, Accepted) else signing.TAG_SIG_PROMISE
    return tag + encode([cluster_id, *fields])


def sign_accepted(
    key: signing.KeyPair, cluster_id: bytes, epoch: EpochNo, signer: NodeNo, at: tuple[Place, bytes]
) -> Accepted:
    place, digest = at
    unsigned = Accepted(epoch, signer, place.regime, place.index, digest, UNSIGNED)
    signature = key.sign(_signed_part(cluster_id, unsigned))
    return msgspec.structs.replace(unsigned, signature=signature)


def sign_promise(key: signing.KeyPair, cluster_id: bytes, unsigned: Promise) -> Promise:
    signature = key.sign(_signed_part(cluster_id, unsigned))
    return msgspec.structs.replace(unsigned, signature=signature)


def is_signed(
    statement: Accepted | Promise, cluster_id: bytes, public: bytes, verify: signing.Verifier
) -> bool:
    return verify(public, _signed_part(cluster_id, statement), statement.signature)


def life_of(promise: Promise, number: NodeNo) -> Life:
    """What this PROMISE knows of the disk of another node."""
    return Life(next((life for other, life in promise.lives if other == number), 0))
