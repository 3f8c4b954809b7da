import msgspec
import pytest

from quipu.ledger.canonical import encode
from quipu.ledger.epochs import close_hash
from quipu.ledger.refusals import Reason, Refused
from quipu.ledger.seals import check_seals, read_seals
from quipu.ledger.signing import verify
from quipu.ledger.words import NodeNo
from tests.small_ledger import SmallLedger

Seals = tuple[bytes, ...]


@pytest.fixture
def ledger() -> SmallLedger:
    ledger = SmallLedger(4)
    ledger.write(1)
    return ledger


def reason_of(ledger: SmallLedger, seals: Seals, **changes: object) -> Reason:
    """Why seals of the members 1..4 -> 1..3 are refused; the document changed after sealing."""
    document = msgspec.structs.replace(ledger.document([1, 2, 3], "majority"), **changes)
    with pytest.raises(Refused) as caught:
        check_seals(document, seals, ledger.epoch, ledger.cluster_id, verify)
    return caught.value.reason


def sealed(ledger: SmallLedger, *sealers: int) -> Seals:
    return ledger.seal(ledger.document([1, 2, 3], "majority"), sealers)


def test_enough_members_make_a_document_good(ledger: SmallLedger) -> None:
    document = ledger.document([1, 2, 3], "majority")
    seals = sealed(ledger, 4, 2, 1)
    check_seals(document, seals, ledger.epoch, ledger.cluster_id, verify)
    found = read_seals(document, seals, ledger.epoch, ledger.cluster_id, verify)
    assert list(found) == [4, 2, 1]
    assert all(inv.data in seals for inv in found.values())


def test_too_few_do_not(ledger: SmallLedger) -> None:
    assert reason_of(ledger, ()) is Reason.NO_PROOF
    assert reason_of(ledger, sealed(ledger, 1, 2)) is Reason.NO_PROOF


def test_a_member_counts_once(ledger: SmallLedger) -> None:
    twice = sealed(ledger, 1, 2) + sealed(ledger, 2)
    assert reason_of(ledger, twice) is Reason.NO_PROOF


def test_a_seal_is_of_one_roster_and_one_attempt(ledger: SmallLedger) -> None:
    seals = sealed(ledger, 1, 2, 3)
    assert reason_of(ledger, seals, attempt=2) is Reason.NO_PROOF
    assert reason_of(ledger, seals, policy="all") is Reason.NO_PROOF
    assert reason_of(ledger, seals, number=3) is Reason.EPOCH_UNKNOWN
    assert reason_of(ledger, seals, cluster_id=bytes(32)) is Reason.WRONG_CLUSTER


def test_an_inv_that_names_no_close_is_no_seal(ledger: SmallLedger) -> None:
    plain = tuple(ledger.sign(i).data for i in (1, 2, 3))
    assert reason_of(ledger, plain) is Reason.NO_PROOF


def test_a_seal_is_of_the_epoch_before(ledger: SmallLedger) -> None:
    close = close_hash(ledger.document([1, 2, 3], "majority"))
    late = tuple(ledger.sign(i, epoch=2, close=close).data for i in (1, 2, 3))
    assert reason_of(ledger, late) is Reason.NO_PROOF


def test_strangers_do_not_seal(ledger: SmallLedger) -> None:
    assert reason_of(ledger, sealed(ledger, 1, 2, 3, 5)) is Reason.NOT_A_MEMBER


def test_one_bad_seal_among_good_ones_is_refused(ledger: SmallLedger) -> None:
    seals = sealed(ledger, 1, 2, 3, 4)
    forged = seals[3][:-64] + bytes(64)
    assert reason_of(ledger, (*seals[:3], forged)) is Reason.BAD_SIGNATURE
    assert reason_of(ledger, (*seals[:3], b"")) is Reason.MALFORMED
    other = SmallLedger(4, "all")
    assert reason_of(ledger, (*seals[:3], other.sign(4).data)) is Reason.WRONG_CLUSTER
    assert reason_of(ledger, seals * 9) is Reason.TOO_LARGE


def test_the_policy_says_how_many() -> None:
    ledger = SmallLedger(4, "two-thirds")
    document = ledger.document([1, 2, 3, 4], "two-thirds")
    seals = ledger.seal(document, [1, 2, 3])
    check_seals(document, seals, ledger.epoch, ledger.cluster_id, verify)
    with pytest.raises(Refused):
        check_seals(document, seals[:2], ledger.epoch, ledger.cluster_id, verify)
    ledger.open(document, seals)
    assert ledger.epoch.members[NodeNo(4)]
    assert ledger.documents[0][0] == encode(document)
