"""What this node acknowledges (seed 003: sending an Inv), and when it says so.

A signer acknowledges at most one id for a slot, ever; nothing new of an author with a proof
against it; nothing before its time; nothing above a cut of an author who left. One Inv a turn.
"""

from dataclasses import dataclass, field

from quipu.ledger import inv, limits
from quipu.ledger.epochs import Epoch
from quipu.ledger.event import EventMeta
from quipu.ledger.history import BranchRecord
from quipu.ledger.known import Known
from quipu.ledger.words import (
    HLC_SHIFT,
    BranchKey,
    Cord,
    EventId,
    Hlc,
    InvNumber,
    NodeNo,
    Now,
    Seq,
    hlc_at,
)

NOT_DUE_RETRY_MS = limits.SYNC_DIFFERENCE_AGE_MS

Row = tuple[Cord, Seq, EventId]


@dataclass(slots=True)
class Grounds:
    """All that a decision to sign rests on, besides what is held."""

    me: NodeNo
    epoch: Epoch
    due_until: Hlc
    now: Now


@dataclass(slots=True)
class Confirmer:
    """Invariant: `signed_seq` of a branch only grows, and of two branches of a cord at most one
    is signed above what they share."""

    known: Known
    last_number: InvNumber = InvNumber(0)
    sealed: bytes = b""  # the CLOSE that was sealed; nothing is signed until the epoch opens
    risen: tuple[NodeNo, ...] = ()  # whose events the last receipt was the first to cover
    owes_first: bool = False  # the first Inv of an epoch covers all that is held
    not_due_ms: int | None = None  # when to look again at what waits for its time
    _pending: dict[BranchKey, None] = field(default_factory=dict)
    _not_due: dict[BranchKey, None] = field(default_factory=dict)  # has events ahead of their time
    _open: dict[Cord, None] = field(default_factory=dict)  # all that are; some may have closed
    _next_ms: int = 0
    _heard_ms: int | None = None  # when the last event came
    _is_idle: bool = False  # it is all that is new, and came after a silence

    def consider(self, key: BranchKey, now_ms: int) -> None:
        """An event has come to be held."""
        self._is_idle = not self._pending and self._was_silent(now_ms)
        self._heard_ms = now_ms
        self._pending[key] = None
        self._open[key.cord] = None

    def _was_silent(self, now_ms: int) -> bool:
        """For a millisecond a member: that many receipts of one event each a node can take."""
        others = len(self.known.epochs.newest.members) - 1
        return others > 0 and (self._heard_ms is None or now_ms - self._heard_ms >= others)

    def consider_all(self) -> None:
        self._is_idle = False
        self._pending.update(dict.fromkeys(self.known.dag.branches))
        self._open.update(dict.fromkeys(self.known.dag.cords))

    @property
    def deadline_ms(self) -> int | None:
        waits = [self._due_ms] if self._pending or self.owes_first else []
        if self.not_due_ms is not None:
            waits.append(self.not_due_ms)
        return min(waits, default=None)

    @property
    def _due_ms(self) -> int:
        """When idle at once: nothing would share an Inv that waits."""
        return 0 if self._is_idle else self._next_ms

    def signed_at_ms(self, now_ms: int) -> int:
        """When an event that comes now would be signed, if nothing but time speaks against it."""
        if not self._pending and self._was_silent(now_ms):
            return now_ms
        return max(self._next_ms, now_ms)

    # --- what may be signed ---------------------------------------------------------------------
    def signable_seq(
        self, record: BranchRecord, grounds: Grounds, opening: dict[Cord, None]
    ) -> Seq:
        """The highest seq of this branch that this node may acknowledge now; `opening` are the
        cords that get their first receipt in this turn."""
        author = record.key.author_no
        upto = record.held_seq
        if author not in grounds.epoch.members:
            upto = min(upto, record.cut_seq)
        if self.known.guards.one_id_per_slot:
            upto = min(upto, self._unrivalled_seq(record, grounds.me))
        if self.known.guards.conviction_ends_cord:
            upto = min(upto, self._unconvicted_seq(record, grounds))
        if not record.signed_seq and self._is_journal_too_many(record, opening):
            upto = Seq(0)
        if self.known.guards.receipts_wait_due:
            upto = self._due_seq(record, upto, grounds)
        return max(record.signed_seq, upto)

    def _unrivalled_seq(self, record: BranchRecord, me: NodeNo) -> Seq:
        # Once this node signed an event of the cord that it has lost since: it cannot know whether
        # what it holds now lies below that one. Of its own events there is but one for a slot.
        is_own = record.key.author_no == me
        if not is_own and self.known.receipts.names_cord(record.key.cord, me):
            return Seq(0)
        # The cut of an epoch names what members acknowledged, this one perhaps among them.
        if any(cord == record.key.cord for cord, _ in self.known.cut_wanted.values()):
            return Seq(0)
        upto = record.held_seq
        for other in self.known.dag.cords[record.key.cord]:
            if other is record:
                continue
            shared = self.known.dag.shared_seq(record, other)
            if other.signed_seq > shared:
                upto = min(upto, shared)
        return upto

    def _unconvicted_seq(self, record: BranchRecord, grounds: Grounds) -> Seq:
        author = grounds.epoch.members.get(record.key.author_no)
        conviction = self.known.convictions.of_author(author) if author else None
        if conviction is None:
            return record.held_seq
        return Seq(conviction.seq - 1) if conviction.journal == record.key.journal else Seq(0)

    def _is_journal_too_many(self, record: BranchRecord, opening: dict[Cord, None]) -> bool:
        signed = [
            cord
            for cord, branches in self.known.dag.cords.items()
            if cord.author_no == record.key.author_no
            and cord != record.key.cord
            and (cord in opening or any(branch.signed_seq > branch.cut_seq for branch in branches))
        ]
        return len(signed) >= limits.JOURNALS_SIGNED_MAX

    def _due_seq(self, record: BranchRecord, upto: Seq, grounds: Grounds) -> Seq:
        """hlc grows along a cord, so what is due is found by halving."""
        if (
            upto <= max(record.signed_seq, _kept_from(record))
            or self._hlc_at(record, upto) <= grounds.due_until
        ):
            return upto
        # Due up to low, for what is in a cut is; high is not.
        low, high = max(record.signed_seq, _kept_from(record)), upto
        while high - low > 1:
            middle = Seq((low + high) // 2)
            if self._hlc_at(record, middle) <= grounds.due_until:
                low = middle
            else:
                high = middle
        wait_ms = (self._hlc_at(record, high) - grounds.due_until) >> HLC_SHIFT
        again_ms = grounds.now.monotonic_ms + min(max(wait_ms, 1), NOT_DUE_RETRY_MS)
        self.not_due_ms = min(self.not_due_ms or again_ms, again_ms)
        self._not_due[record.key] = None
        return low

    def _hlc_at(self, record: BranchRecord, seq: Seq) -> Hlc:
        if seq == record.held_seq:
            return record.held_hlc
        return self.known.past.held(self.known.dag.id_on(record, seq)).hlc

    # --- signing --------------------------------------------------------------------------------
    def sign(self, grounds: Grounds) -> list[inv.Inv]:
        """The Invs of this turn; the last of them is the one to send."""
        if grounds.me not in grounds.epoch.members or self.sealed:
            return []
        if grounds.now.monotonic_ms < self._due_ms:
            return []
        rising = self._rising(grounds)
        if not rising and not self.owes_first:
            return []
        pace_ms = max(limits.INV_INTERVAL_FLOOR_MS, len(grounds.epoch.members) - 1)
        self._next_ms = grounds.now.monotonic_ms + pace_ms
        self.risen = tuple(record.key.author_no for record, _ in rising)
        invs = self._strides(rising, grounds)
        for record, seq in rising:
            self._sign_upto(record, seq)
        invs.append(self._build(self._open_rows(grounds, self.owes_first), grounds))
        self.owes_first = False
        return invs

    def seal(self, close: bytes, grounds: Grounds) -> list[inv.Inv]:
        """One last Inv of this epoch, with a row for every cord acknowledged above the cut."""
        if grounds.me not in grounds.epoch.members or close == self.sealed:
            return []
        self.sealed = close
        rows = self._open_rows(grounds, everything=True)
        return [self._build(rows, grounds, close)]

    def cover(self, ends: list[EventMeta], grounds: Grounds) -> inv.Inv:
        """The receipt of an epoch that is coming, over its cut: all of it is held."""
        rows: dict[Cord, tuple[Seq, BranchRecord]] = {}
        for end in ends:
            record = self.known.dag.branches[end.branch]
            seq = min(
                self._unrivalled_seq(record, grounds.me), self._unconvicted_seq(record, grounds)
            )
            seq = min(end.seq, max(seq, record.signed_seq))
            if seq <= record.gone_upto:  # what it could name is held no more
                continue
            if seq > rows.get(end.branch.cord, (0,))[0]:
                rows[end.branch.cord] = (Seq(seq), record)
        for seq, record in rows.values():
            self._sign_upto(record, seq)
        signed = [(c, seq, self.known.dag.id_on(r, seq)) for c, (seq, r) in sorted(rows.items())]
        return self._build(signed, grounds)

    def recall_numbers(self, me: NodeNo) -> None:
        """Receipts of a coming epoch are kept beside the newest."""
        for data in self.known.past.invs_from(me, InvNumber(self.last_number + 1)):
            self.last_number = max(self.last_number, inv.decode_inv(data).number)

    def take_over(self, meta: EventMeta) -> None:
        """An own receipt from before a loss: it binds like any other."""
        self._sign_upto(self.known.dag.branches[meta.branch], meta.seq)

    def _rising(self, grounds: Grounds) -> list[tuple[BranchRecord, Seq]]:
        pending = sorted(self._pending | self._not_due)
        self._pending, self._not_due, self.not_due_ms = {}, {}, None
        rising: list[tuple[BranchRecord, Seq]] = []
        opening: dict[Cord, None] = {}
        for key in pending:
            record = self.known.dag.branches[key]
            seq = self.signable_seq(record, grounds, opening)
            if seq > record.signed_seq and seq > max(record.base_seq, record.gone_upto):
                rising.append((record, seq))
                opening[key.cord] = None
        by_cord: dict[Cord, tuple[BranchRecord, Seq]] = {}
        for record, seq in rising:  # of two new branches the one that was stored first
            if self.known.guards.one_id_per_slot:
                by_cord.setdefault(record.key.cord, (record, seq))
            else:
                by_cord[record.key.cord] = (record, seq)
        self._pending.update((r.key, None) for r, _ in rising if by_cord[r.key.cord][0] is not r)
        return list(by_cord.values())

    def _sign_upto(self, record: BranchRecord, seq: Seq) -> None:
        for branch, upto in self.known.dag.line(record):
            reached = min(seq, upto)
            if branch.signed_seq < reached:
                branch.signed_seq = reached
                self.known.dag.changed[branch.key] = branch

    def _strides(self, rising: list[tuple[BranchRecord, Seq]], grounds: Grounds) -> list[inv.Inv]:
        """A row that rises far gets kept Invs in between, so that a proof needs few headers."""
        stride = limits.INV_STRIDE
        begun = {r.key: max(r.signed_seq, r.gone_upto) for r, _ in rising}
        steps = max(((seq - begun[r.key] - 1) // stride for r, seq in rising), default=0)
        invs: list[inv.Inv] = []
        for step in range(1, steps + 1):
            rows = [
                (r.key.cord, s, self.known.dag.id_on(r, s))
                for r, seq in rising
                if (s := Seq(begun[r.key] + step * stride)) < seq
            ]
            invs.append(self._build(sorted(rows), grounds))
        return invs

    def _open_rows(self, grounds: Grounds, everything: bool) -> list[Row]:
        """`everything`: all that was acknowledged above the last cut."""
        rows: list[Row] = []
        for cord in sorted(self.known.dag.cords if everything else self._open):
            branches = self.known.dag.cords[cord]
            signed = [b for b in branches if b.signed_seq > max(b.base_seq, b.gone_upto)]
            if not signed:
                continue
            record = max(signed, key=lambda b: (b.signed_seq, -b.key.number))
            if everything and record.signed_seq > record.cut_seq:
                pass
            elif not self._is_open(record, grounds.now):
                self._open.pop(cord, None)
                continue
            rows.append((cord, record.signed_seq, self.known.dag.id_on(record, record.signed_seq)))
        return rows[: limits.INV_ROWS_MAX]

    def _is_open(self, record: BranchRecord, now: Now) -> bool:
        """The newest journal of its author, or not Read yet, or moved lately."""
        return (
            record.key.journal == self.known.dag.newest_journal[record.key.author_no]
            or record.signed_seq > record.read_seq
            or now.wall_ms - record.moved_ms <= limits.CORD_OPEN_MS
        )

    def _build(self, rows: list[Row], grounds: Grounds, close: bytes | None = None) -> inv.Inv:
        number = max(self.last_number + 1, hlc_at(grounds.now.wall_ms))
        if not self.known.guards.inv_numbers_rise:
            number = hlc_at(grounds.now.wall_ms)
        self.last_number = InvNumber(number)
        return inv.build_inv(
            self.known.key,
            self.known.cluster_id,
            grounds.epoch.number,
            self.last_number,
            rows,
            close,
        )


def _kept_from(record: BranchRecord) -> Seq:
    """The tip of the cut with which a pruned branch begins; 0: it is whole."""
    return Seq(record.gone_upto + 1) if record.gone_upto else Seq(0)
