from collections.abc import Sequence

import msgspec
import pytest

from quipu.ledger.bundle import Bundle, SealedDocument, check_bundle, encode_bundle
from quipu.ledger.bundle_build import build_bundle
from quipu.ledger.canonical import encode
from quipu.ledger.epochs import CutRow, close_hash
from quipu.ledger.event import SignedEvent
from quipu.ledger.inv import decode_inv
from quipu.ledger.refusals import Reason, Refused
from quipu.ledger.signing import verify
from quipu.verify import VerificationFailed
from quipu.verify import verify as verify_offline
from tests.small_ledger import SmallLedger


def bundle_of(
    ledger: SmallLedger, event: SignedEvent, chain: Sequence[SignedEvent], invs: Sequence[bytes]
) -> bytes:
    """A bundle put together by hand, of an event with one entry."""
    return encode_bundle(
        Bundle(
            version=1,
            genesis=ledger.genesis,
            documents=[SealedDocument(data, list(seals)) for data, seals in ledger.documents],
            header=event.header_bytes,
            signature=event.signature,
            index=0,
            entry=msgspec.msgpack.decode(event.body)[0],
            path=[],
            chain=[above.header_bytes for above in chain],
            invs=list(invs),
        )
    )


def reason_of(data: bytes) -> Reason:
    """Why it is refused, by both."""
    with pytest.raises(VerificationFailed):
        verify_offline(data)
    with pytest.raises(Refused) as caught:
        check_bundle(data, verify)
    return caught.value.reason


def test_the_receipts_of_one_epoch_count() -> None:
    ledger = SmallLedger(3)
    event = ledger.write(1)
    own, other = ledger.sign(1, event).data, ledger.sign(2, event).data
    found = check_bundle(bundle_of(ledger, event, [], [own, other]), verify)
    assert (found.confirmed, found.required, found.by_cut) == ((2,), 1, False)
    later = ledger.sign(2, event, epoch=2).data
    assert reason_of(bundle_of(ledger, event, [], [own, later])) is Reason.NO_PROOF


def test_every_receipt_must_be_of_this_cluster() -> None:
    ledger = SmallLedger(3)
    event = ledger.write(1)
    own = ledger.sign(1, event)
    foreign = SmallLedger(3, "all").sign(2)
    data = bundle_of(ledger, event, [], [own.data, foreign.data])
    assert reason_of(data) is Reason.WRONG_CLUSTER


def test_a_receipt_of_the_other_branch_covers_nothing() -> None:
    ledger = SmallLedger(3)
    first = ledger.write(1)
    left, right = ledger.write(1, ["x"], prev=first), ledger.write(1, ["y"], prev=first)
    own, other = ledger.sign(1, left).data, ledger.sign(2, right).data
    assert reason_of(bundle_of(ledger, left, [], [own, other])) is Reason.NO_PROOF
    assert reason_of(bundle_of(ledger, first, [left], [own, other])) is Reason.NO_PROOF


def test_a_receipt_of_another_cord_or_below_covers_nothing() -> None:
    ledger = SmallLedger(3)
    first, second = ledger.write(1), ledger.write(1)
    elsewhere = ledger.write(2)
    own = ledger.sign(1, second).data
    for tip in (first, elsewhere):
        data = bundle_of(ledger, second, [], [own, ledger.sign(2, tip).data])
        assert reason_of(data) is Reason.NO_PROOF


def test_the_author_must_be_of_the_epoch_that_confirms() -> None:
    ledger = SmallLedger(3)
    event = ledger.write(1)
    document = ledger.document([2, 3], "majority")
    ledger.open(document, ledger.seal(document, [2, 3]))
    invs = [ledger.sign(i, event).data for i in (2, 3)]
    assert reason_of(bundle_of(ledger, event, [], invs)) is Reason.NO_PROOF


# --- cuts ---------------------------------------------------------------------------------------
def cut_ledger(
    policy: str = "majority", members: int = 3
) -> tuple[SmallLedger, SignedEvent, SignedEvent]:
    ledger = SmallLedger(members, policy)
    return ledger, ledger.write(1), ledger.write(1)


