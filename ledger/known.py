"""What a core knows and its parts share: who it is, epochs, DAG, receipts, proofs."""

from dataclasses import dataclass

from quipu.ledger import signing
from quipu.ledger.convictions import Convictions
from quipu.ledger.dag import Dag
from quipu.ledger.epochs import Epoch, Epochs
from quipu.ledger.past import Past
from quipu.ledger.receipts import Receipts
from quipu.ledger.safeguards import Safeguards
from quipu.ledger.words import NOT_A_MEMBER, Cord, EventId, NodeId, NodeNo, Seq


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

    @property
    def node_id(self) -> NodeId:
        return self.key.node_id

    @property
    def cluster_id(self) -> bytes:
        return self.epochs.cluster_id

    @property
    def me(self) -> NodeNo:
        return self.epochs.node_numbers.get(self.key.node_id, NOT_A_MEMBER)
