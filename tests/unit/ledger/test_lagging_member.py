"""ADR 10: under load a member that lags must count receipts, though each names something newer."""

import pytest

from quipu.ledger.inv import Inv, InvRow
from quipu.ledger.messages import EventMessage, encode_message
from quipu.ledger.receipts import Receipts
from quipu.ledger.words import NodeNo
from tests.conformance.table import Sent, Table

WRITES = 100
PACE_MS = 6  # receipts follow each event
LAG_MS = 30  # events reach n3 later than the receipts that name them


def read_under_load() -> int:
    """How many events n3 has made Read while n1 went on writing."""
    table = Table(3)
    table.run(10)
    late: list[tuple[int, bytes]] = []

    def hold_back(sent: Sent) -> bool:
        if sent.receiver != "n3" or not isinstance(sent.message, EventMessage):
            return True
        late.append((sent.at_ms + LAG_MS, encode_message(sent.message)))
        return False

    table.may_pass = hold_back
    for number in range(WRITES):
        table.submit("n1", str(number))
        for _ in range(PACE_MS):
            table.run(1)
            while late and late[0][0] <= table.now_ms:
                table.tell("n1", "n3", late.pop(0)[1])
    return len(table["n3"].feed())


def test_a_lagging_member_reads_while_the_load_lasts() -> None:
    assert read_under_load() > WRITES // 2


def test_with_one_row_it_would_read_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The counter-example to one parked row: the newest alone is never the one that arrives."""
    park = Receipts.park

    def park_one(self: Receipts, signer: NodeNo, row: InvRow, inv: Inv) -> bool:
        self._parked.get(signer, {}).pop(row.cord, None)
        return park(self, signer, row, inv)

    monkeypatch.setattr(Receipts, "park", park_one)
    assert read_under_load() == 0
