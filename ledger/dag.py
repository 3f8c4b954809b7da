"""The DAG: which events are held, on which line of which cord, and which of them are Read.

Decides placement, ancestry (seed 003: "add new Event to Model"), what a certificate reaches, and
the leaves. Knows nothing of peers, time or signatures. Memory: one record a branch; nothing for
an event that is Read.
"""

from collections import deque
from collections.abc import Iterable, Iterator

from quipu.ledger import limits
from quipu.ledger.epochs import Epoch
from quipu.ledger.event import EventMeta, Header
from quipu.ledger.history import BranchRecord
from quipu.ledger.past import Past
from quipu.ledger.quorum import certified_seq
from quipu.ledger.refusals import Reason, refuse
from quipu.ledger.safeguards import Safeguards
from quipu.ledger.words import (
    BranchKey,
    Cord,
    EventId,
    Hlc,
    InvNumber,
    Journal,
    NodeNo,
    Seq,
    Slot,
)


class Dag:
    """Invariant: an event is held only if prev and parents are; Read only if they are Read."""

    def __init__(
        self, past: Past, records: Iterable[BranchRecord], cluster_id: bytes, guards: Safeguards
    ) -> None:
        self._past = past
        self._cluster_id = cluster_id
        self._guards = guards
        self.branches: dict[BranchKey, BranchRecord] = {}
        self.cords: dict[Cord, list[BranchRecord]] = {}
        self.leaves: dict[EventId, Hlc] = {}
        self.newest_journal: dict[NodeNo, Journal] = {}
        self.changed: dict[BranchKey, BranchRecord] = {}  # since the step began
        self.rows_changed: dict[Cord, None] = {}  # what others are told of these has changed
        self._unsettled: dict[BranchKey, None] = {}  # may have more to make Read
        self._blocked: dict[BranchKey, dict[BranchKey, None]] = {}  # by an Unread event of the key
        self._repeats: dict[BranchKey, list[Seq]] = {}  # only with `distinct_receipts` off
        self._entered: list[EventMeta] = []  # Read without what is below them, not told yet
        self.has_gone = False  # something has been pruned
        for record in sorted(records, key=lambda record: record.key):
            self._add(record.copy())
            if record.leaf:
                self.leaves[record.read_id] = past.held(record.read_id).hlc
        self._unsettled.update(dict.fromkeys(self.branches))

    def _add(self, record: BranchRecord) -> None:
        key = record.key
        self.branches[key] = record
        self.cords.setdefault(key.cord, []).append(record)
        newest = self.newest_journal.get(key.author_no, Journal(0))
        self.newest_journal[key.author_no] = max(newest, key.journal)
        self.has_gone |= record.gone_upto > 0

    # --- lines ----------------------------------------------------------------------------------
    def line(self, record: BranchRecord) -> Iterator[tuple[BranchRecord, Seq]]:
        """The branch and those below it, each with the highest seq that belongs to the line."""
        upto = record.held_seq
        while True:
            yield record, upto
            if record.key.number == 0 or record.base_seq == 0:
                return
            upto = min(upto, record.base_seq)
            record = self.branches[record.key._replace(number=record.parent)]

    def id_on(self, record: BranchRecord, seq: Seq) -> EventId:
        """The event at `seq` on the line of this branch."""
        assert 1 <= seq <= record.held_seq
        if seq == record.held_seq:
            return record.held_id
        for branch, upto in self.line(record):
            if branch.base_seq < seq <= upto:
                identity = self._past.id_at(Slot(*branch.key.cord, seq, branch.key.number))
                assert identity is not None
                return identity
        raise AssertionError(f"no event {seq} on {record.key}")

    def is_on_line(self, meta: EventMeta, record: BranchRecord) -> bool:
        return any(
            branch.key == meta.branch and meta.seq <= upto for branch, upto in self.line(record)
        )

    def shared_seq(self, one: BranchRecord, other: BranchRecord) -> Seq:
        """The last seq that two branches of a cord have in common."""
        line = {branch.key: upto for branch, upto in self.line(one)}
        for branch, upto in self.line(other):
            if branch.key in line:
                return min(upto, line[branch.key])
        return Seq(0)

    def is_gone(self, cord: Cord, seq: int) -> bool:
        """Pruned, and so Read and in a cut; only a cord with one branch has any such."""
        return any(record.gone_upto >= max(seq, 1) for record in self.cords.get(cord, ()))

    def is_read(self, meta: EventMeta) -> bool:
        return self.branches[meta.branch].read_seq >= meta.seq

    # --- placement ------------------------------------------------------------------------------
    def missing_ancestors(self, header: Header) -> list[EventId]:
        wanted = [EventId(parent) for parent in header.parents]
        if header.seq > 1:
            wanted.append(EventId(header.prev))
        return [identity for identity in wanted if self._past.meta(identity) is None]

    def check_ancestors(self, header: Header, cord: Cord) -> None:
        """What the header says of its ancestors, all of which are held."""
        ancestors = [self._past.meta(EventId(parent)) for parent in header.parents]
        for parent in ancestors:
            if parent is not None and parent.branch.cord == cord:
                refuse(Reason.BAD_PARENTS, "a parent lies in the own cord")
        if header.seq > 1:
            prev = self._past.meta(EventId(header.prev))
            if prev is not None and (prev.branch.cord != cord or prev.seq != header.seq - 1):
                refuse(Reason.BAD_PREV)
            ancestors.append(prev)
        known = [meta for meta in ancestors if meta is not None]
        if any(meta.epoch > header.epoch for meta in known):
            refuse(Reason.EPOCH_FALLS)
        if self._guards.hlc_rises and any(meta.hlc >= header.hlc for meta in known):
            refuse(Reason.BAD_HLC)
        depth = 1 + max((meta.depth for meta in known), default=0)
        if self._guards.depth_certified and header.depth != depth:
            refuse(Reason.BAD_DEPTH, f"{header.depth}, by its ancestors {depth}")

    def rival_of(self, header: Header, cord: Cord) -> EventId | None:
        """The event held for this slot by the branch that this one would have to leave."""
        if header.seq == 1:
            first = self.branches.get(BranchKey(*cord, 0))
            return self.id_on(first, Seq(1)) if first else None
        prev = self._past.meta(EventId(header.prev))
        if prev is None:  # with the check of ancestors off
            return None
        branch = self.branches[prev.branch]
        if branch.held_id == prev.id:
            return None
        return self.id_on(branch, Seq(header.seq))

    def branch_for(self, header: Header, cord: Cord) -> tuple[BranchKey, Seq, int]:
        """Key, base and parent of the branch that this event extends or begins."""
        count = len(self.cords.get(cord, ()))
        if header.seq == 1:
            return BranchKey(*cord, count), Seq(0), 0
        prev = self._past.meta(EventId(header.prev))
        if prev is None:  # with the check of ancestors off
            return BranchKey(*cord, count), Seq(header.seq - 1), 0
        branch = self.branches[prev.branch]
        if branch.held_id == prev.id:
            return branch.key, branch.base_seq, branch.parent
        return BranchKey(*cord, count), Seq(header.seq - 1), branch.key.number

    def hold(
        self, meta: EventMeta, base: Seq, parent: int, lender: bytes, wall_ms: int
    ) -> BranchRecord:
        """Takes an event that `branch_for` has placed; answers the branch."""
        key = meta.branch
        record = self.branches.get(key)
        if record is None:
            record = BranchRecord(key, base, parent, meta.seq, meta.id, meta.hlc, lender=lender)
            self._add(record)
        record.held_seq, record.held_id, record.held_hlc = meta.seq, meta.id, meta.hlc
        record.moved_ms = wall_ms
        self.rows_changed[key.cord] = None
        self._changed(record)
        return record

    def _changed(self, record: BranchRecord) -> None:
        self.changed[record.key] = record
        self._unsettled[record.key] = None

    # --- receipts -------------------------------------------------------------------------------
    def acknowledge(self, signer: NodeNo, meta: EventMeta, number: InvNumber) -> bool:
        """Counts a receipt for an event that is held, and for all below it on its line."""
        news = False
        upto = meta.seq
        for record, limit in self.line(self.branches[meta.branch]):
            upto = min(upto, limit)
            if upto <= record.receipts.get(signer, (0, 0))[0]:
                break
            record.receipts[signer] = (upto, number)
            news = True
            if record.lender and signer != record.key.author_no:
                record.lender = b""
                self.rows_changed[record.key.cord] = None
            self._changed(record)
        if not self._guards.distinct_receipts:
            self._repeats.setdefault(meta.branch, []).append(meta.seq)
            self._changed(self.branches[meta.branch])
        return news

    def cut_at(self, meta: EventMeta) -> None:
        """Everything on this line up to the event lies in the cut of an opened epoch."""
        for record, upto in self.line(self.branches[meta.branch]):
            seq = min(meta.seq, upto)
            if record.cut_seq < seq:
                record.cut_seq = seq
                self.rows_changed[record.key.cord] = None
                self._changed(record)

    def enter(self, meta: EventMeta, is_leaf: bool) -> None:
        """An event of a cut that is held without what is below it."""
        record = self.branches[meta.branch]
        if record.leaf:
            self.leaves.pop(record.read_id, None)
        record.gone_upto, record.cut_seq = Seq(meta.seq - 1), meta.seq
        record.read_seq, record.read_id, record.leaf = meta.seq, meta.id, is_leaf
        record.spared_from = record.spared_upto = Seq(0)
        if is_leaf:
            self.leaves[meta.id] = meta.hlc
        self._entered.append(meta)
        self.has_gone = True
        self._changed(record)

    def forget_receipts(self) -> None:
        """A new epoch counts anew: what a past one certified lies in the cut."""
        for record in self.branches.values():
            if record.receipts:
                record.receipts.clear()
                self.changed[record.key] = record

    def certified(self, record: BranchRecord, epoch: Epoch) -> int:
        """The highest seq that the author and MAX_CONFIRMS other members cover."""
        author = record.key.author_no
        seqs = {no: seq for no, (seq, _) in record.receipts.items() if no in epoch.members}
        others = [seq for no, seq in seqs.items() if no != author]
        others += self._repeats.get(record.key, [])
        own = seqs.get(author, 0) if self._guards.author_receipt else record.held_seq
        return certified_seq(own, others, epoch.max_confirms)

    def read_confirms(self, meta: EventMeta) -> int:
        """How many distinct members other than the author are known to hold the event."""
        record = self.branches[meta.branch]
        return sum(
            1
            for no, (seq, _) in record.receipts.items()
            if no != record.key.author_no and seq >= meta.seq
        )

    # --- Read -----------------------------------------------------------------------------------
    def settle(self, epoch: Epoch) -> list[EventMeta]:
        """Makes Read what can be, and answers it in causal order."""
        fresh, self._entered = self._entered, []
        for meta in fresh:
            self._unsettled.update(self._blocked.pop(meta.branch, {}))
        queue = deque(self._unsettled)
        self._unsettled.clear()
        while queue:
            record = self.branches[queue.popleft()]
            room = limits.READ_PER_TURN_MAX - len(fresh)
            if room <= 0:
                self._unsettled[record.key] = None
                continue
            before = len(fresh)
            self._settle_branch(record, epoch, fresh, room)
            if len(fresh) > before:
                queue.extend(self._blocked.pop(record.key, ()))
        return fresh

    @property
    def is_settled(self) -> bool:
        """False: the next turn has more to make Read, whatever comes."""
        return not self._unsettled

    def _settle_branch(
        self, record: BranchRecord, epoch: Epoch, fresh: list[EventMeta], room: int
    ) -> None:
        target = min(record.held_seq, max(self.certified(record, epoch), record.cut_seq))
        seq = max(record.read_seq, record.base_seq)
        if seq >= target:
            return
        if record.base_seq and not self._is_base_read(record):
            return
        upto = Seq(min(target, seq + room))
        ready: list[EventMeta] = []
        first = Slot(*record.key.cord, Seq(seq + 1), record.key.number)
        for meta in self._past.metas_from(first, upto):
            # None of them is a parent of another: a parent lies in another cord.
            if meta.parents and self._guards.parents_read and self._waits(meta, record):
                break
            ready.append(meta)
        else:
            if upto < target:
                self._unsettled[record.key] = None
        if ready:
            self._make_read(record, ready)
            fresh += ready

    def _is_base_read(self, record: BranchRecord) -> bool:
        below = self.branches.get(record.key._replace(number=record.parent))
        if below is None or below.key == record.key:  # with the check of ancestors off
            return True
        base = self._past.held(self.id_on(below, record.base_seq))
        if self.is_read(base):
            return True
        self._blocked.setdefault(base.branch, {})[record.key] = None
        return False

    def _waits(self, meta: EventMeta, record: BranchRecord) -> bool:
        for parent in meta.parents:
            place = self._past.meta(parent)
            if place is None and self.has_gone:
                continue  # what is held had its parents held: this one has been pruned since
            if place is None or not self.is_read(place):
                if place is not None:
                    self._blocked.setdefault(place.branch, {})[record.key] = None
                return True
        return False

    def _make_read(self, record: BranchRecord, metas: list[EventMeta]) -> None:
        """These follow one another, so all but the last are named as prev by the next."""
        meta = metas[-1]
        record.read_seq, record.read_id, record.leaf = meta.seq, meta.id, True
        self.changed[record.key] = record
        self.rows_changed[record.key.cord] = None
        self.leaves[meta.id] = meta.hlc
        named = [metas[0].prev]
        for one in metas:
            named += one.parents
        for ancestor in named:
            if self.leaves.pop(ancestor, None) is None:
                continue
            other = self.branches[self._past.held(ancestor).branch]  # a leaf is a tip: it stays
            if other.read_id == ancestor:
                other.leaf = False
                self.changed[other.key] = other

    # --- views ----------------------------------------------------------------------------------
    def oldest_leaves(self, count: int = limits.SYNC_LEAVES_MAX) -> list[EventId]:
        ordered = sorted(self.leaves.items(), key=lambda item: (item[1], item[0]))
        return [identity for identity, _ in ordered[:count]]
