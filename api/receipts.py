"""Who has signed how far that it holds each cord: whole, and what moved of it."""

from quipu.api import limits
from quipu.api.models import ReceiptRowBody, SignedUpto
from quipu.api.shaping import Shapes
from quipu.node.service import Ledger, ReceiptRow


def receipt_row(shapes: Shapes, row: ReceiptRow) -> ReceiptRowBody:
    return ReceiptRowBody(
        author=shapes.member(row.author_no),
        journal=str(row.journal),
        branch=row.branch,
        held_seq=str(row.held_seq),
        read_seq=str(row.read_seq),
        signed=[SignedUpto(number, str(seq)) for number, seq in row.signed],
    )


class ReceiptsTold:
    """Invariant: the caller was told each row as it stands in `_told`. However often receipts move,
    a row is told once in a while and as it then is: only the newest counts."""

    def __init__(self, shapes: Shapes, ledger: Ledger) -> None:
        self._shapes, self._ledger = shapes, ledger
        self._told: dict[tuple[int, int, int], ReceiptRow] = {}
        self._moved = -1
        self._due_s = 0.0

    def news(self, now_s: float) -> list[ReceiptRowBody]:
        moved = self._ledger.receipts_moved
        if now_s < self._due_s or self._moved == moved:
            return []
        self._due_s, self._moved = now_s + limits.RECEIPTS_EVERY_S, moved
        rows = self._ledger.receipts(limits.RECEIPT_ROWS_MAX)
        before = self._told
        self._told = {(row.author_no, row.journal, row.branch): row for row in rows}
        changed = [row for place, row in self._told.items() if before.get(place) != row]
        return [receipt_row(self._shapes, row) for row in changed]
