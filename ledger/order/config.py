"""The config stream (seed 001): which nodes are executor, ingest and config nodes, and the one
change that is in flight.

A pure function of the order. It knows no roster and no clock: who asks looks whether the node is a
member, the master when a node is near enough. A stage that does not follow changes nothing.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

import msgspec

from quipu.ledger import limits
from quipu.ledger.canonical import Canonical, encode
from quipu.ledger.event import U64
from quipu.ledger.log.serializers import SerializerSet, Stage
from quipu.ledger.log.words import NO_INDEX, Index
from quipu.ledger.messages import Number32
from quipu.ledger.order.config_items import (
    FIRST_STAGES,
    LAST_STAGES,
    ConfigChange,
    ConfigKind,
    ConfigRefusal,
    ConfigStage,
)
from quipu.ledger.refusals import Reason, refuse
from quipu.ledger.words import NodeNo

RECORD_VERSION = 1


class NodeRole(StrEnum):
    INGEST = "ingest"
    EXECUTOR = "executor"
    CONFIG = "config"


ROLES: dict[ConfigKind, NodeRole] = {
    ConfigKind.ADD_EXECUTOR: NodeRole.EXECUTOR,
    ConfigKind.REMOVE_EXECUTOR: NodeRole.EXECUTOR,
    ConfigKind.ADD_INGEST: NodeRole.INGEST,
    ConfigKind.REMOVE_INGEST: NodeRole.INGEST,
    ConfigKind.ADD_CONFIG: NodeRole.CONFIG,
    ConfigKind.REMOVE_CONFIG: NodeRole.CONFIG,
}
ADDING = (ConfigKind.ADD_EXECUTOR, ConfigKind.ADD_INGEST, ConfigKind.ADD_CONFIG)
# Without these nobody could write, ask for a change, or have what executors begin from.
NEEDED = (ConfigKind.REMOVE_INGEST, ConfigKind.REMOVE_CONFIG, ConfigKind.REMOVE_EXECUTOR)
BY_DEFAULT = tuple(NodeRole)  # every member is all of these until it is removed


@dataclass(frozen=True, slots=True)
class ChangeState:
    """A change, and how far it is. `index`: of its first entry; it names the change."""

    index: Index
    kind: ConfigKind
    nodes: tuple[NodeNo, ...]
    stage: str  # the word of the newest stage
    moved: Index = NO_INDEX  # of the entry with that stage
    refusal: ConfigRefusal | None = None

    @property
    def ended(self) -> bool:
        return self.stage in ENDS


ENDS = frozenset({"live", "drop", "implemented", "confirm", "refuse"})
_SET_STAGES = {
    Stage.NOMINATE: "nominate",
    Stage.IMPLEMENT: "implement",
    Stage.CONFIRM: "confirm",
    Stage.FORCED: "confirm",
}


@dataclass(frozen=True, slots=True)
class Configured:
    """What an item came to: the change as it is after it."""

    change: ChangeState


ConfigOutcome = Configured | ConfigRefusal


class ChangeRow(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    index: U64
    kind: ConfigKind
    nodes: list[Number32]
    stage: str
    moved: U64
    refusal: str


Deviants = Annotated[list[tuple[Number32, str, bool]], msgspec.Meta(max_length=limits.ROLES_MAX)]


class ConfigRecord(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """The state that goes with a base: only what is not as it was in the beginning."""

    version: U64
    deviants: Deviants  # node, role, whether it has it
    newest: ChangeRow | None


_record: Canonical[ConfigRecord] = Canonical(ConfigRecord, limits.LOG_STATE_BYTES_MAX)


@dataclass(slots=True)
class ConfigStream:
    """Invariant: `newest` is the change in flight, or the last one that ended."""

    newest: ChangeState | None = None
    _deviants: dict[tuple[NodeNo, NodeRole], bool] = field(default_factory=dict)

    @classmethod
    def of(cls, record: bytes) -> "ConfigStream":
        """Empty: nothing was ever changed."""
        found = cls()
        if not record:
            return found
        read = _record.decode(record)
        if read.version != RECORD_VERSION:
            refuse(Reason.UNKNOWN_VERSION, f"config record version {read.version}")
        try:
            for number, role, has in read.deviants:
                found._deviants[NodeNo(number), NodeRole(role)] = has
            if read.newest is not None:
                found.newest = _change_of(read.newest)
        except ValueError as error:
            refuse(Reason.MALFORMED, str(error))
        return found

    def record(self) -> bytes:
        if self.newest is None:
            return b""
        rows = [(int(n), str(role), has) for (n, role), has in sorted(self._deviants.items())]
        return encode(ConfigRecord(RECORD_VERSION, rows, _row_of(self.newest)))

    # --- reading --------------------------------------------------------------------------------
    @property
    def in_flight(self) -> ChangeState | None:
        return None if self.newest is None or self.newest.ended else self.newest

    def has(self, node: NodeNo, role: NodeRole) -> bool:
        return self._deviants.get((node, role), role in BY_DEFAULT)

    def takes_entries(self, node: NodeNo) -> bool:
        """Whether it is an ingest node that is not blocked."""
        change = self.in_flight
        if change is not None and change.kind is ConfigKind.REMOVE_INGEST:
            return self.has(node, NodeRole.INGEST) and change.nodes != (node,)
        return self.has(node, NodeRole.INGEST)

    def executes(self, node: NodeNo) -> bool:
        """Whether it is an executor node, or catches up to become one."""
        change = self.in_flight
        if change is not None and change.kind is ConfigKind.ADD_EXECUTOR:
            return change.nodes == (node,) or self.has(node, NodeRole.EXECUTOR)
        return self.has(node, NodeRole.EXECUTOR)

    # --- what the log says ----------------------------------------------------------------------
    def refusal(
        self, item: ConfigChange, members: tuple[NodeNo, ...], voters: tuple[NodeNo, ...]
    ) -> ConfigRefusal | None:
        """Why it would come to nothing now. Whether a role is left without a node only who knows
        the roster can say."""
        if self.in_flight is not None:
            return ConfigRefusal.IN_FLIGHT
        if item.kind is ConfigKind.SERIALIZERS:
            return ConfigRefusal.ALREADY_SO if tuple(item.nodes) == voters else None
        role, node = ROLES[item.kind], NodeNo(item.nodes[0])
        if self.has(node, role) == (item.kind in ADDING):
            return ConfigRefusal.ALREADY_SO
        others = [n for n in members if n != node and self.has(n, role)]
        return ConfigRefusal.LAST_NODE if item.kind in NEEDED and not others else None

    def apply(self, item: ConfigChange, index: Index) -> ConfigOutcome:
        if item.stage is FIRST_STAGES[item.kind]:
            return self._begin(item, index)
        change = self.in_flight
        follows = (
            change is not None
            and (change.kind, list(change.nodes)) == (item.kind, item.nodes)
            and item.stage in (LAST_STAGES.get(FIRST_STAGES[item.kind]), ConfigStage.REFUSE)
        )
        if not follows or change is None:
            return ConfigRefusal.WRONG_STAGE
        if item.stage is ConfigStage.REFUSE:
            return self._move(change, "refuse", index, ConfigRefusal.NOT_CAUGHT_UP)
        self._give(item)
        return self._move(change, item.stage.name.lower(), index)

    def _begin(self, item: ConfigChange, index: Index) -> ConfigOutcome:
        if self.in_flight is not None:
            return ConfigRefusal.IN_FLIGHT
        nodes = tuple(NodeNo(number) for number in item.nodes)
        if item.kind is not ConfigKind.SERIALIZERS:
            has = self.has(nodes[0], ROLES[item.kind])
            if has == (item.kind in ADDING):
                return ConfigRefusal.ALREADY_SO
            if len(self._deviants) >= limits.ROLES_MAX:
                return ConfigRefusal.WRONG_STAGE
        change = ChangeState(index, item.kind, nodes, item.stage.name.lower(), index)
        if item.stage is not ConfigStage.IMPLEMENT:
            self.newest = change
            return Configured(change)
        self._give(item)
        return self._move(change, "implemented", index)

    def set_moved(self, item: SerializerSet, index: Index) -> Configured | None:
        """A stage of New Serializer Set, of the change that was wished for."""
        change = self.in_flight
        if change is None or change.kind is not ConfigKind.SERIALIZERS:
            return None
        if list(change.nodes) != item.nodes:
            return None
        if item.stage is not Stage.REFUSE:
            return self._move(change, _SET_STAGES[item.stage], index)
        # One that was nominated was timed out; one that never was is the present set.
        late = change.stage != "wish"
        why = ConfigRefusal.NOT_CAUGHT_UP if late else ConfigRefusal.ALREADY_SO
        return self._move(change, "refuse", index, why)

    def _give(self, item: ConfigChange) -> None:
        name, has = (NodeNo(item.nodes[0]), ROLES[item.kind]), item.kind in ADDING
        self._deviants.pop(name, None)
        if has != (name[1] in BY_DEFAULT):
            self._deviants[name] = has

    def _move(
        self, change: ChangeState, stage: str, index: Index, why: ConfigRefusal | None = None
    ) -> Configured:
        moved = ChangeState(change.index, change.kind, change.nodes, stage, index, why)
        self.newest = moved
        return Configured(moved)


def _row_of(change: ChangeState) -> ChangeRow:
    nodes = [int(node) for node in change.nodes]
    why = change.refusal or ""
    return ChangeRow(change.index, change.kind, nodes, change.stage, change.moved, str(why))


def _change_of(row: ChangeRow) -> ChangeState:
    """Raises `ValueError`."""
    why = ConfigRefusal(row.refusal) if row.refusal else None
    nodes = tuple(NodeNo(number) for number in row.nodes)
    return ChangeState(Index(row.index), row.kind, nodes, row.stage, Index(row.moved), why)
