"""What a master does for the change of the config stream that is in flight (seed 001): it leads it
from stage to stage, or ends it where its node does not get there.

Everything that counts stands in the log. A new master takes over where the log says the change is;
what it remembers here is only since when it has known so.
"""

from collections.abc import Callable
from dataclasses import dataclass

from quipu.ledger import limits as ledger_limits
from quipu.ledger.log.inputs import ItemsProposed, LogInput, SerializersProposed
from quipu.ledger.log.machine import LogMachine
from quipu.ledger.log.roles import Role
from quipu.ledger.log.words import NO_INDEX, Index, LogTicket
from quipu.ledger.order.config import ChangeState, ConfigStream
from quipu.ledger.order.config_items import (
    FIRST_STAGES,
    LAST_STAGES,
    ConfigKind,
    ConfigStage,
    encode_change,
)
from quipu.ledger.words import NodeNo, Now
from quipu.node import limits


@dataclass(slots=True)
class Configuring:
    """`is_behind`: whether anything of that node is Read, or held Unread, and not ordered."""

    is_behind: Callable[[NodeNo], bool]
    _stage: Index = NO_INDEX  # the entry of the newest stage
    _since_ms: int = 0  # this node has known it, as master
    _asked_ms: int | None = None  # the next stage was proposed
    _idle_ms: int | None = None  # since when nothing of the blocked node has been behind

    def next_deadline(self, machine: LogMachine, config: ConfigStream, now: Now) -> int | None:
        leads = machine.state.role is Role.MASTER and config.in_flight is not None
        return now.monotonic_ms + limits.CONFIG_LOOK_MS if leads else None

    def step(
        self,
        machine: LogMachine,
        config: ConfigStream,
        ticket: Callable[[], LogTicket],
        now: Now,
    ) -> list[LogInput]:
        change = config.in_flight
        if change is None or machine.state.role is not Role.MASTER:
            self._stage = NO_INDEX
            return []
        now_ms = now.monotonic_ms
        if self._stage != change.moved:
            self._stage, self._since_ms = change.moved, now_ms
            self._asked_ms = self._idle_ms = None
        if self._asked_ms is not None and now_ms < self._asked_ms + limits.CONFIG_AGAIN_MS:
            return []
        wanted = self._wanted(change, machine, ticket, now_ms)
        if wanted is None:
            return []
        self._asked_ms = now_ms
        return [wanted]

    def _wanted(
        self, change: ChangeState, machine: LogMachine, ticket: Callable[[], LogTicket], now_ms: int
    ) -> LogInput | None:
        late = now_ms >= self._since_ms + ledger_limits.LOG_CATCH_UP_MS
        if change.kind is ConfigKind.SERIALIZERS:
            newest = machine.state.log.newest_change
            if change.stage != "wish" or (newest is not None and newest.index > change.index):
                return None  # the log itself leads it
            if not late:
                return SerializersProposed(ticket(), change.nodes)
            return _item(change, ConfigStage.REFUSE, ticket())
        first = FIRST_STAGES[change.kind]
        if first is ConfigStage.CATCHUP:
            if self._is_near(change, machine, now_ms):
                return _item(change, LAST_STAGES[first], ticket())
            return _item(change, ConfigStage.REFUSE, ticket()) if late else None
        # Block: who is dead for good is let go as well, for that is why it is removed.
        is_over = late or self._is_at_rest(change, machine, now_ms)
        return _item(change, LAST_STAGES[first], ticket()) if is_over else None

    def _is_near(self, change: ChangeState, machine: LogMachine, now_ms: int) -> bool:
        node, state = change.nodes[0], machine.state
        if node == state.own_no:
            return True
        standing = machine.standing_of(node, now_ms)
        near = state.log.last_index - ledger_limits.LOG_CATCH_UP_ENTRIES
        return standing is not None and standing.match >= near

    def _is_at_rest(self, change: ChangeState, machine: LogMachine, now_ms: int) -> bool:
        """It knows that it is blocked, and all that it took before has come and is ordered."""
        node = change.nodes[0]
        standing = machine.standing_of(node, now_ms)
        knows = node == machine.state.own_no or (
            standing is not None and standing.chosen >= change.moved
        )
        if not knows or self.is_behind(node):
            self._idle_ms = None
            return False
        if self._idle_ms is None:
            self._idle_ms = now_ms
        return now_ms >= self._idle_ms + limits.CONFIG_REST_MS


def _item(change: ChangeState, stage: ConfigStage, ticket: LogTicket) -> ItemsProposed:
    return ItemsProposed(ticket, (encode_change(change.kind, stage, change.nodes),))
