"""The items of log entries that state machines read: arrays whose first field is their kind.

Bytes that are no item are one all the same, of no kind: every node passes them over alike. Kind 1
is New Serializer Set, which the log itself reads.
"""

from typing import Annotated

import msgspec

from quipu.ledger import limits
from quipu.ledger.canonical import Canonical, encode
from quipu.ledger.event import U64, Bytes32
from quipu.ledger.messages import Number32
from quipu.ledger.refusals import Refused

Name = Annotated[
    str,
    msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9._-]*\Z", max_length=limits.SEQUENCE_NAME_BYTES_MAX),
]
Count = Annotated[int, msgspec.Meta(ge=1, le=limits.SEQUENCE_LOCK_MAX)]


class EventReference(
    msgspec.Struct, array_like=True, frozen=True, tag=2, forbid_unknown_fields=True
):
    """Seed 001's cluster journal entry (data), with the id: one content for one position."""

    node_no: Number32
    journal: U64
    seq: U64
    id: Bytes32


class Lock(msgspec.Struct, array_like=True, frozen=True, tag=3, forbid_unknown_fields=True):
    """The next `count` numbers for this node. `over`: the token of the lock that it takes over,
    whose holder the proposer holds for gone; 0: the sequence is believed to be free."""

    name: Name
    holder: Number32
    count: Count
    over: U64


class Publish(msgspec.Struct, array_like=True, frozen=True, tag=4, forbid_unknown_fields=True):
    """The payload's digest is at this number, says the holder of the lock with this token."""

    name: Name
    holder: Number32
    token: U64
    number: U64
    digest: Bytes32


class LockAndPublish(
    msgspec.Struct, array_like=True, frozen=True, tag=5, forbid_unknown_fields=True
):
    """One number, if the sequence is free."""

    name: Name
    holder: Number32
    digest: Bytes32


class Release(msgspec.Struct, array_like=True, frozen=True, tag=6, forbid_unknown_fields=True):
    name: Name
    holder: Number32
    token: U64


SequenceItem = Lock | Publish | LockAndPublish | Release
OrderItem = EventReference | SequenceItem

_codec: Canonical[OrderItem] = Canonical(OrderItem, limits.ORDER_ITEM_BYTES_MAX)  # type: ignore[arg-type]


def encode_item(item: OrderItem) -> bytes:
    return encode(item)


def read_item(data: bytes) -> OrderItem | None:
    """None for what no state machine here reads."""
    try:
        return _codec.decode(data)
    except Refused:
        return None
