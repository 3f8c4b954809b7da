"""The core: one step a turn. Takes the inputs, routes them to its parts, and orders effects.

Knows neither clock nor disk nor network: the shell stamps the turn, writes the durable effects in
one transaction, and speaks the others after it. The parts never call the core.
"""

from dataclasses import dataclass

from quipu.ledger import inv as invs
from quipu.ledger import signing
from quipu.ledger.admission import Admission, Placed
from quipu.ledger.asked import Asked
from quipu.ledger.author import Author
from quipu.ledger.cluster_time import ClusterTime
from quipu.ledger.coming import Coming
from quipu.ledger.confirmer import Confirmer, Grounds
from quipu.ledger.convictions import Convictions
from quipu.ledger.dag import Dag
from quipu.ledger.effects import (
    AppendFeed,
    Effects,
    EntriesRefused,
    EntriesStored,
    EventsRead,
    PutBranch,
    PutOverruling,
    PutOwnState,
    SendMessage,
    StoreEpoch,
)
from quipu.ledger.entry import check_entries
from quipu.ledger.epochs import Epochs, decode_document
from quipu.ledger.event import (
    decode_event,
    decode_header,
    event_id,
    meta_of,
)
from quipu.ledger.evidence import check_proof
from quipu.ledger.exchange import Exchange
from quipu.ledger.fetch import Fetch
from quipu.ledger.gaps import Gaps
from quipu.ledger.history import History, Saved
from quipu.ledger.inputs import (
    EntriesSubmitted,
    EntryErased,
    EpochClosed,
    EpochOpened,
    ForceFollowed,
    HistoryPruned,
    Input,
    MessageReceived,
    PeerConnected,
    PeerLost,
)
from quipu.ledger.intake import Intake
from quipu.ledger.known import Known
from quipu.ledger.messages import (
    Answer,
    EpochMessage,
    EpochWant,
    EventBytes,
    EventMessage,
    EvidenceMessage,
    GetData,
    InvMessage,
    Pruned,
    SyncEvent,
    bytes_of,
    decode_message,
    encode_message,
)
from quipu.ledger.past import Past
from quipu.ledger.pressure import Pressure
from quipu.ledger.proving import Proving
from quipu.ledger.pruning import Pruning
from quipu.ledger.receipts import Receipts
from quipu.ledger.recovery import Recovery
from quipu.ledger.refusals import Reason, Refused
from quipu.ledger.resend import Resend
from quipu.ledger.safeguards import ALL, Safeguards
from quipu.ledger.seals import check_seals
from quipu.ledger.serve import Serve
from quipu.ledger.sync import Sync
from quipu.ledger.turn import Turn
from quipu.ledger.waiting import WaitingRoom
from quipu.ledger.words import (
    Cord,
    EpochNo,
    EventId,
    Journal,
    NodeId,
    NodeNo,
    Now,
    Seq,
    hlc_at,
)

# The last Inv of a turn by signer and by the peer that brought it: nothing is verified yet, so
# what one peer says in another's name must not hide what that one says itself.
Heard = dict[tuple[NodeId, NodeId], invs.Inv]


@dataclass(frozen=True, slots=True)
class CoreConfig:
    key: signing.KeyPair
    genesis: bytes
    entropy: int  # fresh random bits of this start
    safeguards: Safeguards = ALL
    verify: signing.Verifier = signing.verify
    key_existed: bool = False  # the store is new but the node key is not: recover first


