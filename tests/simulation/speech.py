"""No message names what its sender would not have after a power loss right now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quipu.ledger import limits
from quipu.ledger.event import decode_header, event_id
from quipu.ledger.messages import (
    Answer,
    EventBytes,
    EventMessage,
    GetData,
    InvMessage,
    Message,
    SyncEvent,
    SyncRow,
    decode_message,
)
from quipu.ledger.refusals import Refused
from quipu.ledger.words import BranchKey, Cord, EventId, Journal, NodeNo
from tests.simulation.record import Record
from tests.simulation.violation import Property, Violation

if TYPE_CHECKING:
    from tests.simulation.node import SimNode


class Speech:
    def __init__(self, record: Record) -> None:
        self._record = record
        self._last: tuple[bytes, Message] | None = None

    def decoded(self, data: bytes) -> Message | None:
        """The same bytes go to several peers in a row: decoded once."""
        if self._last is None or self._last[0] is not data:
            try:
                self._last = (data, decode_message(data))
            except Refused:
                return None
        return self._last[1]

    def check(self, node: SimNode, data: bytes, early: bool) -> None:
        message = self.decoded(data)
        if message is None:
            raise Violation(Property.MESSAGE_LIMITS, f"{node} sends what no node would take")
        match message:
            case EventMessage(event):
                self._event(node, event, early)
            case InvMessage(inv):
                self._inv(node, inv)
                self._own_inv(node, inv)
            case Answer():
                for inv in message.invs:  # proof material, whoever signed it
                    self._inv(node, inv)
                for event in message.events:
                    self._event(node, event, early=False)
                self._size(node, message, len(data))
            case SyncEvent():
                self._sync(node, message)
            case _:
                self._size(node, message, len(data))

    def _size(self, node: SimNode, message: Message, size: int) -> None:
        one_event = isinstance(message, Answer) and len(message.events) <= 1
        bound = limits.ANSWER_BYTES_MAX if isinstance(message, Answer) else limits.GET_BYTES_MAX
        if isinstance(message, Answer | GetData) and size > bound * 5 // 4 and not one_event:
            detail = f"{node} sends {type(message).__name__} of {size} bytes"
            raise Violation(Property.MESSAGE_LIMITS, detail)

    def _event(self, node: SimNode, event: EventBytes, early: bool) -> None:
        identity = event_id(event.header)
        if identity in node.shadow.held:
            return
        if early and decode_header(event.header).author == node.key.node_id:
            return
        raise self._unheld(node, f"event {identity.hex()[:8]}")

    def _unheld(self, node: SimNode, what: str) -> Violation:
        return Violation(Property.DURABLE_FIRST, f"{node} speaks of {what}, which is not durable")

    def _inv(self, node: SimNode, data: bytes) -> None:
        inv = self._record.read_inv(data)
        if inv is None:
            raise Violation(
                Property.MESSAGE_LIMITS, f"{node} passes on a receipt that is not valid"
            )
        signer_no = self._record.numbers.get(inv.signer, 0)
        if node.shadow.invs.get((signer_no, inv.number)) != inv.id:
            raise self._unheld(node, f"receipt {inv.number} of {signer_no}")

    def _own_inv(self, node: SimNode, data: bytes) -> None:
        inv = self._record.read_inv(data)
        if inv is not None and inv.signer == node.key.node_id:
            for row in inv.rows:
                if EventId(row.id) not in node.shadow.held:
                    raise self._unheld(node, f"event {row.id.hex()[:8]} in its receipt")

    def _sync(self, node: SimNode, sync: SyncEvent) -> None:
        shadow, prefixes = node.shadow, self._record.prefixes
        for leaf in sync.leaves:
            if EventId(leaf) not in shadow.read:
                raise self._unheld(node, f"leaf {leaf.hex()[:8]} as Read")
        for row in sync.rows:
            identity = prefixes.get(row.id)
            if identity is None or identity not in shadow.held:
                raise self._unheld(node, f"row {row.id.hex()[:8]}")
            self._row_as_kept(node, row)
        for receipt in sync.receipts:
            inv_id = shadow.invs.get((receipt.signer_no, receipt.number))
            if inv_id is None or inv_id[: len(receipt.inv)] != receipt.inv:
                raise self._unheld(node, f"receipt {receipt.number} of {receipt.signer_no}")
        if sync.epoch > shadow.epoch:
            raise self._unheld(node, f"epoch {sync.epoch}")

    def _row_as_kept(self, node: SimNode, row: SyncRow) -> None:
        """A row says of a branch what the disk has of it, neither more nor less."""
        for number in range(limits.BRANCHES_PER_CORD_MAX):
            cord = Cord(NodeNo(row.author_no), Journal(row.journal))
            kept = node.shadow.branches.get(BranchKey(*cord, number))
            if kept is None:
                break
            if kept.held_id[: len(row.id)] == row.id:
                if (kept.held_seq, kept.read_seq) == (row.seq, row.read_seq):
                    return
                detail = f"{node} shows {row.seq}, {row.read_seq} Read, of {cord}; its disk has "
                detail += f"{kept.held_seq}, {kept.read_seq} Read"
                raise Violation(Property.DURABLE_FIRST, detail)
        raise self._unheld(node, f"row {row.id.hex()[:8]}")
