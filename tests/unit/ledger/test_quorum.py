import pytest

from quipu.ledger.quorum import (
    POLICIES,
    certified_seq,
    fitting,
    is_safe,
    liars_borne,
    max_confirms,
    seals_needed,
    witnesses_needed,
)
from quipu.ledger.refusals import Reason, Refused


def test_the_table_of_the_design() -> None:
    sizes = range(1, 8)
    assert [max_confirms("majority", n) for n in sizes] == [0, 1, 1, 2, 2, 3, 3]
    assert [max_confirms("two-thirds", n) for n in sizes] == [0, 1, 2, 2, 3, 4, 4]
    assert [max_confirms("all", n) for n in sizes] == [0, 1, 2, 3, 4, 5, 6]
    assert [seals_needed("majority", n) for n in sizes] == [1, 2, 2, 3, 3, 4, 4]
    assert [seals_needed("two-thirds", n) for n in sizes] == [1, 2, 3, 3, 4, 5, 5]
    assert [liars_borne("two-thirds", n) for n in sizes] == [0, 0, 0, 1, 1, 1, 2]
    assert [liars_borne("majority", n) for n in sizes] == [0] * 7


@pytest.mark.parametrize("policy", ["", "most", "-1", "01", "+1", "1.0", " 1", "\u0661", "\u00b2"])
def test_other_policies_are_refused(policy: str) -> None:
    with pytest.raises(Refused) as caught:
        max_confirms(policy, 5)
    assert caught.value.reason is Reason.MALFORMED


@pytest.mark.parametrize(("policy", "n"), [("0", 2), ("2", 2), ("5", 5), ("1", 1)])
def test_a_number_must_fit_the_roster(policy: str, n: int) -> None:
    with pytest.raises(Refused) as caught:
        max_confirms(policy, n)
    assert caught.value.reason is Reason.MALFORMED


def test_numbers_that_just_fit() -> None:
    assert [max_confirms("0", 1), max_confirms("1", 2), max_confirms("4", 5)] == [0, 1, 4]


def test_what_a_policy_becomes_in_a_smaller_roster() -> None:
    assert [fitting(policy, 1) for policy in POLICIES] == list(POLICIES)
    assert [fitting("2", n) for n in (1, 2, 3, 4)] == ["majority", "majority", "2", "2"]


def test_below_a_majority_is_not_safe() -> None:
    assert [is_safe(str(k), 7) for k in range(1, 7)] == [False, False, True, True, True, True]
    assert all(is_safe(policy, n) for policy in POLICIES for n in range(1, 33))


def test_a_recovering_signer_asks_no_more_than_there_are() -> None:
    assert [witnesses_needed("majority", n) for n in (1, 2, 3, 5)] == [0, 1, 2, 3]
    assert [witnesses_needed("two-thirds", n) for n in (3, 4, 7)] == [1, 3, 5]


def test_certified_is_what_the_author_and_enough_others_cover() -> None:
    assert certified_seq(9, [], 0) == 9
    assert certified_seq(9, [4, 7], 1) == 7
    assert certified_seq(9, [4, 7], 2) == 4
    assert certified_seq(3, [4, 7], 1) == 3
    assert certified_seq(9, [4, 7], 3) == 0


def test_a_roster_has_a_member() -> None:
    for policy in POLICIES:
        with pytest.raises(AssertionError):
            max_confirms(policy, 0)
        assert max_confirms(policy, 1) == 0
