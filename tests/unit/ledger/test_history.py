from dataclasses import fields

from quipu.ledger.history import BranchRecord
from quipu.ledger.words import BranchKey, EventId, Hlc, InvNumber, Journal, NodeNo, Seq


def test_a_copy_of_a_record_is_equal_and_independent() -> None:
    record = BranchRecord(
        BranchKey(NodeNo(1), Journal(2), 0), Seq(0), 0, Seq(5), EventId(bytes(32)), Hlc(9)
    )
    for place, field in enumerate(fields(record)):  # so that no field is forgotten
        if field.name not in {"key", "receipts"}:
            setattr(record, field.name, f"{place}")
    record.receipts[NodeNo(2)] = (Seq(3), InvNumber(4))
    copy = record.copy()
    assert copy == record
    copy.receipts.clear()
    assert record.receipts
