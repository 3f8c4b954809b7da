"""What a restart begins with: the own start, and of each member where it is and what was heard.

Kept as canonical bytes. Endpoints are checked again when they come back; floors make what was
recorded before the restart a duplicate for ever.
"""

from typing import Annotated

import msgspec

from quipu.ledger.canonical import encode
from quipu.p2p import limits
from quipu.p2p.addresses import SignedEndpoint
from quipu.p2p.forms import U64, Bytes32, Form
from quipu.p2p.refusals import Cause, refuse

KEPT_VERSION = 1


class KeptPeer(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    node_id: Bytes32
    endpoint: SignedEndpoint | None
    start: U64  # the newest of a verified HELLO; 0: none
    floor_start: U64
    floor_number: U64


class Kept(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    version: int
    start: U64  # of this node: the next one is greater, even if the clock went back
    peers: Annotated[list[KeptPeer], msgspec.Meta(max_length=limits.PEERS_MAX)]


_form = Form(Kept, limits.KEPT_BYTES_MAX)


def encode_kept(kept: Kept) -> bytes:
    return encode(kept)


def decode_kept(data: bytes) -> Kept:
    kept = _form.decode(data)
    if kept.version != KEPT_VERSION:
        refuse(Cause.UNSUPPORTED_VERSION, f"version {kept.version} of what was kept")
    return kept
