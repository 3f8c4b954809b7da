"""How a master leads a New Serializer Set through its stages (seed 001).

Nominate, then Implement once every nominee is near the end of the log, or Refuse; Implement needs
both majorities; then Confirm, written by a member of the new set.
"""

from quipu.ledger import limits
from quipu.ledger.log.master import Master, Reign
from quipu.ledger.log.messages import HandOver
from quipu.ledger.log.serializers import Change, Stage, encode_set
from quipu.ledger.log.state import LogState, LogTurn
from quipu.ledger.log.words import Index
from quipu.ledger.words import NodeNo

IN_FLIGHT = "change-in-flight"
UNKNOWN_NODE = "not-a-member"
BAD_SET = "bad-set"


class Changes:
    def __init__(self, state: LogState, master: Master) -> None:
        self._state = state
        self._master = master
        self._since: tuple[Index, int] = (Index(0), 0)  # this regime has known the change since
        self._offered_ms = 0

    def refusal(self, nodes: tuple[NodeNo, ...]) -> str | None:
        """Why this set cannot even be nominated now."""
        state = self._state
        if not 1 <= len(nodes) <= limits.SERIALIZERS_MAX or list(nodes) != sorted(set(nodes)):
            return BAD_SET
        if any(number not in state.keys for number in nodes):
            return UNKNOWN_NODE
        return IN_FLIGHT if self.is_open or not self._master.may_write else None

    @property
    def is_open(self) -> bool:
        """Whether one is in flight."""
        change = self._state.log.newest_change
        open_stages = (Stage.NOMINATE, Stage.IMPLEMENT)
        return change is not None and (
            change.stage in open_stages or change.index > self._state.chosen
        )

    def nominate(self, nodes: tuple[NodeNo, ...], turn: LogTurn) -> Index:
        """A set that equals the present one is refused in the log, for all to see."""
        same = nodes == self._state.log.voters.old
        stage = Stage.REFUSE if same else Stage.NOMINATE
        return self._master.write([encode_set(stage, nodes)], turn)

    def tick(self, turn: LogTurn) -> None:
        """What the newest change in the log asks of its master."""
        state, reign = self._state, self._master.current
        change = state.log.newest_change
        if change is None or change.index > state.chosen or state.chosen < reign.opening:
            return
        if self._since[0] != change.index or self._since[1] < reign.started_ms:
            self._since = (change.index, turn.now_ms)
        if change.stage is Stage.NOMINATE and not reign.final:
            self._after_nominate(change, reign, turn)
        elif change.stage is Stage.IMPLEMENT:
            self._after_implement(change, reign, turn)

    def _after_nominate(self, change: Change, reign: Reign, turn: LogTurn) -> None:
        state = self._state
        near = state.log.last_index - limits.LOG_CATCH_UP_ENTRIES
        since = turn.now_ms - limits.LOG_QUORUM_MS
        missing = False
        for number in change.nodes:
            progress = reign.progress.get(number)
            if number == state.own_no:
                continue
            if progress is None or not progress.answered:
                missing = True
                continue
            missing |= progress.match < near or progress.heard_ms <= since
        if not missing:
            leaves = state.own_no not in change.nodes
            item = encode_set(Stage.IMPLEMENT, change.nodes)
            self._master.write([item], turn, final=leaves)
        elif turn.now_ms - self._since[1] >= limits.LOG_CATCH_UP_MS:
            self._master.write([encode_set(Stage.REFUSE, change.nodes)], turn)

    def _after_implement(self, change: Change, reign: Reign, turn: LogTurn) -> None:
        if not reign.final:
            self._master.write([encode_set(Stage.CONFIRM, change.nodes)], turn)
        elif turn.now_ms - self._offered_ms >= limits.LOG_HAND_OVER_MS:
            self._hand_over(change, reign, turn)

    def _hand_over(self, change: Change, reign: Reign, turn: LogTurn) -> None:
        """To the member of the new set that has most of the log, if it is awake."""
        if self._state.chosen < self._state.log.last_index:
            return
        since = turn.now_ms - limits.LOG_QUORUM_MS
        ends = [
            (progress.match, progress.heard_ms, number)
            for number in change.nodes
            if (progress := reign.progress.get(number)) and progress.heard_ms > since
        ]
        if ends:
            self._offered_ms = turn.now_ms
            turn.send(max(ends)[2], HandOver(reign.regime))
