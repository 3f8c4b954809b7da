"""What a core knows and its parts share: who it is, epochs, DAG, receipts, proofs."""

from dataclasses import dataclass, field
from typing import NamedTuple

from quipu.ledger import signing
from quipu.ledger.convictions import Convictions
from quipu.ledger.dag import Dag
from quipu.ledger.epochs import Epoch, Epochs
from quipu.ledger.event import SignedEvent
from quipu.ledger.past import Past
from quipu.ledger.receipts import Receipts
from quipu.ledger.safeguards import Safeguards
from quipu.ledger.words import (
    NOT_A_MEMBER,
    Cord,
    EpochNo,
    EventId,
    Journal,
    NodeId,
    NodeNo,
    Seq,
)


class EntryPoint(NamedTuple):
    """The tip of a cord in the cut that this node begins with: held without what is below it."""

    cord: Cord
    seq: Seq
    is_newest: bool  # the newest journal of its author there: nobody has tied to the tip yet


@dataclass(slots=True)
class Known:
    key: signing.KeyPair
    verify: signing.Verifier
    guards: Safeguards
    epochs: Epochs
    past: Past
    dag: Dag
    receipts: Receipts
    convictions: Convictions
    cut_wanted: dict[EventId, tuple[Cord, Seq]]  # named by the cut of an epoch, not held yet
    coming: Epoch | None = None  # whose cut is on offer
    entry_points: dict[EventId, EntryPoint] = field(default_factory=dict)  # not held yet
    checkpoint_told: EpochNo = EpochNo(0)  # the newest that a peer begins with

    def may_be_hollow(self, event: SignedEvent) -> bool:
        """Whether an entry of it may have been erased: it lies in an opened cut, so a quorum has
        held it whole. Else an author could have what it never showed confirmed."""
        author_no = self.epochs.node_numbers.get(NodeId(event.header.author))
        if author_no is None:
            return False
        cord, seq = Cord(author_no, Journal(event.header.journal)), event.header.seq
        held = any(record.cut_seq >= seq for record in self.dag.cords.get(cord, ()))
        named = any(at == cord and seq <= upto for at, upto in self.cut_wanted.values())
        return held or named or event.id in self.entry_points

    @property
    def node_id(self) -> NodeId:
        return self.key.node_id

    @property
    def cluster_id(self) -> bytes:
        return self.epochs.cluster_id

    @property
    def me(self) -> NodeNo:
        return self.epochs.node_numbers.get(self.key.node_id, NOT_A_MEMBER)
