"""The loop: collect, step the core once, commit once, speak.

While a commit runs it only collects, so what queued up meanwhile is the next event. A failed
commit discards the core and goes on from what is durable; a full disk pauses it.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from quipu.ledger.effects import (
    AskEarly,
    Effects,
    EntriesRefused,
    EntriesStored,
    InputRefused,
    NodeConvicted,
    SendEarly,
    SendMessage,
    StoreEpoch,
    StoreEvent,
    StoreInv,
)
from quipu.ledger.event import SignedEvent
from quipu.ledger.log.effects import (
    LogEffects,
    LogInputRefused,
    LogSpoken,
    MasterChanged,
    SendLogMessage,
    SerializerConvicted,
)
from quipu.ledger.order.journal import Applied
from quipu.ledger.refusals import Refused
from quipu.ledger.words import EventId, Hlc, Journal, NodeId, Seq
from quipu.node import limits
from quipu.node.failpoints import passing
from quipu.node.inbox import Inbox
from quipu.node.logs import Log
from quipu.node.machine import Machine
from quipu.node.measures import Measures, observe
from quipu.node.service import (
    EntryId,
    EventRead,
    News,
    NodeFailed,
    OutcomeUnknown,
    Stored,
    StoreIsFull,
)
from quipu.node.writer import Outcome, Writer
from quipu.storage import store as stores

MS_PER_S = 1_000


@dataclass(frozen=True, slots=True)
class Outlets:
    """Where a turn is heard: peers, readers of news, and who must stop the node."""

    send: Callable[[NodeId, bytes], None] = lambda peer, data: None
    send_log: Callable[[NodeId, bytes], None] = lambda peer, data: None
    send_soon: Callable[[NodeId, bytes], None] = lambda peer, data: None
    flush: Callable[[], None] = lambda: None  # what was given to `send` goes out now
    tell: Callable[[list[News]], None] = lambda news: None
    hear_order: Callable[[Sequence[LogSpoken], Sequence[Applied]], None] = lambda said, done: None
    epoch_opened: Callable[[], None] = lambda: None
    core_rebuilt: Callable[[], None] = lambda: None
    has_room: Callable[[], bool] = lambda: True  # whether a full disk has room again
    give_up: Callable[[str], None] = lambda why: None


class Decided(NamedTuple):
    """By core and log, from the same commit on; it becomes one transaction."""

    core: Effects
    log: LogEffects

    @property
    def durable(self) -> list[stores.Kept]:
        return [*self.core.durable, *self.log.durable]


@dataclass(slots=True)
class Turns:
    """Invariant: at most one commit is under way, and core and log do not move while one is."""

    machine: Machine
    writer: Writer
    inbox: Inbox
    outlets: Outlets
    measures: Measures
    log: Log
    committing_since: float | None = None
    is_stopped: bool = False
    _decided: Decided | None = None  # of the commit under way
    _asked: bool = False
    _timer: asyncio.TimerHandle | None = None
    _later: asyncio.TimerHandle | None = None
    _later_ms: int = 0  # when it comes
    _idle: list[asyncio.Future[None]] = field(default_factory=list)
    _rebuilt: deque[float] = field(default_factory=deque)

    # --- when -----------------------------------------------------------------------------------
    def wake(self) -> None:
        """Something waits. The turn comes after what is ready now has been collected, too."""
        if not (self._asked or self.committing_since is not None or self.is_stopped):
            self._asked = True
            asyncio.get_running_loop().call_soon(self._turn)

    def wake_later(self) -> None:
        """What waits has time."""
        due_ms = self.inbox.patience.due_ms
        if due_ms is None or self.is_stopped:
            return
        if self._later is not None:
            if self._later_ms <= due_ms:
                return
            self._later.cancel()
        wait_ms = max(due_ms - self.inbox.now_ms(), 1)
        self._later_ms = due_ms
        loop = asyncio.get_running_loop()
        self._later = loop.call_later(wait_ms / MS_PER_S, self._has_waited)

    def _has_waited(self) -> None:
        self._later = None
        if self.inbox.asks_for_turn():
            self.wake()
        else:
            self.wake_later()  # a turn took it along, or the timer was early

    def is_idle(self) -> bool:
        return self.committing_since is None and not self.inbox.has_inputs()

    async def idle(self) -> None:
        """Until nothing waits and no commit is under way."""
        while not (self.is_idle() or self.is_stopped):
            self.inbox.press()
            waiting = asyncio.get_running_loop().create_future()
            self._idle.append(waiting)
            await waiting

    def stop(self) -> None:
        self.is_stopped = True
        self._disarm()
        self._disarm_later()
        self._tell_idle()

    def _plan(self) -> None:
        """After a turn: the next one, at once or at its time."""
        self._disarm()
        if self.inbox.asks_for_turn():
            self.wake()
            return
        if self.inbox.has_inputs():
            self.wake_later()
        else:
            self._tell_idle()
        machine = self.machine
        now = machine.surroundings.clock()
        wanted = (
            machine.core.next_deadline(),
            machine.ordering.next_deadline(now),
            machine.ordering.next_look(now),
        )
        deadline_ms = min((ms for ms in wanted if ms is not None), default=None)
        if deadline_ms is None or self.is_stopped:
            return
        wait_ms = max(deadline_ms - now.monotonic_ms, 1)
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(wait_ms / MS_PER_S, self.wake)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _disarm_later(self) -> None:
        if self._later is not None:
            self._later.cancel()
            self._later = None

    def _tell_idle(self) -> None:
        waiting, self._idle = self._idle, []
        for one in waiting:
            if not one.done():
                one.set_result(None)

    # --- one turn -------------------------------------------------------------------------------
    def _turn(self) -> None:
        self._asked = False
        if self.committing_since is not None or self.is_stopped or self.inbox.is_full:
            return
        decided = self._step()
        if decided is None:
            return
        for effect in decided.core.spoken:
            if isinstance(effect, SendEarly | AskEarly):
                self.outlets.send(effect.peer, effect.data)
        durable = decided.durable
        if durable:
            self._decided, self.committing_since = decided, time.monotonic()
            # Before the writer wakes: it would take the interpreter lock at each send.
            self.outlets.flush()
            self.writer.commit(self.machine.store, durable, self._committed)
        else:
            self._speak(decided.core)
            self._speak_log(decided)
            self._plan()

    def _step(self) -> Decided | None:
        machine, begun = self.machine, time.perf_counter()
        now = machine.surroundings.clock()
        inputs, log_inputs = self.inbox.take(), self.inbox.take_log()
        try:
            passing("turn.collected")
            told, given = machine.ordering.look_at_epochs(now)
            effects = machine.core.step([*inputs, *told], now)
            logged = machine.ordering.step([*given, *log_inputs], effects.durable, now)
            decided = Decided(effects, logged)
            passing("turn.decided")
        except Exception as fault:  # noqa: BLE001 - a mistake of ours must not end the node
            self._step_failed(fault)
            return None
        self.measures.turns += 1
        observe(self.measures.step_seconds, time.perf_counter() - begun)
        return decided

    def _committed(self, outcome: Outcome) -> None:
        decided, self._decided, self.committing_since = self._decided, None, None
        assert decided is not None
        effects = decided.core
        observe(self.measures.commit_seconds, outcome.seconds)
        if outcome.error is not None:
            self._commit_failed(effects, outcome.error)
            return
        passing("turn.committed")
        self.measures.commits += 1
        machine = self.machine
        now = machine.surroundings.clock()
        news = machine.view.committed(effects.durable, now.wall_ms)
        self._speak(effects)
        self._count(effects, news)
        self.outlets.tell(news)
        self._speak_log(decided)
        passing("turn.spoken")
        self._plan()

    # --- speaking -------------------------------------------------------------------------------
    def _speak(self, effects: Effects) -> None:
        events = _own_events(effects)
        for effect in effects.spoken:
            match effect:
                case EntriesStored(ticket, identity, index):
                    waiting = self.inbox.pending.pop(ticket)
                    waiting.stored(_stored(events[identity], index))
                    self.measures.submissions_stored += 1
                    self.measures.entries_stored += waiting.entries
                case EntriesRefused(ticket, reason, detail):
                    self.inbox.pending.pop(ticket).failed(Refused(reason, detail))
                    self.measures.refused(reason)
                case SendMessage(peer, data, has_time):
                    if has_time and not self._is_order_awaited():
                        self.outlets.send_soon(peer, data)
                    else:
                        self.outlets.send(peer, data)
                case InputRefused(peer, reason, detail):
                    self.measures.refused(reason)
                    self.log.debug("input refused", peer=peer.hex(), reason=reason, detail=detail)
                case NodeConvicted(conviction):
                    self.log.warning("proof of misbehaviour", culprit=conviction.culprit.hex())

    def _is_order_awaited(self) -> bool:
        """Then other members need what makes an event Read as soon as this one does."""
        return self.machine.ordering.is_awaited() or self.machine.ordering.hastens

    def _speak_log(self, decided: Decided) -> None:
        machine = self.machine
        for effect in decided.log.spoken:
            match effect:
                case SendLogMessage(number, data):
                    peer = machine.view.epochs.node_ids.get(number)
                    if peer is not None:
                        self.outlets.send_log(peer, data)
                case MasterChanged(regime, master):
                    self.log.info("master of the log", regime=regime, node=master)
                case SerializerConvicted(conviction):
                    self.log.warning("a serializer lied", node=conviction.culprit)
                case LogInputRefused(number, reason, detail):
                    self.measures.refused(reason)
                    self.log.debug("log input refused", peer=number, reason=reason, detail=detail)
        applied = machine.ordering.committed(decided.core.durable, decided.log)
        if applied or decided.log.spoken:
            self.outlets.hear_order(decided.log.spoken, applied)

    def _count(self, effects: Effects, news: list[News]) -> None:
        read = sum(isinstance(item, EventRead) for item in news)
        self.measures.events_read += read
        self.measures.events_stored += len(news) - read
        me = self.machine.surroundings.key.node_id
        for effect in effects.durable:
            if isinstance(effect, StoreEvent):
                self.measures.signatures_made += effect.event.header.author == me
            elif isinstance(effect, StoreInv):
                self.measures.signatures_made += effect.inv.signer == me
            if isinstance(effect, StoreEpoch):
                passing("checkpoint.opened")
                self.measures.checkpoints += 1
                self.log.info("epoch opened", number=effect.number)
                self.outlets.epoch_opened()
            elif isinstance(effect, StoreInv) and effect.inv.array.close is not None:
                passing("checkpoint.sealed")

    # --- failing --------------------------------------------------------------------------------
    def _step_failed(self, fault: Exception) -> None:
        """The core may have moved halfway: it is not used again. Its inputs are dropped, for they
        may be what it failed on."""
        self.measures.step_failures += 1
        self.log.error("a turn failed; the core is rebuilt", exc_info=fault)
        self.inbox.fail_all(NodeFailed(f"{type(fault).__name__}: {fault}"))
        self._rebuild(reopen=False)

    def _commit_failed(self, effects: Effects, error: Exception) -> None:
        self.measures.commit_failures += 1
        was_told = any(isinstance(effect, SendEarly) for effect in effects.spoken)
        is_full = isinstance(error, stores.StoreFull)
        self.log.error("a commit failed; the core is rebuilt", error=repr(error))
        for effect in effects.spoken:
            match effect:
                case EntriesStored(ticket, identity, index):
                    waiting = self.inbox.pending.pop(ticket)
                    if is_full and not was_told:
                        waiting.failed(StoreIsFull("no room on the disk"))
                    else:
                        self.measures.outcomes_unknown += 1
                        ids = range(index, index + waiting.entries)
                        waiting.failed(OutcomeUnknown(tuple(EntryId(identity, i) for i in ids)))
                case EntriesRefused(ticket, reason, detail):
                    self.inbox.pending.pop(ticket).failed(Refused(reason, detail))
        if is_full:
            self._pause()
        self._rebuild(reopen=not isinstance(error, stores.StoreFull | stores.DiskFailed))

    def _rebuild(self, reopen: bool) -> None:
        now = time.monotonic()
        self._rebuilt.append(now)
        while self._rebuilt[0] < now - limits.REBUILD_WINDOW_S:
            self._rebuilt.popleft()
        if len(self._rebuilt) > limits.REBUILDS_PER_MINUTE_MAX and not self.inbox.is_full:
            self._give_up("too many turns failed within a minute")
            return
        before = self.machine.view.feed_number
        try:
            self.machine.rebuild(reopen)
        except stores.StoreError as error:
            self._give_up(f"the store cannot be read any more: {error}")
            return
        self.measures.rebuilds += 1
        self.outlets.core_rebuilt()
        count = self.machine.view.feed_number - before
        if count:  # the commit whose outcome nobody knew has come through
            rows = self.machine.store.feed(before, count)
            self.outlets.tell([EventRead(number, identity) for number, identity in rows])
        if self.inbox.is_full:
            self._tell_idle()
        else:
            self.wake()

    def _give_up(self, why: str) -> None:
        self.log.error("the node stops", reason=why)
        self.inbox.is_draining = True
        self.inbox.fail_all(NodeFailed(why))
        self.stop()
        self.outlets.give_up(why)

    # --- a full disk ----------------------------------------------------------------------------
    def _pause(self) -> None:
        self.inbox.is_full = True
        self.inbox.fail_all(StoreIsFull("no room on the disk"))
        self.log.error("no room on the disk: entries are refused until there is")
        self._probe_later()

    def _probe_later(self) -> None:
        self._disarm()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(limits.FULL_PROBE_INTERVAL_S, self._probe)

    def _probe(self) -> None:
        if self.is_stopped:
            return
        if not self.outlets.has_room():
            self._probe_later()
            return
        self.inbox.is_full = False
        self.log.info("there is room on the disk again")
        self.wake()


def _own_events(effects: Effects) -> dict[EventId, SignedEvent]:
    return {
        effect.event.id: effect.event
        for effect in effects.durable
        if isinstance(effect, StoreEvent)
    }


def _stored(event: SignedEvent, index: int) -> Stored:
    header = event.header
    return Stored(event.id, index, Journal(header.journal), Seq(header.seq), Hlc(header.hlc))
