"""What is heard and counts: events, receipts and proofs, whoever brought them.

Joins admission, the DAG, the waiting room and the receipts, and orders what must be kept.
"""

from collections import deque
from dataclasses import dataclass, field

from quipu.ledger import inv as invs
from quipu.ledger import limits
from quipu.ledger.admission import Admission, Circumstances, Placed, Verdict
from quipu.ledger.confirmer import Confirmer
from quipu.ledger.double_signing import prove_signer
from quipu.ledger.effects import DropEvents, NodeConvicted, StoreEvent, StoreInv, StoreProof
from quipu.ledger.event import EventMeta, SignedEvent, Standing
from quipu.ledger.evidence import check_proof, prove_author
from quipu.ledger.fetch import Fetch
from quipu.ledger.known import Known
from quipu.ledger.messages import EvidenceMessage
from quipu.ledger.proving import Proving
from quipu.ledger.refusals import Reason, Refused, refuse
from quipu.ledger.resend import Resend
from quipu.ledger.sync import Sync
from quipu.ledger.turn import Turn
from quipu.ledger.waiting import Waiting, WaitingRoom
from quipu.ledger.words import Cord, EventId, InvNumber, NodeId, NodeNo, Seq


@dataclass(slots=True)
class Intake:
    """Invariant: what is held, counted or proven in a turn is among the turn's durable effects."""

    known: Known
    confirmer: Confirmer
    admission: Admission
    waiting: WaitingRoom
    fetch: Fetch
    sync: Sync
    resend: Resend
    proving: Proving
    refused: dict[EventId, Reason] = field(default_factory=dict)

    # --- events ---------------------------------------------------------------------------------
    def take_event(self, event: SignedEvent, peer: NodeId, asked: bool, turn: Turn) -> int:
        """Answers how many events came to be held: this one and those that waited for it."""
        if event.id in self.refused:
            refuse(self.refused[event.id], "refused before")
        if event.hollow and not asked:
            refuse(Reason.HOLLOW, "and nobody asked for it")
        if not asked and self._is_too_far(event, turn):
            return 0  # SyncEvent brings it
        how = Circumstances(peer, asked, turn.cluster_now, turn.due_until)
        try:
            verdict = self.admission.judge(event, how, event.id in self.waiting)
        except Refused as refusal:
            self._refuse_for_good(event.id, refusal.reason)
            raise
        if verdict.missing:
            self._park(event, verdict, how, turn)
            return 0
        return self._take_judged(event, verdict, how, turn)

    def _is_too_far(self, event: SignedEvent, turn: Turn) -> bool:
        """Far behind there is no end of such events: nothing is spent on them."""
        if not self.fetch.is_far_behind(turn.now):
            return False
        return bool(self.known.dag.missing_ancestors(event.header))

    def _take_judged(
        self, event: SignedEvent, verdict: Verdict | None, how: Circumstances, turn: Turn
    ) -> int:
        """None: it is judged here."""
        count = 0
        queue: deque[tuple[SignedEvent, Verdict | None, Circumstances]] = deque()
        queue.append((event, verdict, how))
        while queue:
            event, judged, how = queue.popleft()
            try:
                verdict = judged or self.admission.judge(event, how, is_checked=True)
            except Refused as refusal:
                self._refuse_for_good(event.id, refusal.reason)
                turn.refuse(how.peer, refusal)
                continue
            if verdict.missing:  # an ancestor was refused meanwhile
                self._park(event, verdict, how, turn)
                continue
            if verdict.rival is not None:
                self._prove_fork(event, verdict.rival, how.peer, turn)
            if verdict.placed is None:
                turn.note(how.peer, Reason.FORKED)
                continue
            if event.id in self.known.entry_points:
                self.enter(event, verdict.placed, turn)
            else:
                self.hold(event, verdict.placed, turn)
            if not how.asked:
                turn.events.append(event)
            count += 1
            for child in self.waiting.release(event.id):
                queue.append((child.event, None, how._replace(peer=child.peer, asked=child.asked)))
        return count

    def enter(self, event: SignedEvent, placed: Placed, turn: Turn) -> None:
        """The tip of a cord in a cut, and nothing below it: what was held there goes, too."""
        meta, known = placed.meta, self.known
        point = known.entry_points.pop(event.id)
        record = known.dag.branches.get(meta.branch)
        if record is not None and record.held_seq > record.gone_upto:
            first = Seq(record.gone_upto + 1)
            known.past.forget(record.key, first, record.held_seq)
            self.proving.forget(record.key)
            turn.keep(DropEvents(record.key, first, record.held_seq))
        self.hold(event, placed, turn)
        known.dag.enter(meta, point.is_newest)
        for identity, (cord, seq) in list(known.cut_wanted.items()):
            if cord == point.cord and seq <= point.seq:
                del known.cut_wanted[identity]
        known.receipts.forget_below(point.cord, point.seq)

    def take_granted(self, event: SignedEvent, meta: EventMeta, peer: NodeId, turn: Turn) -> bool:
        """Of a run that was found right, so that nothing is left to judge. False: what waited for
        it has been taken too, and what is right may have changed."""
        self.hold(event, Placed(meta, Seq(0), 0, b""), turn)
        freed = self.waiting.release(event.id) if self.waiting.has_children(event.id) else []
        for child in freed:
            how = Circumstances(child.peer, child.asked, turn.cluster_now, turn.due_until)
            self._take_judged(child.event, None, how, turn)
        return not freed

    def hold(self, event: SignedEvent, placed: Placed, turn: Turn) -> None:
        meta = placed.meta
        self.known.past.remember(event, meta)
        record = self.known.dag.hold(
            meta, placed.base, placed.parent, placed.lender, turn.now.wall_ms
        )
        turn.keep(StoreEvent(event, meta))
        if event.standing is Standing.SPARED:
            self.proving.spared(record, meta)
        self.fetch.got(event.id)
        self.confirmer.consider(record.key, turn.now.monotonic_ms)
        self.resend.note(record, turn.now)
        for signer, row in self.known.receipts.unpark(meta):
            if (
                row.epoch == self.known.epochs.newest.number
                or not self.known.guards.one_epoch_certificate
            ):
                self._acknowledge(signer, meta, row.number, turn)
            elif signer == self.known.me:
                self.confirmer.take_over(meta)
        if event.id in self.known.cut_wanted:
            del self.known.cut_wanted[event.id]
            self.known.dag.cut_at(meta)

    def _park(self, event: SignedEvent, verdict: Verdict, how: Circumstances, turn: Turn) -> None:
        if event.id in self.waiting:
            return
        missing = dict.fromkeys(verdict.missing)
        waiting = Waiting(event, verdict.cord, how.peer, how.asked, missing)
        if not self.waiting.park(waiting):
            turn.note(how.peer, Reason.ROOM_FULL)
            return
        prev, below = EventId(event.header.prev), Seq(event.header.seq - 1)
        for ancestor in missing:
            if ancestor in self.waiting:
                continue
            due_ms = turn.now.monotonic_ms
            if ancestor == prev and below - self._held_seq(verdict.cord) > 1:
                self.fetch.want_line((verdict.cord, below), prev, how.peer)
                due_ms += limits.REQUEST_RETRY_MS
            self.fetch.want(ancestor, how.peer, due_ms)

    def _held_seq(self, cord: Cord) -> int:
        return max((r.held_seq for r in self.known.dag.cords.get(cord, ())), default=0)

    def _refuse_for_good(self, identity: EventId, reason: Reason) -> None:
        """Rules of bytes and ancestors never change their mind; the others may."""
        if reason not in FOR_GOOD:
            return
        self.fetch.got(identity)
        self.refused[identity] = reason
        while len(self.refused) > limits.REFUSED_RECENT_MAX:
            del self.refused[next(iter(self.refused))]
        self.waiting.drop_below(identity)

    # --- receipts -------------------------------------------------------------------------------
    def take_inv(self, inv: invs.Inv, peer: NodeId, asked: bool, turn: Turn) -> bool:
        """Answers whether this Inv is one of this node's own that it did not know."""
        if self.known.guards.cluster_id and inv.array.cluster_id != self.known.cluster_id:
            refuse(Reason.WRONG_CLUSTER)
        if inv.epoch > self.known.epochs.newest.number:
            return self._keep_for_later(inv)
        signer = self._signer_no(inv)
        if self.known.receipts.is_known(signer, inv) and self.known.guards.distinct_receipts:
            if asked and inv.epoch == self.known.epochs.newest.number:
                self.count_rows(signer, inv, inv.rows, turn)  # a parked row may have been dropped
            return False
        is_newest = self.known.receipts.is_newest(signer, inv)
        if not asked and not is_newest:
            return False
        if self.known.guards.inv_signature and not invs.has_valid_signature(inv, self.known.verify):
            refuse(Reason.BAD_SIGNATURE)
        if not is_newest and self.known.past.inv(signer, inv.number) == inv.data:  # kept already
            if inv.epoch == self.known.epochs.newest.number:
                self.count_rows(signer, inv, inv.rows, turn)
            return False
        is_news = signer == self.known.me and inv.number > self.confirmer.last_number
        self.count_inv(signer, inv, turn)
        if not asked:
            turn.receipts[signer] = inv
        return is_news

    def count_inv(self, signer: NodeNo, inv: invs.Inv, turn: Turn) -> None:
        """An Inv whose signature is good, or one's own."""
        is_newest = self.known.receipts.take(signer, inv)
        self.known.past.remember_inv(signer, inv)
        turn.keep(StoreInv(signer, inv, is_newest))
        if is_newest:
            self.sync.signer_changed(signer)
        if inv.epoch != self.known.epochs.newest.number and self.known.guards.one_epoch_certificate:
            if signer == self.known.me:
                self._bind(inv, turn)
            return
        self.count_rows(signer, inv, self._rows(signer, inv, is_newest), turn)

    def count_rows(
        self, signer: NodeNo, inv: invs.Inv, rows: list[invs.InvRow], turn: Turn
    ) -> None:
        for row in rows:
            if row.author_no in self.known.epochs.node_ids:
                self._count_row(signer, row, inv, turn)

    def _rows(self, signer: NodeNo, inv: invs.Inv, is_newest: bool) -> list[invs.InvRow]:
        if is_newest and self.known.guards.distinct_receipts:
            return self.known.receipts.fresh_rows(signer, inv)
        return inv.rows

    def _signer_no(self, inv: invs.Inv) -> NodeNo:
        epoch = self.known.epochs.by_number.get(inv.epoch)
        number = epoch.numbers.get(inv.signer) if epoch else None
        if number is not None:
            return number
        if self.known.guards.signer_is_member:
            refuse(Reason.NOT_A_MEMBER)
        return NodeNo(int.from_bytes(inv.signer[:3]) + limits.MEMBERS_MAX)

    def _keep_for_later(self, inv: invs.Inv) -> bool:
        """Counts when that epoch opens; only known nodes get the room for it. One of this node's
        own says that its disk is older than it is."""
        signer = self.known.epochs.node_numbers.get(inv.signer)
        if signer is None and self.known.coming is not None:
            signer = self.known.coming.numbers.get(inv.signer)
        if signer is None:
            refuse(Reason.EPOCH_UNKNOWN, f"epoch {inv.epoch}")
        if not invs.has_valid_signature(inv, self.known.verify):
            refuse(Reason.BAD_SIGNATURE)
        self.known.receipts.keep_for_later(signer, inv)
        return signer == self.known.me and inv.number > self.confirmer.last_number

    def _count_row(self, signer: NodeNo, row: invs.InvRow, inv: invs.Inv, turn: Turn) -> None:
        meta = self.known.past.meta(EventId(row.id))
        if meta is None and not self.known.guards.rows_need_held_id:
            meta = self._by_position(row)
        if meta is None and self.known.dag.is_gone(row.cord, row.seq):
            return  # Read, whoever holds it
        if meta is None:
            is_parked = self.known.receipts.park(signer, row, inv)
            if is_parked and not self.fetch.is_far_behind(turn.now):
                hint = self.known.epochs.node_ids.get(signer, self.known.node_id)
                due_ms = turn.now.monotonic_ms + limits.WANT_AFTER_INV_MS
                self.fetch.want(EventId(row.id), hint, due_ms)
        elif meta.branch.cord == row.cord and (
            meta.seq == row.seq or not self.known.guards.rows_need_held_id
        ):
            self._acknowledge(signer, meta, inv.number, turn)

    def _by_position(self, row: invs.InvRow) -> EventMeta | None:
        """Only with `rows_need_held_id` off."""
        for record in self.known.dag.cords.get(row.cord, ())[:1]:
            return self.known.past.meta(
                self.known.dag.id_on(record, Seq(min(row.seq, record.held_seq)))
            )
        return None

    def _acknowledge(self, signer: NodeNo, meta: EventMeta, number: InvNumber, turn: Turn) -> None:
        if signer == self.known.me:
            self.confirmer.take_over(meta)
        is_news = self.known.dag.acknowledge(signer, meta, number)
        if is_news and len(self.known.dag.cords[meta.branch.cord]) > 1:
            proof = prove_signer(self.known.dag, self.known.past, signer, meta)
            if proof is not None:
                self.take_proof(proof, self.known.node_id, turn)

    def _bind(self, inv: invs.Inv, turn: Turn) -> None:
        """An own receipt of a past epoch counts no more, but it still binds the signer."""
        for row in inv.rows:
            meta = self.known.past.meta(EventId(row.id))
            if meta is not None:
                self.confirmer.take_over(meta)
            elif not self.known.dag.is_gone(row.cord, row.seq):
                self.known.receipts.park(self.known.me, row, inv)
                self.fetch.want(EventId(row.id), self.known.node_id, turn.now.monotonic_ms)

    # --- proofs ---------------------------------------------------------------------------------
    def _prove_fork(self, event: SignedEvent, rival: EventId, peer: NodeId, turn: Turn) -> None:
        other = self.known.past.event(rival)
        assert other is not None
        proof = prove_author(
            (event.header_bytes, event.signature, event.id),
            (other.header_bytes, other.signature, other.id),
        )
        self.take_proof(proof, peer, turn)

    def take_proof(self, data: bytes, peer: NodeId, turn: Turn) -> None:
        """A proof that holds is kept, told to all, and ends what its culprit may be signed."""
        if any(held.data == data for held in self.known.convictions.all()):
            return
        conviction = check_proof(data, self.known.cluster_id, self.known.verify)
        if conviction.culprit not in self.known.epochs.node_numbers:
            refuse(Reason.NOT_A_MEMBER)
        if not self.known.convictions.take(conviction):
            return
        turn.keep(StoreProof(conviction))
        turn.say(NodeConvicted(conviction))
        others = [other for other in self.sync.views if other != peer]
        turn.send_first(others, EvidenceMessage(data))
        self.confirmer.consider_all()

    def cut_rows(self, rows: list[tuple[Cord, Seq, EventId]]) -> None:
        """The cut of an epoch that opens: what is held of it is Read, the rest is wanted."""
        if not self.known.guards.cut_is_read:
            return
        for cord, seq, identity in rows:
            meta = self.known.past.meta(identity)
            if meta is not None:
                self.known.dag.cut_at(meta)
            elif not self.known.dag.is_gone(cord, seq):
                self.known.cut_wanted[identity] = (cord, seq)


FOR_GOOD = frozenset(
    {
        Reason.BAD_SEQ,
        Reason.BAD_PREV,
        Reason.BAD_PARENTS,
        Reason.BAD_HLC,
        Reason.BAD_DEPTH,
        Reason.EPOCH_FALLS,
        Reason.WRONG_CLUSTER,
        Reason.NOT_A_MEMBER,
        Reason.PRUNED,
    }
)
