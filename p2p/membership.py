"""Who answers now: the ladder of every peer, moved by its frames, its silence and its own word.

Decides about the live view and nothing else: no quorum, no roster. Others may renew when a peer
was last heard and witness its silence; only its own frames, its own signed answer or its own
signed farewell overrule that. Must not know frames, links or signatures (seed 004 leaving, 002
PING, 000 heartbeats).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from quipu.ledger.words import NodeId
from quipu.p2p import limits
from quipu.p2p.words import PeerState


class Sign(StrEnum):
    """What moves a peer on the ladder."""

    HEARD = "heard"  # a frame of its own
    STARTED = "started"  # a HELLO of a newer start
    ANSWERED = "answered"  # its own signed answer, whatever way it came
    VOUCHED = "vouched"  # another one has heard it just now
    SILENT = "silent"
    WITNESSED = "witnessed"  # silent for long, and others say so
    LOST = "lost"  # silent for very long
    FAREWELL = "farewell"  # its own signed word


_S, _G = PeerState, Sign
TRANSITIONS: dict[tuple[PeerState, Sign], PeerState] = {
    (_S.UNKNOWN, _G.HEARD): _S.ALIVE,
    (_S.UNKNOWN, _G.STARTED): _S.ALIVE,
    (_S.UNKNOWN, _G.FAREWELL): _S.LEFT,
    (_S.ALIVE, _G.SILENT): _S.SUSPECT,
    (_S.ALIVE, _G.FAREWELL): _S.LEFT,
    (_S.SUSPECT, _G.HEARD): _S.ALIVE,
    (_S.SUSPECT, _G.STARTED): _S.ALIVE,
    (_S.SUSPECT, _G.ANSWERED): _S.ALIVE,
    (_S.SUSPECT, _G.VOUCHED): _S.ALIVE,
    (_S.SUSPECT, _G.WITNESSED): _S.UNREACHABLE,
    (_S.SUSPECT, _G.LOST): _S.DEAD,
    (_S.SUSPECT, _G.FAREWELL): _S.LEFT,
    (_S.UNREACHABLE, _G.HEARD): _S.ALIVE,
    (_S.UNREACHABLE, _G.STARTED): _S.ALIVE,
    (_S.UNREACHABLE, _G.ANSWERED): _S.ALIVE,
    (_S.UNREACHABLE, _G.VOUCHED): _S.ALIVE,
    (_S.UNREACHABLE, _G.LOST): _S.DEAD,
    (_S.UNREACHABLE, _G.FAREWELL): _S.LEFT,
    (_S.DEAD, _G.HEARD): _S.ALIVE,
    (_S.DEAD, _G.STARTED): _S.ALIVE,
    (_S.DEAD, _G.ANSWERED): _S.ALIVE,
    (_S.DEAD, _G.FAREWELL): _S.LEFT,
    # What it sent before its farewell may come after it: only a new start brings it back.
    (_S.LEFT, _G.STARTED): _S.ALIVE,
}
_TIMED = (PeerState.ALIVE, PeerState.SUSPECT, PeerState.UNREACHABLE)
_MISSED = (PeerState.SUSPECT, PeerState.UNREACHABLE)


class Move(NamedTuple):
    peer: NodeId
    before: PeerState
    after: PeerState
    sign: Sign


class Check(NamedTuple):
    moves: list[Move]
    suspects: list[NodeId]  # to be pinged and asked about now


@dataclass(slots=True)
class Standing:
    """`heard_ms` is never older than `direct_ms`. Witnesses speak of the silence that lasts."""

    state: PeerState = PeerState.UNKNOWN
    heard_ms: int = 0  # the newest sign of life, by itself or told by others
    direct_ms: int | None = None  # its newest frame
    asked_ms: int = 0
    witnesses: dict[NodeId, None] = field(default_factory=dict)


def witnesses_needed(members: int) -> int:
    """Of the members that are neither this node nor the silent one, at most two have to agree."""
    if members > limits.WITNESSES + 1:
        return limits.WITNESSES
    return limits.WITNESSES_OF_THREE if members == limits.WITNESSES + 1 else 0


class Membership:
    def __init__(self, members: Iterable[NodeId]) -> None:
        self.members = frozenset(members)
        self.standings: dict[NodeId, Standing] = {}
        self._due_ms: int | None = None  # never later than anything is due: frames only delay it

    def set_members(self, members: Iterable[NodeId]) -> None:
        self.members = frozenset(members)
        for standing in self.standings.values():
            standing.witnesses = {w: None for w in standing.witnesses if w in self.members}

    def know(self, peer: NodeId) -> Standing:
        return self.standings.setdefault(peer, Standing())

    def forget(self, peer: NodeId) -> None:
        self.standings.pop(peer, None)

    def state(self, peer: NodeId) -> PeerState:
        standing = self.standings.get(peer)
        return PeerState.UNKNOWN if standing is None else standing.state

    def is_direct(self, peer: NodeId, now_ms: int) -> bool:
        """Whether its own frames came lately: the word of others carries no ledger messages."""
        ago_ms = self.direct_ms_ago(peer, now_ms)
        return ago_ms is not None and ago_ms < limits.SUSPECT_AFTER_MS

    def direct_ms_ago(self, peer: NodeId, now_ms: int) -> int | None:
        standing = self.standings.get(peer)
        if standing is None or standing.direct_ms is None:
            return None
        return now_ms - standing.direct_ms

    # --- signs ----------------------------------------------------------------------------------
    def heard(self, peer: NodeId, now_ms: int) -> Move | None:
        """A frame of its own: the one thing that happens thousands of times a second."""
        standing = self.know(peer)
        standing.heard_ms = standing.direct_ms = now_ms
        if standing.state is PeerState.ALIVE:
            return None
        return self._move(peer, standing, Sign.HEARD)

    def started(self, peer: NodeId, now_ms: int) -> Move | None:
        standing = self.know(peer)
        standing.heard_ms = standing.direct_ms = now_ms
        return self._move(peer, standing, Sign.STARTED)

    def farewell(self, peer: NodeId) -> Move | None:
        return self._move(peer, self.know(peer), Sign.FAREWELL)

    def told(
        self, peer: NodeId, witness: NodeId, silent_ms: int | None, now_ms: int
    ) -> Move | None:
        """A signed answer of now: how long `witness` has not heard the peer; None: never did."""
        standing = self.standings.get(peer)
        if standing is None:
            return None
        if witness == peer:
            standing.heard_ms = now_ms
            return self._move(peer, standing, Sign.ANSWERED)
        if silent_ms is None or silent_ms >= limits.SUSPECT_AFTER_MS:
            if witness in self.members and standing.state in _MISSED:
                standing.witnesses[witness] = None
            self._due_ms = now_ms
            return None
        standing.heard_ms = max(standing.heard_ms, now_ms - silent_ms)
        if standing.state in _MISSED and now_ms - standing.heard_ms < limits.SUSPECT_AFTER_MS:
            return self._move(peer, standing, Sign.VOUCHED)
        return None

    def woke(self, now_ms: int) -> None:
        """This node slept: what the others sent meanwhile is only now being read."""
        for standing in self.standings.values():
            if standing.state in _TIMED:
                standing.heard_ms = now_ms
                if standing.direct_ms is not None:
                    standing.direct_ms = now_ms
                standing.witnesses.clear()

    # --- time -----------------------------------------------------------------------------------
    def next_deadline(self) -> int | None:
        return self._due_ms

    def check(self, now_ms: int) -> Check:
        found = Check([], [])
        for peer, standing in self.standings.items():
            sign = self._sign_of_silence(peer, standing, now_ms)
            if sign is not None:
                move = self._move(peer, standing, sign)
                if move is not None:
                    found.moves.append(move)
            if standing.state in _MISSED and now_ms >= standing.asked_ms:
                standing.asked_ms = now_ms + limits.HEALTH_INTERVAL_MS
                found.suspects.append(peer)
        self._plan(now_ms)
        return found

    def _sign_of_silence(self, peer: NodeId, standing: Standing, now_ms: int) -> Sign | None:
        silence_ms = now_ms - standing.heard_ms
        match standing.state:
            case PeerState.ALIVE if silence_ms >= limits.SUSPECT_AFTER_MS:
                return Sign.SILENT
            case PeerState.SUSPECT | PeerState.UNREACHABLE if silence_ms >= limits.DEAD_AFTER_MS:
                return Sign.LOST
            case PeerState.SUSPECT if silence_ms >= limits.UNREACHABLE_AFTER_MS:
                is_witnessed = len(standing.witnesses) >= self._needed(peer)
                return Sign.WITNESSED if is_witnessed else None
            case _:
                return None

    def _needed(self, peer: NodeId) -> int:
        """Observers are attached to a few nodes: nobody else can say anything of them."""
        return witnesses_needed(len(self.members)) if peer in self.members else 0

    def _plan(self, now_ms: int) -> None:
        due: list[int] = []
        for peer, standing in self.standings.items():
            heard_ms = standing.heard_ms
            if standing.state is PeerState.ALIVE:
                due.append(heard_ms + limits.SUSPECT_AFTER_MS)
            elif standing.state in _MISSED:
                due += [standing.asked_ms, heard_ms + limits.DEAD_AFTER_MS]
            if standing.state is PeerState.SUSPECT and self._needed(peer) <= len(
                standing.witnesses
            ):
                due.append(heard_ms + limits.UNREACHABLE_AFTER_MS)
        self._due_ms = max(now_ms + 1, min(due)) if due else None

    def _move(self, peer: NodeId, standing: Standing, sign: Sign) -> Move | None:
        before = standing.state
        after = TRANSITIONS.get((before, sign))
        if after is None:
            return None
        standing.state = after
        if after is PeerState.ALIVE:
            standing.witnesses.clear()
            due_ms = standing.heard_ms + limits.SUSPECT_AFTER_MS
            self._due_ms = due_ms if self._due_ms is None else min(self._due_ms, due_ms)
        elif after is PeerState.SUSPECT:
            standing.asked_ms = 0
            standing.witnesses.clear()
        return Move(peer, before, after, sign)
