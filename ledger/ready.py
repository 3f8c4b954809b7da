"""READY: a node's signed statement "I hold all but the last 1,000 events", before it is a member.

A CLOSE carries those of MAX_CONFIRMS + 1 members of the epoch that it names (DESIGN section 5).
"""

from typing import Annotated

import msgspec

from quipu.ledger import limits, signing
from quipu.ledger.canonical import Canonical, encode
from quipu.ledger.event import U64, Bytes32
from quipu.ledger.refusals import Reason, refuse

READY_VERSION = 1

Signature = Annotated[bytes, msgspec.Meta(min_length=64, max_length=64)]


class Ready(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    version: U64
    signer: Bytes32
    epoch: U64  # the one that it is ready for
    at_ms: U64  # cluster now of the signer
    signature: Signature


_codec = Canonical(Ready, limits.READY_BYTES_MAX)


def sign_ready(key: signing.KeyPair, cluster_id: bytes, epoch: int, at_ms: int) -> bytes:
    signature = key.sign(_signed_part(cluster_id, key.node_id, epoch, at_ms))
    return encode(Ready(READY_VERSION, key.node_id, epoch, at_ms, signature))


def check_ready(data: bytes, cluster_id: bytes, verify: signing.Verifier) -> Ready:
    """The statement, or a refusal."""
    ready = _codec.decode(data)
    if ready.version != READY_VERSION:
        refuse(Reason.UNKNOWN_VERSION, f"READY version {ready.version}")
    message = _signed_part(cluster_id, ready.signer, ready.epoch, ready.at_ms)
    if not verify(ready.signer, message, ready.signature):
        refuse(Reason.BAD_SIGNATURE, "READY")
    return ready


def _signed_part(cluster_id: bytes, signer: bytes, epoch: int, at_ms: int) -> bytes:
    return signing.TAG_SIG_READY + encode([cluster_id, READY_VERSION, signer, epoch, at_ms])
