from quipu.ledger.convictions import NO_PROOFS, Convictions
from quipu.ledger.evidence import Conviction
from quipu.ledger.words import EventId, Journal, NodeId, Seq

LIAR, OTHER = NodeId(b"l" * 32), NodeId(b"o" * 32)


def conviction(
    culprit: NodeId = LIAR,
    *,
    as_signer: bool = False,
    journal: int = 5,
    seq: int = 5,
    low: bytes = b"b",
    high: bytes = b"d",
    data: bytes = b"proof",
) -> Conviction:
    return Conviction(
        culprit, as_signer, Journal(journal), Seq(seq), EventId(low), EventId(high), data
    )


LESSER = [
    conviction(journal=4, seq=9, data=b"1"),
    conviction(seq=4, low=b"z", data=b"2"),
    conviction(low=b"a", data=b"3"),
    conviction(high=b"c", data=b"4"),
    conviction(data=b"less"),
]


def test_the_first_proof_is_news_and_the_same_again_is_not() -> None:
    held = Convictions([])
    assert held.digest == NO_PROOFS
    assert held.take(conviction())
    digest = held.digest
    assert digest != NO_PROOFS
    assert not held.take(conviction())
    assert held.digest == digest


def test_the_least_proof_is_kept_in_whatever_order_they_come() -> None:
    for lesser in LESSER:
        one, other = Convictions([]), Convictions([])
        assert one.take(conviction())
        assert one.take(lesser)
        assert other.take(lesser)
        assert not other.take(conviction())
        assert one.all() == other.all() == [lesser]
        assert one.digest == other.digest


def test_one_proof_a_culprit_and_role() -> None:
    taken = [
        conviction(),
        conviction(as_signer=True, data=b"s"),
        conviction(OTHER, data=b"o"),
    ]
    held, reversed_order = Convictions(taken), Convictions(taken[::-1])
    assert held.of_author(LIAR) == taken[0]
    assert held.of_signer(LIAR) == taken[1]
    assert held.of_author(OTHER) == taken[2]
    assert held.of_signer(OTHER) is None
    assert held.all() == reversed_order.all()
    assert held.digest == reversed_order.digest
    assert len({Convictions([one]).digest for one in taken}) == 3
