"""The cut: in each cord the highest event that can have a certificate of the epoch that ends.

A pure function of seals, `due`, forks and further receipts (DESIGN section 5), over events that
are held: whoever holds what the seals name computes the same. Then nothing Read is lost by it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from quipu.ledger import limits, quorum
from quipu.ledger.dag import Dag
from quipu.ledger.epochs import CutRow, Epoch
from quipu.ledger.event import EventMeta
from quipu.ledger.history import BranchRecord
from quipu.ledger.inv import Inv, InvRow
from quipu.ledger.known import Known
from quipu.ledger.order.safeguards import ALL, RosterSafeguards
from quipu.ledger.past import Past
from quipu.ledger.seals import sealers_needed
from quipu.ledger.words import HLC_SHIFT, Cord, EventId, Hlc, NodeNo, Seq, Slot


@dataclass(frozen=True, slots=True)
class CutTerms:
    """What a cut is a function of. `receipts`: of the epoch that ends, beside the seals."""

    epoch: Epoch
    seals: Mapping[NodeNo, Inv]
    due_ms: int
    forks: Mapping[Cord, Seq] = field(default_factory=dict)  # the lowest that is proven
    receipts: tuple[tuple[NodeNo, Inv], ...] = ()


@dataclass(frozen=True, slots=True)
class Cut:
    """Only cords that rose since the cut before."""

    rows: tuple[CutRow, ...]
    hlc: Hlc


@dataclass(slots=True)
class Tip:
    """A line of a cord, up to this seq."""

    record: BranchRecord
    seq: Seq


def unresolved(seals: Iterable[Inv], epoch: Epoch, known: Known) -> list[InvRow]:
    """Rows whose event is not held: until it is, nobody can say what they cover."""
    return [
        row
        for seal in seals
        for row in seal.rows
        if row.author_no in epoch.members
        and known.past.meta(EventId(row.id)) is None
        and not known.dag.is_gone(row.cord, row.seq)
    ]


def compute_cut(terms: CutTerms, known: Known, guards: RosterSafeguards = ALL) -> Cut:
    """Asks that all rows of the seals are held, and all of the cut before."""
    lines = _Lines(known.dag, known.past)
    tips = _Candidates(terms, lines, known.epochs.cut_hlc, guards).tips()
    if guards.lowered:
        _Lowering(lines, tips).run()
    risen = [tip for found in tips.values() for tip in found if tip.seq > lines.cut_seq(tip.record)]
    rows = sorted((*tip.record.key.cord, tip.seq, lines.id_at(tip)) for tip in risen)
    hlcs = [lines.meta(tip).hlc for tip in risen]
    return Cut(tuple(CutRow(*row) for row in rows), max([known.epochs.cut_hlc, *hlcs]))


class _Lines:
    """What lies on which line of a cord."""

    def __init__(self, dag: Dag, past: Past) -> None:
        self.dag, self.past = dag, past

    def tip_of(self, row: InvRow) -> Tip | None:
        """None: the row names no event at its place."""
        meta = self.past.meta(EventId(row.id))
        if meta is None or (meta.branch.cord, meta.seq) != (row.cord, row.seq):
            return None
        return Tip(self.dag.branches[meta.branch], meta.seq)

    def id_at(self, tip: Tip) -> EventId:
        return self.dag.id_on(tip.record, tip.seq)

    def meta(self, tip: Tip) -> EventMeta:
        return self.past.held(self.id_at(tip))

    def shared(self, one: Tip, other: Tip) -> Seq:
        """The last seq that both have in common."""
        if one.record is other.record:
            return min(one.seq, other.seq)
        return min(self.dag.shared_seq(one.record, other.record), one.seq, other.seq)

    def cut_seq(self, record: BranchRecord) -> Seq:
        """Up to here the line lies in the cut before."""
        return max(min(branch.cut_seq, upto) for branch, upto in self.dag.line(record))

    def holds(self, tip: Tip, meta: EventMeta) -> bool:
        return meta.seq <= tip.seq and self.dag.is_on_line(meta, tip.record)


class _Candidates:
    """In each cord what the seals allow, before prev and parents are looked at."""

    def __init__(
        self, terms: CutTerms, lines: _Lines, cut_hlc: Hlc, guards: RosterSafeguards
    ) -> None:
        self._terms, self._lines, self._guards = terms, lines, guards
        epoch = terms.epoch
        sealed = len(terms.seals) if guards.silent_counted else len(epoch.members)
        self._needed = sealers_needed(epoch, sealed)
        ahead_ms = (cut_hlc >> HLC_SHIFT) + limits.CLOCK_AHEAD_MS
        self._latest_ms = max(terms.due_ms, ahead_ms)
        self._said = self._rows(terms.receipts)

    def tips(self) -> dict[Cord, list[Tip]]:
        sealed = self._rows(self._terms.seals.items())
        return {cord: self._of_cord(cord, said) for cord, said in sorted(sealed.items())}

    def _rows(self, invs: Iterable[tuple[NodeNo, Inv]]) -> dict[Cord, list[tuple[NodeNo, Tip]]]:
        """Of authors who are members: nobody else's events can have a certificate."""
        found: dict[Cord, list[tuple[NodeNo, Tip]]] = {}
        for number, inv in invs:
            for row in inv.rows:
                tip = self._lines.tip_of(row)
                if tip is not None and row.author_no in self._terms.epoch.members:
                    found.setdefault(row.cord, []).append((number, tip))
        return found

    def _of_cord(self, cord: Cord, sealed: list[tuple[NodeNo, Tip]]) -> list[Tip]:
        tops = self._tops([tip for _, tip in sealed])
        fork = self._terms.forks.get(cord)
        apart = [self._lines.shared(one, other) for i, one in enumerate(tops) for other in tops[:i]]
        below_fork = min([*apart, *([] if fork is None else [fork - 1])], default=None)
        said = [*sealed, *self._said.get(cord, ())]
        tips: list[Tip] = []
        for top in tops:
            covered = self._covered(top, sealed)
            plain = covered
            if below_fork is not None and self._guards.forks_left_out:
                plain = min(covered, below_fork)
            if self._guards.due_bounds_cut:
                plain = self._due(top, plain)
            seq = max(plain, min(covered, self._certified(top, said)))
            tips.append(Tip(top.record, Seq(seq)))
        return self._tops([tip for tip in tips if tip.seq > 0])

    def _tops(self, tips: list[Tip]) -> list[Tip]:
        """Without those that lie on the line of another."""
        kept: list[Tip] = []
        for tip in sorted(tips, key=lambda tip: (-tip.seq, tip.record.key)):
            if not any(self._lines.shared(tip, other) == tip.seq for other in kept):
                kept.append(tip)
        return kept

    def _covered(self, top: Tip, sealed: list[tuple[NodeNo, Tip]]) -> int:
        """The highest seq that so many seals cover as a certificate would have needed."""
        seqs = sorted((self._lines.shared(top, tip) for _, tip in sealed), reverse=True)
        return seqs[self._needed - 1] if len(seqs) >= self._needed else 0

    def _certified(self, top: Tip, said: list[tuple[NodeNo, Tip]]) -> int:
        """The highest seq that the receipts at hand make Read by themselves."""
        seqs: dict[NodeNo, int] = {}
        for number, tip in said:
            seqs[number] = max(seqs.get(number, 0), self._lines.shared(top, tip))
        own = seqs.pop(top.record.key.author_no, 0)
        return quorum.certified_seq(own, list(seqs.values()), self._terms.epoch.max_confirms)

    def _due(self, top: Tip, upto: int) -> int:
        """hlc grows along a cord, so what is due is found by halving."""
        low, high = int(self._lines.cut_seq(top.record)), upto
        if low >= high or self._is_due(top, high):
            return upto
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._is_due(top, middle) else (low, middle)
        return low

    def _is_due(self, top: Tip, seq: int) -> bool:
        hlc = self._lines.meta(Tip(top.record, Seq(seq))).hlc
        return hlc >> HLC_SHIFT <= self._latest_ms


