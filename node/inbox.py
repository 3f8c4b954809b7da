"""What waits for the next turn, bounded in number and bytes, and who waits for an answer.

What a peer said may have time (see `patience`): it asks for no turn, and comes a little later.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType

from quipu.ledger.inputs import EntriesSubmitted, Input, MessageReceived
from quipu.ledger.inv import InvArray, peek_inv
from quipu.ledger.log.inputs import LogInput, LogMessageReceived
from quipu.ledger.messages import is_event, is_receipt, receipt_in
from quipu.ledger.words import Ticket
from quipu.node import limits
from quipu.node.clock import monotonic_ms
from quipu.node.patience import Patience
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
    may_wait: Callable[[InvArray], bool] = lambda inv: False  # a receipt like others
    is_awaited: Callable[[InvArray], bool] = lambda inv: True  # by somebody here
    signed_at_ms: Callable[[int], int] = lambda now_ms: now_ms  # an event that comes now
    refused: Callable[[], None] = lambda: None
    taken: Callable[[], None] = lambda: None
    now_ms: Callable[[], int] = monotonic_ms
    patience: Patience = field(default_factory=Patience)
    _inputs: list[Input] = field(default_factory=list)
    _log_inputs: list[LogInput] = field(default_factory=list)
    _is_pressed: bool = False  # what could wait is not to wait any longer
    _has_submissions: bool = False
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
        self._has_submissions = True
        self.wake()
        return answer

    def push(self, given: Input | LogMessageReceived, size: int) -> bool:
        """What is not from an app. False: no room; whoever brought it waits until `taken`."""
        held, held_bytes = len(self.patience), self.patience.bytes_held
        is_full = self._pushed_bytes + held_bytes + size > limits.PEER_BYTES_WAITING_MAX
        if len(self._inputs) + len(self._log_inputs) + held >= limits.INPUTS_PER_TURN_MAX or (
            is_full and self._pushed_bytes + held_bytes
        ):
            self.press()
            return False
        if isinstance(given, LogMessageReceived):
            self._pushed_bytes += size
            self.push_log(given)
            return True
        if isinstance(given, MessageReceived):
            if self._has_time(given):
                if self.asks_for_turn():
                    self.wake()
                else:
                    self.wake_later()
                return True
        else:
            self._take_patience()  # a link that comes or goes stays behind what it brought
        self._pushed_bytes += size
        self._inputs.append(given)
        self.wake()
        return True

    def _has_time(self, message: MessageReceived) -> bool:
        data, now_ms = message.data, self.now_ms()
        if is_receipt(data):
            inv = peek_inv(receipt_in(data))
            if inv is None or not self.may_wait(inv):
                return False
            self.patience.keep_receipt(message, inv, now_ms + limits.RECEIPTS_WAIT_MS)
            return True
        if not is_event(data):
            return False
        due_ms = now_ms if self.patience.events else self.signed_at_ms(now_ms)
        if due_ms <= now_ms and not self.patience.events:
            return False
        self.patience.keep_event(message, due_ms)
        return True

    def give(self, given: Input) -> None:
        """By an operator: there is always room for it."""
        self._inputs.append(given)
        self.wake()

    def push_log(self, given: LogInput) -> None:
        self._log_inputs.append(given)
        self.wake()

    def press(self) -> None:
        """What waits is not to wait any longer."""
        if self.has_inputs():
            self._is_pressed = True
            self.wake()

    def look(self) -> None:
        """Somebody waits who did not before."""
        if self.asks_for_turn():
            self.wake()

    def asks_for_turn(self) -> bool:
        if self._inputs or self._log_inputs or self._is_pressed:
            return True
        due_ms = self.patience.due_ms
        if due_ms is None:
            return False
        return self.is_draining or due_ms <= self.now_ms() or self._has_awaited()

    def _has_awaited(self) -> bool:
        """Asked late: who waited when it came may have been served since."""
        return any(self.is_awaited(held.inv) for held in self.patience.receipts.values())

    def take(self) -> list[Input]:
        now_ms, patience = self.now_ms(), self.patience
        if self._is_pressed or self.is_draining or self._log_inputs:
            self._take_patience()  # the log may wait for what becomes Read
        elif patience:
            if self._has_submissions or patience.events_due_ms <= now_ms:
                self._inputs += patience.take_events()
            due_ms = patience.due_ms
            if (due_ms is not None and due_ms <= now_ms) or self._has_awaited():
                self._inputs += patience.take_receipts()
        inputs, self._inputs = self._inputs, []
        self._pushed_bytes = 0
        self._is_pressed = self._has_submissions = False
        self.taken()
        return inputs

    def _take_patience(self) -> None:
        self._inputs += self.patience.take_events()
        self._inputs += self.patience.take_receipts()

    def take_log(self) -> list[LogInput]:
        inputs, self._log_inputs = self._log_inputs, []
        return inputs

    def has_inputs(self) -> bool:
        return bool(self._inputs or self._log_inputs or self.patience)

    def fail_all(self, error: Exception) -> None:
        """Nothing of what waits was stored."""
        self._inputs.clear()
        self._log_inputs.clear()
        self.patience.clear()
        self._is_pressed = self._has_submissions = False
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
