"""What members send on to observers at once (an observer keeps links to a few members).

Each observer ranks the members by a hash, and links to the first ones. So every member knows which
of those it sees is the first for it: that one sends on what came this turn, and receipts of those
that the observer has no link to. What is lost so, Invs and SyncEvents show as ever.
"""

from collections.abc import Iterable, Sequence
from hashlib import sha256

from quipu.ledger import limits
from quipu.ledger.known import Known
from quipu.ledger.messages import EventMessage, InvMessage, bytes_of
from quipu.ledger.turn import Turn
from quipu.ledger.words import NodeId


def ranking(node: NodeId, members: Iterable[NodeId]) -> list[NodeId]:
    """Of the members, in that node's own order."""
    return sorted(members, key=lambda member: sha256(node + member).digest())


class Observers:
    def __init__(self, known: Known) -> None:
        self._known = known
        self._rankings: dict[NodeId, list[NodeId]] = {}  # of the newest epoch
        self._epoch = 0

    def send_on(self, turn: Turn, peers: Sequence[NodeId]) -> None:
        """After everything else: whoever speaks of it holds it by then."""
        epoch = self._known.epochs.newest
        if (not turn.events and not turn.receipts) or self._known.me not in epoch.members:
            return
        if len(peers) == sum(peer in epoch.numbers for peer in peers):
            return
        seen = {peer: None for peer in peers if peer in epoch.numbers}
        seen[self._known.node_id] = None
        mine: list[NodeId] = []
        linked_to: dict[NodeId, list[NodeId]] = {}
        for peer in peers:
            if peer in epoch.numbers:
                continue
            linked = [m for m in self._ranking(peer) if m in seen][: limits.ATTACHMENTS]
            if linked[0] == self._known.node_id:
                mine.append(peer)
                linked_to[peer] = linked
        if mine:
            self._send(turn, mine, linked_to)

    def forget(self, peer: NodeId) -> None:
        self._rankings.pop(peer, None)

    def _ranking(self, observer: NodeId) -> list[NodeId]:
        epoch = self._known.epochs.newest
        if epoch.number != self._epoch:
            self._rankings.clear()
            self._epoch = epoch.number
        found = self._rankings.get(observer)
        if found is None:
            found = self._rankings[observer] = ranking(observer, epoch.numbers)
        return found

    def _send(self, turn: Turn, mine: list[NodeId], linked_to: dict[NodeId, list[NodeId]]) -> None:
        room_bytes = limits.OBSERVERS_BYTES_MAX
        for event in turn.events:
            room_bytes -= event.size * len(mine)
            if room_bytes < 0:
                return
            turn.send_all(mine, EventMessage(bytes_of(event)))
        for inv in turn.receipts.values():
            lacking = [peer for peer in mine if inv.signer not in linked_to[peer]]
            if lacking:
                turn.send_all(lacking, InvMessage(inv.data))
