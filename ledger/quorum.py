"""Quorum arithmetic, alone in its module: how many receipts make an event final."""

from collections.abc import Sequence

from quipu.ledger.refusals import Reason, refuse

MAJORITY = "majority"
TWO_THIRDS = "two-thirds"
ALL = "all"
POLICIES = (MAJORITY, TWO_THIRDS, ALL)


def max_confirms(policy: str, n: int) -> int:
    """MAX_CONFIRMS for a roster of n: receipts of members other than the author."""
    assert n >= 1
    if policy == MAJORITY:
        return n // 2
    if policy == TWO_THIRDS:
        return 2 * n // 3
    if policy == ALL:
        return n - 1
    if not policy.isascii() or not policy.isdigit() or policy != str(int(policy)):
        refuse(Reason.MALFORMED, f"policy {policy!r}: majority, two-thirds, all or a number")
    number = int(policy)
    if number > n - 1 or (number == 0 and n > 1):
        refuse(Reason.MALFORMED, f"policy {number} does not fit a roster of {n}")
    return number


def fitting(policy: str, n: int) -> str:
    """The same for a smaller roster; a number that does not fit it becomes `majority`."""
    if policy in POLICIES or int(policy) <= n - 1:
        return policy
    return MAJORITY


def liars_borne(policy: str, n: int) -> int:
    """How many lying members the finality of this policy withstands."""
    return (n - 1) // 3 if policy == TWO_THIRDS else 0


def seals_needed(policy: str, n: int) -> int:
    """Seals from which a cut may be computed."""
    if policy == TWO_THIRDS:
        return 2 * n // 3 + 1
    return max(n // 2 + 1, n - max_confirms(policy, n))


def is_safe(policy: str, n: int) -> bool:
    """False below a majority: two halves could then both make events final."""
    return max_confirms(policy, n) >= n // 2


def witnesses_needed(policy: str, n: int) -> int:
    """Members that must tell a recovering signer what they hold of it before it signs."""
    more = liars_borne(policy, n)
    return min(n - 1, n - max_confirms(policy, n) + more)


def certified_seq(author_seq: int, other_seqs: Sequence[int], needed: int) -> int:
    """The highest seq that the author and `needed` others cover."""
    if needed == 0:
        return author_seq
    if len(other_seqs) < needed:
        return 0
    return min(author_seq, sorted(other_seqs, reverse=True)[needed - 1])
