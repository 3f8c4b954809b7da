"""Whether this node may sign receipts after a start.

With an intact directory whatever it said was durable first: it listens for at most 3 s and goes
on. It is recovering when its store is new but its key is not, when it was restored, or when a
peer shows an Inv of its own above its newest: then it signs nothing until enough members that are
not recovering themselves have given it the Invs they hold of it.
"""

from enum import Enum, auto

from quipu.ledger import limits
from quipu.ledger.words import NodeNo, Now


class State(Enum):
    LISTENING = auto()  # started a moment ago
    RECOVERING = auto()
    READY = auto()


class Cause(Enum):
    HEARD_ENOUGH = auto()
    WAITED_ENOUGH = auto()
    OWN_INV_AHEAD = auto()


TRANSITIONS: dict[tuple[State, Cause], State] = {
    (State.LISTENING, Cause.HEARD_ENOUGH): State.READY,
    (State.LISTENING, Cause.WAITED_ENOUGH): State.READY,
    (State.LISTENING, Cause.OWN_INV_AHEAD): State.RECOVERING,
    (State.RECOVERING, Cause.HEARD_ENOUGH): State.READY,
    (State.RECOVERING, Cause.OWN_INV_AHEAD): State.RECOVERING,
    (State.READY, Cause.OWN_INV_AHEAD): State.RECOVERING,
}


class Recovery:
    """Invariant: in RECOVERING nothing is signed, and it outlives a restart."""

    def __init__(self, recovering: bool, now: Now) -> None:
        self.state = State.RECOVERING if recovering else State.LISTENING
        self.is_overruled = False  # others went on by force, without this node
        self.told: dict[NodeNo, None] = {}
        self._doubted: dict[NodeNo, None] = {}
        self._listens_until_ms = now.monotonic_ms + limits.START_WAIT_MS

    @property
    def may_sign(self) -> bool:
        return self.state is State.READY and not self.is_overruled

    @property
    def is_recovering(self) -> bool:
        return self.state is State.RECOVERING

    @property
    def deadline_ms(self) -> int | None:
        return self._listens_until_ms if self.state is State.LISTENING else None

    def tell(self, member: NodeNo) -> None:
        """A member that is not recovering has shown all that it holds of this node."""
        if self.state is not State.READY:
            self.told[member] = None
            self._doubted.pop(member, None)

    def doubt(self, member: NodeNo) -> None:
        """A member claims a newer receipt of this node's: it is listened to while there is time."""
        if self.state is State.LISTENING:
            self._doubted[member] = None

    def own_inv_ahead(self) -> bool:
        """A receipt of this node's own that its store does not know. Answers whether that is
        news."""
        was_recovering = self.is_recovering
        self._move(Cause.OWN_INV_AHEAD)
        if not was_recovering:
            self.told.clear()
            self._doubted.clear()
        return not was_recovering

    def settle(self, witnesses_needed: int, now: Now) -> bool:
        """Answers whether this node has just stopped recovering."""
        was_recovering = self.is_recovering
        heard_enough = len(self.told) >= witnesses_needed and not self._doubted
        if self.state is not State.READY and heard_enough:
            self._move(Cause.HEARD_ENOUGH)
        elif self.state is State.LISTENING and now.monotonic_ms >= self._listens_until_ms:
            self._move(Cause.WAITED_ENOUGH)
        return was_recovering and not self.is_recovering

    def _move(self, cause: Cause) -> None:
        self.state = TRANSITIONS[self.state, cause]
