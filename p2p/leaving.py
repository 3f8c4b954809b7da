"""The form of "I leave" (seed 004), which is the same in every version, for ever.

A node of any version must understand that another one has left. So this codec stands alone: it
shares no type with the other messages, and nothing here may change. The vectors hold its bytes.
"""

from typing import Annotated, Literal

import msgspec

from quipu.ledger.canonical import encode
from quipu.p2p import limits
from quipu.p2p.forms import U8, U64, Bytes16, Bytes32, Form, Signature

TAG_LEAVING = b"quipu/sig/leaving/1\0"
LEAVING_KIND = 4
REMOVE = 2  # the expected action: take the sender off the list of the living


class Leaving(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    version: U8  # of its sender; any
    id: Bytes16
    kind: Literal[4]
    sender: Bytes32
    target: None  # all
    action: Literal[2]
    hlc: U64
    hop_limit: U8
    body: Annotated[bytes, msgspec.Meta(max_length=0)]
    signature: Signature


_form = Form(Leaving, limits.LEAVING_BYTES_MAX)


def decode_leaving(data: bytes) -> Leaving:
    return _form.decode(data)


def leaving_part(version: int, identity: bytes, sender: bytes, hlc: int) -> bytes:
    """What its sender signs, behind tag and cluster id: all but the hop limit."""
    return encode([version, identity, LEAVING_KIND, sender, None, REMOVE, hlc, b""])
