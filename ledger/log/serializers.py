"""The New Serializer Set item, and who votes at each index of a log (seed 001).

A node goes by the newest Implement or Confirm in its own log, chosen or not. From Implement to
Confirm, both included, entries need both majorities.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated

import msgspec

from quipu.ledger import limits
from quipu.ledger.canonical import Canonical, encode
from quipu.ledger.log.entry import LogEntry
from quipu.ledger.log.quorum import Voters
from quipu.ledger.log.words import Index
from quipu.ledger.messages import Number32
from quipu.ledger.refusals import Refused
from quipu.ledger.words import NodeNo

SET_ITEM = 1
ITEM_HEAD = bytes([0x93, SET_ITEM])  # an array of three that begins with its kind


class Stage(IntEnum):
    NOMINATE = 1
    REFUSE = 2
    IMPLEMENT = 3
    CONFIRM = 4
    FORCED = 5  # by an operator's word: the others are lost for ever


class SerializerSet(
    msgspec.Struct,
    array_like=True,
    frozen=True,
    tag=SET_ITEM,
    forbid_unknown_fields=True,
):
    stage: Stage
    nodes: Annotated[
        list[Number32], msgspec.Meta(min_length=1, max_length=limits.SERIALIZERS_MAX)
    ]  # sorted


_codec = Canonical(SerializerSet, limits.LOG_STATEMENT_BYTES_MAX)


@dataclass(frozen=True, slots=True)
class Change:
    index: Index
    stage: Stage
    nodes: tuple[NodeNo, ...]


def encode_set(stage: Stage, nodes: tuple[NodeNo, ...]) -> bytes:
    return encode(SerializerSet(stage, list(nodes)))


def read_set(data: bytes) -> SerializerSet | None:
    """None for any other item."""
    if not data.startswith(ITEM_HEAD):
        return None
    try:
        return _codec.decode(data)
    except Refused:
        return None


def change_in(entry: LogEntry) -> Change | None:
    """The change that an entry makes. It stands alone in its entry; anything else is no change,
    and is so for every node."""
    found = read_set(entry.items[0]) if len(entry.items) == 1 else None
    if found is None:
        return None
    nodes = tuple(NodeNo(number) for number in found.nodes)
    if list(nodes) != sorted(set(nodes)):
        return None
    return Change(Index(entry.index), found.stage, nodes)


def forced_in(entry: LogEntry) -> tuple[NodeNo, ...]:
    """Who alone votes from here on, and on all that is not chosen below; none in any other."""
    change = change_in(entry)
    return change.nodes if change is not None and change.stage is Stage.FORCED else ()


def voters_after(before: Voters, change: Change) -> Voters:
    """Confirm without its Implement changes nothing: no honest master writes one."""
    if change.stage is Stage.IMPLEMENT and before.new is None:
        return Voters(before.old, change.nodes)
    if change.stage is Stage.CONFIRM and before.new == change.nodes:
        return Voters(change.nodes)
    return before
