"""What a peer shows that is lacking here: who is behind asks (DESIGN 6), by anchored ranges.

Because cords are hash chains, one row says all there is to know of a branch: the tip is held or
not. Where it is not, anchors (ids of one's own line at doubling distances) let the peer find the
fork, however deep, in the same round trip.
"""

from collections.abc import Iterable

from quipu.ledger import limits
from quipu.ledger.dag import Dag
from quipu.ledger.fetch import Wants
from quipu.ledger.messages import PREFIX_BYTES, CoverWant, InvWant, RangeWant, SyncRow
from quipu.ledger.past import Past
from quipu.ledger.receipts import Receipts
from quipu.ledger.safeguards import Safeguards
from quipu.ledger.sync import PeerView
from quipu.ledger.words import Cord, EventId, NodeNo, Seq

Taken = tuple[set[tuple[int, int, bytes]], set[int]]


class Gaps:
    def __init__(self, dag: Dag, past: Past, receipts: Receipts, guards: Safeguards) -> None:
        self._dag = dag
        self._past = past
        self._receipts = receipts
        self._guards = guards

    def of_view(self, view: PeerView, known: Iterable[NodeNo], taken: Taken) -> Wants:
        """Everything that this peer has shown and that nobody is asked for yet."""
        wants = Wants()
        authors = frozenset(known)
        for cord, rows in view.rows.items():
            if cord.author_no in authors:
                for row in rows:
                    self._compare(cord, row, wants, taken)
        if self._guards.receipts_reconciled:
            for signer, number in view.receipts.items():
                record = self._receipts.newest.get(signer)
                lacks = record is None or record.number < number
                if lacks and signer in authors and signer not in taken[1]:
                    wants.invs.append(InvWant(signer, number))
        return self._bounded(wants)

    def of_cut(self, rows: Iterable[tuple[Cord, Seq, EventId]], taken: Taken) -> list[RangeWant]:
        """The cut of an opened epoch names what everybody must come to hold."""
        ranges = [
            self.range_to(cord, seq, identity[:PREFIX_BYTES])
            for cord, seq, identity in rows
            if (*cord, identity[:PREFIX_BYTES]) not in taken[0]
        ]
        return ranges[: limits.GET_RANGES_MAX]

    def of_orphans(
        self, orphans: dict[tuple[Cord, Seq], EventId], asked: list[RangeWant]
    ) -> list[RangeWant]:
        """The lines below events that wait for parents, where no range reaches above them."""
        reached = {(want.author_no, want.journal) for want in asked}
        ranges = [
            self.range_to(cord, seq, tip[:PREFIX_BYTES])
            for (cord, seq), tip in orphans.items()
            if cord not in reached and self._past.meta(tip) is None
        ]
        return ranges[: limits.GET_RANGES_MAX - len(asked)]

    def range_to(self, cord: Cord, seq: int, tip: bytes) -> RangeWant:
        return RangeWant(cord.author_no, cord.journal, self._anchors(cord), seq, tip)

    def _compare(self, cord: Cord, row: SyncRow, wants: Wants, taken: Taken) -> None:
        if (*cord, row.id) in taken[0]:
            return
        meta = self._past.meta_by_prefix(row.id)
        if meta is None or meta.branch.cord != cord:
            if self._guards.behind_asks and not self._dag.is_gone(cord, row.seq):
                wants.ranges.append(self.range_to(cord, row.seq, row.id))
        elif self._guards.receipts_reconciled:
            read_seq = self._dag.branches[meta.branch].read_seq
            if read_seq < min(row.read_seq, meta.seq):
                wants.covers.append(CoverWant(*cord, row.read_seq, row.id))

    def _anchors(self, cord: Cord) -> list[tuple[int, bytes]]:
        anchors: list[tuple[int, bytes]] = []
        for record in self._dag.cords.get(cord, ())[: limits.GET_ANCHOR_BRANCHES]:
            step = 1
            seq: int = record.held_seq
            while (
                seq > max(record.base_seq, record.gone_upto)
                and len(anchors) < limits.GET_ANCHORS_MAX
            ):
                anchors.append((seq, self._dag.id_on(record, Seq(seq))[:PREFIX_BYTES]))
                seq -= step
                step *= 2
        return sorted(anchors, reverse=True)

    def _bounded(self, wants: Wants) -> Wants:
        del wants.ranges[limits.GET_RANGES_MAX :]
        del wants.invs[limits.GET_RECEIPTS_MAX :]
        del wants.covers[limits.GET_RECEIPTS_MAX :]
        return wants
