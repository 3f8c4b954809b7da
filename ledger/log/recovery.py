"""A voter that lost its disk: it votes for nothing until what it may have said is known again.

It learns like any node. It votes when v - v//2 other voters, the master of the highest regime
among them, have answered, each noting first that the old disk is gone, and when it holds that
master's log as it was when it answered.
"""

from quipu.ledger import limits
from quipu.ledger.log.messages import RecoveryAnswer, RecoveryAsk
from quipu.ledger.log.quorum import witnesses_suffice
from quipu.ledger.log.roles import Cause
from quipu.ledger.log.state import LogState, LogTurn
from quipu.ledger.log.words import Index, Life, Place, Regime
from quipu.ledger.refusals import Reason, refuse
from quipu.ledger.words import NodeNo


class Recovery:
    def __init__(self, state: LogState) -> None:
        self._state = state
        self._answers: dict[NodeNo, RecoveryAnswer] = {}
        self._matched: tuple[NodeNo, Place] | None = None
        self.due_ms = 0

    def begin(self, turn: LogTurn) -> None:
        """A running node finds that it has forgotten: the disk counts as another from now on."""
        state = self._state
        state.become(Cause.DISK_LOST)
        state.life = Life(state.life + 1)
        state.set_recovering(True)
        self._answers, self._matched = {}, None
        self.due_ms = turn.now_ms

    def tick(self, turn: LogTurn) -> None:
        if turn.now_ms >= self.due_ms:
            self.due_ms = turn.now_ms + limits.LOG_ASK_AGAIN_MS
            turn.send_all(self._state.others, RecoveryAsk(self._state.life))

    def on_ask(self, peer: NodeNo, message: RecoveryAsk, is_master: bool, turn: LogTurn) -> None:
        state = self._state
        state.note_life(peer, Life(message.life))
        turn.send(
            peer,
            RecoveryAnswer(
                message.life, state.promised, is_master, state.log.last_index, state.recovering
            ),
        )

    def on_answer(self, peer: NodeNo, message: RecoveryAnswer) -> None:
        if message.life != self._state.life or not self._state.recovering:
            refuse(Reason.UNREQUESTED)
        before = self._answers.get(peer)
        if before is not None and before.is_master and before.regime == message.regime:
            return  # its log only grows: the first answer asks for the least
        self._answers[peer] = message

    def on_matched(self, master: NodeNo, regime: Regime, index: Index) -> None:
        """One's own log is equal to this master's up to here."""
        self._matched = (master, Place(regime, index))

    def settle(self) -> bool:
        """Votes again as soon as it may; whether it does now."""
        state = self._state
        counted = {n: a for n, a in self._answers.items() if not a.recovering}
        if not counted or self._matched is None:
            return False
        master, matched = self._matched
        answer = counted.get(master)
        highest = max(a.regime for a in counted.values())
        if answer is None or not answer.is_master or answer.regime != highest:
            return False
        if matched.regime != highest or matched.index < answer.last:
            return False
        if not witnesses_suffice(state.log.voters, state.own_no, counted.keys()):
            return False
        self._end(matched)
        return True

    def _end(self, matched: Place) -> None:
        state = self._state
        state.set_recovering(False)
        state.accept_own(matched)
        state.become(Cause.RECOVERED)
        self._answers, self._matched = {}, None

    def force(self) -> None:
        state = self._state
        if state.recovering:
            state.set_recovering(False)
            state.become(Cause.RECOVERED)
