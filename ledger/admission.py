"""What becomes of an event from outside (seed 003: receiving a new Event, its validity).

Judges and changes nothing: the answer is a verdict, or a refusal. Well-formed is a function of
bytes, ancestors and epoch document; the age of an event is a reason to leave it to SyncEvent,
never a rule of validity.
"""

from dataclasses import dataclass
from typing import NamedTuple

from quipu.ledger import limits
from quipu.ledger.event import EventMeta, SignedEvent, Standing, has_valid_signature, meta_of
from quipu.ledger.known import Known
from quipu.ledger.refusals import Reason, refuse
from quipu.ledger.words import Cord, EpochNo, EventId, Hlc, Journal, NodeId, NodeNo, Seq, hlc_at

TOO_OLD = hlc_at(limits.EVENT_AGE_MS_MAX)


class Circumstances(NamedTuple):
    """How an event came, and when."""

    peer: NodeId
    asked: bool
    cluster_now: Hlc
    due_until: Hlc


class Placed(NamedTuple):
    meta: EventMeta
    base: Seq
    parent: int
    lender: bytes


class Verdict(NamedTuple):
    cord: Cord
    placed: Placed | None = None
    missing: tuple[EventId, ...] = ()  # ancestors to wait for
    rival: EventId | None = None  # the other event for the same slot: a proof


@dataclass(slots=True)
class Admission:
    known: Known

    def judge(self, event: SignedEvent, how: Circumstances, is_checked: bool = False) -> Verdict:
        """`is_checked`: the signature was, when it came to wait for its parents."""
        header, guards = event.header, self.known.guards
        if guards.cluster_id and header.cluster_id != self.known.cluster_id:
            refuse(Reason.WRONG_CLUSTER)
        cord = Cord(self._author_no(event), Journal(header.journal))
        if not is_checked:
            asked = how.asked and guards.window_only_on_admission
            if not asked and header.hlc + TOO_OLD < how.cluster_now:
                refuse(Reason.TOO_OLD)
            is_open = event.standing is Standing.UNCHECKED and guards.event_signature
            if is_open and not has_valid_signature(event, self.known.verify):
                refuse(Reason.BAD_SIGNATURE)
        point = self.known.entry_points.get(event.id)
        if point is not None and (point.cord, point.seq) == (cord, header.seq):
            return Verdict(cord, Placed(meta_of(event, cord.author_no, 0), Seq(0), 0, b""))
        if self.known.dag.is_gone(cord, header.seq - 1) and guards.cut_is_read:
            refuse(Reason.PRUNED)  # with what it follows; the tip above it is held
        missing = self.known.dag.missing_ancestors(header) if guards.parents_held else []
        if missing:
            return Verdict(cord, missing=tuple(missing))
        self.known.dag.check_ancestors(header, cord)
        self._check_end(cord, Seq(header.seq))
        key, base, parent = self.known.dag.branch_for(header, cord)
        self._check_not_too_many_wait(event, key.number, cord, how.due_until)
        rival = self.known.dag.rival_of(header, cord)
        lender = b""
        if rival is not None:
            vouched = self._lender(event, cord, how)
            if vouched is None:
                return Verdict(cord, rival=rival)
            lender = vouched
        elif not how.asked and self._is_disowned(event, cord):
            refuse(Reason.FORKED, "of a proven forker, and nobody asked for it")
        return Verdict(
            cord,
            Placed(meta_of(event, cord.author_no, key.number), base, parent, lender),
            (),
            rival,
        )

    def _author_no(self, event: SignedEvent) -> NodeNo:
        epoch = self.known.epochs.by_number.get(EpochNo(event.header.epoch))
        if epoch is None:
            refuse(Reason.EPOCH_UNKNOWN, f"epoch {event.header.epoch}")
        author = NodeId(event.header.author)
        number = epoch.numbers.get(author)
        if number is None:
            if self.known.guards.author_is_member:
                refuse(Reason.NOT_A_MEMBER)
            return NodeNo(int.from_bytes(author[:3]) + limits.MEMBERS_MAX)
        return number

    def _check_end(self, cord: Cord, seq: Seq) -> None:
        """The cords of an author who left end at the cut."""
        if (
            cord.author_no in self.known.epochs.newest.members
            or not self.known.guards.author_is_member
        ):
            return
        reach = max((s for c, s in self.known.cut_wanted.values() if c == cord), default=Seq(0))
        reach = max([reach, *(record.cut_seq for record in self.known.dag.cords.get(cord, ()))])
        if seq > reach:
            refuse(Reason.CORD_ENDED)

    def _check_not_too_many_wait(
        self, event: SignedEvent, number: int, cord: Cord, due_until: Hlc
    ) -> None:
        if event.header.hlc <= due_until:
            return
        for record in self.known.dag.cords.get(cord, ())[number : number + 1]:
            settled = max(record.signed_seq, record.read_seq)
            if record.held_seq - settled >= limits.EVENTS_NOT_DUE_PER_CORD_MAX:
                refuse(Reason.NOT_DUE)

    def _is_disowned(self, event: SignedEvent, cord: Cord) -> bool:
        """At or above a proven fork, and no member but the author has a receipt for it."""
        conviction = self.known.convictions.of_author(NodeId(event.header.author))
        return (
            conviction is not None
            and conviction.journal == cord.journal
            and event.header.seq >= conviction.seq
            and not self.known.receipts.names(event.id, cord.author_no)
        )

    def _lender(self, event: SignedEvent, cord: Cord, how: Circumstances) -> bytes | None:
        """Who vouches for a second branch: empty when a receipt names exactly this event, else
        the peer that was asked for it, once a cord; None: nobody does, the proof is enough."""
        if not self.known.guards.vouched_branches_only:
            return b""
        branches = self.known.dag.cords[cord]
        if (
            not self.known.guards.certified_branches_kept
            or len(branches) >= limits.BRANCHES_PER_CORD_MAX
        ):
            return None
        if self.known.receipts.names(event.id, cord.author_no):
            return b""
        lent = sum(1 for record in branches if record.lender == how.peer)
        if how.asked and lent < limits.BRANCHES_PER_LENDER_MAX:
            return bytes(how.peer)
        return None
