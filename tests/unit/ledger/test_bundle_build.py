from collections.abc import Iterable, Iterator

import pytest

from quipu.ledger import limits
from quipu.ledger.bundle import Finality, check_bundle, decode_bundle
from quipu.ledger.bundle_build import build_bundle
from quipu.ledger.epochs import close_hash
from quipu.ledger.event import SignedEvent
from quipu.ledger.refusals import Reason, Refused
from quipu.ledger.signing import verify
from quipu.ledger.words import EventId, InvNumber, NodeNo
from tests.small_ledger import SmallLedger


def built(ledger: SmallLedger, event: SignedEvent, index: int = 0) -> Finality:
    return check_bundle(build_bundle(ledger, ledger.lineage, event.id, index), verify)


def chain_of(ledger: SmallLedger, event: SignedEvent) -> list[bytes]:
    return decode_bundle(build_bundle(ledger, ledger.lineage, event.id, 0)).chain


def reason_of(ledger: SmallLedger, identity: EventId, index: int = 0) -> Reason:
    with pytest.raises(Refused) as caught:
        build_bundle(ledger, ledger.lineage, identity, index)
    return caught.value.reason


def test_what_is_not_held_or_not_there_is_refused() -> None:
    ledger = SmallLedger(1)
    event = ledger.write(1, ["a", "b"])
    ledger.sign(1, event)
    assert reason_of(ledger, EventId(bytes(32))) is Reason.NOT_READ
    assert reason_of(ledger, event.id, 2) is Reason.BAD_ENTRY
    assert reason_of(ledger, event.id, -1) is Reason.BAD_ENTRY
    assert built(ledger, event, 1).entry.data == b"b"


def test_an_event_without_certificate_is_refused() -> None:
    ledger = SmallLedger(3)
    event = ledger.write(1)
    assert reason_of(ledger, event.id) is Reason.NOT_READ
    ledger.sign(1, event)
    assert reason_of(ledger, event.id) is Reason.NOT_READ
    ledger.sign(3)
    assert reason_of(ledger, event.id) is Reason.NOT_READ
    ledger.sign(3, event)
    assert built(ledger, event).confirmed == (3,)


def test_the_authors_own_receipt_is_demanded() -> None:
    ledger = SmallLedger(3)
    event = ledger.write(1)
    ledger.sign(2, event)
    ledger.sign(3, event)
    assert reason_of(ledger, event.id) is Reason.NOT_READ


def test_the_earliest_receipts_are_taken() -> None:
    ledger = SmallLedger(3)
    events = []
    for _ in range(5):
        events.append(ledger.write(1))
        for signer in (1, 2, 3):
            ledger.sign(signer, events[-1])
    assert [len(chain_of(ledger, event)) for event in events] == [0] * 5


def test_few_headers_lie_between_even_where_receipts_are_rare() -> None:
    ledger = SmallLedger(3)
    events = [ledger.write(1) for _ in range(20)]
    for signer, at in ((1, 19), (2, 12), (3, 15)):
        ledger.sign(signer, events[at])
    assert len(chain_of(ledger, events[2])) == 17  # the author's own is needed
    ledger.sign(1, events[19])
    assert built(ledger, events[2]).confirmed == (2, 3)


def test_more_headers_than_a_bundle_may_have_are_no_proof() -> None:
    ledger = SmallLedger(1)
    events = [ledger.write(1) for _ in range(limits.BUNDLE_HEADERS_MAX + 2)]
    ledger.sign(1, events[-1])
    assert reason_of(ledger, events[0].id) is Reason.NOT_READ
    assert built(ledger, events[1]).required == 0


@pytest.mark.parametrize("behind_ms", [0, 5_000, 3_600_000, 400 * 86_400_000])
def test_clocks_that_differ_are_found_through(behind_ms: int) -> None:
    """Receipts whose numbers come from a clock that is far behind the author's."""
    ledger = SmallLedger(3)
    event = ledger.write(1)
    ledger.sign(1, event)
    ledger.now_ms -= behind_ms
    before = [ledger.sign(2, ledger.tips[ledger.cord_of(event)]) for _ in range(2)]
    ledger.now_ms += behind_ms
    later = [ledger.write(1) for _ in range(600)]
    for last in later:
        ledger.sign(1, last)
    ledger.sign(2, later[-1])
    assert len(chain_of(ledger, event)) == 0
    assert before[0].data in decode_bundle(build_bundle(ledger, ledger.lineage, event.id, 0)).invs


def test_receipts_of_before_are_passed_over() -> None:
    ledger = SmallLedger(3)
    first = ledger.write(1)
    for signer in (1, 2, 3):
        ledger.sign(signer)
        ledger.sign(signer, first)
    second = ledger.write(1)
    for signer in (1, 2, 3):
        ledger.sign(signer, second)
    assert built(ledger, second).confirmed == (2, 3)


