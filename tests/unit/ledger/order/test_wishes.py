"""What no roster could be is refused before it is a wish."""

import pytest

from quipu.ledger.order.wishes import Candidate, Wish, check_wish
from quipu.ledger.refusals import Reason, Refused

N1, N2 = bytes([1]) * 32, bytes([2]) * 32


def test_a_roster_that_can_be() -> None:
    where = ("n2.example", 8471)
    check_wish(
        Wish(1, [Candidate(N1, "é" * 64, ["member"]), Candidate(N2, "n2", [], where)], "all")
    )


@pytest.mark.parametrize(
    "candidates",
    [
        [Candidate(N1, "n1", []), Candidate(N1, "n2", [])],
        [Candidate(N1, "é" * 65, [])],
        [Candidate(N1, "n1", ["é" * 65])],
        [Candidate(N1, "n1", [], ("é" * 65, 1))],
    ],
    ids=["twice", "name", "role", "host"],
)
def test_what_its_document_would_not_take(candidates: list[Candidate]) -> None:
    """The form of a wish counts characters, a document bytes: such a wish could not come true."""
    with pytest.raises(Refused) as refused:
        check_wish(Wish(1, candidates, "majority"))
    assert refused.value.reason is Reason.MALFORMED
