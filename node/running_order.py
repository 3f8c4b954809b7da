"""What `Order` promises, on the machine and the inbox of the node."""

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from quipu.ledger.log.effects import LogSpoken
from quipu.ledger.log.inputs import OrderAwaited, RecoveryForced
from quipu.ledger.log.roles import Role
from quipu.ledger.log.words import LogTicket
from quipu.ledger.order.discovery import NodeState, serves
from quipu.ledger.order.items import Lock, LockAndPublish, Publish, Release, SequenceItem
from quipu.ledger.order.journal import Applied, Done
from quipu.ledger.order.sequences import Granted, Published, SequenceRefusal
from quipu.ledger.words import EventId, NodeNo
from quipu.node import limits
from quipu.node.inbox import Inbox
from quipu.node.machine import Machine
from quipu.node.numbers import NumberHeld
from quipu.node.order_service import (
    JournalGone,
    LockGranted,
    LyingSerializer,
    NumberGone,
    NumberPublished,
    OrderedEntry,
    OrderStatus,
    OrderUnknown,
    SequenceRefused,
    SequenceState,
    StateDiffers,
)
from quipu.node.running_config import RunningConfig
from quipu.node.sequencing import Place, Proposals, no_quorum
from quipu.node.service import Draining, EventOrdered, EventState, EventStatus, StoreIsFull
from quipu.node.waiters import Waiters, answered


