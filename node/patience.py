"""What peers said and what may wait: receipts that nobody here waits for, and events whose receipt
is not due yet (ADR 22).

A receipt covers all that the ones before it covered, so of one signer only the last is kept. An
event that comes within the pace of receipts would cost a turn of its own, and another one for the
receipt; it waits for that one, and what it makes Read is not Read any later.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from quipu.ledger.inputs import MessageReceived
from quipu.ledger.inv import InvArray
from quipu.ledger.words import NodeId

Place = tuple[NodeId, bytes]  # who brought it, and who signed it


class Receipt(NamedTuple):
    message: MessageReceived
    inv: InvArray  # nothing of it is checked yet
    due_ms: int


@dataclass(slots=True)
class Patience:
    """Invariant: `bytes_held` is the size of all that waits; events are in the order they came."""

    receipts: dict[Place, Receipt] = field(default_factory=dict)  # oldest first
    events: list[MessageReceived] = field(default_factory=list)
    events_due_ms: int = 0
    bytes_held: int = 0

    def __len__(self) -> int:
        return len(self.receipts) + len(self.events)

    @property
    def due_ms(self) -> int | None:
        """When the first of them has waited for long enough."""
        due = [self.events_due_ms] if self.events else []
        if self.receipts:
            due.append(next(iter(self.receipts.values())).due_ms)
        return min(due, default=None)

    def keep_receipt(self, message: MessageReceived, inv: InvArray, due_ms: int) -> None:
        """What it makes Read has waited since the first of its signer."""
        place = (message.peer, inv.signer)
        held = self.receipts.get(place)
        if held is not None:
            if held.inv.number >= inv.number:
                return
            due_ms = held.due_ms
            self.bytes_held -= len(held.message.data)
        self.receipts[place] = Receipt(message, inv, due_ms)
        self.bytes_held += len(message.data)

    def keep_event(self, message: MessageReceived, due_ms: int) -> None:
        if not self.events:
            self.events_due_ms = due_ms
        self.events.append(message)
        self.bytes_held += len(message.data)

    def take_events(self) -> list[MessageReceived]:
        taken, self.events = self.events, []
        self.bytes_held -= sum(len(message.data) for message in taken)
        return taken

    def take_receipts(self) -> list[MessageReceived]:
        taken = [receipt.message for receipt in self.receipts.values()]
        self.receipts.clear()
        self.bytes_held -= sum(len(message.data) for message in taken)
        return taken

    def clear(self) -> None:
        self.receipts.clear()
        self.events.clear()
        self.bytes_held = 0
