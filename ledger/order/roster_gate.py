"""What a voter asks of a CLOSE or OPEN before it accepts it, beside what makes it valid.

Each question comes to be answered with time, or never for a master that lies: a clock goes on,
events are fetched. So an item of an honest master waits here and passes; it is not refused.
"""

from collections.abc import Iterable, Sequence

from quipu.ledger import limits
from quipu.ledger.epochs import EpochDocument, decode_document
from quipu.ledger.event import EventMeta
from quipu.ledger.inv import Inv, decode_inv
from quipu.ledger.known import Known
from quipu.ledger.log.entry import LogEntry
from quipu.ledger.log.words import Index
from quipu.ledger.order.changes import Close, Open, read_change
from quipu.ledger.order.cut import compute_cut, unresolved
from quipu.ledger.order.roster import RosterBook, RosterState
from quipu.ledger.order.safeguards import ALL, RosterSafeguards
from quipu.ledger.order.wishes import Wish
from quipu.ledger.refusals import Refused
from quipu.ledger.words import EventId


class RosterGate:
    """`cluster_now_ms` is of the turn."""

    def __init__(self, book: RosterBook, known: Known, guards: RosterSafeguards = ALL) -> None:
        self.book, self.known, self.guards = book, known, guards
        self.cluster_now_ms = 0

    @property
    def applied(self) -> Index:
        return Index(self.book.applied)

    def after(self, before: Iterable[LogEntry]) -> "RosterPassage":
        return RosterPassage(self, before)

    # --- clocks and events ----------------------------------------------------------------------
    def takes(self, item: Open, state: RosterState) -> bool:
        """An OPEN that is valid."""
        known, epochs = self.known, self.known.epochs
        document = decode_document(item.document)
        if epochs.newest.number >= document.number:
            return True  # a peer has told of it, so it was chosen
        if item.due_ms > self.cluster_now_ms + limits.OPEN_DUE_AHEAD_MS_MAX:
            return False
        if epochs.newest.number != document.number - 1 or known.cut_wanted:
            return False
        terms = state.check_open(item, known.verify, self.guards)
        if not self.guards.cut_recomputed:
            return True
        signed = (*terms.seals.values(), *(inv for _, inv in terms.receipts))
        if self.guards.rows_wait and unresolved(signed, terms.epoch, known):
            return False
        cut = compute_cut(terms, known, self.guards)
        if (tuple(document.cut), document.cut_hlc) != (cut.rows, cut.hlc):
            return False
        return all(covers(decode_inv(data), document, known) for data in item.invs)


class RosterPassage:
    """Changes are few: entries that are not applied yet are looked through once one comes."""

    def __init__(self, gate: RosterGate, before: Iterable[LogEntry]) -> None:
        self._gate, self._state = gate, gate.book.state
        self._before = before

    def passes(self, items: Sequence[bytes]) -> None:
        for data in items:
            self._take(data, asks=False)

    def admits(self, items: Sequence[bytes]) -> bool:
        if not any(read_change(data) for data in items):
            return True
        self._read_before()
        before = self._state
        if all(self._take(data, asks=True) for data in items):
            return True
        self._state = before
        return False

    def _read_before(self) -> None:
        before, self._before = self._before, ()
        for entry in before:
            if entry.index > self._gate.book.applied:
                self.passes(entry.items)

    def _take(self, data: bytes, asks: bool) -> bool:
        """What is not valid changes nothing, and may stand anywhere."""
        gate, item = self._gate, read_change(data)
        if item is None:
            return True
        self._read_before()
        try:
            after = self._state.after(item, gate.known.verify, gate.guards)
        except Refused:
            return True
        if asks and isinstance(item, Close | Wish):
            latest_ms = gate.cluster_now_ms + limits.CLOCK_AHEAD_MS
            if item.at_ms > latest_ms:
                return False
        elif asks and isinstance(item, Open) and not gate.takes(item, self._state):
            return False
        self._state = after
        return True


def covers(inv: Inv, document: EpochDocument, known: Known) -> bool:
    """Whether a receipt of the epoch that begins covers its cut. Of a forked cord a signer may
    have acknowledged another line: it never signs for a second one."""
    rows = {row.cord: row for row in inv.rows}
    for row in document.cut:
        end = known.past.held(EventId(row.id))
        signed = rows.get(end.branch.cord)
        if signed is not None and _reaches(known, EventId(signed.id), end):
            continue
        author = known.epochs.node_ids[end.branch.author_no]
        convicted = known.convictions.of_author(author) is not None
        if len(known.dag.cords[end.branch.cord]) == 1 and not convicted:
            return False
    return True


def _reaches(known: Known, identity: EventId, end: EventMeta) -> bool:
    meta = known.past.meta(identity)
    if meta is None or meta.seq < end.seq:
        return False
    return known.dag.is_on_line(end, known.dag.branches[meta.branch])