@dataclass(slots=True)
class RunningOrder:
    machine: Machine
    inbox: Inbox
    status_of: Callable[[EventId], EventStatus | None]
    wake: Callable[[], None]
    is_live: Callable[[NodeNo], bool] = lambda number: True
    config: RunningConfig = field(init=False)
    _proposals: Proposals = field(init=False)
    _waiters: Waiters = field(default_factory=lambda: Waiters("events to be ordered"))

    def __post_init__(self) -> None:
        self._proposals = Proposals(self.inbox.push_log, self._next_ticket)
        self.config = RunningConfig(self.machine, self.ordered)

    def _next_ticket(self) -> LogTicket:
        return self.machine.ordering.next_ticket()

    def is_awaited(self) -> bool:
        return bool(self._waiters)

    def when_ordered(self, event_id: EventId) -> asyncio.Future[bool]:
        status = self.status_of(event_id)
        is_void = status is not None and status.state is EventState.VOID
        is_ordered = status is not None and status.ordered
        if is_ordered or is_void or self.inbox.is_draining:
            return answered(is_ordered)
        if not self._waiters:
            self.inbox.push_log(OrderAwaited())
        answer = self._waiters.wait(event_id)
        self.inbox.press()
        self.wake()
        return answer

    def hear(self, spoken: Sequence[LogSpoken], applied: Sequence[Applied]) -> list[EventOrdered]:
        """What is to be told of it."""
        self._proposals.hear(spoken, applied, self.machine.ordering.journal.applied)
        self.config.hear(applied)
        news = [
            EventOrdered(meta.id, one.entry.index, number)
            for one in applied
            for number, meta in one.events
        ]
        if self._waiters:
            for item in news:
                self._waiters.answer(item.event_id, True)
        return news

    def core_rebuilt(self) -> None:
        """The log was built anew from the disk: it does not know what was proposed before."""
        error = OrderUnknown("the node had to begin anew from its disk")
        self._proposals.fail_all(error)
        self.config.fail_all(error)

    def end_waiting(self) -> None:
        self._waiters.end()
        self._proposals.fail_all(OrderUnknown("the node is stopping"))
        self.config.fail_all(OrderUnknown("the node is stopping"))

    # --- the journal ----------------------------------------------------------------------------
    def status(self) -> OrderStatus:
        ordering = self.machine.ordering
        state, journal = ordering.machine.state, ordering.journal
        voters, digest = state.log.voters, state.log.digest_at(ordering.chosen)
        assert digest is not None
        return OrderStatus(
            state.role.value,
            state.promised,
            state.master,
            voters.old,
            voters.new,
            state.log.base.index,
            journal.applied,
            ordering.chosen,
            state.log.last_index,
            digest,
            journal.events,
            ordering.events_behind(),
            ordering.discovering.state.value,
        )

    def states(self) -> dict[NodeNo, str]:
        discovering = self.machine.ordering.discovering
        found = {number: noted.state.value for number, noted in discovering.noted.items()}
        return found | {self.own_no: discovering.state.value}

    def entries(self, after: int, limit: int) -> list[OrderedEntry]:
        ordering = self.machine.ordering
        log = ordering.machine.state.log
        if after < log.base.index:
            raise JournalGone(log.base.index + 1)
        upto = min(ordering.journal.applied, after + limit)
        held = [log.at(index) for index in range(after + 1, upto + 1)]
        return [
            OrderedEntry(e.index, e.regime, NodeNo(e.master_no), e.final, digest, e.items)
            for e, _, digest in held
        ]

    # --- sequences ------------------------------------------------------------------------------
    def sequence(self, name: str) -> SequenceState | None:
        found = self.machine.ordering.journal.sequences.known(name)
        if found is None:
            return None
        holder = found.holder if found.is_locked else None
        return SequenceState(name, found.number, found.running, found.token, holder, found.last)

    def number(self, name: str, number: int) -> NumberHeld | None:
        found = self.machine.ordering.numbers.find(name, number)
        state = self.machine.ordering.journal.sequences.known(name)
        if found is None and state is not None and 0 < number <= state.number:
            oldest = self.machine.ordering.numbers.oldest(name)
            raise NumberGone(state.number + 1 if oldest is None else oldest)
        return found

    def sequences_after(self, after: str, limit: int) -> list[SequenceState]:
        names = self.machine.ordering.journal.sequences.names()
        found = (self.sequence(name) for name in names[bisect_right(names, after) :][:limit])
        return [one for one in found if one is not None]

    async def linear(self) -> None:
        self._check()
        await self._proposals.read_index()

    async def lock(self, name: str, count: int) -> LockGranted:
        return await self._lock(name, count, self._gone(name))

    async def _lock(self, name: str, count: int, over: int) -> LockGranted:
        _, outcome = await self._ask(Lock(name, self.own_no, count, over))
        assert isinstance(outcome, Granted)
        return LockGranted(outcome.token, outcome.first, outcome.last)

    def _gone(self, name: str) -> int:
        """The token of a lock whose holder is out of the live view; 0: there is none."""
        found = self.machine.ordering.journal.sequences.of(name)
        is_gone = found.is_locked and found.holder != self.own_no
        return found.token if is_gone and not self.is_live(found.holder) else 0

    async def publish(
        self, name: str, digest: bytes, token: int | None = None, number: int = 0
    ) -> NumberPublished:
        over = self._gone(name)
        if token is None and over:
            grant = await self._lock(name, 1, over)
            token, number = grant.token, grant.first
        if token is not None:
            return await self._published(Publish(name, self.own_no, token, number, digest))
        item = LockAndPublish(name, self.own_no, digest)
        for _ in range(limits.PUBLISH_TRIES_MAX):
            try:
                return await self._published(item)
            except SequenceRefused as refused:
                is_held = self.machine.ordering.journal.sequences.of(name).is_locked
                if refused.why is not SequenceRefusal.LOCKED or is_held:
                    raise
                # Another one took the one number that an entry gives out: the next is free.
        raise SequenceRefused(SequenceRefusal.LOCKED, name)

    async def _published(self, item: Publish | LockAndPublish) -> NumberPublished:
        log_index, outcome = await self._ask(item)
        assert isinstance(outcome, Published)
        return NumberPublished(outcome.number, outcome.running, log_index)

    async def release(self, name: str, token: int) -> None:
        await self._ask(Release(name, self.own_no, token))

    @property
    def own_no(self) -> NodeNo:
        return self.machine.ordering.own_no

    async def _ask(self, item: SequenceItem) -> tuple[int, Done]:
        self._check()
        (log_index, _), outcome = await self._proposals.propose(item)
        if isinstance(outcome, SequenceRefusal):
            raise SequenceRefused(outcome, item.name)
        return log_index, outcome

    async def ordered(self, item: bytes) -> tuple[Place, Done]:
        """Where an item of another machine stands, and what it came to. Raises `NoQuorum`,
        `OrderUnknown`, `Overloaded`, `Draining` or `StoreIsFull`."""
        self._check()
        return await self._proposals.propose_bytes(item)

    def _check(self) -> None:
        if self.inbox.is_draining:
            raise Draining("the node is stopping")
        if self.inbox.is_full:
            raise StoreIsFull("no room on the disk")
        ordering = self.machine.ordering
        if ordering.discovering.state is NodeState.ERR:
            raise StateDiffers("a majority of serializers has other digests than this node")
        if not serves(ordering.discovering.state):
            raise no_quorum("this node is still asking the others how far they are (DSC)")
        state = ordering.machine.state
        if state.master is None:
            raise no_quorum("this node knows of no master that a majority follows")

    def gauges(self) -> dict[str, float]:
        status = self.status()
        return {
            "log_regime": status.regime,
            "log_is_master": int(status.role == Role.MASTER),
            "log_is_recovering": int(status.role == Role.RECOVERING),
            "log_chosen": status.chosen,
            "log_applied": status.applied,
            "log_entries_held": status.last - status.base,
            "order_at_work": int(status.state == NodeState.WRK),
            "order_errs": int(status.state == NodeState.ERR),
            "events_ordered": status.events,
            "events_not_ordered": status.events_behind,
        }

    def liars(self) -> list[LyingSerializer]:
        state = self.machine.ordering.machine.state
        known = ((state.keys.get(no), one.data) for no, one in sorted(state.convictions.items()))
        return [LyingSerializer(node, proof) for node, proof in known if node is not None]

    def force_recovery(self) -> None:
        self.inbox.push_log(RecoveryForced())