def test_one_certificate_is_of_one_epoch() -> None:
    ledger = SmallLedger(3)
    event = ledger.write(1)
    ledger.sign(1, event)
    document = ledger.document([1, 2, 3, 4], "majority")
    ledger.open(document, tuple(ledger.sign(i, close=close_hash(document)).data for i in (1, 2)))
    ledger.sign(2, event)
    ledger.sign(4, event)
    assert reason_of(ledger, event.id) is Reason.NOT_READ
    ledger.sign(1, event)
    found = built(ledger, event)
    assert (found.epoch.number, found.confirmed) == (2, (2, 4))


def test_an_author_who_left_has_no_certificate_of_a_later_epoch() -> None:
    ledger = SmallLedger(3)
    event = ledger.write(1)
    document = ledger.document([2, 3], "majority")
    ledger.open(document, tuple(ledger.sign(i, close=close_hash(document)).data for i in (2, 3)))
    for signer in (2, 3):
        ledger.sign(signer, event)
    assert reason_of(ledger, event.id) is Reason.NOT_READ


def test_receipts_on_two_branches_confirm_what_lies_below_both() -> None:
    ledger = SmallLedger(5)
    first = ledger.write(1)
    left, right = ledger.write(1, ["x"], prev=first), ledger.write(1, ["y"], prev=first)
    ledger.sign(1, left)
    ledger.sign(2, left)
    ledger.sign(3, right)
    assert reason_of(ledger, first.id) is Reason.NOT_READ  # one bundle has one line
    ledger.sign(4, left)
    found = built(ledger, first)
    assert found.confirmed == (2, 4)
    assert built(ledger, left).confirmed == (2, 4)
    assert reason_of(ledger, right.id) is Reason.NOT_READ


def test_a_receipt_for_what_is_not_held_is_passed_over() -> None:
    ledger = SmallLedger(2)
    event = ledger.write(1)
    ghost = ledger.write(1)
    ledger.sign(1, event)
    ledger.sign(2, ghost)
    del ledger.metas[ghost.id]
    assert reason_of(ledger, event.id) is Reason.NOT_READ


def test_a_cut_proves_what_has_no_receipts() -> None:
    ledger = SmallLedger(3)
    first, second, third = ledger.write(1), ledger.write(1), ledger.write(1)
    elsewhere = ledger.write(2)
    document = ledger.document([2, 3], "majority", [second, elsewhere])
    close = close_hash(document)
    seals = ledger.sign(2, third, elsewhere, close=close), ledger.sign(3, first, close=close)
    ledger.open(document, tuple(seal.data for seal in seals))
    found = built(ledger, first)
    assert (found.by_cut, found.confirmed, found.required) == (True, (2,), 1)
    assert len(chain_of(ledger, first)) == 2
    assert built(ledger, second).by_cut
    assert reason_of(ledger, third.id) is Reason.NOT_READ


def test_a_cut_row_on_another_branch_proves_nothing() -> None:
    ledger = SmallLedger(3)
    first = ledger.write(1)
    left, right = ledger.write(1, ["x"], prev=first), ledger.write(1, ["y"], prev=first)
    document = ledger.document([2, 3], "majority", [left])
    close = close_hash(document)
    seals = ledger.sign(2, left, close=close), ledger.sign(3, right, close=close)
    ledger.open(document, tuple(seal.data for seal in seals))
    assert reason_of(ledger, right.id) is Reason.NOT_READ
    assert built(ledger, left).by_cut


def test_a_later_cut_is_taken_where_an_earlier_one_lies_below() -> None:
    ledger = SmallLedger(3)
    first = ledger.write(1)
    second = ledger.write(1)
    for cut in ([first], [second]):
        document = ledger.document([1, 2, 3], "majority", cut)
        close = close_hash(document)
        seals = tuple(ledger.sign(i, second, close=close).data for i in (2, 3))
        ledger.open(document, seals)
    assert built(ledger, first).epoch.number == 1
    assert built(ledger, second).epoch.number == 2


def test_a_cut_that_its_seals_do_not_allow_is_not_used() -> None:
    ledger = SmallLedger(3)
    first, second = ledger.write(1), ledger.write(1)
    document = ledger.document([2, 3], "majority", [second])
    close = close_hash(document)
    seals = tuple(ledger.sign(i, first, close=close).data for i in (2, 3))
    ledger.open(document, seals)
    assert reason_of(ledger, first.id) is Reason.NOT_READ


class Counting(SmallLedger):
    """Counts the receipts that a search reads."""

    read = 0

    def invs_from(self, signer_no: NodeNo, number: InvNumber) -> Iterable[bytes]:
        return self._counted(super().invs_from(signer_no, number))

    def _counted(self, invs: Iterable[bytes]) -> Iterator[bytes]:
        for inv in invs:
            self.read += 1
            yield inv


def test_a_search_begins_near_the_event() -> None:
    ledger = Counting(3)
    events = []
    for i in range(3000):
        ledger.now_ms += 100
        events.append(ledger.write(1))
        if i % 3 == 0:
            for signer in (1, 2, 3):
                ledger.sign(signer, events[-1])
    built(ledger, events[1500])
    assert ledger.read < 100
