"""Quorum arithmetic against every subset of small rosters."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quipu.ledger.quorum import (
    POLICIES,
    certified_seq,
    is_safe,
    liars_borne,
    max_confirms,
    seals_needed,
    witnesses_needed,
)

SIZES = range(1, 8)
CASES = [(policy, n) for n in SIZES for policy in POLICIES]
CASES += [(str(k), n) for n in SIZES for k in range(1, n)]


def quorums(policy: str, n: int) -> list[frozenset[int]]:
    """Every least set of members whose receipts make some event final."""
    return [frozenset(c) for c in combinations(range(n), max_confirms(policy, n) + 1)]


@pytest.mark.parametrize(("policy", "n"), CASES)
def test_safe_is_where_any_two_certificates_share_a_member(policy: str, n: int) -> None:
    share = all(a & b for a in quorums(policy, n) for b in quorums(policy, n))
    assert is_safe(policy, n) == share


@pytest.mark.parametrize("n", SIZES)
def test_two_thirds_share_an_honest_member_for_all_liars_borne(n: int) -> None:
    """Two certificates of one slot share more members than may lie: one honest signed both."""
    pairs = [(a, b) for a in quorums("two-thirds", n) for b in quorums("two-thirds", n)]
    borne = liars_borne("two-thirds", n)
    assert min(len(a & b) for a, b in pairs) > borne
    assert borne == max(f for f in range(n) if 3 * f < n)


@pytest.mark.parametrize(("policy", "n"), CASES)
def test_any_seals_see_every_certificate(policy: str, n: int) -> None:
    """Whatever members seal, some sealer signed each certificate, and stands by what it signed."""
    borne = liars_borne(policy, n)
    for sealers in combinations(range(n), seals_needed(policy, n)):
        for certificate in quorums(policy, n):
            assert len(certificate & set(sealers)) > borne


@pytest.mark.parametrize(("policy", "n"), CASES)
def test_enough_seal_with_as_many_dead_as_the_policy_bears(policy: str, n: int) -> None:
    """The seals that are waited for exist while a majority lives, or n - liars under two-thirds."""
    alive = n - liars_borne(policy, n) if policy == "two-thirds" else n
    assert seals_needed(policy, n) <= alive
    if is_safe(policy, n) and policy in {"majority", "two-thirds"}:
        assert seals_needed(policy, n) == (2 * n // 3 + 1 if policy == "two-thirds" else n // 2 + 1)


@pytest.mark.parametrize(("policy", "n"), CASES)
def test_a_recovering_signer_hears_of_every_receipt_that_mattered(policy: str, n: int) -> None:
    """Some witness that does not lie holds any event that the signer helped to make final.

    Such an event is held by the signer and by MAX_CONFIRMS others.
    """
    others = range(1, n)
    borne = liars_borne(policy, n)
    needed = witnesses_needed(policy, n)
    for witnesses in combinations(others, needed):
        for holders in combinations(others, max_confirms(policy, n)):
            shared = set(witnesses) & set(holders)
            complete = needed == n - 1  # all there are
            assert len(shared) > borne or complete


@given(
    st.integers(0, 20),
    st.lists(st.integers(0, 20), max_size=6),
    st.integers(0, 6),
)
def test_certified_is_what_counting_says(author: int, others: list[int], needed: int) -> None:
    by_counting = max(
        seq
        for seq in range(21)
        if seq == 0 or (author >= seq and sum(other >= seq for other in others) >= needed)
    )
    assert certified_seq(author, others, needed) == by_counting
