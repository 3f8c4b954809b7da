"""One machine with both: a core and its log, one disk, one turn, one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quipu.ledger import effects as fx
from quipu.ledger.effects import Effects
from quipu.ledger.epochs import decode_document
from quipu.ledger.inputs import ForceFollowed
from quipu.ledger.log.effects import (
    BaseTaken,
    EntryChosen,
    ForgetLog,
    LogEffects,
    LogInputRefused,
    LogSpoken,
    SendLogMessage,
)
from quipu.ledger.log.inputs import (
    ItemsProposed,
    LogCompacted,
    LogInput,
    LogMessageReceived,
    ModelGrew,
    RosterChanged,
    SerializersProposed,
    VotersForced,
)
from quipu.ledger.log.machine import LogMachine
from quipu.ledger.log.roles import Role
from quipu.ledger.log.serializers import Stage
from quipu.ledger.log.state import LogSettings
from quipu.ledger.log.words import Index, Life, LogTicket
from quipu.ledger.order.changes import encode_change
from quipu.ledger.order.registrar import (
    Circumstances,
    EnrolMembers,
    ProposeItem,
    ProposeSerializers,
    Registrar,
    RosterOrder,
    TellCore,
)
from quipu.ledger.order.roster import RosterBook, RosterState
from quipu.ledger.order.roster_gate import RosterGate
from quipu.ledger.order.wishes import Candidate, Wish
from quipu.ledger.signing import KeyPair
from quipu.ledger.words import NOT_A_MEMBER, NodeNo
from tests.simulation.clock import US_PER_MS
from tests.simulation.log.disk import LogDisk
from tests.simulation.node import FSYNC_MAX_US, FSYNC_MIN_US, TURN_US, CrashPoint, SimNode

if TYPE_CHECKING:
    from tests.simulation.epochs.world import EpochWorld

LOOK_MS = 100


class EpochNode(SimNode):
    world: EpochWorld

    def __init__(self, world: EpochWorld, index: int, key: KeyPair, name: str) -> None:
        super().__init__(world, index, key, name)
        self.lives = 1
        self.log_disk = LogDisk(Life(1), recovering=False)
        self.machine: LogMachine | None = None
        self.book: RosterBook
        self.registrar: Registrar
        self.gate: RosterGate
        self._log_inbox: list[LogInput] = []
        self._log_wake_us: int | None = None
        self._ticket = 0

    # --- life -----------------------------------------------------------------------------------
    def start(self) -> None:
        super().start()
        assert self.core is not None
        self._log_inbox, self._log_wake_us = [], None
        self._begin_book()
        self.machine = None
        self._start_log()
        self.world.scheduler.after(LOOK_MS * US_PER_MS, self._look, self.boot)

    def _begin_book(self) -> None:
        assert self.core is not None
        world = self.world
        genesis = RosterState.of_genesis(world.genesis)
        self.book = RosterBook(genesis, world.verify, world.roster_guards)
        self.registrar = Registrar(self.core, self.book, world.roster_guards)
        self.gate = RosterGate(self.book, self.core.known, world.roster_guards)

    def _start_log(self) -> None:
        """A log belongs to a member: who joins has one once its epoch is open here."""
        assert self.core is not None
        number = self.core.me
        if self.machine is not None or number == NOT_A_MEMBER:
            return
        world = self.world
        settings = LogSettings(
            world.record.cluster_id,
            number,
            self.key,
            world.serializers,
            self.gate,
            f"{world.seed}/{self.index}/{self.starts}".encode(),
            world.verify,
            is_overruled=lambda: self.core is not None and self.core.is_overruled,
        )
        keys = dict(sorted(self.core.epochs.newest.members.items()))
        now = self.clock.now(world.scheduler.now_us)
        saved = self.log_disk.saved()
        self.machine = LogMachine(settings, saved, keys, now)
        state = self.machine.state
        if saved.base is not None:
            self._rebase(state.log.base.index, saved.state)
        for held in state.log.above(state.log.base.index):
            if held.entry.index <= state.chosen:
                self.book.chosen(held.entry)

    def _rebase(self, index: int, state: bytes) -> None:
        cluster_id = self.world.record.cluster_id
        self.book.rebased(Index(index), RosterState.decode(state, cluster_id))

    def crash(self) -> None:
        super().crash()
        self.machine = None
        self._log_inbox = []
        self.log_disk.lose_power()

    def wipe(self) -> None:
        super().wipe()
        self.lives += 1
        self.log_disk = LogDisk(Life(self.lives), recovering=True)

    @property
    def is_master(self) -> bool:
        machine = self.machine
        return self.up and machine is not None and machine.state.role is Role.MASTER

    # --- inputs ---------------------------------------------------------------------------------
    def give(self, item: LogInput) -> None:
        if self.machine is None:
            return
        self._log_inbox.append(item)
        if not self.committing and not self._turn_asked:
            self._turn_asked = True
            self.world.scheduler.after(TURN_US, self._asked_turn, self.boot)

    def receive_log(self, sender: NodeNo, data: bytes) -> None:
        self.give(LogMessageReceived(sender, data))

    def compact(self) -> None:
        """The state that goes with a base is the roster's alone here."""
        machine = self.machine
        if machine is None or self._log_inbox or self.committing:
            return
        index = self.book.applied
        if index == machine.state.chosen and index > machine.state.log.base.index:
            self.give(LogCompacted(index, self.book.state.encode()))

    # --- turns ----------------------------------------------------------------------------------
    def _turn(self, boot: int) -> None:
        if boot != self.boot or self.core is None:
            return
        self._turn_asked = False
        if self.committing:
            return
        inputs, self._inbox = self._inbox, []
        self._wake_us = None
        now = self.clock.now(self.world.scheduler.now_us)
        effects = self.world.judge.step(self, inputs, now)
        logged = self._step_log(effects.durable, boot)
        if boot != self.boot:
            return
        if not effects.durable and not logged.durable:
            self._speak_both(effects, logged, boot)
            return
        self.disk.write(effects.durable)
        self.log_disk.write(logged.durable)
        for effect in effects.spoken:
            if isinstance(effect, fx.SendEarly | fx.AskEarly):
                self._transmit(effect.peer, effect.data, early=True)
        self.committing = True
        fsync_us = self.rng.randrange(FSYNC_MIN_US, FSYNC_MAX_US)
        if self.armed is CrashPoint.BEFORE_SYNC:
            self.world.scheduler.after(self.rng.randrange(fsync_us), self._crash_if, boot)
        self.world.scheduler.after(fsync_us, self._commit_both, boot, effects, logged)

    def _step_log(self, coming: Sequence[fx.Durable], boot: int) -> LogEffects:
        if self.machine is None:
            return LogEffects()
        assert self.core is not None
        if self._is_put_out(coming):
            self.machine, self._log_inbox = None, []
            return LogEffects([ForgetLog()])
        grew = bool(coming)
        given, self._log_inbox = self._log_inbox, []
        now = self.clock.now(self.world.scheduler.now_us)
        self.gate.cluster_now_ms = self.core.cluster_time.now_ms(now)
        if grew:
            given = [*given, ModelGrew()]
        return self.machine.step(given, now)

    def _is_put_out(self, coming: Sequence[fx.Durable]) -> bool:
        found = [decode_document(e.document) for e in coming if isinstance(e, fx.StoreEpoch)]
        key = self.key.node_id
        return any(d.forced and key not in {m.node_id for m in d.members} for d in found)

    def _commit_both(self, boot: int, effects: Effects, logged: LogEffects) -> None:
        if boot != self.boot:
            return
        self.disk.sync()
        self.log_disk.sync()
        self.world.judge.on_commit(self, effects.durable)
        self.committing = False
        if self.armed is CrashPoint.BEFORE_SPEAKING:
            self._crash_here()
            return
        self._speak_both(effects, logged, boot)

    def _speak_both(self, effects: Effects, logged: LogEffects, boot: int) -> None:
        early = not effects.durable and not logged.durable
        self._speak(effects.spoken, early)
        for effect in logged.spoken:
            if boot != self.boot:
                return
            self._say_log(effect)
        if boot != self.boot:
            return
        if any(isinstance(effect, ForgetLog) for effect in logged.durable):
            self._begin_book()
        self._start_log()
        self._obey()
        self._after_turn()
        self._plan_log()

    def _say_log(self, effect: LogSpoken) -> None:
        match effect:
            case SendLogMessage(peer, data):
                self.world.send_log(self, peer, data)
            case EntryChosen(entry, digest):
                before = self.book.state
                self.book.chosen(entry)
                self.world.epoch_judge.on_chosen(self, (entry, digest), before)
            case BaseTaken(index, state):
                self._rebase(index, state)
            case LogInputRefused():
                self.world.epoch_judge.on_refused(self, effect)

    def _plan_log(self) -> None:
        if self.machine is None or self.committing:
            return
        deadline_ms = self.machine.next_deadline()
        if deadline_ms is None:
            return
        now_us = self.world.scheduler.now_us
        due_us = max(self.clock.when_us(deadline_ms), now_us + US_PER_MS)
        if self._log_wake_us is None or due_us < self._log_wake_us or self._log_wake_us <= now_us:
            self._log_wake_us = due_us
            self.world.scheduler.at(due_us, self._woken, self.boot, due_us)

    def _woken(self, boot: int, due_us: int) -> None:
        if boot == self.boot and due_us == self._log_wake_us:
            self._log_wake_us = None
            if not self.committing:
                self._turn(boot)

    # --- the registrar --------------------------------------------------------------------------
    def _look(self, boot: int) -> None:
        if boot != self.boot:
            return
        self.give(ModelGrew())  # a clock may be what an OPEN waited for
        self._obey()
        self.world.scheduler.after(LOOK_MS * US_PER_MS, self._look, boot)

    def circumstances(self) -> Circumstances:
        assert self.core is not None
        assert self.machine is not None
        now = self.clock.now(self.world.scheduler.now_us)
        state = self.machine.state
        change = state.log.newest_change
        reign = self.machine._master.reign
        numbers = self.core.epochs.node_numbers
        live = {numbers[peer] for peer in self.connected if peer in numbers} | {self.core.me}
        return Circumstances(
            now.monotonic_ms,
            self.core.cluster_time.now_ms(now),
            self.is_master and reign is not None and state.chosen >= reign.opening,
            frozenset(live),
            state.log.voters,
            change is not None
            and (change.stage in (Stage.NOMINATE, Stage.IMPLEMENT) or change.index > state.chosen),
            state.deciding,
        )

    def _obey(self) -> None:
        if self.machine is None:
            return
        for order in self.registrar.step(self.circumstances()):
            self._carry_out(order)

    def _carry_out(self, order: RosterOrder) -> None:
        match order:
            case TellCore(given):
                self.push(given)
            case ProposeItem(item):
                self.give(ItemsProposed(self._next_ticket(), (item,)))
            case ProposeSerializers(nodes):
                self.give(SerializersProposed(self._next_ticket(), nodes))
            case EnrolMembers(epoch, keys, listeners, barred):
                self.give(RosterChanged(epoch, keys, listeners, barred))

    def wish(self, candidates: Sequence[Candidate], policy: str) -> None:
        """Told to this node; the log carries it to the master."""
        assert self.core is not None
        now = self.clock.now(self.world.scheduler.now_us)
        item = Wish(self.core.cluster_time.now_ms(now), list(candidates), policy)
        self.give(ItemsProposed(self._next_ticket(), (encode_change(item),)))

    def force(self) -> None:
        """An operator's word: all others are lost for ever."""
        self.give(VotersForced())

    def follow(self) -> None:
        """An operator's word: this node goes with those who went on by force."""
        self.push(ForceFollowed())

    def _next_ticket(self) -> LogTicket:
        self._ticket += 1
        return LogTicket(self.starts << 32 | self._ticket)
