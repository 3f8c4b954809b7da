"""A log entry: what stands at one index (seed 001: a cluster journal message).

It keeps for ever the regime in which it was first proposed. Its items are bytes to the log, all
but the one that names serializers. The running digest at an index covers all entries up to it.
"""

from typing import Annotated

import msgspec

from quipu.ledger import limits, signing
from quipu.ledger.canonical import Canonical, encode
from quipu.ledger.event import U64
from quipu.ledger.log.words import Index, Place, Regime
from quipu.ledger.messages import Number32
from quipu.ledger.refusals import Reason, refuse
from quipu.ledger.words import NodeNo

LOG_VERSION = 1


class LogEntry(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    version: U64
    regime: Number32
    index: U64
    master_no: Number32  # who proposed it
    final: bool  # the last one that this master writes in this regime
    items: Annotated[list[bytes], msgspec.Meta(max_length=limits.LOG_ITEMS_MAX)]

    @property
    def place(self) -> Place:
        return Place(Regime(self.regime), Index(self.index))


_codec = Canonical(LogEntry, limits.LOG_ENTRY_BYTES_MAX)


def decode_log_entry(data: bytes) -> LogEntry:
    entry = _codec.decode(data)
    if entry.version != LOG_VERSION:
        refuse(Reason.UNKNOWN_VERSION, f"log entry version {entry.version}")
    if entry.index < 1:
        refuse(Reason.BAD_INDEX, "index 0")
    return entry


def encode_log_entry(
    place: Place, master_no: NodeNo, items: list[bytes], final: bool = False
) -> bytes:
    return encode(LogEntry(LOG_VERSION, place.regime, place.index, master_no, final, items))


def first_digest(cluster_id: bytes) -> bytes:
    """Before index 1."""
    return signing.tagged_hash(signing.TAG_LOG, cluster_id)


def next_digest(digest: bytes, data: bytes) -> bytes:
    return signing.tagged_hash(signing.TAG_LOG, digest + data)
