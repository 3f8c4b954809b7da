"""Messages of the log between nodes. Each is an array whose first field is its kind.

The link proves who sent it; what others must be able to check later is signed inside.
"""

from typing import Annotated

import msgspec

from quipu.ledger import limits
from quipu.ledger.canonical import Canonical, encode
from quipu.ledger.event import U64, Bytes32
from quipu.ledger.log.statements import U32
from quipu.ledger.messages import Number32
from quipu.ledger.refusals import Reason, Refused, refuse

Items = Annotated[list[bytes], msgspec.Meta(max_length=limits.LOG_ITEMS_MAX)]
Statements = Annotated[list[bytes], msgspec.Meta(max_length=limits.LOG_STATEMENTS_MAX)]
Entries = Annotated[list[bytes], msgspec.Meta(max_length=limits.LOG_PROMISE_ENTRIES_MAX)]


class PreVote(msgspec.Struct, array_like=True, frozen=True, tag=1, forbid_unknown_fields=True):
    """Would you promise me this regime? It binds nobody."""

    regime: Number32
    chosen: U64


class PreVoteAnswer(
    msgspec.Struct, array_like=True, frozen=True, tag=2, forbid_unknown_fields=True
):
    regime: Number32  # the one asked for
    granted: bool
    promised: U32


class Prepare(msgspec.Struct, array_like=True, frozen=True, tag=3, forbid_unknown_fields=True):
    """Covers all indexes above the chosen one."""

    regime: Number32
    chosen: U64


class PromiseMessage(
    msgspec.Struct, array_like=True, frozen=True, tag=4, forbid_unknown_fields=True
):
    promise: bytes
    entries: Entries  # the voter's log above the base that the promise names


class PrepareRefused(
    msgspec.Struct, array_like=True, frozen=True, tag=5, forbid_unknown_fields=True
):
    regime: Number32
    promised: U32


class Accept(msgspec.Struct, array_like=True, frozen=True, tag=6, forbid_unknown_fields=True):
    """From a master: entries that follow this digest; none is a heartbeat."""

    regime: Number32
    round: U64
    prev_index: U64
    prev_digest: Bytes32
    entries: Entries
    certificate: Statements  # newest ACCEPTED of the voters: who counts them knows what is chosen
    promises: Statements  # what made the sender master; until the receiver has answered


class AcceptedMessage(
    msgspec.Struct, array_like=True, frozen=True, tag=7, forbid_unknown_fields=True
):
    regime: Number32
    round: U64
    index: U64  # the log is equal to the master's up to here
    chosen: U64  # and up to here this node knows it to be chosen
    statement: bytes | None  # None: of a node that does not vote
    awaited: bool  # somebody there waits for what is to be ordered


class AcceptRefused(
    msgspec.Struct, array_like=True, frozen=True, tag=8, forbid_unknown_fields=True
):
    regime: Number32
    round: U64
    promised: U32
    resume: U64  # up to here the log is equal for sure: chosen, or accepted in this regime


class BaseMessage(msgspec.Struct, array_like=True, frozen=True, tag=9, forbid_unknown_fields=True):
    """For a node whose log ends below the sender's base."""

    regime: Number32
    round: U64
    base: bytes
    state: bytes  # what the entries up to the base have led to


class RecoveryAsk(msgspec.Struct, array_like=True, frozen=True, tag=10, forbid_unknown_fields=True):
    life: U64


class RecoveryAnswer(
    msgspec.Struct, array_like=True, frozen=True, tag=11, forbid_unknown_fields=True
):
    life: U64  # of the node that asked: it is noted durably
    regime: U32  # promised
    is_master: bool  # of that regime
    last: U64
    recovering: bool


class ReadAsk(msgspec.Struct, array_like=True, frozen=True, tag=12, forbid_unknown_fields=True):
    ticket: U64


class ReadAnswer(msgspec.Struct, array_like=True, frozen=True, tag=13, forbid_unknown_fields=True):
    ticket: U64
    index: U64 | None  # None: not master, or no majority


class Propose(msgspec.Struct, array_like=True, frozen=True, tag=14, forbid_unknown_fields=True):
    """Taken once, by the master of this regime alone: a copy that comes late is not written."""

    ticket: U64
    regime: Number32
    items: Items


class ProposeAnswer(
    msgspec.Struct, array_like=True, frozen=True, tag=15, forbid_unknown_fields=True
):
    """Where the items stand, if they come to be chosen; regime 0: they were not taken."""

    ticket: U64
    regime: U32
    index: U64
    number: U32  # of the first item in its entry


class HandOver(msgspec.Struct, array_like=True, frozen=True, tag=16, forbid_unknown_fields=True):
    """Take the next regime."""

    regime: Number32


class LogEvidence(msgspec.Struct, array_like=True, frozen=True, tag=17, forbid_unknown_fields=True):
    proof: bytes


LogMessage = (
    PreVote
    | PreVoteAnswer
    | Prepare
    | PromiseMessage
    | PrepareRefused
    | Accept
    | AcceptedMessage
    | AcceptRefused
    | BaseMessage
    | RecoveryAsk
    | RecoveryAnswer
    | ReadAsk
    | ReadAnswer
    | Propose
    | ProposeAnswer
    | HandOver
    | LogEvidence
)

_codec: Canonical[LogMessage] = Canonical(LogMessage, limits.MESSAGE_BYTES_MAX)  # type: ignore[arg-type]


def encode_log_message(message: LogMessage) -> bytes:
    return encode(message)


def decode_log_message(data: bytes) -> LogMessage:
    try:
        return _codec.decode(data)
    except Refused as refusal:
        if refusal.reason is Reason.MALFORMED and "Invalid value" in refusal.detail:
            refuse(Reason.UNKNOWN_KIND, refusal.detail)
        raise
