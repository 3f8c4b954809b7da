"""Why a peer is not linked, in words that tell an operator what to do; said once in the log.

The peer machine dials for ever and refuses in silence, as it should; people want to know.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from quipu.ledger.words import NodeId
from quipu.node import limits
from quipu.node.logs import Log
from quipu.p2p.effects import Refusal, StateChanged
from quipu.p2p.refusals import Cause
from quipu.p2p.words import Endpoint, PeerState, PeerView

HANDSHAKE = "ended within the handshake"
ENDED = "the connection ended"  # of a link that was open: the ladder says the rest
REFUSALS = {
    Cause.WRONG_CLUSTER: "it belongs to another cluster: one of the two has followed another "
    "cluster's invitation; start it with a new --data-dir and this cluster's",
    Cause.WRONG_SECRET: "it does not hold this cluster's secret: give it a new invitation "
    "(`quipu invite`) and a new --data-dir",
    Cause.WRONG_KEY: "it claims a node id that is not that of its key",
    Cause.OWN_IDENTITY: "it has the key of this very node: two processes with one key contradict "
    "each other; stop one at once",
    Cause.NO_COMMON_VERSION: "no version of the protocol that both speak: upgrade the older one",
    Cause.OLDER_START: "a later start of it was heard: two processes with its key are running, "
    "or its clock was set back; stop the copy, or start it again",
    Cause.BAD_ENDPOINT: "it says an address that nobody can dial: set its p2p.advertise",
    Cause.TOO_MANY_PEERS: "this node knows as many nodes as it can",
}


@dataclass(slots=True)
class Troubles:
    """Invariant: a peer that is up has none, but that of its name."""

    log: Log
    own_name: str = ""
    own_endpoint: Endpoint | None = None
    _words: dict[NodeId, str] = field(default_factory=dict)
    _said: dict[tuple[NodeId | None, str], None] = field(default_factory=dict)
    _left: dict[NodeId, None] = field(default_factory=dict)
    _ungreeted: frozenset[NodeId] = frozenset()

    def of(self, peer: NodeId) -> str:
        return self._words.get(peer, "")

    # --- what is noticed ------------------------------------------------------------------------
    def up(self, peer: NodeId, views: Iterable[PeerView]) -> None:
        self._words.pop(peer, None)
        for known in [key for key in self._said if key[0] == peer]:
            del self._said[known]
        self._look_at_name(peer, tuple(views))

    def moved(self, change: StateChanged) -> None:
        """Who has left is not expected to answer."""
        if change.after is PeerState.LEFT:
            self._left[change.peer] = None
            self._words.pop(change.peer, None)
        else:
            self._left.pop(change.peer, None)

    def link_closed(self, peer: NodeId, endpoint: Endpoint | None, why: str) -> None:
        where = "its address" if endpoint is None else str(endpoint)
        if why == ENDED or peer in self._left:
            return
        if why.startswith(HANDSHAKE):
            words = (
                f"what answers at {where} is not this node: another key, or another program; "
                "take the URI from `quipu keys` there"
            )
        else:
            words = f"cannot reach it at {where} ({why}): is it running, and is that its address?"
        self._note(peer, words)

    def refused(self, refusal: Refusal) -> None:
        """Of a greeting; what is refused later is counted alone."""
        words = REFUSALS.get(Cause(refusal.cause))
        if words is None:
            return
        detail = f" ({refusal.detail[: limits.TROUBLE_DETAIL_CHARS]})" if refusal.detail else ""
        if refusal.peer is None:
            self._say(None, words + detail)
        else:
            self._note(refusal.peer, words + detail)

    def look(self, views: Iterable[PeerView]) -> None:
        """Now and then: who is reached and has not greeted back since the look before."""
        ungreeted = frozenset(view.peer for view in views if view.linked_out and not view.linked_in)
        for peer in sorted(ungreeted & self._ungreeted):
            if peer not in self._words:
                self._note(
                    peer,
                    "it is reached, and does not greet back: it refuses this node (its own log "
                    f"says why), or cannot dial {self.own_endpoint}: set p2p.advertise to an "
                    "address that it can reach",
                )
        self._ungreeted = ungreeted

    # ---------------------------------------------------------------------------------------------
    def _look_at_name(self, peer: NodeId, views: tuple[PeerView, ...]) -> None:
        name = next((view.name for view in views if view.peer == peer), "")
        others = [view.name for view in views if view.peer != peer and is_there(view)]
        if name and name in (self.own_name, *others):
            self._note(peer, f"its name {name} is taken by another node: give it one by --name")

    def _note(self, peer: NodeId, words: str) -> None:
        if len(self._words) >= limits.TROUBLES_MAX:
            self._words.clear()
        self._words[peer] = words
        self._say(peer, words)

    def _say(self, peer: NodeId | None, words: str) -> None:
        if (peer, words) in self._said:
            return
        if len(self._said) >= limits.TROUBLES_MAX:
            self._said.clear()
        self._said[peer, words] = None
        self.log.warning("trouble", peer="" if peer is None else peer.hex()[:16], what=words)


def is_there(view: PeerView) -> bool:
    return view.state is PeerState.ALIVE
