"""What a core knows and its parts share: who it is, epochs, DAG, receipts, proofs."""

from dataclasses import dataclass, field
from typing import NamedTuple

from quipu.ledger import signing
from quipu.ledger.convictions import Convictions
from quipu.ledger.dag import Dag
from quipu.ledger.epochs import Epoch, Epochs
from quipu.ledger.past import Past
from quipu.ledger.receipts import Receipts
from quipu.ledger.safeguards import Safeguards
from quipu.ledger.words import NOT_A_MEMBER, Cord, EpochNo, EventId, NodeId, NodeNo, Seq


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

    @property
    def node_id(self) -> NodeId:
        return self.key.node_id

    @property
    def cluster_id(self) -> bytes:
        return self.epochs.cluster_id

    @property
    def me(self) -> NodeNo:
        return self.epochs.node_numbers.get(self.key.node_id, NOT_A_MEMBER)
