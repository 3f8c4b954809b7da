"""What waits for the next turn, bounded in number and bytes, and who waits for an answer.

Receipts come one by one, behind the event that they are for. Where nobody at this node waits for
what they make Read they do not ask for a turn: they go with the next one, or come a little later.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType

from quipu.ledger.inputs import EntriesSubmitted, Input, MessageReceived
from quipu.ledger.log.inputs import LogInput, LogMessageReceived
from quipu.ledger.messages import is_receipt
from quipu.ledger.words import Ticket
from quipu.node import limits
from quipu.node.service import (
    Backlogged,
    Draining,
    NotIngestNode,
    Overloaded,
    Stored,
    StoreIsFull,
)


@dataclass(slots=True)
class Pending:
    """One submission on its way."""

    answer: asyncio.Future[Stored]
    entries: int

    def stored(self, stored: Stored) -> None:
        if not self.answer.done():  # its caller may have gone
            self.answer.set_result(stored)

    def failed(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


@dataclass(slots=True)
class Inbox:
    """Invariant: every ticket in `inputs` has its answer in `pending`."""

    wake: Callable[[], None] = lambda: None
    wake_later: Callable[[], None] = lambda: None
    pending: dict[Ticket, Pending] = field(default_factory=dict)
    submissions_held: int = 0  # bodies being read or answered
    bytes_held: int = 0
    is_full: bool = False  # the disk is
    is_draining: bool = False
    is_backlogged: Callable[[], bool] = lambda: False
    takes_entries: Callable[[], bool] = lambda: True  # this node is an ingest node
    is_awaited: Callable[[], bool] = lambda: True  # what becomes Read is, by somebody here
    refused: Callable[[], None] = lambda: None
    taken: Callable[[], None] = lambda: None
    _inputs: list[Input] = field(default_factory=list)
    _log_inputs: list[LogInput] = field(default_factory=list)
    _is_urgent: bool = False  # whether anybody waits for receipts or not
    _pushed_bytes: int = 0
    _last_ticket: int = 0

    def admit(self, body_bytes: int, is_again: bool = False) -> "Room":
        self.check()
        if (
            self.submissions_held >= limits.SUBMISSIONS_WAITING_MAX
            or self.bytes_held + body_bytes > limits.BYTES_WAITING_MAX
        ):
            if not is_again:
                self.refused()
            raise Overloaded(limits.RETRY_AFTER_S, "the inbox is full")
        return Room(self, body_bytes)

    def check(self) -> None:
        if self.is_draining:
            raise Draining("the node is stopping")
        if self.is_full:
            raise StoreIsFull("no room on the disk")
        if not self.takes_entries():
            raise NotIngestNode("this node is no ingest node any more")
        if self.is_backlogged():
            self.refused()
            raise Backlogged(limits.BACKLOG_RETRY_AFTER_S, "too much waits to become Read")

    def submit(self, entries: Sequence[bytes]) -> asyncio.Future[Stored]:
        self.check()
        if len(self.pending) >= limits.SUBMISSIONS_WAITING_MAX:
            self.refused()
            raise Overloaded(limits.RETRY_AFTER_S, "the inbox is full")
        self._last_ticket += 1
        ticket = Ticket(self._last_ticket)
        answer: asyncio.Future[Stored] = asyncio.get_running_loop().create_future()
        self.pending[ticket] = Pending(answer, len(entries))
        self._inputs.append(EntriesSubmitted(ticket, tuple(entries)))
        self.press()
        return answer

    def push(self, given: Input | LogMessageReceived, size: int) -> bool:
        """What is not from an app. False: no room; whoever brought it waits until `taken`."""
        is_full = self._pushed_bytes + size > limits.PEER_BYTES_WAITING_MAX
        if len(self._inputs) + len(self._log_inputs) >= limits.INPUTS_PER_TURN_MAX or (
            is_full and self._pushed_bytes
        ):
            return False
        self._pushed_bytes += size
        if isinstance(given, LogMessageReceived):
            self.push_log(given)
            return True
        self._inputs.append(given)
        if not (isinstance(given, MessageReceived) and is_receipt(given.data)):
            self.press()
        elif self.asks_for_turn():
            self.wake()
        else:
            self.wake_later()
        return True

    def push_log(self, given: LogInput) -> None:
        self._log_inputs.append(given)
        self.press()

    def press(self) -> None:
        """What waits is not to wait any longer."""
        if self.has_inputs():
            self._is_urgent = True
            self.wake()

    def asks_for_turn(self) -> bool:
        if not self.has_inputs():
            return False
        return self._is_urgent or self.is_draining or self.is_awaited()

    def take(self) -> list[Input]:
        inputs, self._inputs = self._inputs, []
        self._pushed_bytes = 0
        self._is_urgent = False
        self.taken()
        return inputs

    def take_log(self) -> list[LogInput]:
        inputs, self._log_inputs = self._log_inputs, []
        return inputs

    def has_inputs(self) -> bool:
        return bool(self._inputs or self._log_inputs)

    def fail_all(self, error: Exception) -> None:
        """Nothing of what waits was stored."""
        self._inputs.clear()
        self._log_inputs.clear()
        self._is_urgent = False
        pending, self.pending = self.pending, {}
        for waiting in pending.values():
            waiting.failed(error)


@dataclass(slots=True)
class Room:
    """Room that is held while a body is read and its entries are on their way."""

    inbox: Inbox
    body_bytes: int

    def __enter__(self) -> None:
        self.inbox.submissions_held += 1
        self.inbox.bytes_held += self.body_bytes

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.inbox.submissions_held -= 1
        self.inbox.bytes_held -= self.body_bytes
