"""One machine of the simulation: the real log over a disk that loses power, and its apps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from quipu.ledger.log.effects import (
    BaseTaken,
    EntryChosen,
    ItemsNotOrdered,
    ItemsOrdered,
    LogEffects,
    LogInputRefused,
    LogSpoken,
    MasterChanged,
    ReadReady,
    SendLogMessage,
    SerializerConvicted,
)
from quipu.ledger.log.entry import LogEntry
from quipu.ledger.log.inputs import (
    ItemsProposed,
    LogCompacted,
    LogInput,
    LogMessageReceived,
    ModelGrew,
    ReadAsked,
    SerializersProposed,
)
from quipu.ledger.log.machine import LogMachine
from quipu.ledger.log.roles import Role
from quipu.ledger.log.serializers import ITEM_HEAD
from quipu.ledger.log.state import LogSettings
from quipu.ledger.log.words import Index, Life, LogTicket
from quipu.ledger.words import NodeNo
from tests.simulation.clock import US_PER_MS, NodeClock
from tests.simulation.log.disk import LogDisk, Tables
from tests.simulation.log.history import Operation, Read

if TYPE_CHECKING:
    from tests.simulation.log.world import LogWorld

EVENT = b"event "  # items that begin so wait for the Model


class SimGate:
    """Events come into the Models of nodes at other times than into the log."""

    def __init__(self, node: SimLogNode) -> None:
        self._node = node
        self.applied = Index(2**63)  # nothing that it says rests on the log

    def after(self, before: Iterable[LogEntry]) -> SimGate:
        return self

    def passes(self, items: Sequence[bytes]) -> None:
        pass

    def admits(self, items: Sequence[bytes]) -> bool:
        return all(not item.startswith(EVENT) or item in self._node.model for item in items)


class SimLogNode:
    def __init__(self, world: LogWorld, number: NodeNo) -> None:
        self.world, self.number = world, number
        self.disk = LogDisk(Life(1), recovering=False)
        self.clock = NodeClock()
        self.model: dict[bytes, None] = {}
        self.up = False
        self.machine: LogMachine
        self._inbox: list[LogInput] = []
        self._committing = False
        self._starts = 0
        self._lives = 1
        self._wake_us: int | None = None
        self._operations: dict[LogTicket, Operation] = {}
        self._reads: dict[LogTicket, int] = {}
        self._ticket = 0
        self.applied = 0  # told to be chosen, in this start
        self.start()

    # --- starts and ends ------------------------------------------------------------------------
    def start(self) -> None:
        assert not self.up
        world = self.world
        self._starts += 1
        entropy = f"{world.seed}/{self.number}/{self._starts}".encode()
        settings = LogSettings(
            world.cluster_id,
            self.number,
            world.key(self.number),
            world.founders,
            SimGate(self),
            entropy,
            world.verify,
            world.guards,
        )
        now = self.clock.now(world.scheduler.now_us)
        saved = self.disk.saved()
        self.machine = LogMachine(settings, saved, world.keys, now)
        self.applied = self.machine.state.chosen
        self.up, self._committing = True, False
        self._wake_us = None
        self._wake()

    def kill(self) -> None:
        """The process and the power are gone; what was synced stays."""
        self.up = False
        self._starts += 1  # what was scheduled for the one before is void
        self._inbox.clear()
        self.disk.lose_power()
        self._operations.clear()
        self._reads.clear()

    def wipe(self) -> None:
        assert not self.up
        self._lives += 1
        self.disk = LogDisk(Life(self._lives), recovering=True)

    def set_back(self, image: Tables) -> None:
        assert not self.up
        self._lives += 1
        self.disk.life = Life(self._lives)
        self.disk.restore(image)

    # --- apps -----------------------------------------------------------------------------------
    def propose(self, items: list[bytes]) -> None:
        now_us = self.world.scheduler.now_us
        ticket = self._next_ticket()
        operations = [Operation(item, now_us) for item in items]
        self.world.history.operations.extend(operations)
        self._operations[ticket] = operations[0]
        self.give(ItemsProposed(ticket, tuple(items)))

    def read(self) -> None:
        ticket = self._next_ticket()
        self._reads[ticket] = self.world.scheduler.now_us
        self.give(ReadAsked(ticket))

    def change(self, nodes: tuple[NodeNo, ...]) -> None:
        self.give(SerializersProposed(self._next_ticket(), nodes))

    def compact(self, keep: int) -> None:
        index = Index(self.machine.state.chosen - keep)
        if not self._inbox and not self._committing and index > self.machine.state.log.base.index:
            self.give(LogCompacted(index, b"state at %d" % index))

    def _next_ticket(self) -> LogTicket:
        self._ticket += 1
        return LogTicket(self._starts << 32 | self._ticket)

    def learn(self, item: bytes) -> None:
        self.model[item] = None
        if self.up:
            self.give(ModelGrew())

    # --- turns ----------------------------------------------------------------------------------
    def give(self, item: LogInput) -> None:
        if self.up:
            self._inbox.append(item)
            if not self._committing:
                self.world.scheduler.after(0, self._turn, self._starts)

    def receive(self, sender: NodeNo, data: bytes) -> None:
        self.give(LogMessageReceived(sender, data))

    def _turn(self, start: int) -> None:
        if not self.up or start != self._starts or self._committing:
            return
        inputs, self._inbox = self._inbox, []
        world = self.world
        effects = self.machine.step(inputs, self.clock.now(world.scheduler.now_us))
        world.judge.on_step(self, effects)
        self.disk.write(effects.durable)
        if effects.durable:
            self._committing = True
            if not world.guards.durable_before_spoken:
                self._speak(effects)
            delay_us = world.fsync_us(self)
            world.scheduler.after(delay_us, self._committed, start, effects)
        else:
            self._speak(effects)
            self._wake()

    def _committed(self, start: int, effects: LogEffects) -> None:
        if not self.up or start != self._starts:
            return
        self.disk.sync()
        self._committing = False
        if self.world.guards.durable_before_spoken:
            self._speak(effects)
        if self._inbox:
            self._turn(start)
        self._wake()

    def _wake(self) -> None:
        deadline_ms = self.machine.next_deadline()
        if deadline_ms is None or not self.up or self._committing:
            return
        due_us = max(self.clock.when_us(deadline_ms), self.world.scheduler.now_us + US_PER_MS)
        if self._wake_us is None or due_us < self._wake_us:
            self._wake_us = due_us
            self.world.scheduler.at(due_us, self._woken, self._starts, due_us)

    def _woken(self, start: int, due_us: int) -> None:
        if start != self._starts or due_us != self._wake_us:
            return
        self._wake_us = None
        deadline_ms = self.machine.next_deadline()
        now_us = self.world.scheduler.now_us
        if deadline_ms is not None and self.clock.when_us(deadline_ms) <= now_us:
            self._turn(start)
        self._wake()

    def _speak(self, effects: LogEffects) -> None:
        for effect in effects.spoken:
            self._say(effect)

    def _say(self, effect: LogSpoken) -> None:
        world, now_us = self.world, self.world.scheduler.now_us
        match effect:
            case SendLogMessage(peer, data):
                world.judge.on_sent(self, data)
                world.send(self.number, peer, data)
            case EntryChosen(entry, digest):
                world.judge.on_chosen(self, entry, digest)
            case BaseTaken(index, _):
                self.applied = index
            case ItemsOrdered(ticket, _, index, number):
                self._answered(ticket, (index, number), now_us)
            case ItemsNotOrdered(ticket, is_known, _):
                operation = self._operations.pop(ticket, None)
                if operation is not None:
                    operation.rejected = is_known
            case ReadReady(ticket, index):
                asked_us = self._reads.pop(ticket, None)
                if asked_us is not None and index is not None:
                    world.history.reads.append(Read(asked_us, now_us, index))
            case MasterChanged():
                world.judge.on_master(self, effect)
            case SerializerConvicted(conviction):
                world.judge.on_conviction(self, conviction)
            case LogInputRefused():
                world.judge.on_refused(self, effect)

    def _answered(self, ticket: LogTicket, position: tuple[int, int], now_us: int) -> None:
        operation = self._operations.pop(ticket, None)
        if operation is not None:
            operation.answered_us, operation.position = now_us, position

    @property
    def is_master(self) -> bool:
        return self.up and self.machine.state.role is Role.MASTER


def app_items(entry: LogEntry) -> tuple[bytes, ...]:
    return tuple(item for item in entry.items if not item.startswith(ITEM_HEAD))
