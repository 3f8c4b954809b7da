"""A signer that has acknowledged two ids for one slot is proven: one core n1, the others are
hands."""

import msgspec
import pytest

from quipu.ledger import limits
from quipu.ledger.event import SignedEvent
from quipu.ledger.evidence import SignerProof, check_proof
from quipu.ledger.messages import EvidenceMessage
from quipu.ledger.signing import verify
from tests.conformance.hand import Hand, alone_with, greet, hands
from tests.conformance.table import Seat, Table


def two_branches(author: Hand, above: int) -> tuple[list[SignedEvent], list[SignedEvent]]:
    """A base, then two lines over it, each this many events long."""
    base = author.event("base")
    return [base, *author.chain(above, base, text="a")], author.chain(above, base, text="b")


def hold_both(
    table: Table, vouching: Hand, author: Hand, main: list[SignedEvent], side: list[SignedEvent]
) -> None:
    """The second line comes in as an answer of somebody who has it."""
    author.push("n1", *main)
    table.run(10)
    vouching.sync("n1", side[-1])
    table.run(limits.SYNC_DIFFERENCE_AGE_MS)
    vouching.answer("n1", vouching.requests()[-1], *side)
    table.run(10)


def signer_proofs(seat: Seat) -> list[SignerProof]:
    return [
        msgspec.msgpack.decode(held.data, type=SignerProof)
        for held in seat.core.convictions.all()
        if held.as_signer
    ]


def test_a_signer_of_both_branches_is_proven_with_the_headers_down_to_the_slot() -> None:
    table, n1, (author, n3, liar) = alone_with(3)
    main, side = two_branches(author, 3)
    hold_both(table, n3, author, main, side)
    liar.confirm("n1", main[-1])
    table.run(0)
    assert signer_proofs(n1) == []
    liar.confirm("n1", side[1])
    table.run(0)
    (proof,) = signer_proofs(n1)
    assert (proof.author_no, proof.journal, proof.seq) == (author.number, 1, 2)
    ids = {side[0].id, main[1].id}
    headers = {
        main[1].id: [event.header_bytes for event in (main[3], main[2])],
        side[0].id: [side[1].header_bytes],
    }
    assert [proof.chain_low, proof.chain_high] == [headers[slot] for slot in sorted(ids)]
    (held,) = [held for held in n1.core.convictions.all() if held.as_signer]
    assert held.culprit == liar.key.node_id
    assert check_proof(held.data, table.cluster_id, verify) == held
    told = table.messages(EvidenceMessage)
    assert EvidenceMessage(held.data) in told


def test_no_chain_is_needed_where_the_rows_stand_at_the_slot() -> None:
    table, n1, (author, n3, liar) = alone_with(3)
    main, side = two_branches(author, 1)
    hold_both(table, n3, author, main, side)
    liar.confirm("n1", side[0])
    liar.confirm("n1", main[1])
    table.run(0)
    assert signer_proofs(n1) == []  # of two in a turn the last counts: nothing is proven yet
    liar.confirm("n1", side[0])
    table.run(0)
    (proof,) = signer_proofs(n1)
    assert (proof.chain_low, proof.chain_high) == ([], [])


def test_rows_on_one_line_are_no_proof() -> None:
    table, n1, (author, n3, n4) = alone_with(3)
    main, side = two_branches(author, 3)
    hold_both(table, n3, author, main, side)
    for event in (main[0], main[2], main[3]):
        n4.confirm("n1", event)
        table.run(0)
    n3.confirm("n1", side[1])
    table.run(0)
    n3.confirm("n1", side[2])
    table.run(0)
    assert signer_proofs(n1) == []


def test_both_branches_of_a_third_one_are_compared() -> None:
    table, n1, (author, n3, liar, n5) = alone_with(4)
    main, side = two_branches(author, 3)
    third = author.event("third", prev=side[0])
    hold_both(table, n3, author, main, side)
    n5.sync("n1", third)
    table.run(limits.SYNC_DIFFERENCE_AGE_MS)
    n5.answer("n1", n5.requests()[-1], third)
    table.run(0)
    liar.confirm("n1", side[1])
    table.run(0)
    liar.confirm("n1", third)
    table.run(0)
    (proof,) = signer_proofs(n1)
    assert proof.seq == 3


def test_a_row_too_far_above_the_slot_makes_no_proof_and_a_nearer_one_does() -> None:
    table, n1, (author, n3, liar) = alone_with(3)
    main, side = two_branches(author, limits.PROOF_HEADERS_MAX + 2)
    hold_both(table, n3, author, main, side)
    liar.confirm("n1", main[-1])
    table.run(0)
    liar.confirm("n1", side[1])
    table.run(0)
    assert signer_proofs(n1) == []
    table, n1, (author, n3, liar) = alone_with(3)
    main, side = two_branches(author, limits.PROOF_HEADERS_MAX + 1)
    hold_both(table, n3, author, main, side)
    liar.confirm("n1", main[-1])
    table.run(0)
    liar.confirm("n1", side[1])
    table.run(0)
    (proof,) = signer_proofs(n1)
    assert max(len(proof.chain_low), len(proof.chain_high)) == limits.PROOF_HEADERS_MAX


def test_a_receipt_that_is_no_longer_kept_makes_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    table, n1, (author, n3, liar) = alone_with(3)
    main, side = two_branches(author, 1)
    hold_both(table, n3, author, main, side)
    inv = liar.confirm("n1", main[1])
    table.run(0)
    kept = n1.store.inv
    monkeypatch.setattr(
        n1.store, "inv", lambda no, number: None if number == inv.number else kept(no, number)
    )
    liar.confirm("n1", side[0])
    table.run(0)
    assert signer_proofs(n1) == []


def test_an_honest_node_of_two_sees_the_same_proof_as_the_other() -> None:
    table = Table(2, played=["n3", "liar"])
    author, liar = hands(table)
    greet(author, liar)
    table.run(50)
    main, side = two_branches(author, 2)
    table.cut("n1", "n2")
    author.push("n1", *main)
    author.push("n2", main[0], *side)
    liar.confirm("n1", main[-1])
    liar.confirm("n2", side[-1])
    table.run(50)
    table.heal()
    table.run(10_000)
    held = [
        [c.data for c in seat.core.convictions.all() if c.culprit == liar.key.node_id]
        for seat in table.seats.values()
    ]
    assert len(held[0]) == 1
    assert held[0] == held[1]


def test_a_header_that_is_no_longer_kept_makes_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    table, n1, (author, n3, liar) = alone_with(3)
    main, side = two_branches(author, 2)
    hold_both(table, n3, author, main, side)
    liar.confirm("n1", main[2])
    table.run(0)
    monkeypatch.setattr(n1.store, "event", lambda identity: None)
    liar.confirm("n1", side[1])
    table.run(0)
    assert signer_proofs(n1) == []
