"""The config stream of seed 001 as items of log entries: what shall change, and each of its stages.

Kind 16. The stages of New Serializer Set are items of the log's own (kind 1); here stands only
the wish for one, so that it outlives the master that was asked.
"""

from enum import IntEnum, StrEnum
from typing import Annotated

import msgspec

from quipu.ledger import limits
from quipu.ledger.canonical import Canonical, encode
from quipu.ledger.messages import Number32
from quipu.ledger.refusals import Refused


class ConfigKind(IntEnum):
    SERIALIZERS = 1
    ADD_EXECUTOR = 2
    REMOVE_EXECUTOR = 3
    ADD_INGEST = 4
    REMOVE_INGEST = 5
    ADD_CONFIG = 6
    REMOVE_CONFIG = 7

    @property
    def word(self) -> str:
        return self.name.lower().replace("_", "-")


class ConfigStage(IntEnum):
    WISH = 1  # a New Serializer Set is asked for: Nominate follows
    CATCHUP = 2
    LIVE = 3
    BLOCK = 4
    DROP = 5
    IMPLEMENT = 6
    REFUSE = 7  # of a change that was begun: its node did not get there


class ConfigRefusal(StrEnum):
    """Why a change is not made: the same on every node."""

    IN_FLIGHT = "change-in-flight"
    ALREADY_SO = "already-so"  # the set equals the present one, the node has that role or has not
    NOT_CAUGHT_UP = "not-caught-up"  # the master timed out a node of the change
    LAST_NODE = "last-node"  # nobody would have that role any more
    WRONG_STAGE = "wrong-stage"  # of no change that is in flight: no honest master writes it


FIRST_STAGES: dict[ConfigKind, ConfigStage] = {
    ConfigKind.SERIALIZERS: ConfigStage.WISH,
    ConfigKind.ADD_EXECUTOR: ConfigStage.CATCHUP,
    ConfigKind.REMOVE_EXECUTOR: ConfigStage.IMPLEMENT,
    ConfigKind.ADD_INGEST: ConfigStage.CATCHUP,
    ConfigKind.REMOVE_INGEST: ConfigStage.BLOCK,
    ConfigKind.ADD_CONFIG: ConfigStage.CATCHUP,
    ConfigKind.REMOVE_CONFIG: ConfigStage.IMPLEMENT,
}
LAST_STAGES: dict[ConfigStage, ConfigStage] = {
    ConfigStage.CATCHUP: ConfigStage.LIVE,
    ConfigStage.BLOCK: ConfigStage.DROP,
}


class ConfigChange(
    msgspec.Struct, array_like=True, frozen=True, tag=16, forbid_unknown_fields=True
):
    """One node, or the serializers that shall be, sorted."""

    kind: ConfigKind
    stage: ConfigStage
    nodes: Annotated[list[Number32], msgspec.Meta(min_length=1, max_length=limits.SERIALIZERS_MAX)]


_codec: Canonical[ConfigChange] = Canonical(ConfigChange, limits.ORDER_ITEM_BYTES_MAX)
_HEAD = bytes([0x94, 16])  # an array of four that begins with its kind


def encode_change(kind: ConfigKind, stage: ConfigStage, nodes: tuple[int, ...]) -> bytes:
    return encode(ConfigChange(kind, stage, list(nodes)))


def read_config(data: bytes) -> ConfigChange | None:
    """None for any other item, and for one that no honest node writes."""
    if not data.startswith(_HEAD):
        return None
    try:
        found = _codec.decode(data)
    except Refused:
        return None
    is_sorted = found.nodes == sorted(set(found.nodes))
    is_single = len(found.nodes) == 1 or found.kind is ConfigKind.SERIALIZERS
    return found if is_sorted and is_single else None
