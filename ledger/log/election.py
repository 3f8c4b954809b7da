"""How a node becomes master: PreVote, PREPARE, and the log that it adopts.

Of the logs that came with the PROMISEs the one whose last entry has the greatest (own regime,
index) is adopted, and the PROMISEs are counted under the voters that this log names.
"""

from dataclasses import dataclass

from quipu.ledger import limits
from quipu.ledger.log.entry import decode_log_entry, encode_log_entry, next_digest
from quipu.ledger.log.evidence import Watch
from quipu.ledger.log.messages import (
    Prepare,
    PrepareRefused,
    PreVote,
    PreVoteAnswer,
    PromiseMessage,
)
from quipu.ledger.log.quorum import Voters, have_majority
from quipu.ledger.log.roles import Cause, Role
from quipu.ledger.log.serializers import Stage, encode_set
from quipu.ledger.log.state import LogState, LogTurn
from quipu.ledger.log.statements import Promise, decode_promise
from quipu.ledger.log.suffix import Suffix
from quipu.ledger.log.words import NO_REGIME, Index, Place, Regime
from quipu.ledger.refusals import Reason, refuse
from quipu.ledger.words import NodeNo


@dataclass(frozen=True, slots=True)
class Offer:
    """A PROMISE and the log beside it, joined to one's own below its base. A voter that slept may
    hold another entry where one is chosen by now: then there is no log that could be adopted. Its
    word counts, for one that holds all that is chosen is greater."""

    promise: Promise
    data: bytes
    log: Suffix | None


