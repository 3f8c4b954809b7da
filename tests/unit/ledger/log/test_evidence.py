"""Three kinds of proof, and nothing that an honest serializer signs is one."""

import msgspec
import pytest

from quipu.ledger.canonical import encode
from quipu.ledger.log.evidence import (
    Lie,
    SerializerProof,
    Watch,
    check_log_proof,
    contradiction,
    prove,
)
from quipu.ledger.log.statements import Accepted, Promise
from quipu.ledger.refusals import Reason, Refused
from quipu.ledger.signing import verify
from quipu.ledger.words import NodeNo
from tests.unit.ledger.log.made import CLUSTER_ID, KEYS, accepted, place, promise

OTHER = bytes([7]) * 32
LIES = [
    (Lie.TWO_DIGESTS, accepted(1, 3, 5), accepted(1, 3, 5, OTHER)),
    (Lie.PROMISE_HIDES, accepted(1, 3, 5), promise(1, 4, place(3, 4))),
    (Lie.PROMISE_HIDES, accepted(1, 3, 1), promise(1, 4, place(2, 9))),
    (Lie.PROMISE_CHANGES, accepted(1, 3, 5), promise(1, 4, place(3, 5), OTHER)),
]
HONEST = [
    (accepted(1, 3, 5), accepted(1, 3, 5)),
    (accepted(1, 3, 5), accepted(1, 3, 6, OTHER)),
    (accepted(1, 3, 5), accepted(1, 4, 5, OTHER)),
    (accepted(1, 3, 5), accepted(2, 3, 5, OTHER)),
    (accepted(1, 3, 5), promise(1, 4, place(3, 5))),
    (accepted(1, 3, 5), promise(1, 4, place(3, 6), OTHER)),
    (accepted(1, 4, 5), promise(1, 4, place(3, 4))),
    (accepted(1, 5, 5), promise(1, 4, place(3, 4))),
    (accepted(2, 3, 5), promise(1, 4, place(3, 4))),
]


@pytest.mark.parametrize(("lie", "one", "other"), LIES)
def test_a_lie_is_proven_to_all_who_hold_the_roster(
    lie: Lie, one: Accepted, other: Accepted | Promise
) -> None:
    found = check_log_proof(prove(one, other), CLUSTER_ID, KEYS, verify)
    assert (found.culprit, found.lie) == (NodeNo(1), lie)


@pytest.mark.parametrize(("one", "other"), HONEST)
def test_what_honest_nodes_sign_proves_nothing(one: Accepted, other: Accepted | Promise) -> None:
    assert contradiction(one, other) is None
    with pytest.raises(Refused) as caught:
        check_log_proof(prove(one, other), CLUSTER_ID, KEYS, verify)
    assert caught.value.reason is Reason.NO_PROOF


@pytest.mark.parametrize(("lie", "one", "other"), LIES)
def test_a_watch_finds_it_in_either_order(
    lie: Lie, one: Accepted, other: Accepted | Promise
) -> None:
    for first, second in ((one, other), (other, one)):
        watch = Watch()
        assert watch.see(first) is None
        proof = watch.see(second)
        assert proof is not None
        assert check_log_proof(proof, CLUSTER_ID, KEYS, verify).lie is lie


def test_a_proof_needs_good_signatures_of_a_member_of_this_cluster() -> None:
    one, other = accepted(1, 3, 5), accepted(1, 3, 5, OTHER)
    forged = msgspec.structs.replace(one, signature=bytes(64))
    for proof, cluster, keys, reason in (
        (prove(forged, other), CLUSTER_ID, KEYS, Reason.BAD_SIGNATURE),
        (prove(one, other), bytes(32), KEYS, Reason.BAD_SIGNATURE),
        (prove(one, other), CLUSTER_ID, {}, Reason.NOT_A_MEMBER),
        (encode(SerializerProof(b"", b"", False)), CLUSTER_ID, KEYS, Reason.MALFORMED),
    ):
        with pytest.raises(Refused) as caught:
            check_log_proof(proof, cluster, keys, verify)
        assert caught.value.reason is reason


def test_a_watch_keeps_no_more_than_its_bound() -> None:
    watch = Watch()
    for index in range(1, 200):
        assert watch.see(accepted(1, 1, index)) is None
    assert watch.see(accepted(1, 1, 199, OTHER)) is not None
    assert watch.see(accepted(1, 1, 1, OTHER)) is None  # long forgotten
