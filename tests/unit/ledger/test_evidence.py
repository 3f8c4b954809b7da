from typing import NamedTuple

import msgspec
import pytest

from quipu.ledger.canonical import encode
from quipu.ledger.event import SignedEvent
from quipu.ledger.evidence import SignerProof, check_proof, prove_author
from quipu.ledger.inv import Inv
from quipu.ledger.refusals import Reason, Refused
from quipu.ledger.signing import verify
from tests.small_ledger import JOURNAL, SmallLedger, node_id


class Fork(NamedTuple):
    """
    first --- low --- on
         \\-- high -- further -- last
    """

    ledger: SmallLedger
    first: SignedEvent
    low: SignedEvent
    high: SignedEvent
    on: SignedEvent
    further: SignedEvent
    last: SignedEvent


@pytest.fixture
def fork() -> Fork:
    ledger = SmallLedger(4)
    first = ledger.write(1)
    pair = [ledger.write(1, ["x"], prev=first), ledger.write(1, ["y"], prev=first)]
    low, high = sorted(pair, key=lambda event: event.id)
    on = ledger.write(1, prev=low)
    further = ledger.write(1, prev=high)
    return Fork(ledger, first, low, high, on, further, ledger.write(1, prev=further))


def signer_proof(low: Inv, low_chain: list[bytes], high: Inv, high_chain: list[bytes]) -> bytes:
    return encode(SignerProof(1, JOURNAL, 2, low.data, low_chain, high.data, high_chain))


def reason_of(ledger: SmallLedger, data: bytes) -> Reason:
    with pytest.raises(Refused) as caught:
        check_proof(data, ledger.cluster_id, verify)
    return caught.value.reason


def test_two_events_for_one_slot_convict_their_author(fork: Fork) -> None:
    low, high = fork.low, fork.high
    one = (low.header_bytes, low.signature, low.id)
    other = (high.header_bytes, high.signature, high.id)
    data = prove_author(other, one)
    assert data == prove_author(one, other)
    found = check_proof(data, fork.ledger.cluster_id, verify)
    assert (found.culprit, found.as_signer, found.seq) == (node_id(1), False, 2)
    assert (found.low, found.high) == (low.id, high.id)
    assert found.rank == (JOURNAL, 2, low.id, high.id, data)


def test_two_receipts_for_one_slot_convict_their_signer(fork: Fork) -> None:
    above, below = fork.ledger.sign(2, fork.last), fork.ledger.sign(2, fork.low)
    chain = [fork.last.header_bytes, fork.further.header_bytes]
    found = check_proof(signer_proof(below, [], above, chain), fork.ledger.cluster_id, verify)
    assert (found.culprit, found.as_signer) == (node_id(2), True)
    assert (found.low, found.high) == (fork.low.id, fork.high.id)


def test_receipts_of_two_signers_convict_nobody(fork: Fork) -> None:
    one, other = fork.ledger.sign(2, fork.low), fork.ledger.sign(3, fork.high)
    assert reason_of(fork.ledger, signer_proof(one, [], other, [])) is Reason.NO_PROOF


def test_an_honest_signer_cannot_be_framed(fork: Fork) -> None:
    """Receipts that rise along one branch lead to one id, whatever headers are put between."""
    early, late = fork.ledger.sign(2, fork.high), fork.ledger.sign(2, fork.last)
    honest = [fork.last.header_bytes, fork.further.header_bytes]
    chains = [honest, honest[:1], honest[1:], [], [fork.last.header_bytes, fork.on.header_bytes]]
    chains += [[*honest, fork.high.header_bytes], [*honest, fork.low.header_bytes]]
    for chain in chains:
        for data in (signer_proof(early, [], late, chain), signer_proof(late, chain, early, [])):
            assert reason_of(fork.ledger, data) is Reason.NO_PROOF


def test_headers_of_another_cluster_lead_nowhere(fork: Fork) -> None:
    foreign = SmallLedger(2)
    event = foreign.write(1)
    above, below = fork.ledger.sign(2, fork.further), fork.ledger.sign(2, fork.low)
    data = signer_proof(below, [], above, [event.header_bytes])
    assert reason_of(fork.ledger, data) is Reason.WRONG_CLUSTER


def test_forged_signatures_convict_nobody(fork: Fork) -> None:
    inv = fork.ledger.sign(2, fork.low)
    forged = msgspec.structs.replace(inv.array, signature=bytes(64))
    data = encode(SignerProof(1, JOURNAL, 2, encode(forged), [], inv.data, []))
    assert reason_of(fork.ledger, data) is Reason.BAD_SIGNATURE
    low, high = fork.low, fork.high
    bad = prove_author(
        (low.header_bytes, bytes(64), low.id), (high.header_bytes, high.signature, high.id)
    )
    assert reason_of(fork.ledger, bad) is Reason.BAD_SIGNATURE
