"""The items of log entries that speak of clients (seed 001's config stream), and READ.

An access list is named by the full id of its entry: regime, index, number in it. What its bytes
mean the executors know; to the order they are bytes.
"""

from enum import IntEnum
from typing import Annotated

import msgspec

from quipu.ledger import limits, signing
from quipu.ledger.canonical import Canonical, encode
from quipu.ledger.entry import U32
from quipu.ledger.event import U64
from quipu.ledger.log.words import Index, Regime
from quipu.ledger.refusals import Refused

AclId = Annotated[
    bytes, msgspec.Meta(min_length=limits.ACL_ID_BYTES, max_length=limits.ACL_ID_BYTES)
]


class SigType(IntEnum):
    """How a client signs."""

    ED25519 = 1


class AccessList(msgspec.Struct, array_like=True, frozen=True, tag=32, forbid_unknown_fields=True):
    """What clients that name it may do."""

    rules: Annotated[bytes, msgspec.Meta(max_length=limits.ACCESS_LIST_BYTES_MAX)]


class AddClient(msgspec.Struct, array_like=True, frozen=True, tag=33, forbid_unknown_fields=True):
    """Its id is given when this is applied: the next one, never used before."""

    acl: AclId
    sig_type: Annotated[int, msgspec.Meta(ge=0, le=255)]
    public: Annotated[bytes, msgspec.Meta(max_length=limits.CLIENT_KEY_BYTES_MAX)]


class RemoveClient(
    msgspec.Struct, array_like=True, frozen=True, tag=34, forbid_unknown_fields=True
):
    client_id: U32


class ChangeRights(
    msgspec.Struct, array_like=True, frozen=True, tag=39, forbid_unknown_fields=True
):
    """Another access list for a client that there is, from here on. Its number, its ids and its
    results stay: the seed's remove and add would give it another number."""

    client_id: U32
    acl: AclId


class ReadResults(msgspec.Struct, array_like=True, frozen=True, tag=35, forbid_unknown_fields=True):
    """READ(upto, have), as the client signed it: it holds the results up to `have`."""

    client_id: U32
    upto: U64
    have: U64
    signature: Annotated[bytes, msgspec.Meta(max_length=limits.ENTRY_SIGNATURE_BYTES_MAX)]


ClientItem = AccessList | AddClient | RemoveClient | ChangeRights | ReadResults

_codec: Canonical[ClientItem] = Canonical(ClientItem, limits.CLIENT_ITEM_BYTES_MAX)  # type: ignore[arg-type]


def encode_client_item(item: ClientItem) -> bytes:
    return encode(item)


def read_client_item(data: bytes) -> ClientItem | None:
    """None for what is not of clients."""
    try:
        return _codec.decode(data)
    except Refused:
        return None


def acl_id(regime: Regime, index: Index, number: int) -> bytes:
    """Seed 001's full cluster entry id, in 15 bytes."""
    return regime.to_bytes(4, "big") + index.to_bytes(8, "big") + number.to_bytes(3, "big")


def signed_read(cluster_id: bytes, client_id: int, upto: int, have: int) -> bytes:
    """What the signature of a READ is over."""
    return signing.TAG_SIG_RESULTS + encode([cluster_id, client_id, upto, have])
