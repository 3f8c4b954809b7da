"""Where the others are (seed 004 membership): the newest endpoint that each node signed itself.

Also whom to dial: a member every other member, and whoever greeted it; an observer three members
that a hash chooses, so that observers spread evenly, the seeds until it has reached those, and
members that dial it by themselves: a master asks a nominee whether it is ready.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from quipu.ledger.limits import ATTACHMENTS
from quipu.ledger.observers import ranking
from quipu.ledger.words import NodeId
from quipu.p2p.addresses import SignedEndpoint, is_newer
from quipu.p2p.words import Endpoint, PeerState

_GONE = (PeerState.DEAD, PeerState.LEFT, PeerState.UNREACHABLE)


@dataclass(slots=True)
class Book:
    me: NodeId
    members: tuple[NodeId, ...]
    seeds: dict[NodeId, Endpoint] = field(default_factory=dict)
    signed: dict[NodeId, SignedEndpoint] = field(default_factory=dict)  # each was checked

    @property
    def is_member(self) -> bool:
        return self.me in self.members

    def is_news(self, endpoint: SignedEndpoint) -> bool:
        """Before its signature is checked."""
        known = self.signed.get(NodeId(endpoint.node_id))
        return endpoint.node_id != self.me and (known is None or is_newer(endpoint, known))

    def endpoint(self, peer: NodeId, attempt: int = 0) -> Endpoint | None:
        """What the node signed; now and then the one of the configuration: either may be stale."""
        signed = self.signed.get(peer)
        seed = self.seeds.get(peer)
        if signed is None:
            return seed
        return seed if seed is not None and attempt % 2 else signed.endpoint

    def lacks_addresses(self) -> bool:
        return any(self.endpoint(peer) is None for peer in self.members if peer != self.me)

    def wanted(
        self,
        greeted: Iterable[NodeId],
        called: Iterable[NodeId],
        state: Callable[[NodeId], PeerState],
    ) -> list[NodeId]:
        """Whom to keep a link to. `greeted`: those whose inbound link is verified; `called`: those
        of them that began it."""
        if self.is_member:
            found = dict.fromkeys(member for member in self.members if member != self.me)
            found |= dict.fromkeys(self.seeds)
            found |= dict.fromkeys(
                p for p in greeted if p in found or state(p) is not PeerState.LEFT
            )
            return list(found)
        chosen = dict.fromkeys(self._attachments(state))
        callers = (peer for peer in called if peer in self.members and state(peer) not in _GONE)
        return list(chosen | dict.fromkeys(callers))

    def _attachments(self, state: Callable[[NodeId], PeerState]) -> list[NodeId]:
        """The first of the ranking for ever; in place of those that are gone, the next ones."""
        chosen: list[NodeId] = []
        present = alive = 0
        for place, peer in enumerate(self.ranking()):
            is_gone = state(peer) in _GONE or self.endpoint(peer) is None
            if place < ATTACHMENTS or not is_gone:
                chosen.append(peer)
            present += not is_gone
            alive += state(peer) is PeerState.ALIVE
            if present == ATTACHMENTS:
                break
        if alive < min(ATTACHMENTS, len(self.members)):
            chosen += [seed for seed in self.seeds if seed not in chosen]
        return chosen

    def ranking(self) -> list[NodeId]:
        """Of the members, in this node's own order."""
        return ranking(self.me, self.members)
