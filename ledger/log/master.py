"""A master's side: it writes entries, sends each node what that one lacks, and counts.

Entries go out before earlier ones are answered, within a window. A node that has another digest
says where it surely agrees, and is sent everything from there.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from quipu.ledger import limits
from quipu.ledger.canonical import encode
from quipu.ledger.log.entry import encode_log_entry
from quipu.ledger.log.messages import Accept, AcceptedMessage, AcceptRefused, BaseMessage
from quipu.ledger.log.quorum import Voters, have_majority
from quipu.ledger.log.serializers import Stage
from quipu.ledger.log.state import LogState, LogTurn
from quipu.ledger.log.statements import decode_accepted
from quipu.ledger.log.words import Index, LogTicket, Place, Regime
from quipu.ledger.refusals import Reason, refuse
from quipu.ledger.words import NodeNo


@dataclass(frozen=True, slots=True)
class Proposal:
    peer: NodeNo | None  # None: of this node
    ticket: LogTicket
    items: tuple[bytes, ...]
    due_ms: int

    @property
    def size(self) -> int:
        return sum(map(len, self.items))


@dataclass(frozen=True, slots=True)
class Written:
    """Where a proposal stands; regime 0: it was not taken."""

    proposal: Proposal
    place: Place
    number: int


@dataclass(slots=True)
class Progress:
    next_index: int  # the first that was not sent
    match: int  # equal up to here, as far as is known
    chosen: int = 0  # as the node knows it
    round: int = 0  # of the newest answer
    reset_round: int = 0  # answers to this round and older ones lead to no going back
    heard_ms: int = 0
    sent_ms: int = -1  # never
    answered: bool = False
    awaited: bool = False  # somebody there waits for the order
    proof_sent: tuple[bytes, ...] = ()


class Standing(NamedTuple):
    """How far another node is, as its last answer said."""

    match: int  # its log is the master's up to here
    chosen: int  # and it knows all up to here to be chosen


@dataclass(slots=True)
class Reign:
    """One regime of this node as its master. `final`: it has written its last entry."""

    regime: Regime
    opening: Index
    promises: list[bytes]
    started_ms: int
    round: int = 0
    final: bool = False
    urgent: bool = True  # to be sent at once, not with the next heartbeat
    progress: dict[NodeNo, Progress] = field(default_factory=dict)
    waiting: deque[Proposal] = field(default_factory=deque)
    waiting_bytes: int = 0
    seen: dict[tuple[NodeNo | None, LogTicket], None] = field(default_factory=dict)


class Master:
    def __init__(self, state: LogState) -> None:
        self._state = state
        self.reign: Reign | None = None
        self.written: list[Written] = []  # of this turn, to be told

    # --- beginning and end ----------------------------------------------------------------------
    def open(self, promises: list[bytes], turn: LogTurn) -> None:
        """The adopted log, and an empty entry of the own regime above it."""
        state = self._state
        opening = Index(state.log.last_index + 1)
        self.reign = Reign(state.promised, opening, promises, turn.now_ms)
        change = state.log.newest_change
        handing = change is not None and change.stage is Stage.IMPLEMENT
        leaves = handing and change is not None and state.own_no not in change.nodes
        self.write([], turn, final=leaves)

    def close(self) -> list[Proposal]:
        """What was taken and never written."""
        assert self.reign is not None
        waiting = list(self.reign.waiting)
        self.reign = None
        return waiting

    def forget_others(self) -> None:
        """Who is told of the log no more is not waited for either."""
        if self.reign is not None:
            told = self._state.listeners
            self.reign.progress = {n: p for n, p in self.reign.progress.items() if n in told}

    @property
    def current(self) -> Reign:
        assert self.reign is not None
        return self.reign

    # --- writing --------------------------------------------------------------------------------
    def write(self, items: list[bytes], turn: LogTurn, final: bool = False) -> Index:
        state, reign = self._state, self.current
        assert not reign.final
        index = Index(state.log.last_index + 1)
        place = Place(reign.regime, index)
        state.append(encode_log_entry(place, state.own_no, items, final), turn)
        reign.final, reign.urgent = final, True
        return index

    def is_fresh(self, proposal: Proposal, regime: int) -> bool:
        """Meant for this regime, and not seen before."""
        reign, name = self.current, (proposal.peer, proposal.ticket)
        if regime != reign.regime or name in reign.seen:
            return False
        reign.seen[name] = None
        while len(reign.seen) > limits.LOG_TICKETS_MAX:
            del reign.seen[next(iter(reign.seen))]
        return True

    def take(self, proposal: Proposal) -> bool:
        """False: there is no room."""
        reign = self.current
        too_many = len(reign.waiting) >= limits.LOG_WAITING_ITEMS_MAX
        if too_many or reign.waiting_bytes + proposal.size > limits.LOG_WAITING_BYTES_MAX:
            return False
        reign.waiting.append(proposal)
        reign.waiting_bytes += proposal.size
        return True

    @property
    def is_awaited(self) -> bool:
        """By somebody at another node."""
        return self.reign is not None and any(p.awaited for p in self.reign.progress.values())

    @property
    def has_waiting(self) -> bool:
        return self.reign is not None and bool(self.reign.waiting)

    @property
    def may_write(self) -> bool:
        """After Implement only empty entries and Confirm are written."""
        change = self._state.log.newest_change
        changing = change is not None and change.stage is Stage.IMPLEMENT
        return not self.current.final and not changing

    def _write_waiting(self, turn: LogTurn) -> None:
        reign = self.current
        put_off: list[Proposal] = []
        while reign.waiting and self.may_write and self._has_room():
            batch = self._next_batch(put_off, turn)
            if not batch:
                break
            index = Index(self._state.log.last_index + 1)
            number = 0
            for proposal in batch:
                place = Place(reign.regime, index)
                self.written.append(Written(proposal, place, number))
                number += len(proposal.items)
            self.write([item for proposal in batch for item in proposal.items], turn)
        reign.waiting.extendleft(reversed(put_off))

    def _next_batch(self, put_off: list[Proposal], turn: LogTurn) -> list[Proposal]:
        """The next entry; what names events that are not in the Model yet is put off."""
        state, reign = self._state, self.current
        batch: list[Proposal] = []
        items: list[bytes] = []
        size = 0
        passage = state.settings.gate.after(state.unapplied())
        while reign.waiting:
            first = reign.waiting[0]
            full = size + first.size > limits.LOG_BATCH_BYTES
            if batch and (full or len(items) + len(first.items) > limits.LOG_ITEMS_MAX):
                break
            reign.waiting.popleft()
            if not passage.admits(first.items):
                self._put_off(first, put_off, turn)
                continue
            reign.waiting_bytes -= first.size
            batch.append(first)
            items.extend(first.items)
            size += first.size
        return batch

    def _put_off(self, proposal: Proposal, put_off: list[Proposal], turn: LogTurn) -> None:
        if turn.now_ms < proposal.due_ms:
            put_off.append(proposal)
            return
        self.current.waiting_bytes -= proposal.size
        self.written.append(Written(proposal, Place(Regime(0), Index(0)), 0))

    def _has_room(self) -> bool:
        """A window is open, in entries and in bytes; one entry alone always fits."""
        log, chosen = self._state.log, self._state.chosen
        open_entries = log.last_index - chosen
        if open_entries >= limits.LOG_WINDOW_ENTRIES:
            return False
        size = sum(len(held.data) for held in log.above(chosen))
        return size < limits.LOG_WINDOW_BYTES

    # --- sending --------------------------------------------------------------------------------
    def flush(self, turn: LogTurn) -> bool:
        """Writes what waits, signs for it, and sends. Whether anything came to be chosen."""
        state, reign = self._state, self.current
        self._write_waiting(turn)
        last = state.log.last_index
        place = Place(reign.regime, last)
        if place != state.accepted and state.votes:
            state.count(state.accept_own(place), turn)
        advanced = state.advance(turn)
        reign.urgent |= advanced
        reign.round += 1
        for peer in state.others:
            progress = reign.progress.get(peer)
            if progress is None:
                progress = Progress(reign.opening, reign.opening - 1, heard_ms=turn.now_ms)
                reign.progress[peer] = progress
            self._send(peer, progress, turn)
        reign.urgent = False
        return advanced

    def _send(self, peer: NodeNo, progress: Progress, turn: LogTurn) -> None:
        state, reign = self._state, self.current
        idle_ms = turn.now_ms - progress.sent_ms
        due = progress.sent_ms < 0 or reign.urgent or idle_ms >= limits.LOG_HEARTBEAT_MS
        if progress.next_index <= state.log.base.index:
            if progress.sent_ms < 0 or idle_ms >= limits.LOG_HEARTBEAT_MS:
                self._send_base(peer, progress, turn)
            return
        while True:
            entries = self._entries_for(progress)
            if not entries and not due:
                return
            self._send_accept(peer, progress, entries, turn)
            due = False

    def _send_accept(
        self, peer: NodeNo, progress: Progress, entries: list[bytes], turn: LogTurn
    ) -> None:
        state, reign = self._state, self.current
        prev = progress.next_index - 1
        digest = state.log.digest_at(prev)
        assert digest is not None
        proof = self._proof()
        beat = not entries and not reign.urgent
        older = state.proof_above(progress.chosen) if beat and progress.answered else ()
        shown = [] if proof == progress.proof_sent and not beat else list(proof)
        promises = [] if progress.answered else reign.promises
        turn.send(
            peer,
            Accept(reign.regime, reign.round, prev, digest, entries, [*shown, *older], promises),
        )
        progress.next_index += len(entries)
        progress.sent_ms, progress.proof_sent = turn.now_ms, proof

    def _proof(self) -> tuple[bytes, ...]:
        return self._state.tally.newest(self.current.regime)

    def _entries_for(self, progress: Progress) -> list[bytes]:
        """From the first that was not sent, as far as the window of this node is open."""
        log = self._state.log
        end = min(log.last_index, progress.match + limits.LOG_WINDOW_ENTRIES)
        entries: list[bytes] = []
        size = 0
        for index in range(progress.next_index, end + 1):
            data = log.at(index).data
            if entries and size + len(data) > limits.LOG_ACCEPT_BYTES:
                break
            entries.append(data)
            size += len(data)
        return entries

    def _send_base(self, peer: NodeNo, progress: Progress, turn: LogTurn) -> None:
        state, reign = self._state, self.current
        message = BaseMessage(reign.regime, reign.round, encode(state.log.base), state.base_state)
        turn.send(peer, message)
        progress.sent_ms = turn.now_ms

    # --- answers --------------------------------------------------------------------------------
    def on_accepted(self, peer: NodeNo, message: AcceptedMessage, turn: LogTurn) -> None:
        state, reign = self._state, self.current
        progress = reign.progress.get(peer)
        if message.regime != reign.regime or progress is None:
            return
        if message.index > state.log.last_index:
            refuse(Reason.BAD_INDEX, "above the master's log")
        if message.statement is not None:
            statement = decode_accepted(message.statement)
            if statement.signer != peer:
                refuse(Reason.NOT_A_MEMBER, "not its own statement")
            if not state.watch.knows(statement):
                state.check_signed(statement)
                state.count(statement, turn)
        progress.heard_ms, progress.answered = turn.now_ms, True
        progress.awaited = message.awaited
        progress.chosen = max(progress.chosen, message.chosen)
        progress.round = max(progress.round, message.round)
        progress.match = max(progress.match, message.index)
        progress.next_index = max(progress.next_index, progress.match + 1)

    def on_refused(self, peer: NodeNo, message: AcceptRefused, turn: LogTurn) -> None:
        reign = self.current
        progress = reign.progress.get(peer)
        if message.regime != reign.regime or progress is None:
            return
        if message.resume > self._state.log.last_index:
            refuse(Reason.BAD_INDEX, "above the master's log")
        progress.heard_ms, progress.answered = turn.now_ms, True
        if message.round <= progress.reset_round:
            return
        progress.reset_round = reign.round
        progress.match, progress.next_index = message.resume, message.resume + 1
        progress.sent_ms = -1

    # --- quorum ---------------------------------------------------------------------------------
    def is_heard(self, now_ms: int) -> bool:
        """Whether a majority has answered within two seconds."""
        state, reign = self._state, self.current
        since = now_ms - limits.LOG_QUORUM_MS
        if reign.started_ms > since:
            return True
        heard = {n for n, p in reign.progress.items() if p.heard_ms > since}
        return have_majority(state.log.voters, heard | {state.own_no})

    def standing_of(self, node: NodeNo, now_ms: int) -> Standing | None:
        progress = None if self.reign is None else self.reign.progress.get(node)
        if progress is None or not progress.answered:
            return None
        if progress.heard_ms <= now_ms - limits.LOG_QUORUM_MS:
            return None
        return Standing(progress.match, progress.chosen)

    def confirmed(self, round_: int, voters: Voters) -> bool:
        """Whether a majority has answered what was sent in this round or later."""
        saying = {n for n, p in self.current.progress.items() if p.round >= round_}
        return have_majority(voters, saying | {self._state.own_no})

    def next_deadline(self) -> int | None:
        """None: there is nobody to send to."""
        sent = [p.sent_ms for p in self.current.progress.values()]
        return min(sent) + limits.LOG_HEARTBEAT_MS if sent else None