class Core:
    def __init__(self, config: CoreConfig, saved: Saved, history: History, now: Now) -> None:
        self.config = config
        guards = config.safeguards
        self.epochs = Epochs.from_genesis(config.genesis)
        cut_rows = [row for document, _ in saved.epochs for row in self.epochs.open(document)[1]]
        self.known = self._recall(saved, history)
        self.past, self.dag = self.known.past, self.known.dag
        self.receipts, self.convictions = self.known.receipts, self.known.convictions
        self.confirmer = Confirmer(self.known)
        newest = max(saved.newest_journal_own, self.dag.newest_journal.get(self.me, Journal(0)))
        self.author = Author(self.known, config.entropy, newest)
        self.fetch = Fetch(guards)
        self._pressure = Pressure()
        self.sync = Sync(self.dag, self.receipts)
        self.resend = Resend(config.key.node_id)
        self.intake = Intake(
            self.known,
            self.confirmer,
            Admission(self.known),
            WaitingRoom(guards),
            self.fetch,
            self.sync,
            self.resend,
            Proving(self.known, self.fetch, self._pressure),
        )
        recovers = (saved.recovering or config.key_existed) and guards.restore_guard
        self.recovery = Recovery(recovers, now)
        self.cluster_time = ClusterTime()
        gaps = Gaps(self.dag, self.past, self.receipts, guards)
        self.exchange = Exchange(self.intake, self.recovery, gaps, guards)
        self._asked = Asked(self.known, self.intake)
        self.pruning = Pruning(self.known, self.intake, saved.pruned_to)
        self.coming = Coming(self.known, self.confirmer, self.fetch, self.sync, self.recovery)
        self.coming.recall(saved.overruling)
        self._serve = Serve(self.known, self.intake.proving, self._pressure, self.pruning)
        self._cut_unread = cut_rows
        self._write_epoch, self._close_wanted, self._is_new = EpochNo(1), b"", True
        self._saved_state = (saved.newest_journal_own, saved.recovering, saved.pruned_to)
        self._deadline_ms: int | None = now.monotonic_ms

    def _recall(self, saved: Saved, history: History) -> Known:
        verify, guards = self.config.verify, self.config.safeguards
        cluster_id = self.epochs.cluster_id
        past = Past(history)
        held = [check_proof(proof, cluster_id, verify) for proof in saved.proofs]
        return Known(
            self.config.key,
            verify,
            guards,
            self.epochs,
            past,
            Dag(past, saved.branches, cluster_id, guards),
            Receipts(saved.signers, guards),
            Convictions(held),
            {},
        )

    @property
    def me(self) -> NodeNo:
        return self.known.me

    @property
    def is_overruled(self) -> bool:
        """The cluster went on by force, without this node: it stands still."""
        return self.recovery.is_overruled

    def next_deadline(self) -> int | None:
        """The monotonic millisecond at which `step` wants to be called even without inputs."""
        return self._deadline_ms

    def signed_at_ms(self, now_ms: int) -> int:
        """When this node would sign for an event that comes now: there is no use in it earlier."""
        signs = self.recovery.may_sign and self.me in self.epochs.newest.members
        return self.confirmer.signed_at_ms(now_ms) if signs else now_ms

    # --- the turn -------------------------------------------------------------------------------
    def step(self, inputs: list[Input], now: Now) -> Effects:
        self.past.turn_begins()
        turn = self._new_turn(now)
        if self._is_new:
            self._is_new = False
            self._resume(turn)
        heard: Heard = {}
        for given in inputs:
            self._route(given, heard, turn)
        for (_, peer), inv in heard.items():
            self._take_inv(inv, peer, False, turn)
        self._write(turn)
        self._sign(turn)
        self._settle(turn)
        self.pruning.begin(turn)
        self._pressure.feel(turn)
        self.intake.proving.prove(turn)
        self.exchange.speak(turn, self._members_connected())
        self._serve.speak(turn)
        self._save(turn)
        self._deadline_ms = self._next_deadline(turn)
        return turn.effects()

    def _new_turn(self, now: Now) -> Turn:
        return Turn(
            now,
            hlc_at(self.cluster_time.now_ms(now)),
            self.cluster_time.due_until(now, self.epochs.cut_hlc),
        )

    def _resume(self, turn: Turn) -> None:
        """After a start: what a core remembers beside its records is found again."""
        self.intake.cut_rows(self._cut_unread)
        self._choose_write_epoch()
        own = self.receipts.newest.get(self.me)
        if own is not None:
            self.confirmer.last_number = own.number
            if own.epoch == self.epochs.newest.number:
                self.confirmer.sealed = own.sealed
            else:
                self.confirmer.owes_first = self.me in self.epochs.newest.members
        self.confirmer.recall_numbers(self.me)
        for signer, record in sorted(self.receipts.newest.items()):
            data = self.past.inv(signer, record.number)
            if data is not None and record.epoch == self.epochs.newest.number:
                inv = invs.decode_inv(data)
                self.intake.count_rows(signer, inv, self.receipts.fresh_rows(signer, inv), turn)
        self.confirmer.consider_all()
        for branch in self.dag.branches.values():
            if branch.held_seq > branch.read_seq:
                self.resend.note(branch, turn.now)

    def _route(self, given: Input, heard: Heard, turn: Turn) -> None:
        match given:
            case EntriesSubmitted():
                self._submit(given, turn)
            case PeerConnected(peer):
                self.exchange.connect(peer)
            case PeerLost(peer):
                self.exchange.lose(peer)
                self._serve.lose(peer)
            case MessageReceived(peer, data):
                if peer not in self.sync.views:
                    turn.note(peer, Reason.UNREQUESTED, "not connected")
                    return
                try:
                    self._hear(peer, data, heard, turn)
                except Refused as refusal:
                    turn.refuse(peer, refusal)
            case EpochClosed(close, epoch):
                if epoch is None or epoch == self.epochs.newest.number:
                    self._close_wanted = close
            case EpochOpened(document, seals):
                self._open(document, seals, turn)
            case HistoryPruned() | EntryErased():
                self.pruning.take(given, turn)
            case ForceFollowed():
                if self.coming.overruling is not None:
                    self._open(*self.coming.overruling, turn)
            case _:
                self.coming.take(given, turn)

    def _hear(self, peer: NodeId, data: bytes, heard: Heard, turn: Turn) -> None:
        message = decode_message(data)
        match message:
            case EventMessage(event):
                self._take_event(event, peer, turn)
            case InvMessage(inv_bytes):
                inv = invs.decode_inv(inv_bytes)
                known = heard.get((inv.signer, peer))
                if known is None or known.number < inv.number:  # the last of a turn will do
                    heard[inv.signer, peer] = inv
            case GetData():
                self._serve.ask(peer, message, turn)
            case SyncEvent():
                self._hear_sync(peer, message, turn)
            case Answer():
                self._take_answer(peer, message, turn)
            case Pruned():
                self.pruning.told(peer, message)
            case EpochWant(number):
                held = self.past.epoch_document(EpochNo(number))
                if held is not None:
                    turn.send(peer, EpochMessage(held[0], list(held[1])))
            case EpochMessage(document, seals):
                if self.coming.is_vouched(document, seals, peer, turn):
                    self._open(document, tuple(seals), turn)
                    self.exchange.want_epoch(peer, turn)
            case EvidenceMessage(proof):
                self.intake.take_proof(proof, peer, turn)
                self._note_own_conviction()
            case _:
                self.coming.hear(message, peer, turn)

    # --- what is heard --------------------------------------------------------------------------
    def _take_event(self, data: EventBytes, peer: NodeId, turn: Turn) -> None:
        if self.past.meta(event_id(data.header)) is not None:
            self.exchange.repeat_inv(peer, turn)
            return
        event = decode_event(data.header, data.signature, data.body)
        self.intake.take_event(event, peer, False, turn)
        self._note_own_conviction()

    def _take_inv(self, inv: invs.Inv, peer: NodeId, asked: bool, turn: Turn) -> None:
        try:
            is_own_news = self.intake.take_inv(inv, peer, asked, turn)
        except Refused as refusal:
            turn.refuse(peer, refusal)
            return
        if is_own_news and self.config.safeguards.restore_guard:
            self.confirmer.last_number = max(self.confirmer.last_number, inv.number)
            self.recovery.own_inv_ahead()

    def _take_answer(self, peer: NodeId, answer: Answer, turn: Turn) -> None:
        request = self.fetch.answered(peer, answer.request_id)
        if request is None:
            turn.note(peer, Reason.UNREQUESTED)
            return
        before = len(turn.durable) + len(self.dag.changed)
        for data in answer.invs:
            try:
                inv = invs.decode_inv(data)
            except Refused as refusal:
                turn.refuse(peer, refusal)
                continue
            self._take_inv(inv, peer, True, turn)
        self._asked.take(answer.events, peer, turn)
        self._note_own_conviction()
        is_progress = len(turn.durable) + len(self.dag.changed) > before
        if answer.more and is_progress:
            self.fetch.has_more(peer, request, turn.now)
        self.exchange.answered(peer, request, is_progress, not answer.more, turn)

    def _hear_sync(self, peer: NodeId, message: SyncEvent, turn: Turn) -> None:
        if not self.exchange.hear(peer, message, turn):
            return
        member = self.epochs.newest.numbers.get(peer)
        if member is not None:
            self.cluster_time.hear(member, message.wall_ms, turn.now)

    def _note_own_conviction(self) -> None:
        """A running process was cloned or set back: go on in a journal that nobody else has."""
        conviction = self.convictions.of_author(self.config.key.node_id)
        if conviction is not None and conviction.journal == self.author.journal:
            self.author.close_journal()

    # --- epochs ---------------------------------------------------------------------------------
    def _open(self, data: bytes, seals: tuple[bytes, ...], turn: Turn) -> None:
        try:
            document = decode_document(data)
            if document.number <= self.epochs.newest.number:
                return
            previous = self.epochs.newest
            check_seals(document, seals, previous, self.epochs.cluster_id, self.config.verify)
            epoch, rows = self.epochs.open(data)
        except Refused as refusal:
            turn.refuse(self.config.key.node_id, refusal)
            return
        turn.keep(StoreEpoch(epoch.number, data, seals))
        if self.coming.overruling is not None:
            turn.keep(PutOverruling(b"", ()))
            self.recovery.is_overruled = False
        turn.due_until = self.cluster_time.due_until(turn.now, self.epochs.cut_hlc)
        if self.config.safeguards.one_epoch_certificate:
            self.dag.forget_receipts()
        self._cut_unread += rows
        self.intake.cut_rows(rows)
        self._close_wanted = self.confirmer.sealed = b""
        self.coming.opened()
        self.confirmer.owes_first = self.me in epoch.members
        self.confirmer.consider_all()
        for _, inv in self.receipts.of_opened(epoch.number):
            self._take_inv(inv, inv.signer, True, turn)

    # --- what is written and signed -------------------------------------------------------------
    def _submit(self, submission: EntriesSubmitted, turn: Turn) -> None:
        try:
            if self.recovery.is_overruled:
                raise Refused(Reason.OVERRULED)
            if self.me not in self.epochs.newest.members:
                raise Refused(Reason.NOT_A_MEMBER, "this node may not write")
            if self.me not in self.epochs.by_number[self._write_epoch].members:
                raise Refused(Reason.CATCHING_UP)
            check_entries(submission.entries)
            self.author.submit(submission)
        except Refused as refusal:
            turn.say(EntriesRefused(submission.ticket, refusal.reason, refusal.detail))

    def _write(self, turn: Turn) -> None:
        while batch := self.author.take_batch():
            event = self.author.write(
                self.me, self._write_epoch, turn.cluster_now, turn.due_until, batch
            )
            header = decode_header(event.header_bytes)
            cord = Cord(self.me, Journal(header.journal))
            self.dag.check_ancestors(header, cord)
            key, base, parent = self.dag.branch_for(header, cord)
            placed = Placed(meta_of(event, self.me, key.number), base, parent, b"")
            self.intake.hold(event, placed, turn)
            turn.events.append(event)
            index = 0
            for submission in batch:
                turn.say(EntriesStored(submission.ticket, event.id, index))
                index += len(submission.entries)
            peers = self.exchange.fan_out(event.id, self._members_connected())
            turn.send_early(peers, EventMessage(bytes_of(event)))

    def _sign(self, turn: Turn) -> None:
        self.recovery.settle(self.epochs.newest.witnesses_needed, turn.now)
        if not self.recovery.may_sign:
            return
        grounds = Grounds(self.me, self.epochs.newest, turn.due_until, turn.now)
        signed = self.confirmer.sign(grounds)
        if self._close_wanted:
            signed += self.confirmer.seal(self._close_wanted, grounds)
            self._close_wanted = b""
        self.coming.settle(turn)
        for inv in signed:
            self.intake.count_inv(self.me, inv, turn)
        if signed:
            self._tell_receipt(signed[-1], turn)

    def _tell_receipt(self, inv: invs.Inv, turn: Turn) -> None:
        """At once to the authors of what it is the first to cover, whose apps wait for it. With one
        confirmation needed the others need no more than their own and the author's: they get it
        with what they are told next. Where more are needed it goes to all at once."""
        authors = {self.epochs.node_ids.get(number) for number in self.confirmer.risen}
        others = authors - {self.known.node_id}
        is_for_all = not authors or inv.array.close is not None
        is_for_all |= bool(others) and self.epochs.newest.max_confirms > 1
        data = encode_message(InvMessage(inv.data))
        for peer in self.sync.views:
            has_time = not (is_for_all or peer in others)
            turn.say(SendMessage(peer, data, has_time))

    def _settle(self, turn: Turn) -> None:
        fresh = self.dag.settle(self.epochs.newest)
        if fresh:
            ids = tuple(meta.id for meta in fresh)
            turn.keep(AppendFeed(ids))
            turn.say(EventsRead(ids))
            self.sync.leaves_changed()
            for meta in fresh:
                if meta.slot.author_no == self.me:
                    self.author.became_read(meta)
        self._choose_write_epoch()

    def _choose_write_epoch(self) -> None:
        """An event of an epoch is written only by a member whose Model contains its cut."""
        if self._cut_unread:
            self._cut_unread = [row for row in self._cut_unread if not self._is_read(row)]
        if not self._cut_unread:
            self._write_epoch = self.epochs.newest.number

    def _is_read(self, row: tuple[Cord, Seq, EventId]) -> bool:
        meta = self.past.meta(row[2])
        if meta is None:
            return self.dag.is_gone(row[0], row[1])
        return self.dag.is_read(meta)

    # --- the end of the turn --------------------------------------------------------------------
    def _save(self, turn: Turn) -> None:
        for _, record in sorted(self.dag.changed.items()):
            turn.keep(PutBranch(record.copy()))
        self.dag.changed.clear()
        state = (
            self.author.newest_journal,
            self.recovery.is_recovering,
            self.pruning.pruned_to,
        )
        if state != self._saved_state:
            self._saved_state = state
            turn.keep(PutOwnState(*state))

    def _members_connected(self) -> list[NodeId]:
        return [peer for peer in self.sync.views if peer in self.epochs.newest.numbers]

    def _next_deadline(self, turn: Turn) -> int | None:
        waits = [
            self.exchange.next_deadline(turn.now),
            self.recovery.deadline_ms,
            self.intake.proving.next_deadline(turn.now),
            self._serve.next_deadline(turn.now),
        ]
        if not self.dag.is_settled:
            waits.append(turn.now.monotonic_ms)
        may_sign = self.recovery.may_sign and self.me in self.epochs.newest.members
        if may_sign and not self.confirmer.sealed:
            waits.append(self.confirmer.deadline_ms)
        return min((wait for wait in waits if wait is not None), default=None)