def closed(
    ledger: SmallLedger, cut: list[SignedEvent], seals: dict[int, list[SignedEvent]]
) -> None:
    """Opens the next epoch, sealed by these members over these tips."""
    document = ledger.document([2, 3], "majority", cut)
    close = close_hash(document)
    made = tuple(ledger.sign(i, *tips, close=close).data for i, tips in seals.items())
    ledger.open(document, made)


def test_a_cut_that_its_seals_allow_makes_final() -> None:
    ledger, first, second = cut_ledger()
    closed(ledger, [second], {2: [second], 3: [first]})
    found = check_bundle(bundle_of(ledger, first, [second], []), verify)
    assert (found.by_cut, found.epoch.number, found.confirmed, found.required) == (True, 1, (2,), 1)


def test_a_cut_row_that_no_seal_covers_is_made_up() -> None:
    ledger, first, second = cut_ledger()
    closed(ledger, [second], {2: [first], 3: [first]})
    assert reason_of(bundle_of(ledger, first, [second], [])) is Reason.NO_PROOF


def test_a_cut_row_that_too_few_seals_cover_is_made_up() -> None:
    """All three sealed: a certificate needs two of them."""
    ledger, first, second = cut_ledger()
    closed(ledger, [second], {1: [first], 2: [second], 3: [first]})
    assert reason_of(bundle_of(ledger, first, [second], [])) is Reason.NO_PROOF
    ledger, first, second = cut_ledger()
    closed(ledger, [second], {1: [first], 2: [second], 3: [second]})
    assert check_bundle(bundle_of(ledger, first, [second], []), verify).required == 2


def test_liars_that_the_policy_bears_are_counted_in() -> None:
    for covering, holds in ((1, False), (2, True)):
        ledger, first, second = cut_ledger("two-thirds", 4)
        seals = {i: [second] if i < 2 + covering else [first] for i in (1, 2, 3, 4)}
        seals[1] = [first]
        closed(ledger, [second], seals)
        data = bundle_of(ledger, first, [second], [])
        if holds:
            assert check_bundle(data, verify).required == 2
        else:
            assert reason_of(data) is Reason.NO_PROOF


def test_headers_above_what_is_used_are_refused() -> None:
    ledger, first, second = cut_ledger()
    third = ledger.write(1)
    closed(ledger, [second], {2: [second], 3: [first]})
    assert reason_of(bundle_of(ledger, first, [second, third], [])) is Reason.NO_PROOF


def test_an_event_above_the_cut_or_of_the_new_epoch_is_not_final() -> None:
    ledger, first, second = cut_ledger()
    closed(ledger, [first], {2: [second], 3: [second]})
    assert reason_of(bundle_of(ledger, second, [], [])) is Reason.NO_PROOF
    fresh = ledger.write(2)
    assert reason_of(bundle_of(ledger, fresh, [], [])) is Reason.NO_PROOF


def test_a_row_is_of_its_author() -> None:
    """A cut or an Inv may name the id under another cord: that is not the event's cord."""
    ledger, _, second = cut_ledger()
    document = ledger.document([2, 3], "majority", [second])
    row = document.cut[0]
    for wrong in (
        CutRow(2, row.journal, row.seq, row.id),
        CutRow(1, row.journal + 1, row.seq, row.id),
        CutRow(1, row.journal, row.seq + 1, row.id),
    ):
        changed = msgspec.structs.replace(document, cut=[wrong])
        seals = [ledger.sign(i, second, close=close_hash(document)).data for i in (2, 3)]
        ledger.documents = [(encode(changed), tuple(seals))]
        assert reason_of(bundle_of(ledger, second, [], [])) is Reason.NO_PROOF


def test_a_whole_bundle_says_what_it_proves() -> None:
    ledger = SmallLedger(3)
    event = ledger.write(2, ["a", "b", "c"])
    for i in (1, 2, 3):
        ledger.sign(i, event)
    data = build_bundle(ledger, ledger.lineage, event.id, 2)
    found = check_bundle(data, verify)
    assert (found.cluster_id, found.event, found.entry_index) == (ledger.cluster_id, event.id, 2)
    assert (found.header, found.entry.data) == (event.header, b"c")
    assert found.epoch == ledger.epoch
    assert found.confirmed == (1, 3)
    assert [decode_inv(inv).epoch for inv in ledger.invs[found.confirmed[0]].values()] == [1]