class Election:
    """Of one candidacy after the other: who would promise, who did."""

    def __init__(self, state: LogState) -> None:
        self._state = state
        self._welcomes: dict[NodeNo, None] = {}
        self._offers: dict[NodeNo, Offer] = {}
        self._asked_ms = 0
        self._floor = NO_REGIME  # the highest regime heard of: the next one lies above
        self.due_ms = 0

    # --- time -----------------------------------------------------------------------------------
    def rest(self, now_ms: int) -> None:
        """Somebody is master, or may become it: 1 to 2 s before anything is tried."""
        spread = self._state.draw_ms(limits.LOG_ELECTION_SPREAD_MS)
        self.due_ms = now_ms + limits.LOG_ELECTION_MS + spread

    def next_deadline(self) -> int:
        if self._state.role is Role.CANDIDATE:
            return min(self.due_ms, self._asked_ms + limits.LOG_ASK_AGAIN_MS)
        return self.due_ms

    def raise_floor(self, regime: int) -> None:
        self._floor = Regime(max(self._floor, regime))

    def tick(self, turn: LogTurn) -> bool:
        """Whether this node was elected: a set of one needs no answer."""
        state = self._state
        if turn.now_ms >= self.due_ms:
            self.rest(turn.now_ms)
            if state.own_no in state.log.voters and self._next_regime() is not None:
                return self._ask(turn)
        elif state.role is Role.CANDIDATE and turn.now_ms >= self.next_deadline():
            self._prepare(turn)
        return False

    # --- PreVote --------------------------------------------------------------------------------
    def _next_regime(self) -> Regime | None:
        highest = max(self._state.promised, self._floor)
        return None if highest >= limits.REGIME_MAX else Regime(highest + 1)

    def _ask(self, turn: LogTurn) -> bool:
        state = self._state
        state.become(Cause.SILENCE)
        state.follow(None, turn)
        self._welcomes = {state.own_no: None}
        regime = self._next_regime()
        assert regime is not None
        if have_majority(state.log.voters, self._welcomes.keys()):
            state.become(Cause.WELCOME)
            return self.campaign(turn)
        turn.send_all(self._asked(state.log.voters), PreVote(regime, state.chosen))
        return False

    def _asked(self, voters: Voters) -> list[NodeNo]:
        known = self._state.keys
        return [n for n in voters.all if n != self._state.own_no and n in known]

    def welcomes(self, now_ms: int) -> bool:
        """Whether this node sees no master who could still do."""
        state = self._state
        if state.role is Role.MASTER:
            return False
        return state.heard_ms is None or now_ms - state.heard_ms >= limits.LOG_ELECTION_MS

    def on_answer(self, peer: NodeNo, message: PreVoteAnswer, turn: LogTurn) -> bool:
        """Whether this node was elected."""
        state = self._state
        before = self._next_regime()
        self.raise_floor(message.promised)
        if state.role is not Role.ASKING or message.regime != before:
            return False
        if before != self._next_regime():  # asked for too low a regime: again at once
            return self._ask(turn)
        if not message.granted:
            return False
        self._welcomes[peer] = None
        if not have_majority(state.log.voters, self._welcomes.keys()):
            return False
        state.become(Cause.WELCOME)
        return self.campaign(turn)

    # --- PREPARE --------------------------------------------------------------------------------
    def campaign(self, turn: LogTurn) -> bool:
        """As a candidate; whether elected at once."""
        state = self._state
        assert state.role is Role.CANDIDATE
        regime = self._next_regime()
        assert regime is not None
        state.promise(regime, state.own_no)
        self._offers = {}
        self.rest(turn.now_ms)
        self._prepare(turn)
        return self._elected()

    def campaign_alone(self, turn: LogTurn) -> bool:
        """By an operator's word the set is this node alone, for all that its log holds; in a
        regime that it promises to itself. Whether elected, as it is."""
        state = self._state
        regime = self._next_regime()
        assert regime is not None
        state.promise(regime, state.own_no)
        item = encode_set(Stage.FORCED, (state.own_no,))
        place = Place(regime, Index(state.log.last_index + 1))
        state.append(encode_log_entry(place, state.own_no, [item]), turn)
        state.watch = Watch()  # who comes back has forgotten its log, and is no liar for it
        state.become(Cause.SILENCE)
        state.become(Cause.WELCOME)
        return self.campaign(turn)

    def _prepare(self, turn: LogTurn) -> None:
        state = self._state
        self._asked_ms = turn.now_ms
        missing = [n for n in self._asked(self._best().voters) if n not in self._offers]
        turn.send_all(missing, Prepare(state.promised, state.chosen))

    def on_promise(self, peer: NodeNo, message: PromiseMessage, turn: LogTurn) -> bool:
        """Whether this node was elected."""
        state = self._state
        promise = decode_promise(message.promise)
        if promise.signer != peer:
            refuse(Reason.NOT_A_MEMBER, "not its own promise")
        state.check_signed(promise)
        state.see(promise, turn)
        wanted = (state.promised, state.own_no)
        if state.role is not Role.CANDIDATE or (promise.regime, promise.candidate) != wanted:
            return False
        log = self._joined(promise, message.entries)
        asked = self._asked(self._best().voters)
        self._offers[peer] = Offer(promise, message.promise, log)
        self._note_lives(promise)
        if self._asked(self._best().voters) != asked:  # the best log names other voters
            self._prepare(turn)
        return self._elected()

    def _joined(self, promise: Promise, entries: list[bytes]) -> Suffix | None:
        """One's own log up to the promise's base, and what came beside it; None where it lacks what
        is chosen here."""
        own, chosen = self._state.log, self._state.chosen
        index, digest = promise.base_index, promise.base_digest
        if index > chosen:
            refuse(Reason.BAD_INDEX, "the log begins above what was asked for")
        if own.digest_at(index) not in {digest, None}:
            refuse(Reason.CHOSEN_DIFFERS, f"index {index}")
        kept: list[bytes] = []
        holds_chosen = True
        for data in entries:
            index, digest = Index(index + 1), next_digest(digest, data)
            if decode_log_entry(data).index != index:
                refuse(Reason.BAD_INDEX, f"not {index}")
            if index <= chosen and own.digest_at(index) not in {digest, None}:
                holds_chosen = False
            if index > own.base.index:  # the others are chosen and forgotten here
                kept.append(data)
        if (index, digest) != (promise.last_index, promise.last_digest):
            refuse(Reason.BAD_DIGEST, "the log is not the one that was signed")
        if not holds_chosen:
            return None
        begun = max(promise.base_index, own.base.index)
        return Suffix(own.base_at(begun), kept)

    def _note_lives(self, promise: Promise) -> None:
        for number, life in promise.lives:
            self._state.note_life(NodeNo(number), life)  # type: ignore[arg-type]

    def on_refused(self, message: PrepareRefused, now_ms: int) -> None:
        """Another has the regime: soon again, at a time of one's own, if it comes to nothing."""
        state = self._state
        if state.role is Role.CANDIDATE and message.regime == state.promised:
            soon = now_ms + limits.LOG_ASK_AGAIN_MS + state.draw_ms(limits.LOG_ASK_AGAIN_MS)
            self.due_ms = min(self.due_ms, soon)

    # --- counting -------------------------------------------------------------------------------
    def _counted(self) -> dict[NodeNo, Offer]:
        """Without the PROMISEs of disks that are gone."""
        state = self._state
        if not state.guards.lives_compared:
            return self._offers
        return {
            number: offer
            for number, offer in self._offers.items()
            if offer.promise.life >= state.lives.get(number, 0)
        }

    def _best(self) -> Suffix:
        """One's own where none is greater."""
        best = self._state.log
        if self._state.guards.greatest_log_adopted:
            for offer in self._counted().values():
                if offer.log is not None and offer.log.last_place > best.last_place:
                    best = offer.log
        return best

    def _elected(self) -> bool:
        state = self._state
        saying = {state.own_no, *self._counted()}
        recount = state.guards.promises_counted_again
        voters = self._best().voters if recount else state.log.voters
        if not have_majority(voters, saying):
            return False
        state.become(Cause.ELECTED)
        return True

    def adopt(self, turn: LogTurn) -> list[bytes]:
        """Makes the best log one's own; gives the PROMISEs that allow it."""
        state, best = self._state, self._best()
        if best is not state.log:
            rows = [held.data for held in best.above(state.chosen)]
            state.write_from(state.chosen + 1, rows, turn)
        promises = [offer.data for _, offer in sorted(self._counted().items())]
        self._offers = {}
        return promises[: limits.LOG_STATEMENTS_MAX]
