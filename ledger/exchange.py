"""What a node says to its peers on its own account: SyncEvents, requests, and Unread events again.

Joins `sync`, `gaps`, `fetch` and `resend` over the peers that are connected.
"""

from hashlib import sha256

from quipu.ledger import limits
from quipu.ledger.effects import SendMessage
from quipu.ledger.fetch import Request, Wants
from quipu.ledger.gaps import Gaps
from quipu.ledger.history import BranchRecord
from quipu.ledger.intake import Intake
from quipu.ledger.inv import Inv, decode_inv
from quipu.ledger.messages import (
    EpochWant,
    EventMessage,
    EvidenceMessage,
    InvMessage,
    InvWant,
    SyncEvent,
    bytes_of,
    encode_message,
)
from quipu.ledger.observers import Observers
from quipu.ledger.recovery import Recovery
from quipu.ledger.safeguards import Safeguards
from quipu.ledger.sync import PeerView
from quipu.ledger.turn import Turn
from quipu.ledger.words import NOT_A_MEMBER, BranchKey, EventId, InvNumber, NodeId, Now, Seq


class Exchange:
    def __init__(self, intake: Intake, recovery: Recovery, gaps: Gaps, guards: Safeguards) -> None:
        self._intake = intake
        self._recovery = recovery
        self._gaps = gaps
        self._guards = guards
        self._observers = Observers(intake.known)
        self._sync_ms: dict[NodeId, int] = {}
        self._repeated: dict[NodeId, int] = {}  # when the own Inv was last repeated to a peer

    # --- peers ----------------------------------------------------------------------------------
    def connect(self, peer: NodeId) -> None:
        if len(self._sync_ms) < limits.PEERS_MAX and peer != self._intake.known.node_id:
            self._intake.sync.connect(peer)
            self._sync_ms[peer] = 0

    def lose(self, peer: NodeId) -> None:
        self._intake.sync.lose(peer)
        self._intake.fetch.lose(peer)
        self._sync_ms.pop(peer, None)
        self._repeated.pop(peer, None)
        self._observers.forget(peer)

    def fan_out(self, identity: EventId, members: list[NodeId]) -> list[NodeId]:
        """To every member of a small roster; of a large one to a few, other ones each time."""
        if len(self._intake.known.epochs.newest.members) <= limits.FANOUT_ALL_MAX:
            return members
        ranked = sorted(members, key=lambda member: sha256(identity + member).digest())
        return ranked[: limits.FANOUT_ABOVE]

    def repeat_inv(self, peer: NodeId, turn: Turn) -> None:
        """A peer sends what is held here already: it may have missed the receipt."""
        now_ms = turn.now.monotonic_ms
        last_ms = self._repeated.get(peer)
        own = self._intake.known.receipts.newest.get(self._intake.known.me)
        if own is None or (last_ms is not None and now_ms - last_ms < limits.RELAY_AFTER_MS):
            return
        data = self._intake.known.past.inv(self._intake.known.me, own.number)
        if data is not None and self._holds_all(decode_inv(data)):
            self._repeated[peer] = now_ms
            turn.send(peer, InvMessage(data))

    def _holds_all(self, inv: Inv) -> bool:
        """A receipt from before the loss of a disk may name what has not come back yet."""
        return all(self._intake.known.past.meta(EventId(row.id)) is not None for row in inv.rows)

    def want_epoch(self, peer: NodeId, turn: Turn) -> None:
        """Epochs spread as events do; members have them from the log as well."""
        newest = self._intake.known.epochs.newest
        if self._intake.sync.views[peer].epoch > newest.number:
            turn.send(peer, EpochWant(newest.number + 1))

    # --- SyncEvent ------------------------------------------------------------------------------
    def hear(self, peer: NodeId, message: SyncEvent, turn: Turn) -> bool:
        """False for a SyncEvent that came late or twice."""
        sync = self._intake.sync
        if not sync.hear(peer, message, self._intake.known.epochs.newest_hash, turn.now):
            return False
        view = sync.views[peer]
        self._listen(peer, view)
        self.want_epoch(peer, turn)
        if message.proofs != self._intake.known.convictions.digest:
            for held in self._intake.known.convictions.all():
                turn.send(peer, EvidenceMessage(held.data))
        due_ms = turn.now.monotonic_ms + limits.SYNC_DIFFERENCE_AGE_MS
        if self._guards.behind_asks:
            for leaf in view.leaves:
                is_unknown = leaf not in self._intake.refused
                if is_unknown and self._intake.known.past.meta(leaf) is None:
                    self._intake.fetch.want(leaf, peer, due_ms)
        return True

    def _listen(self, peer: NodeId, view: PeerView) -> None:
        """Before this node signs: does the peer hold receipts of this node's that it lacks?"""
        intake = self._intake
        member = intake.known.epochs.newest.numbers.get(peer)
        if member is None or view.recovering or self._recovery.may_sign or not view.heard:
            return
        is_ahead = view.receipts.get(intake.known.me, InvNumber(0)) > intake.confirmer.last_number
        if self._recovery.is_recovering or is_ahead:
            self._recovery.doubt(member)
            if member not in self._recovery.told:
                view.ask_ms = 0
        else:
            self._recovery.tell(member)

    def _tell(self, turn: Turn) -> None:
        intake = self._intake
        for peer, due_ms in self._sync_ms.items():
            if turn.now.monotonic_ms < due_ms:
                continue
            self._sync_ms[peer] = turn.now.monotonic_ms + limits.SYNC_INTERVAL_MS
            message = intake.sync.tell(
                peer,
                intake.known.epochs.newest.number,
                intake.known.epochs.newest_hash,
                intake.known.convictions.digest,
                self._recovery.is_recovering,
                turn.now,
            )
            turn.send(peer, message)

    # --- requests -------------------------------------------------------------------------------
    def answered(
        self, peer: NodeId, request: Request, is_progress: bool, is_whole: bool, turn: Turn
    ) -> None:
        view = self._intake.sync.views[peer]
        if is_progress:
            view.ask_ms = turn.now.monotonic_ms
        member = self._intake.known.epochs.newest.numbers.get(peer)
        is_ahead = view.epoch > self._intake.known.epochs.newest.number
        if is_ahead or view.recovering:  # receipts of an epoch not opened here bind only then
            return
        if member is not None and is_whole and self._was_told_all(request):
            self._recovery.tell(member)

    def _was_told_all(self, request: Request) -> bool:
        """The newest Inv of this node's own says enough while it listens; one that is recovering
        needs all of them, for the newest has no row for a cord at rest."""
        own = [want for want in request.wants.invs if want.signer_no == self._intake.known.me]
        return any(want.number == 0 or not self._recovery.is_recovering for want in own)

    def _ask(self, turn: Turn) -> None:
        intake = self._intake
        intake.fetch.tire(turn.now)
        peers = intake.fetch.in_order(intake.sync.views)
        for peer in peers:
            if intake.fetch.is_waiting_for(peer):
                continue
            wants = self._wants_of(peer, turn.now)
            lines = intake.fetch.take_orphans(peer).items()
            orphans = {place: tip for place, tip in lines if tip not in intake.waiting}
            wants.ranges += self._gaps.of_orphans(orphans, wants.ranges)
            ids = intake.fetch.ids_for(peer, peers, turn.now)
            if ids or wants:
                turn.ask_early(peer, intake.fetch.ask(peer, ids, wants, turn.now))

    def _wants_of(self, peer: NodeId, now: Now) -> Wants:
        intake = self._intake
        view = intake.sync.views[peer]
        if view.ask_ms is None or now.monotonic_ms < view.ask_ms:
            return Wants()
        view.ask_ms = None
        taken = intake.fetch.taken()
        wants = self._gaps.of_view(view, intake.known.epochs.node_ids, taken)
        rows = [(*place, identity) for identity, place in intake.known.cut_wanted.items()]
        room = limits.GET_RANGES_MAX - len(wants.ranges)
        if self._guards.behind_asks:
            wants.ranges += self._gaps.of_cut(rows, taken)[:room]
        member = intake.known.epochs.newest.numbers.get(peer)
        may_tell = member is not None and intake.known.me != NOT_A_MEMBER and not view.recovering
        if self._recovery.is_recovering and may_tell and member not in self._recovery.told:
            wants.invs.append(InvWant(intake.known.me, 0))
        return wants

    # --- Unread events again --------------------------------------------------------------------
    def _send_again(self, turn: Turn, members: list[NodeId]) -> None:
        intake = self._intake
        for key, is_relay in intake.resend.due(intake.known.dag.branches, turn.now):
            if not self._guards.resend_unread:
                continue
            record = intake.known.dag.branches[key]
            if record.held_hlc > turn.due_until or self._is_convicted(key):
                continue
            for member in members:
                if self._lacks(member, record) and self._is_mine_to_send(
                    member, record, is_relay, members
                ):
                    self._send_branch(member, record, turn)
                    self.repeat_inv(member, turn)  # it may have been lost with the event

    def _is_convicted(self, key: BranchKey) -> bool:
        author = self._intake.known.epochs.node_ids.get(key.author_no)
        return author is not None and self._intake.known.convictions.of_author(author) is not None

    def _lacks(self, member: NodeId, record: BranchRecord) -> bool:
        number = self._intake.known.epochs.newest.numbers[member]
        if number == record.key.author_no:
            return False
        if record.receipts.get(number, (0, 0))[0] >= record.held_seq:
            return False
        rows = self._intake.sync.views[member].rows.get(record.key.cord, ())
        return all(row.seq < record.held_seq for row in rows)

    def _is_mine_to_send(
        self, member: NodeId, record: BranchRecord, is_relay: bool, members: list[NodeId]
    ) -> bool:
        intake = self._intake
        author_no = record.key.author_no
        if author_no == intake.known.me:
            return not is_relay
        author = intake.known.epochs.node_ids.get(author_no)
        if not is_relay:
            return author not in members
        holders = [
            (number, intake.known.epochs.newest.members[number])
            for number, (seq, _) in sorted(record.receipts.items())
            if number != author_no
            and seq >= record.held_seq
            and number in intake.known.epochs.newest.members
        ]
        to = intake.known.epochs.newest.numbers[member]
        return intake.resend.is_my_part(to, holders, record.held_seq)

    def _send_branch(self, member: NodeId, record: BranchRecord, turn: Turn) -> None:
        intake = self._intake
        number = intake.known.epochs.newest.numbers[member]
        seq = max(record.receipts.get(number, (0, 0))[0], record.read_seq, record.base_seq)
        budget = limits.RESEND_BYTES_MAX
        upto = min(record.held_seq, seq + limits.RESEND_EVENTS_MAX)
        while seq < upto and budget > 0:
            seq += 1
            event = intake.known.past.event(intake.known.dag.id_on(record, Seq(seq)))
            if event is None or not intake.proving.is_good(
                record, Seq(seq), event.id, event.signature
            ):
                return
            budget -= event.size
            turn.say(SendMessage(member, encode_message(EventMessage(bytes_of(event)))))

    # --- the turn -------------------------------------------------------------------------------
    def speak(self, turn: Turn, members: list[NodeId]) -> None:
        for cord in self._intake.known.dag.rows_changed:
            self._intake.sync.cord_changed(cord)
        self._intake.known.dag.rows_changed.clear()
        self._send_again(turn, members)
        self._observers.send_on(turn, list(self._intake.sync.views))
        self._ask(turn)
        self._tell(turn)

    def next_deadline(self, now: Now) -> int | None:
        intake = self._intake
        waits: list[int | None] = [intake.fetch.next_deadline(now), intake.resend.next_deadline()]
        waits += self._sync_ms.values()
        waits += [
            view.ask_ms
            for peer, view in intake.sync.views.items()
            if not intake.fetch.is_waiting_for(peer)
        ]
        return min((wait for wait in waits if wait is not None), default=None)
