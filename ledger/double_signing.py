"""Finds the proof that a signer has acknowledged two ids for one slot."""

from quipu.ledger import limits
from quipu.ledger.canonical import encode
from quipu.ledger.dag import Dag
from quipu.ledger.event import EventMeta
from quipu.ledger.evidence import SignerProof
from quipu.ledger.history import BranchRecord
from quipu.ledger.inv import decode_inv
from quipu.ledger.past import Past
from quipu.ledger.words import EventId, NodeNo, Seq

Side = tuple[EventId, bytes, list[bytes]]  # id at the slot, the Inv, headers down to it


def prove_signer(dag: Dag, past: Past, signer: NodeNo, meta: EventMeta) -> bytes | None:
    """From what is held, after a receipt for `meta` was counted."""
    record = dag.branches[meta.branch]
    for other in dag.cords[meta.branch.cord]:
        if other is record:
            continue
        shared = dag.shared_seq(record, other)
        if min(_acknowledged(record, signer), _acknowledged(other, signer)) <= shared:
            continue
        slot = Seq(shared + 1)
        one = _side(dag, past, signer, record, slot)
        two = _side(dag, past, signer, other, slot)
        if one is not None and two is not None:
            low, high = sorted((one, two))
            cord = record.key.cord
            return encode(
                SignerProof(cord.author_no, cord.journal, slot, low[1], low[2], high[1], high[2])
            )
    return None


def _acknowledged(record: BranchRecord, signer: NodeNo) -> Seq:
    return record.receipts.get(signer, (Seq(0), 0))[0]


def _side(dag: Dag, past: Past, signer: NodeNo, record: BranchRecord, slot: Seq) -> Side | None:
    """None where the Inv lies too far above the slot for a proof of bounded size."""
    seq, number = record.receipts[signer]
    data = past.inv(signer, number)
    if data is None:
        return None
    row_seq = next((row.seq for row in decode_inv(data).rows if row.cord == record.key.cord), 0)
    if not seq <= row_seq <= slot + limits.PROOF_HEADERS_MAX or row_seq > record.held_seq:
        return None
    headers: list[bytes] = []
    for position in range(row_seq, slot, -1):
        event = past.event(dag.id_on(record, Seq(position)))
        if event is None:
            return None
        headers.append(event.header_bytes)
    return dag.id_on(record, slot), data, headers
