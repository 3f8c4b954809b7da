"""Proposals of this node, from the request of an app to what the order made of it.

A proposal that is known not to be ordered may be made again; one whose answer is lost may not.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from quipu.ledger.log.effects import ItemsNotOrdered, ItemsOrdered, LogSpoken, ReadReady
from quipu.ledger.log.inputs import ItemsProposed, LogInput, ReadAsked
from quipu.ledger.log.tickets import BUSY
from quipu.ledger.log.words import LogTicket
from quipu.ledger.order.items import OrderItem, encode_item
from quipu.ledger.order.journal import Applied, Done
from quipu.node import limits
from quipu.node.order_service import NoQuorum, OrderUnknown
from quipu.node.service import Overloaded

Place = tuple[int, int]  # index of the entry, number of the item


@dataclass(slots=True)
class Proposals:
    """Invariant: a future waits in one of the maps until it is done."""

    give: Callable[[LogInput], None]
    ticket: Callable[[], LogTicket]
    _proposed: dict[LogTicket, asyncio.Future[tuple[Place, Done]]] = field(default_factory=dict)
    _placed: dict[Place, asyncio.Future[tuple[Place, Done]]] = field(default_factory=dict)
    _reads: dict[LogTicket, asyncio.Future[int]] = field(default_factory=dict)
    _read_to: list[tuple[int, asyncio.Future[int]]] = field(default_factory=list)
    _outcomes: dict[Place, Done] = field(default_factory=dict)  # of late, oldest first
    _applied: int = 0

    async def propose(self, item: OrderItem) -> tuple[Place, Done]:
        """Where it stands, and what it came to."""
        return await self.propose_bytes(encode_item(item))

    async def propose_bytes(self, item: bytes) -> tuple[Place, Done]:
        if len(self._proposed) + len(self._placed) >= limits.PROPOSALS_WAITING_MAX:
            raise Overloaded(limits.RETRY_AFTER_S, "too many wait for the order")
        answer: asyncio.Future[tuple[Place, Done]] = asyncio.get_running_loop().create_future()
        ticket = self.ticket()
        self._proposed[ticket] = answer
        self.give(ItemsProposed(ticket, (item,)))
        return await answer

    async def read_index(self) -> None:
        """Until all that was acknowledged before the question is applied here."""
        if len(self._reads) + len(self._read_to) >= limits.PROPOSALS_WAITING_MAX:
            raise Overloaded(limits.RETRY_AFTER_S, "too many wait for the order")
        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        ticket = self.ticket()
        self._reads[ticket] = answer
        self.give(ReadAsked(ticket))
        await answer

    # --- what the log says ----------------------------------------------------------------------
    def hear(self, spoken: Iterable[LogSpoken], applied: Iterable[Applied], upto: int) -> None:
        for one in applied:
            for number, outcome in one.outcomes:
                self._settle((one.entry.index, number), outcome)
        self._applied = upto
        for notice in spoken:
            match notice:
                case ItemsOrdered(ticket, _, index, number):
                    self._found(ticket, (index, number))
                case ItemsNotOrdered(ticket, is_known, reason):
                    self._lost(ticket, is_known, reason)
                case ReadReady(ticket, index):
                    self._read(ticket, index)
        for due, answer in self._read_to:
            if due <= upto and not answer.done():
                answer.set_result(due)
        self._read_to = [(due, answer) for due, answer in self._read_to if not answer.done()]

    def fail_all(self, error: Exception) -> None:
        proposed = [*self._proposed.values(), *self._placed.values()]
        reads = [*self._reads.values(), *(answer for _, answer in self._read_to)]
        self._proposed.clear()
        self._placed.clear()
        self._reads.clear()
        self._read_to.clear()
        for one in proposed:
            if not one.done():
                one.set_exception(error)
        for read in reads:
            if not read.done():
                read.set_exception(error)

    def _settle(self, place: Place, outcome: Done) -> None:
        answer = self._placed.pop(place, None)
        if answer is not None and not answer.done():
            answer.set_result((place, outcome))
        self._outcomes[place] = outcome
        if len(self._outcomes) > limits.OUTCOMES_RECENT_MAX:
            del self._outcomes[next(iter(self._outcomes))]

    def _found(self, ticket: LogTicket, place: Place) -> None:
        answer = self._proposed.pop(ticket, None)
        if answer is None or answer.done():
            return
        outcome = self._outcomes.get(place)
        if outcome is not None:
            answer.set_result((place, outcome))
        elif place[0] > self._applied:
            self._placed[place] = answer
        else:
            answer.set_exception(OrderUnknown("its outcome is not remembered"))

    def _lost(self, ticket: LogTicket, is_known: bool, reason: str) -> None:
        answer = self._proposed.pop(ticket, None)
        if answer is None or answer.done():
            return
        if not is_known:
            answer.set_exception(OrderUnknown("no answer came in time"))
        elif reason == BUSY:
            answer.set_exception(Overloaded(limits.RETRY_AFTER_S, "the log is full"))
        else:
            answer.set_exception(no_quorum(reason))

    def _read(self, ticket: LogTicket, index: int | None) -> None:
        answer = self._reads.pop(ticket, None)
        if answer is None or answer.done():
            return
        if index is None:
            answer.set_exception(no_quorum("nobody could say what is the newest"))
        else:
            self._read_to.append((index, answer))


def no_quorum(what: str) -> NoQuorum:
    return NoQuorum(limits.QUORUM_RETRY_AFTER_S, what)
