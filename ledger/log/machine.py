"""The log of one node: takes the inputs of a turn, routes them, and orders effects.

Seed 001's serializers and their master elections. It knows no clock, network or disk, and nothing
of what items mean, but for New Serializer Set. Effects: the durable ones first, in one
transaction, then the spoken ones.
"""

from collections.abc import Sequence
from typing import assert_never

from quipu.ledger import limits
from quipu.ledger.canonical import encode
from quipu.ledger.log.changes import Changes
from quipu.ledger.log.effects import ItemsNotOrdered, LogEffects, PutBase, ReadReady
from quipu.ledger.log.election import Election
from quipu.ledger.log.inputs import (
    DiskSetBack,
    ItemsProposed,
    LogCompacted,
    LogInput,
    LogMessageReceived,
    ModelGrew,
    OrderAwaited,
    ReadAsked,
    RecoveryForced,
    RosterChanged,
    SerializersProposed,
    VotersForced,
)
from quipu.ledger.log.master import Master, Proposal, Standing, Written
from quipu.ledger.log.messages import (
    Accept,
    AcceptedMessage,
    AcceptRefused,
    BaseMessage,
    HandOver,
    LogEvidence,
    LogMessage,
    Prepare,
    PrepareRefused,
    PreVote,
    PreVoteAnswer,
    PromiseMessage,
    Propose,
    ProposeAnswer,
    ReadAnswer,
    ReadAsk,
    RecoveryAnswer,
    RecoveryAsk,
    decode_log_message,
)
from quipu.ledger.log.reads import Reads
from quipu.ledger.log.recovery import Recovery
from quipu.ledger.log.roles import Cause, Role
from quipu.ledger.log.state import LogSettings, LogState, LogTurn, SavedLog
from quipu.ledger.log.statements import decode_promise
from quipu.ledger.log.tickets import BUSY, LOST, NO_QUORUM, Tickets
from quipu.ledger.log.voter import Voter
from quipu.ledger.log.words import LogTicket, Place
from quipu.ledger.refusals import Reason, Refused, refuse
from quipu.ledger.words import GENESIS_EPOCH, NodeId, NodeNo, Now

AT_ONCE = 0


