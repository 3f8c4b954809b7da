import pytest

from quipu.ledger.inv import build_inv, decode_inv, has_valid_signature
from quipu.ledger.refusals import Reason, Refused
from quipu.ledger.signing import verify
from quipu.ledger.words import Cord, EpochNo, EventId, InvNumber, Journal, NodeNo, Seq
from tests.small_ledger import key_of

CLUSTER = bytes(range(32))
ROWS = [
    (Cord(NodeNo(author), Journal(journal)), Seq(5), EventId(bytes([author]) * 32))
    for author, journal in ((1, 7), (1, 8), (2, 1))
]


def test_an_inv_decodes_to_what_was_built() -> None:
    inv = build_inv(key_of("n1"), CLUSTER, EpochNo(3), InvNumber(9), ROWS, close=bytes(32))
    again = decode_inv(inv.data)
    assert again == inv
    assert (again.number, again.epoch, again.signer) == (9, 3, key_of("n1").node_id)
    assert [row.cord for row in again.rows] == [cord for cord, _, _ in ROWS]
    assert has_valid_signature(again, verify)


def test_the_id_covers_all_but_the_signature() -> None:
    one = build_inv(key_of("n1"), CLUSTER, EpochNo(3), InvNumber(9), ROWS)
    ids = {one.id}
    ids.add(build_inv(key_of("n2"), CLUSTER, EpochNo(3), InvNumber(9), ROWS).id)
    ids.add(build_inv(key_of("n1"), bytes(32), EpochNo(3), InvNumber(9), ROWS).id)
    ids.add(build_inv(key_of("n1"), CLUSTER, EpochNo(4), InvNumber(9), ROWS).id)
    ids.add(build_inv(key_of("n1"), CLUSTER, EpochNo(3), InvNumber(8), ROWS).id)
    ids.add(build_inv(key_of("n1"), CLUSTER, EpochNo(3), InvNumber(9), ROWS[1:]).id)
    ids.add(build_inv(key_of("n1"), CLUSTER, EpochNo(3), InvNumber(9), ROWS, bytes(32)).id)
    assert len(ids) == 7
    forged = one.data[:-64] + bytes(64)
    assert decode_inv(forged).id == one.id
    assert not has_valid_signature(decode_inv(forged), verify)


def test_rows_are_sorted_and_one_a_cord() -> None:
    for rows in (ROWS[::-1], [ROWS[0], ROWS[0]], [(ROWS[0][0], Seq(0), ROWS[0][2])]):
        inv = build_inv(key_of("n1"), CLUSTER, EpochNo(1), InvNumber(1), rows)
        with pytest.raises(Refused) as caught:
            decode_inv(inv.data)
        assert caught.value.reason is Reason.BAD_ROWS
