"""Receipts: what members say they hold (seed 003: receiving an Inv).

Decides which row counts, and when. A row counts once the event with that id is held; until then
it is parked, and the last resolved row of that signer goes on counting. What was acknowledged
stays acknowledged: a later lower or conflicting row takes nothing back.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from quipu.ledger import limits
from quipu.ledger.event import EventMeta
from quipu.ledger.history import SignerRecord
from quipu.ledger.inv import Inv, InvRow
from quipu.ledger.safeguards import Safeguards
from quipu.ledger.words import Cord, EpochNo, EventId, InvNumber, NodeNo, Seq


@dataclass(frozen=True, slots=True)
class ParkedRow:
    seq: Seq
    id: EventId
    number: InvNumber
    epoch: EpochNo


class Receipts:
    """Invariant: of a signer and cord at most two rows are parked: the one that has waited
    longest (under load a newer one always names something newer still) and the newest."""

    def __init__(self, records: Iterable[SignerRecord], guards: Safeguards) -> None:
        self._guards = guards
        self.newest: dict[NodeNo, SignerRecord] = {record.signer_no: record for record in records}
        self._parked: dict[NodeNo, dict[Cord, list[ParkedRow]]] = {}
        self._waiting_for: dict[EventId, dict[NodeNo, None]] = {}
        self._last_rows: dict[NodeNo, dict[Cord, EventId]] = {}
        self._future: dict[NodeNo, Inv] = {}

    def parked_count(self, signer: NodeNo) -> int:
        return sum(len(rows) for rows in self._parked.get(signer, {}).values())

    def is_known(self, signer: NodeNo, inv: Inv) -> bool:
        record = self.newest.get(signer)
        return record is not None and record.inv_id == inv.id

    def is_newest(self, signer: NodeNo, inv: Inv) -> bool:
        record = self.newest.get(signer)
        return record is None or inv.number > record.number

    def take(self, signer: NodeNo, inv: Inv) -> bool:
        """Notes an Inv whose signature is good; answers whether it is the signer's newest."""
        is_newest = self.is_newest(signer, inv)
        if is_newest:
            close = inv.array.close or b""
            self.newest[signer] = SignerRecord(signer, inv.number, inv.id, inv.epoch, close)
        return is_newest

    def fresh_rows(self, signer: NodeNo, inv: Inv) -> list[InvRow]:
        """The rows that say something new against the signer's last Inv."""
        last = self._last_rows.get(signer, {})
        now = self._last_rows[signer] = {row.cord: EventId(row.id) for row in inv.rows}
        return [row for row, cord in zip(inv.rows, now, strict=True) if last.get(cord) != row.id]

    def keep_for_later(self, signer: NodeNo, inv: Inv) -> None:
        """Of an epoch that is not open here: the newest of each signer waits for it."""
        kept = self._future.get(signer)
        if kept is None or (kept.epoch, kept.number) < (inv.epoch, inv.number):
            self._future[signer] = inv

    def of_coming(self, epoch: EpochNo) -> list[tuple[NodeNo, Inv]]:
        """What is kept for an epoch that is not open here."""
        return sorted((no, inv) for no, inv in self._future.items() if inv.epoch == epoch)

    def of_opened(self, epoch: EpochNo) -> list[tuple[NodeNo, Inv]]:
        """An epoch opens: all rows count anew, and what was kept for it is due."""
        self._last_rows.clear()
        due = [(no, inv) for no, inv in self._future.items() if inv.epoch <= epoch]
        for signer, _ in due:
            del self._future[signer]
        return due

    # --- rows whose event is not held -----------------------------------------------------------
    def park(self, signer: NodeNo, row: InvRow, inv: Inv) -> bool:
        """False when the signer's room is full."""
        cords = self._parked.setdefault(signer, {})
        rows = cords.get(row.cord)
        parked = ParkedRow(Seq(row.seq), EventId(row.id), inv.number, inv.epoch)
        if rows is None:
            if self.parked_count(signer) >= limits.PARKED_ROWS_PER_SIGNER_MAX:
                return False
            rows = cords[row.cord] = []
        for place, known in enumerate(rows):
            if known.id == parked.id:  # said again, perhaps in a newer epoch
                rows[place] = max(known, parked, key=lambda row: (row.epoch, row.number))
                return True
        if len(rows) == 2:
            if parked.number < rows[1].number:  # an old one that was asked for
                return True
            self._unlist(signer, rows.pop().id)
        rows.append(parked)
        self._waiting_for.setdefault(parked.id, {})[signer] = None
        return True

    def unpark(self, meta: EventMeta) -> list[tuple[NodeNo, ParkedRow]]:
        """An event is held now: the receipts that waited for it."""
        signers = self._waiting_for.pop(meta.id, None)
        if not signers or not self._guards.parked_rows_kept:
            return []
        due: list[tuple[NodeNo, ParkedRow]] = []
        for signer in signers:
            cords = self._parked[signer]
            rows = cords.get(meta.branch.cord, [])
            due += [(signer, row) for row in rows if row.id == meta.id and row.seq == meta.seq]
            left = [row for row in rows if row.id != meta.id]
            if left:
                cords[meta.branch.cord] = left
            else:
                cords.pop(meta.branch.cord, None)
        return due

    def forget_below(self, cord: Cord, seq: Seq) -> None:
        """Rows up to there name what is gone: it is Read whoever holds it."""
        for cords in self._parked.values():
            for row in [row for row in cords.get(cord, ()) if row.seq <= seq]:
                cords[cord].remove(row)
                self._waiting_for.pop(row.id, None)
            if not cords.get(cord, True):
                del cords[cord]

    def names(self, identity: EventId, besides: NodeNo) -> bool:
        """Whether a member other than `besides` has a parked receipt for exactly this event."""
        return any(signer != besides for signer in self._waiting_for.get(identity, ()))

    def names_cord(self, cord: Cord, signer: NodeNo) -> bool:
        return bool(self._parked.get(signer, {}).get(cord))

    def _unlist(self, signer: NodeNo, identity: EventId) -> None:
        signers = self._waiting_for.get(identity)
        if signers is not None:
            signers.pop(signer, None)
            if not signers:
                del self._waiting_for[identity]