class LogMachine:
    """One node's part in the log; `LogState` is what its parts share."""

    def __init__(
        self, settings: LogSettings, saved: SavedLog, keys: dict[NodeNo, NodeId], now: Now
    ) -> None:
        self.state = LogState(settings, saved)
        self.state.enrol(GENESIS_EPOCH, dict(sorted(keys.items())), tuple(sorted(keys)))
        self._voter = Voter(self.state)
        self._election = Election(self.state)
        self._master = Master(self.state)
        self._changes = Changes(self.state, self._master)
        self._recovery = Recovery(self.state)
        self._tickets = Tickets(self.state)
        self._reads = Reads(self.state, self._master)
        self.state.on_chosen = self._tickets.on_chosen
        self._election.rest(now.monotonic_ms)
        if self.state.log.voters.all == (settings.own_no,):
            self._election.due_ms = now.monotonic_ms  # nobody else could be master
        self._recovery.due_ms = now.monotonic_ms

    # --- one turn -------------------------------------------------------------------------------
    def step(self, inputs: Sequence[LogInput], now: Now) -> LogEffects:
        turn = LogTurn(now.monotonic_ms)
        if self.state.settings.is_overruled():
            self._stand_still(inputs, turn)
            return turn.effects
        if self._voter.goes_on:
            self._voter.retry(turn)
        for item in inputs:
            self._take(item, turn)
        self._tick(turn)
        self._settle(turn)
        self.state.keep_vote(turn)
        return turn.effects

    def next_deadline(self) -> int | None:
        """When to step again though nothing came, in monotonic milliseconds; None: never."""
        role = self.state.role
        due: int | None
        if self.state.settings.is_overruled():
            return self._tickets.next_deadline() if self.state.master is None else AT_ONCE
        if self._voter.goes_on:
            return AT_ONCE
        if role is Role.MASTER:
            due = self._master.next_deadline()
        elif role is Role.RECOVERING:
            due = self._recovery.due_ms
        else:
            due = self._election.next_deadline()
        times = (due, self._tickets.next_deadline())
        return min((time for time in times if time is not None), default=None)

    @property
    def is_awaited(self) -> bool:
        """Whether somebody at another node waits for the order, as its master has heard."""
        return self._master.is_awaited

    def standing_of(self, node: NodeNo, now_ms: int) -> Standing | None:
        """As master: how far that node is; None where it has not answered within two seconds."""
        return self._master.standing_of(node, now_ms)

    @property
    def leads(self) -> bool:
        """Whether it is master, and all that was chosen before its regime is chosen here."""
        reign, state = self._master.reign, self.state
        is_master = state.role is Role.MASTER and reign is not None
        return is_master and state.chosen >= self._master.current.opening

    @property
    def is_seating(self) -> bool:
        """Whether a New Serializer Set is under way."""
        return self._changes.is_open

    @property
    def waits_for_model(self) -> bool:
        """Whether `ModelGrew` could change anything."""
        return self._voter.has_parked or self._master.has_waiting

    def _take(self, item: LogInput, turn: LogTurn) -> None:
        match item:
            case LogMessageReceived():
                self._on_message(item, turn)
            case ItemsProposed():
                self._on_proposed(item, turn)
            case SerializersProposed():
                self._on_serializers(item, turn)
            case ReadAsked():
                self._on_read(item.ticket, turn)
            case ModelGrew():
                self._voter.retry(turn)
            case OrderAwaited():
                self._voter.hurry(turn)
            case LogCompacted():
                self._on_compacted(item, turn)
            case RosterChanged():
                self._enrol(item)
            case DiskSetBack():
                self._lose_disk(turn)
            case RecoveryForced():
                self._recovery.force()
            case VotersForced():
                self._force_voters(turn)
            case _:
                assert_never(item)

    def _enrol(self, item: RosterChanged) -> None:
        self.state.enrol(item.epoch, dict(sorted(item.keys)), item.listeners, item.barred)
        self._master.forget_others()

    def _stand_still(self, inputs: Sequence[LogInput], turn: LogTurn) -> None:
        """The cluster went on without this node, by force: what it does now would be a fork."""
        if self.state.role is Role.MASTER:
            self._step_down(Cause.NO_QUORUM, turn)
        self.state.follow(None, turn)
        for item in inputs:
            match item:
                case RosterChanged():
                    self._enrol(item)
                case ItemsProposed(ticket) | SerializersProposed(ticket):
                    turn.say(ItemsNotOrdered(ticket, is_known=True, reason=NO_QUORUM))
                case ReadAsked(ticket):
                    turn.say(ReadReady(ticket, None))
                case _:
                    pass  # nobody is answered
        self._tickets.tick(turn)
        self.state.keep_vote(turn)

    def _tick(self, turn: LogTurn) -> None:
        state = self.state
        self._tickets.tick(turn)
        if state.role is Role.RECOVERING:
            self._recovery.tick(turn)
        elif state.role is Role.MASTER:
            if not self._master.is_heard(turn.now_ms):
                self._step_down(Cause.NO_QUORUM, turn)
        elif self._election.tick(turn):
            self._open(turn)

    def _settle(self, turn: LogTurn) -> None:
        """What follows from all that came in."""
        state = self.state
        state.advance(turn)
        if state.role is Role.MASTER:
            self._lead(turn)
        if state.role is Role.RECOVERING and self._recovery.settle():
            self._election.rest(turn.now_ms)
        self._tickets.settle_reads(turn)

    def _lead(self, turn: LogTurn) -> None:
        advanced = True
        while advanced:  # a set of one chooses what it has just written
            self._changes.tick(turn)
            advanced = self._master.flush(turn)
        for written in self._master.written:
            self._tell(written, turn)
        self._master.written.clear()
        for peer, ticket, index in self._reads.ready():
            if peer is None:
                self._tickets.on_read_index(ticket, index, turn)
            else:
                turn.send(peer, ReadAnswer(ticket, index))

    def _tell(self, written: Written, turn: LogTurn) -> None:
        proposal, place = written.proposal, written.place
        if proposal.peer is None:
            self._tickets.on_written(proposal.ticket, place, written.number, turn)
            return
        answer = ProposeAnswer(proposal.ticket, place.regime, place.index, written.number)
        turn.send(proposal.peer, answer)

    # --- mastery --------------------------------------------------------------------------------
    def _open(self, turn: LogTurn) -> None:
        promises = self._election.adopt(turn)
        self.state.follow(self.state.own_no, turn)
        self._master.open(promises, turn)

    def _force_voters(self, turn: LogTurn) -> None:
        """All that this log holds may have been chosen: nothing of it is dropped."""
        state = self.state
        if state.log.voters.all == (state.own_no,):
            return
        self._recovery.force()
        is_master = state.role is Role.MASTER
        self._step_down(Cause.NO_QUORUM if is_master else Cause.MASTER_HEARD, turn)
        if self._election.campaign_alone(turn):
            self._open(turn)

    def _step_down(self, cause: Cause, turn: LogTurn) -> None:
        state = self.state
        if state.role is Role.MASTER:
            for proposal in self._master.close():
                if proposal.peer is None:
                    self._tickets.refuse(proposal.ticket, LOST, turn)
                else:
                    turn.send(proposal.peer, ProposeAnswer(proposal.ticket, 0, 0, 0))
            for peer, ticket in self._reads.close():
                if peer is None:
                    self._tickets.on_read_index(ticket, None, turn)
                else:
                    turn.send(peer, ReadAnswer(ticket, None))
        state.become(cause)
        state.follow(None, turn)
        self._election.rest(turn.now_ms)

    def _yield_to(self, regime: int, turn: LogTurn) -> None:
        """Somebody has promised or been promised a higher regime."""
        self._election.raise_floor(regime)
        if regime > self.state.promised and self.state.role is Role.MASTER:
            self._step_down(Cause.HIGHER_REGIME, turn)

    # --- what apps ask --------------------------------------------------------------------------
    def _on_proposed(self, item: ItemsProposed, turn: LogTurn) -> None:
        state, ticket = self.state, item.ticket
        size = sum(map(len, item.items))
        too_large = size > limits.LOG_BATCH_BYTES and len(item.items) > 1
        assert not too_large, "one item may be large; several make no more than a batch"
        if not self._tickets.has_room:
            turn.say(ItemsNotOrdered(ticket, is_known=True, reason=BUSY))
        elif state.role is Role.MASTER:
            self._tickets.propose(ticket, state.own_no, turn.now_ms)
            if not self._master.take(self._proposal(None, ticket, item.items, turn)):
                self._tickets.refuse(ticket, BUSY, turn)
        elif state.master is None:
            turn.say(ItemsNotOrdered(ticket, is_known=True, reason=NO_QUORUM))
        else:
            self._tickets.propose(ticket, state.master, turn.now_ms)
            turn.send(state.master, Propose(ticket, state.promised, list(item.items)))

    def _proposal(
        self, peer: NodeNo | None, ticket: LogTicket, items: Sequence[bytes], turn: LogTurn
    ) -> Proposal:
        return Proposal(peer, ticket, tuple(items), turn.now_ms + limits.LOG_TICKET_MS)

    def _on_serializers(self, item: SerializersProposed, turn: LogTurn) -> None:
        """Asked of the master alone: it is an operator's word."""
        state = self.state
        reason: str | None = NO_QUORUM
        if state.role is Role.MASTER:
            reason = self._changes.refusal(item.nodes)
        if reason is not None:
            turn.say(ItemsNotOrdered(item.ticket, is_known=True, reason=reason))
            return
        self._tickets.propose(item.ticket, state.own_no, turn.now_ms)
        index = self._changes.nominate(item.nodes, turn)
        place = Place(self._master.current.regime, index)
        self._tickets.on_written(item.ticket, place, 0, turn)

    def _on_read(self, ticket: LogTicket, turn: LogTurn) -> None:
        state = self.state
        if state.role is Role.MASTER:
            self._tickets.read(ticket, state.own_no, turn.now_ms)
            self._reads.ask(None, ticket)
        elif state.master is None or not self._tickets.has_room:
            turn.say(ReadReady(ticket, None))
        else:
            self._tickets.read(ticket, state.master, turn.now_ms)
            turn.send(state.master, ReadAsk(ticket))

    def _on_compacted(self, item: LogCompacted, turn: LogTurn) -> None:
        state = self.state
        assert item.index <= state.chosen, "only what is chosen may be forgotten"
        assert len(item.state) <= limits.LOG_STATE_BYTES_MAX
        if item.index <= state.log.base.index:
            return
        state.replace_log(state.log.trimmed(item.index))
        state.base_state = item.state
        turn.keep(PutBase(encode(state.log.base), item.state))

    # --- messages -------------------------------------------------------------------------------
    def _on_message(self, item: LogMessageReceived, turn: LogTurn) -> None:
        try:
            if item.peer not in self.state.keys or item.peer == self.state.own_no:
                refuse(Reason.NOT_A_MEMBER)
            if item.peer in self.state.barred:
                refuse(Reason.NOT_A_MEMBER, "put out by force")
            self._route(item.peer, decode_log_message(item.data), turn)
        except Refused as refusal:
            self.state.refused(item.peer, refusal, turn)

    def _route(self, peer: NodeNo, message: LogMessage, turn: LogTurn) -> None:
        match message:
            case Accept() | BaseMessage():
                self._on_accept(peer, message, turn)
            case AcceptedMessage() if self.state.role is Role.MASTER:
                self._master.on_accepted(peer, message, turn)
            case AcceptRefused():
                self._on_refused(peer, message, turn)
            case PreVote() | PreVoteAnswer() | Prepare() | PrepareRefused() | PromiseMessage():
                self._on_election(peer, message, turn)
            case HandOver():
                self._on_hand_over(peer, message, turn)
            case RecoveryAsk():
                is_master = self.state.role is Role.MASTER
                self._recovery.on_ask(peer, message, is_master, turn)
            case RecoveryAnswer():
                self._recovery.on_answer(peer, message)
            case LogEvidence():
                self.state.convict(message.proof, turn)
            case _:
                self._on_question(peer, message, turn)

    def _on_question(self, peer: NodeNo, message: LogMessage, turn: LogTurn) -> None:
        is_master = self.state.role is Role.MASTER
        match message:
            case Propose():
                proposal = self._proposal(peer, LogTicket(message.ticket), message.items, turn)
                if is_master and not self._master.is_fresh(proposal, message.regime):
                    return
                if not is_master or not self._master.take(proposal):
                    turn.send(peer, ProposeAnswer(message.ticket, 0, 0, 0))
            case ProposeAnswer():
                self._tickets.on_answer(peer, message, turn)
            case ReadAsk():
                if is_master:
                    self._reads.ask(peer, LogTicket(message.ticket))
                else:
                    turn.send(peer, ReadAnswer(message.ticket, None))
            case ReadAnswer():
                self._tickets.on_read_answer(peer, message, turn)
            case _:
                pass  # an answer to a master that is none any more

    def _on_election(
        self,
        peer: NodeNo,
        message: PreVote | PreVoteAnswer | Prepare | PrepareRefused | PromiseMessage,
        turn: LogTurn,
    ) -> None:
        election, voter, state = self._election, self._voter, self.state
        match message:
            case PreVote(regime=regime, chosen=chosen):
                granted = election.welcomes(turn.now_ms) and regime > state.promised
                granted = granted and voter.would_promise(peer, regime, chosen)
                turn.send(peer, PreVoteAnswer(regime, granted, state.promised))
            case PreVoteAnswer():
                if election.on_answer(peer, message, turn):
                    self._open(turn)
            case Prepare():
                self._on_prepare(peer, message, turn)
            case PrepareRefused():
                self._yield_to(message.promised, turn)
                election.on_refused(message, turn.now_ms)
            case PromiseMessage():
                if election.on_promise(peer, message, turn):
                    self._open(turn)
            case _:
                assert_never(message)

    def _on_prepare(self, peer: NodeNo, message: Prepare, turn: LogTurn) -> None:
        state, before = self.state, self.state.promised
        if not self._voter.on_prepare(peer, message, turn):
            return
        if message.regime > before and state.role is not Role.RECOVERING:
            self._step_down(Cause.HIGHER_REGIME, turn)

    def _on_accept(self, peer: NodeNo, message: Accept | BaseMessage, turn: LogTurn) -> None:
        state = self.state
        if not self._voter.takes(peer, message.regime):
            if message.regime == state.promised:
                refuse(Reason.BAD_REGIME, "another master of the own regime")
            resume = state.chosen
            turn.send(peer, AcceptRefused(message.regime, message.round, state.promised, resume))
            return
        self._voter.check(message)
        if isinstance(message, Accept):
            self._on_shown(message, turn)
        if state.role is Role.MASTER:
            self._step_down(Cause.HIGHER_REGIME, turn)
        if isinstance(message, Accept):
            self._voter.on_accept(peer, message, turn)
            if state.role is Role.RECOVERING and self._voter.matched is not None:
                self._recovery.on_matched(peer, state.promised, self._voter.matched)
        elif self._voter.on_base(peer, message, turn):
            self._tickets.on_base(state.chosen, turn)
        state.become(Cause.MASTER_HEARD)
        state.heard_ms = turn.now_ms
        self._election.rest(turn.now_ms)
        state.follow(peer, turn)

    def _on_shown(self, message: Accept, turn: LogTurn) -> None:
        """What the master shows of others' words: counted, and compared with what was seen."""
        state = self.state
        promises = [decode_promise(data) for data in message.promises]
        fresh = [promise for promise in promises if not state.watch.knows_promise(promise)]
        for promise in fresh:
            state.check_signed(promise)
        forgotten = self._voter.on_certificate(message.certificate, turn)
        for promise in fresh:
            state.see(promise, turn)
        if forgotten:
            self._lose_disk(turn)

    def _lose_disk(self, turn: LogTurn) -> None:
        state = self.state
        if state.recovering:
            return
        if state.role is Role.MASTER:
            self._step_down(Cause.HIGHER_REGIME, turn)
        self._recovery.begin(turn)

    def _on_refused(self, peer: NodeNo, message: AcceptRefused, turn: LogTurn) -> None:
        if message.promised > self.state.promised:
            self._yield_to(message.promised, turn)
        elif self.state.role is Role.MASTER:
            self._master.on_refused(peer, message, turn)

    def _on_hand_over(self, peer: NodeNo, message: HandOver, turn: LogTurn) -> None:
        state = self.state
        wanted = (message.regime, peer) == (state.promised, state.master)
        if not wanted or state.role is not Role.FOLLOWER or state.own_no not in state.log.voters:
            refuse(Reason.NOT_A_VOTER, "a hand-over that cannot be taken")
        state.become(Cause.HANDED_OVER)
        state.follow(None, turn)
        if self._election.campaign(turn):
            self._open(turn)
