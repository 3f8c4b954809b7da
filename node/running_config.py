"""What `Config` promises, on the journal of the node."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from quipu.ledger.log.words import Index
from quipu.ledger.order.config import ChangeState, Configured, NodeRole
from quipu.ledger.order.config_items import (
    FIRST_STAGES,
    ConfigChange,
    ConfigKind,
    ConfigRefusal,
    encode_change,
)
from quipu.ledger.order.journal import Applied, Done
from quipu.ledger.words import NodeNo
from quipu.node import limits
from quipu.node.config_service import (
    ConfigRefused,
    ConfigState,
    NodeRoles,
    NotConfigNode,
    UnknownNode,
)
from quipu.node.machine import Machine
from quipu.node.service import Overloaded

Ordered = Callable[[bytes], Awaitable[tuple[tuple[int, int], Done]]]


@dataclass(slots=True)
class RunningConfig:
    """Invariant: a future waits until its change has ended, or its caller has gone."""

    machine: Machine
    ordered: Ordered  # gives an item to the order
    _waiting: dict[Index, list[asyncio.Future[ChangeState]]] = field(default_factory=dict)

    # --- reading --------------------------------------------------------------------------------
    def state(self) -> ConfigState:
        config = self.machine.ordering.journal.config
        rows = []
        for number in self._members():
            roles = tuple(role.value for role in NodeRole if config.has(number, role))
            ingests = config.has(number, NodeRole.INGEST)
            rows.append(NodeRoles(number, roles, ingests and not config.takes_entries(number)))
        return ConfigState(config.newest, tuple(rows))

    def takes_entries(self) -> bool:
        """Whether this node is an ingest node; who is no member is refused for that."""
        ordering = self.machine.ordering
        config, own_no = ordering.journal.config, ordering.own_no
        if config.newest is None:  # asked for every entry; mostly nothing was ever changed
            return True
        return own_no not in self._members() or config.takes_entries(own_no)

    def _members(self) -> tuple[NodeNo, ...]:
        return tuple(sorted(self.machine.view.epoch.members))

    # --- changing -------------------------------------------------------------------------------
    async def propose(
        self, kind: ConfigKind, nodes: tuple[NodeNo, ...], timeout_s: float
    ) -> ChangeState:
        members, ordering = self._members(), self.machine.ordering
        config = ordering.journal.config
        if ordering.own_no not in members or not config.has(ordering.own_no, NodeRole.CONFIG):
            raise NotConfigNode("this node is no config node")
        for node in nodes:
            if node not in members:
                raise UnknownNode(str(node))
        if sum(map(len, self._waiting.values())) >= limits.CONFIG_WAITING_MAX:
            raise Overloaded(limits.RETRY_AFTER_S, "too many wait for a change")
        item = ConfigChange(kind, FIRST_STAGES[kind], list(nodes))
        refusal = config.refusal(item, members, ordering.machine.state.log.voters.old)
        if refusal is not None:
            raise ConfigRefused(refusal, kind.word)
        _, outcome = await self.ordered(encode_change(kind, item.stage, nodes))
        if isinstance(outcome, ConfigRefusal):
            raise ConfigRefused(outcome, kind.word)
        assert isinstance(outcome, Configured)
        change = await self._ended(outcome.change, timeout_s)
        if change.refusal is not None:
            raise ConfigRefused(change.refusal, kind.word)
        return change

    async def _ended(self, change: ChangeState, timeout_s: float) -> ChangeState:
        newest = self.machine.ordering.journal.config.newest
        if newest is not None and newest.index == change.index:
            change = newest
        if change.ended:
            return change
        answer: asyncio.Future[ChangeState] = asyncio.get_running_loop().create_future()
        others = self._waiting.setdefault(change.index, [])
        others.append(answer)
        try:
            async with asyncio.timeout(timeout_s):
                return await answer
        except TimeoutError:
            found = self.machine.ordering.journal.config.newest
            return found if found is not None and found.index == change.index else change
        finally:
            others.remove(answer)
            if not others:
                self._waiting.pop(change.index, None)

    def hear(self, applied: Iterable[Applied]) -> None:
        if not self._waiting:
            return
        for one in applied:
            for _, outcome in one.outcomes:
                if isinstance(outcome, Configured) and outcome.change.ended:
                    self._answer(outcome.change)

    def _answer(self, change: ChangeState) -> None:
        for waiting in self._waiting.get(change.index, ()):
            if not waiting.done():
                waiting.set_result(change)

    def fail_all(self, error: Exception) -> None:
        for waiting in [one for many in self._waiting.values() for one in many]:
            if not waiting.done():
                waiting.set_exception(error)
