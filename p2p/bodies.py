"""What stands in the body of a gossip message, one form for each kind that has one.

The body of LEAVING is empty; those of POOL, LEDGER, LOG and GENESIS are bytes that only their users
look into.
"""

from typing import Annotated

import msgspec

from quipu.ledger.canonical import encode
from quipu.ledger.limits import NAME_BYTES_MAX
from quipu.p2p import limits
from quipu.p2p.addresses import SignedEndpoint
from quipu.p2p.forms import U8, U64, Bytes16, Bytes32, Form, is_text
from quipu.p2p.refusals import Cause, refuse


class Discovered(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """A node tells of itself, to the first one it meets."""

    endpoint: SignedEndpoint
    name: str


class Joined(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """The sender met a node that was not in its live view."""

    endpoint: SignedEndpoint
    start: U64


class Lost(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """The sender has not heard that start of a node for so long."""

    node_id: Bytes32
    start: U64
    silent_ms: U64


class HealthQuery(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """Who has heard of that node? The id of the message is the id of the query."""

    node_id: Bytes32


class HealthAnswer(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    query: Bytes16
    node_id: Bytes32
    start: U64  # of the node in question, as the sender knows it; 0: not at all
    heard_ms_ago: U64 | None  # None: never; 0 in the node's own answer


class Query(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """The id of the message is the id of the query."""

    question: str
    argument: Annotated[bytes, msgspec.Meta(max_length=limits.ARGUMENT_BYTES_MAX)]


class Answer(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    query: Bytes16
    answer: Annotated[bytes, msgspec.Meta(max_length=limits.ANSWER_BYTES_MAX)]


class Ack(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """That message has arrived; and, if the sender says so, where it can be reached."""

    message: Bytes16
    endpoint: SignedEndpoint | None


class Addresses(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """Other nodes, each by what it signed itself."""

    endpoints: Annotated[list[SignedEndpoint], msgspec.Meta(max_length=limits.ADDRESSES_MAX)]


class Unsupported(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """That message was not understood: its kind, or its version."""

    message: Bytes16
    kind: U8
    version: U8


class VersionMismatch(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """What the sender speaks; the link ends here."""

    protocol_min: U8
    protocol_max: U8
    version: str  # of the program, for people


class CastKey(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """What the sender multicasts from now on is sealed under this key."""

    key: Bytes32
    number: U64  # of the last frame before


class CastReport(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """How far the receiver's multicast has come, and what of it is to be sent over the link."""

    stream: Annotated[bytes, msgspec.Meta(min_length=8, max_length=8)]
    settled: U64  # all up to this number came, or was asked for
    missing: Annotated[list[U64], msgspec.Meta(max_length=limits.CAST_ASKED_MAX)]


Body = (
    Discovered
    | Joined
    | Lost
    | HealthQuery
    | HealthAnswer
    | Query
    | Answer
    | Ack
    | Addresses
    | Unsupported
    | VersionMismatch
    | CastKey
    | CastReport
)

_FORMS: dict[type[Body], Form[Body]] = {
    kind: Form(kind, limits.BODY_BYTES_MAX)
    for kind in (
        Discovered,
        Joined,
        Lost,
        HealthQuery,
        HealthAnswer,
        Query,
        Answer,
        Ack,
        Addresses,
        Unsupported,
        VersionMismatch,
        CastKey,
        CastReport,
    )
}


def encode_body(body: Body) -> bytes:
    return encode(body)


def decode_body(kind: type[Body], data: bytes) -> Body:
    """Signatures inside are not looked at."""
    body = _FORMS[kind].decode(data)
    match body:
        case Discovered(name=text):
            bytes_max = NAME_BYTES_MAX
        case Query(question=text):
            bytes_max = limits.QUESTION_BYTES_MAX
        case VersionMismatch(version=text):
            bytes_max = limits.VERSION_TEXT_BYTES_MAX
        case _:
            return body
    if not is_text(text, bytes_max):
        refuse(Cause.BAD_TEXT, f"not 1 to {bytes_max} bytes without control characters")
    return body