class _Lowering:
    """Until prev and parents of all in the cut are in it."""

    def __init__(self, lines: _Lines, tips: dict[Cord, list[Tip]]) -> None:
        self._lines, self._tips = lines, tips
        # What is Read has its ancestors Read: where all of that is in, it need not be looked at.
        self._spare_read = all(self._has_read(r) for r in lines.dag.branches.values())

    def run(self) -> None:
        lowered = True
        while lowered:
            lowered = any(self._lower(tip) for found in self._tips.values() for tip in found)

    def _lower(self, tip: Tip) -> bool:
        for meta in self._fresh(tip):
            if not all(self._is_in(parent) for parent in meta.parents):
                tip.seq = Seq(meta.seq - 1)
                return True
        return False

    def _fresh(self, tip: Tip) -> Iterator[EventMeta]:
        """What may have an ancestor that is not in the cut, lowest first."""
        lines = self._lines
        for branch, upto in reversed(list(lines.dag.line(tip.record))):
            low = max(branch.cut_seq, branch.base_seq)
            if self._spare_read:
                low = max(low, branch.read_seq)
            first = Slot(*branch.key.cord, Seq(low + 1), branch.key.number)
            yield from lines.past.metas_from(first, min(upto, tip.seq))

    def _is_in(self, identity: EventId) -> bool:
        meta = self._lines.past.meta(identity)
        if meta is None:  # pruned since: it lay in a cut
            return True
        if meta.seq <= self._lines.dag.branches[meta.branch].cut_seq:
            return True
        return any(self._lines.holds(tip, meta) for tip in self._tips.get(meta.branch.cord, ()))

    def _has_read(self, record: BranchRecord) -> bool:
        if record.read_seq <= max(record.cut_seq, record.base_seq):
            return True
        return self._is_in(self._lines.dag.id_on(record, record.read_seq))
