"""A node's side towards masters and candidates: PROMISE and ACCEPTED.

It decides by what it promised and by its own log; it knows nothing of elections of its own.
"""

from collections import deque
from dataclasses import dataclass

from quipu.ledger import limits
from quipu.ledger.canonical import encode
from quipu.ledger.log.effects import BaseTaken, DropLogFrom, PutBase
from quipu.ledger.log.entry import LogEntry, decode_log_entry
from quipu.ledger.log.messages import (
    Accept,
    AcceptedMessage,
    AcceptRefused,
    BaseMessage,
    Prepare,
    PrepareRefused,
    PromiseMessage,
)
from quipu.ledger.log.roles import Role
from quipu.ledger.log.serializers import forced_in
from quipu.ledger.log.state import LogState, LogTurn
from quipu.ledger.log.statements import UNSIGNED, Accepted, Promise, decode_accepted, sign_promise
from quipu.ledger.log.suffix import Suffix, decode_base
from quipu.ledger.log.words import Index, Place, Regime
from quipu.ledger.refusals import Reason, Refused, refuse
from quipu.ledger.words import NodeNo


@dataclass(frozen=True, slots=True)
class Parked:
    master: NodeNo
    message: Accept


class Voter:
    """Parked are ACCEPTs of the promised regime, in order, the first waiting for the Model."""

    def __init__(self, state: LogState) -> None:
        self._state = state
        self._parked: deque[Parked] = deque()
        self.goes_on = False  # one that was parked was taken, and others are
        self.matched: Index | None = None  # with the master of the promised regime
        self._told_awaited = False  # what that master was told last

    # --- PREPARE --------------------------------------------------------------------------------
    def would_promise(self, peer: NodeNo, regime: int, chosen: int) -> bool:
        state = self._state
        if state.waits:
            return False
        if regime == state.promised and state.guards.one_promise_a_regime:
            # Again to the same node: its answer was lost. Not once its ACCEPTs have come.
            if state.promised_to != peer or state.accepted.regime == regime:
                return False
        elif regime < state.promised:
            return False
        base = min(chosen, state.chosen)
        if base < state.log.base.index:
            return False
        size = sum(len(held.data) for held in state.log.above(base))
        count = state.log.last_index - base
        return size <= limits.LOG_PROMISE_BYTES_MAX and count <= limits.LOG_PROMISE_ENTRIES_MAX

    def on_prepare(self, peer: NodeNo, message: Prepare, turn: LogTurn) -> bool:
        """Whether the regime was promised."""
        state = self._state
        if not self.would_promise(peer, message.regime, message.chosen):
            if not state.recovering:
                turn.send(peer, PrepareRefused(message.regime, state.promised))
            return False
        state.promise(Regime(message.regime), peer)
        self._parked.clear()
        self.matched = None
        promise = self.promise_now(message.chosen)
        entries = [held.data for held in state.log.above(promise.base_index)]
        turn.send(peer, PromiseMessage(encode(promise), entries))
        return True

    def promise_now(self, chosen: int) -> Promise:
        state = self._state
        base = min(chosen, state.chosen)
        base_digest, last_digest = (
            state.log.digest_at(base),
            state.log.digest_at(state.log.last_index),
        )
        assert base_digest is not None
        assert last_digest is not None
        unsigned = Promise(
            state.epoch,
            state.own_no,
            state.life,
            state.promised,
            state.promised_to,
            base,
            base_digest,
            state.log.last_index,
            last_digest,
            state.accepted.regime,
            state.accepted.index,
            state.accepted_digest,
            [(int(n), int(life)) for n, life in sorted(state.lives.items())],
            UNSIGNED,
        )
        return sign_promise(state.settings.key, state.settings.cluster_id, unsigned)

    # --- ACCEPT ---------------------------------------------------------------------------------
    def takes(self, peer: NodeNo, regime: int) -> bool:
        """Whether this peer may be the master of this regime, as far as was promised. Who promised
        it to another, or to itself, takes it too: that other cannot win it any more."""
        state = self._state
        if regime < state.promised:
            return not state.guards.lower_regime_refused
        return regime > state.promised or state.promised_to == peer or not self._reigns()

    def _reigns(self) -> bool:
        return self._state.role is Role.MASTER

    def check(self, message: Accept | BaseMessage) -> None:
        """Refuses what no honest master sends, before anything has changed."""
        if isinstance(message, BaseMessage):
            decode_base(message.base)
            self._state.settings.check_state(message.state)
            return
        fitted = self._fit(message)
        if fitted is not None:
            self._read(*fitted, message.regime)

    def on_accept(self, peer: NodeNo, message: Accept, turn: LogTurn) -> None:
        """From a master that `takes` allows."""
        state = self._state
        fitted = self._fit(message)
        read = self._read(*fitted, message.regime) if fitted else []
        if message.regime > state.promised or state.promised_to != peer:
            self._parked.clear()
            self.matched = None
            state.promise(Regime(max(message.regime, state.promised)), peer)
        last = self._parked[-1].message if self._parked else None
        if last is not None and message.prev_index == last.prev_index + len(last.entries):
            self._park(peer, message)
            return
        if fitted is None:
            self._refuse(peer, message, turn)
            return
        index, entries = fitted
        ready = self._ready(index, entries, read, message.regime)
        state.write_from(index + 1, entries[:ready], turn)
        if ready < len(entries):
            self._park(peer, message)
        self._answer(peer, message, Index(index + ready), turn)

    @property
    def has_parked(self) -> bool:
        return bool(self._parked)

    def retry(self, turn: LogTurn) -> None:
        """The Model grew: what is parked may go on. One message a step: it may name thousands of
        events."""
        self.goes_on = False
        if not self._parked:
            return
        first, *others = self._parked
        self._parked.clear()
        if first.message.regime == self._state.promised:
            try:
                self.on_accept(first.master, first.message, turn)
            except Refused as refusal:
                self._state.refused(first.master, refusal, turn)
        self.goes_on = bool(others) and not self._parked
        self._parked.extend(others)

    def _park(self, peer: NodeNo, message: Accept) -> None:
        if len(self._parked) < limits.LOG_PARKED_MAX:
            self._parked.append(Parked(peer, message))

    def _fit(self, message: Accept) -> tuple[Index, list[bytes]] | None:
        """After which index of one's own log what entries follow; None: after none."""
        base, index, entries = self._state.log.base.index, message.prev_index, message.entries
        if index + len(entries) < base:
            return None
        if index < base:  # below the base all is chosen, and equal
            return Index(base), entries[base - index :]
        fits = self._state.log.digest_at(index) == message.prev_digest
        return (Index(index), entries) if fits else None

    def _read(self, index: int, entries: list[bytes], regime: int) -> list[LogEntry]:
        """Refuses before anything has changed."""
        state, log = self._state, self._state.log
        before, read = log.regime_at(index), list[LogEntry]()
        for at, data in enumerate(entries, start=index + 1):
            entry = decode_log_entry(data)
            if entry.index != at:
                refuse(Reason.BAD_INDEX, f"{entry.index} where {at} is due")
            if not before <= entry.regime <= regime:
                refuse(Reason.BAD_REGIME, f"{entry.regime} after {before} in {regime}")
            if at <= state.chosen and log.at(at).data != data:
                refuse(Reason.CHOSEN_DIFFERS, f"index {at}")
            if forced_in(entry) and self._has_a_say(at, data):
                refuse(Reason.NOT_A_VOTER, "a set that this voter never agreed to")
            before = Regime(entry.regime)
            read.append(entry)
        return read

    def _has_a_say(self, at: int, data: bytes) -> bool:
        """Who votes is not put out by force: its operator lets it forget its log first."""
        state, log = self._state, self._state.log
        is_known = log.holds(at) and log.at(at).data == data
        return not is_known and not state.recovering and state.own_no in log.voters.all

    def _ready(self, index: int, entries: list[bytes], read: list[LogEntry], regime: int) -> int:
        """How many of them may be taken now. What a master adopted needs no Model. A node that
        does not vote yet waits as well: once it votes it signs for all of its log."""
        state, log = self._state, self._state.log
        if not state.guards.model_checked:
            return len(read)
        below = (entry for entry in state.unapplied() if entry.index <= index)
        passage = state.settings.gate.after(below)
        for count, (entry, data) in enumerate(zip(read, entries, strict=True)):
            known = log.holds(entry.index) and log.at(entry.index).data == data
            fresh = entry.regime == regime and not known
            if not fresh:
                passage.passes(entry.items)
            elif not passage.admits(entry.items):
                return count
        return len(read)

    def _answer(self, peer: NodeNo, message: Accept, index: Index, turn: LogTurn) -> None:
        state = self._state
        regime = Regime(message.regime)
        self.matched = max(index, self.matched or index)
        statement = None
        place = Place(regime, index) if state.votes else state.said_in(regime)
        if place is not None and place.index > 0:
            signed = state.accept_own(place)
            if signed.regime == regime:
                statement = encode(signed)
                state.count(signed, turn)
        self._told_awaited = state.settings.is_awaited()
        turn.send(
            peer,
            AcceptedMessage(
                regime, message.round, index, state.chosen, statement, self._told_awaited
            ),
        )

    def hurry(self, turn: LogTurn) -> None:
        """The master paces what nobody waits for; it need not learn with the next heartbeat alone
        that somebody does. The answer is to no round, so it confirms no read."""
        state = self._state
        if state.role is not Role.FOLLOWER or state.master is None or self._told_awaited:
            return
        self._told_awaited, at = True, state.chosen
        turn.send(state.master, AcceptedMessage(state.promised, 0, at, at, None, awaited=True))

    def _refuse(self, peer: NodeNo, message: Accept, turn: LogTurn) -> None:
        turn.send(
            peer,
            AcceptRefused(
                message.regime, message.round, self._state.promised, self.resume(message.regime)
            ),
        )

    def resume(self, regime: int) -> Index:
        """Up to here one's log is that of this regime's master for sure."""
        state = self._state
        if state.accepted.regime == regime:
            return max(state.chosen, state.accepted.index)
        return state.chosen

    # --- certificates and bases -----------------------------------------------------------------
    def on_certificate(self, statements: list[bytes], turn: LogTurn) -> bool:
        """Counts what others signed. True: one of them is this node's own, and it is unknown."""
        state = self._state
        unknown = False
        fresh: list[Accepted] = []
        for data in statements:
            statement = decode_accepted(data)
            if statement.signer == state.own_no:
                unknown |= statement.place > state.accepted and state.verified(statement)
            elif not state.watch.knows(statement):
                state.check_signed(statement)
                fresh.append(statement)
        for statement in fresh:
            state.count(statement, turn)
        return unknown

    def on_base(self, peer: NodeNo, message: BaseMessage, turn: LogTurn) -> bool:
        """Whether the base was taken; everything below it was chosen."""
        state = self._state
        base = decode_base(message.base)
        if base.index <= state.chosen:
            self._answer_base(peer, message, state.chosen, turn)
            return False
        if len(message.state) > limits.LOG_STATE_BYTES_MAX:
            refuse(Reason.TOO_LARGE, "state of a base")
        fits = state.log.digest_at(base.index) == base.digest
        kept = [held.data for held in state.log.above(base.index)] if fits else []
        if not fits and state.log.last_index > base.index:
            turn.keep(DropLogFrom(Index(base.index + 1)))
        state.replace_log(Suffix(base, kept))
        state.chosen, state.base_state = Index(base.index), message.state
        turn.keep(PutBase(message.base, message.state))
        turn.say(BaseTaken(state.chosen, message.state))
        self._answer_base(peer, message, state.chosen, turn)
        return True

    def _answer_base(self, peer: NodeNo, message: BaseMessage, index: Index, turn: LogTurn) -> None:
        turn.send(peer, AcceptedMessage(message.regime, message.round, index, index, None, False))
