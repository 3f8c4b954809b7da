"""What the order hands to an executor: requests of clients, their READs, and who they are.

A request is one transaction (seed 001): its messages take effect together or not at all.
"""

import hashlib
from typing import Annotated, NamedTuple, NewType

import msgspec

from quipu.ledger.canonical import Canonical, encode
from quipu.ledger.entry import U32, U64
from quipu.ledger.limits import ENTRY_BYTES_MAX
from quipu.storage.executors import limits

ClientId = NewType("ClientId", int)  # u32, given by the order when the client is added
MessageId = NewType("MessageId", int)  # 1, 2, 3 … for each client
LogIndex = NewType("LogIndex", int)  # place in the cluster log
Digest = NewType("Digest", bytes)  # SHA-256, 32 bytes

Octet = Annotated[int, msgspec.Meta(ge=0, le=255)]
PositiveId = Annotated[int, msgspec.Meta(ge=1, le=limits.INTEGER_MAX)]
Number = Annotated[int, msgspec.Meta(ge=0, le=limits.INTEGER_MAX)]

STATEMENT = 1  # kind of a message: a statement of SQL with its parameters
CHECKPOINT = 2  # kind of a message: a failure further on undoes nothing before it


class Message(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    kind: Octet
    body: bytes


class Request(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True, tag=1):
    client_id: U32
    message_id: PositiveId
    messages: tuple[Message, ...]


class Read(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True, tag=2):
    """The client holds the results up to `have` and asks for those after it, up to `upto`."""

    client_id: U32
    upto: Number
    have: Number


class AddClient(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True, tag=3):
    """Also for a client that is known: it has this access list from now on."""

    client_id: U32
    acl: bytes


class RemoveClient(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True, tag=4):
    client_id: U32


class Signed(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True, tag=5):
    """An entry of a client, as it stands in the ledger: whether it is due is decided here."""

    client_id: U32
    message_id: U64
    data: bytes  # the messages, as canonical bytes
    sig_type: Octet
    signature: bytes


class Configured(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True, tag=6):
    """An item of the order about clients, and its place."""

    regime: U64
    log_index: U64
    number: U64
    item: bytes


Plain = Request | Read | AddClient | RemoveClient
Command = Plain | Signed | Configured


class Ordered(NamedTuple):
    """A command at its place in the log; several may share one index, in their order."""

    at: LogIndex
    command: Command


_messages = Canonical(tuple[Message, ...], ENTRY_BYTES_MAX)


def decode_messages(data: bytes) -> tuple[Message, ...]:
    """The messages of an entry's data: the canonical array of [kind, bytes]."""
    return _messages.decode(data)


def encode_messages(messages: tuple[Message, ...]) -> bytes:
    return encode(messages)


def digest_of(command: Command) -> Digest:
    return Digest(hashlib.sha256(b"quipu command\0" + encode(command)).digest())
