"""The epochs of a running node: the registrar between its core and its log.

It looks where something could have changed, and often while a change is under way; what it asks
of core and log goes with the turn that is about to be stepped. It remembers nothing that the two
could not tell it again.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from quipu.ledger.core import Core
from quipu.ledger.inputs import Input
from quipu.ledger.log.entry import LogEntry
from quipu.ledger.log.inputs import (
    ItemsProposed,
    LogInput,
    ModelGrew,
    RosterChanged,
    SerializersProposed,
)
from quipu.ledger.log.machine import LogMachine
from quipu.ledger.log.state import Gate, Passage
from quipu.ledger.log.words import Index, LogTicket
from quipu.ledger.order.registrar import (
    Circumstances,
    EnrolMembers,
    ProposeItem,
    ProposeSerializers,
    Registrar,
    TellCore,
)
from quipu.ledger.order.roster import RosterBook, RosterState
from quipu.ledger.order.roster_gate import RosterGate
from quipu.ledger.words import NodeId, NodeNo, Now
from quipu.node import limits


@dataclass(slots=True)
class Rostering:
    """Invariant: `book` has taken what the log of this node says is chosen."""

    core: Core
    book: RosterBook
    gate: RosterGate
    registrar: Registrar
    _seen: object = None  # at the last look
    _look_ms: int = 0

    @classmethod
    def of(cls, core: Core) -> "Rostering":
        genesis = RosterState.of_genesis(core.config.genesis)
        book = RosterBook(genesis, core.known.verify)
        return cls(core, book, RosterGate(book, core.known), Registrar(core, book))

    # --- what the log says ----------------------------------------------------------------------
    def rebased(self, index: Index, record: bytes) -> None:
        """An empty record: nothing had changed by then."""
        state = RosterState.of_genesis(self.core.config.genesis)
        if record:
            state = RosterState.decode(record, state.standing.cluster_id)
        self.book.rebased(index, state)

    def record(self, index: Index) -> bytes:
        """What goes with a base at this index; empty while nothing has changed."""
        state = self.book.state_at(index)
        is_first = state == RosterState.of_genesis(self.core.config.genesis)
        return b"" if is_first else state.encode()

    # --- what readers ask -----------------------------------------------------------------------
    @property
    def cluster_now_ms(self) -> int:
        """Of the newest turn."""
        return self.gate.cluster_now_ms

    @property
    def has_cut(self) -> bool:
        """Whether a cut is on offer here."""
        return self.core.known.coming is not None

    def missing(self) -> tuple[NodeId, ...]:
        """Who keeps the change that is in flight waiting, as far as this node knows."""
        return self.registrar.missing()

    # --- looking --------------------------------------------------------------------------------
    def next_deadline(self, machine: LogMachine, now: Now) -> int:
        return now.monotonic_ms if self._seen != self._now_seen(machine) else self._look_ms

    def _now_seen(self, machine: LogMachine) -> object:
        return self.book.changes, self.core.epochs.newest.number, machine.leads

    def step(
        self, machine: LogMachine, next_ticket: Callable[[], LogTicket], now: Now
    ) -> tuple[list[Input], list[LogInput]]:
        """What core and log are to be told in the turn that begins."""
        self.gate.cluster_now_ms = self.core.cluster_time.now_ms(now)
        if now.monotonic_ms < self.next_deadline(machine, now):
            return [], []
        self._seen = self._now_seen(machine)
        told: list[Input] = []
        given: list[LogInput] = []
        for order in self.registrar.step(self._circumstances(machine, now)):
            match order:
                case TellCore(item):
                    told.append(item)
                case ProposeItem(data):
                    given.append(ItemsProposed(next_ticket(), (data,)))
                case ProposeSerializers(nodes):
                    given.append(SerializersProposed(next_ticket(), nodes))
                case EnrolMembers(epoch, keys, listeners, barred):
                    given.append(RosterChanged(epoch, keys, listeners, barred))
        if machine.waits_for_model:
            given.append(ModelGrew())  # a clock, or an event that is held, may be what was missing
        busy = self.registrar.is_busy or machine.waits_for_model
        wait_ms = limits.ROSTER_LOOK_BUSY_MS if busy else limits.ROSTER_LOOK_MS
        self._look_ms = now.monotonic_ms + wait_ms
        return told, given

    def _circumstances(self, machine: LogMachine, now: Now) -> Circumstances:
        numbers = self.core.epochs.node_numbers
        live = {numbers[peer] for peer in self.core.sync.views if peer in numbers}
        return Circumstances(
            now.monotonic_ms,
            self.gate.cluster_now_ms,
            machine.leads,
            frozenset({*live, NodeNo(self.core.me)}),
            machine.state.log.voters,
            machine.is_seating,
            machine.state.deciding,
        )


@dataclass(frozen=True, slots=True)
class BothGates:
    """A voter asks of an entry what the journal asks, and what the roster asks."""

    journal: Gate
    roster: Gate

    @property
    def applied(self) -> Index:
        return min(self.journal.applied, self.roster.applied)

    def after(self, before: Iterable[LogEntry]) -> Passage:
        entries = list(before)
        return _BothPassages(self.journal.after(entries), self.roster.after(entries))


@dataclass(frozen=True, slots=True)
class _BothPassages:
    journal: Passage
    roster: Passage

    def admits(self, items: Sequence[bytes]) -> bool:
        """No item is of both: what the one has taken the other does not refuse."""
        return self.journal.admits(items) and self.roster.admits(items)

    def passes(self, items: Sequence[bytes]) -> None:
        self.journal.passes(items)
        self.roster.passes(items)
