"""Proposals and reads of this node, until each is answered.

A proposal goes to the master, which says where it was written; what comes to be chosen there
decides. Nothing is sent twice: who proposes again must know that it may be ordered twice.
"""

from dataclasses import dataclass

from quipu.ledger import limits
from quipu.ledger.log.effects import ItemsNotOrdered, ItemsOrdered, ReadReady
from quipu.ledger.log.entry import LogEntry
from quipu.ledger.log.messages import ProposeAnswer, ReadAnswer
from quipu.ledger.log.state import LogState, LogTurn
from quipu.ledger.log.words import Index, LogTicket, Place, Regime
from quipu.ledger.refusals import Reason, refuse
from quipu.ledger.words import NodeNo

NO_QUORUM = "no-quorum"
LOST = "lost"
BUSY = "busy"
TIMEOUT = "timeout"


@dataclass(slots=True)
class WaitingItems:
    master: NodeNo
    due_ms: int
    place: Place | None = None
    number: int = 0


@dataclass(slots=True)
class WaitingRead:
    master: NodeNo
    due_ms: int
    index: Index | None = None


class Tickets:
    def __init__(self, state: LogState) -> None:
        self._state = state
        self._items: dict[LogTicket, WaitingItems] = {}
        self._at: dict[int, list[LogTicket]] = {}
        self._reads: dict[LogTicket, WaitingRead] = {}

    @property
    def has_room(self) -> bool:
        return len(self._items) + len(self._reads) < limits.LOG_TICKETS_MAX

    # --- proposals ------------------------------------------------------------------------------
    def propose(self, ticket: LogTicket, master: NodeNo, now_ms: int) -> None:
        assert ticket not in self._items
        self._items[ticket] = WaitingItems(master, now_ms + limits.LOG_TICKET_MS)

    def on_answer(self, peer: NodeNo, message: ProposeAnswer, turn: LogTurn) -> None:
        ticket = LogTicket(message.ticket)
        waiting = self._items.get(ticket)
        if waiting is None or waiting.master != peer or waiting.place is not None:
            refuse(Reason.UNREQUESTED)
        self.on_written(
            ticket, Place(Regime(message.regime), Index(message.index)), message.number, turn
        )

    def on_written(self, ticket: LogTicket, place: Place, number: int, turn: LogTurn) -> None:
        waiting = self._items.get(ticket)
        if waiting is None:
            return
        if place.regime == 0:
            self.refuse(ticket, BUSY, turn)
            return
        waiting.place, waiting.number = place, number
        state = self._state
        if place.index > state.chosen:
            self._at.setdefault(place.index, []).append(ticket)
        elif state.log.holds(place.index):
            self._resolve(ticket, state.log.at(place.index).entry, turn)
        else:
            self._unknown(ticket, turn)

    def on_chosen(self, entry: LogEntry, turn: LogTurn) -> None:
        for ticket in self._at.pop(entry.index, ()):
            self._resolve(ticket, entry, turn)

    def on_base(self, index: Index, turn: LogTurn) -> None:
        """The entries up to here were not seen: what was proposed there may be ordered."""
        for at in [at for at in self._at if at <= index]:
            for ticket in self._at.pop(at):
                self._unknown(ticket, turn)

    def refuse(self, ticket: LogTicket, reason: str, turn: LogTurn) -> None:
        self._items.pop(ticket, None)
        turn.say(ItemsNotOrdered(ticket, is_known=True, reason=reason))

    def _resolve(self, ticket: LogTicket, entry: LogEntry, turn: LogTurn) -> None:
        waiting = self._items.pop(ticket, None)
        if waiting is None or waiting.place is None:
            return
        place = waiting.place
        if entry.regime == place.regime:
            turn.say(ItemsOrdered(ticket, place.regime, place.index, waiting.number))
        else:
            turn.say(ItemsNotOrdered(ticket, is_known=True, reason=LOST))

    def _unknown(self, ticket: LogTicket, turn: LogTurn) -> None:
        if self._items.pop(ticket, None) is not None:
            turn.say(ItemsNotOrdered(ticket, is_known=False, reason=TIMEOUT))

    # --- reads ----------------------------------------------------------------------------------
    def read(self, ticket: LogTicket, master: NodeNo, now_ms: int) -> None:
        assert ticket not in self._reads
        self._reads[ticket] = WaitingRead(master, now_ms + limits.LOG_TICKET_MS)

    def on_read_answer(self, peer: NodeNo, message: ReadAnswer, turn: LogTurn) -> None:
        ticket = LogTicket(message.ticket)
        waiting = self._reads.get(ticket)
        if waiting is None or waiting.master != peer or waiting.index is not None:
            refuse(Reason.UNREQUESTED)
        index = None if message.index is None else Index(message.index)
        self.on_read_index(ticket, index, turn)

    def on_read_index(self, ticket: LogTicket, index: Index | None, turn: LogTurn) -> None:
        waiting = self._reads.get(ticket)
        if waiting is None:
            return
        if index is None:
            del self._reads[ticket]
            turn.say(ReadReady(ticket, None))
            return
        waiting.index = index
        self.settle_reads(turn)

    def settle_reads(self, turn: LogTurn) -> None:
        chosen = self._state.chosen
        for ticket, waiting in list(self._reads.items()):
            if waiting.index is not None and waiting.index <= chosen:
                del self._reads[ticket]
                turn.say(ReadReady(ticket, waiting.index))

    # --- time -----------------------------------------------------------------------------------
    def tick(self, turn: LogTurn) -> None:
        """Both maps are in the order of their deadlines."""
        while self._items:
            ticket, items = next(iter(self._items.items()))
            if items.due_ms > turn.now_ms:
                break
            self._unknown(ticket, turn)
        while self._reads:
            ticket, read = next(iter(self._reads.items()))
            if read.due_ms > turn.now_ms:
                break
            del self._reads[ticket]
            turn.say(ReadReady(ticket, None))

    def next_deadline(self) -> int | None:
        firsts = [
            *(w.due_ms for w in list(self._items.values())[:1]),
            *(w.due_ms for w in list(self._reads.values())[:1]),
        ]
        return min(firsts, default=None)
