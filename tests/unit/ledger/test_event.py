import msgspec
import pytest

from quipu.ledger import limits
from quipu.ledger.canonical import encode
from quipu.ledger.event import (
    SignedEvent,
    author_of,
    decode_body,
    decode_event,
    decode_header,
    has_valid_signature,
    meta_of,
)
from quipu.ledger.refusals import Reason, Refused
from quipu.ledger.signing import verify
from quipu.ledger.words import Cord, Journal, NodeNo, Seq
from tests.small_ledger import JOURNAL, SmallLedger, node_id


@pytest.fixture
def second() -> SignedEvent:
    ledger = SmallLedger(2)
    ledger.write(1)
    return ledger.write(1, ["a", "b"], parents=[ledger.write(2)])


def test_an_event_decodes_to_what_was_built(second: SignedEvent) -> None:
    again = decode_event(second.header_bytes, second.signature, second.body)
    assert again == second
    assert again.size == len(second.header_bytes) + 64 + len(second.body)
    assert author_of(again) == node_id(1)


def test_the_summary_of_an_event(second: SignedEvent) -> None:
    meta = meta_of(second, NodeNo(1), 3)
    assert meta.slot == (1, JOURNAL, 2, 3)
    assert meta.branch.cord == Cord(NodeNo(1), Journal(JOURNAL))
    assert meta.seq == Seq(2)
    assert (meta.id, meta.prev, meta.entry_count) == (second.id, second.header.prev, 2)
    assert list(meta.parents) == second.header.parents
    assert (meta.hlc, meta.depth, meta.size) == (second.header.hlc, 2, second.size)


def test_the_signature_is_over_id_and_purpose(second: SignedEvent) -> None:
    assert has_valid_signature(second, verify)
    assert not has_valid_signature(second._replace(signature=bytes(64)), verify)
    for bad in (b"", bytes(63)):
        with pytest.raises(Refused) as caught:
            decode_event(second.header_bytes, bad, second.body)
        assert caught.value.reason is Reason.MALFORMED


def test_the_greatest_event_is_taken_and_one_more_is_not(second: SignedEvent) -> None:
    most = msgspec.structs.replace(
        second.header,
        parents=[bytes([i]) * 32 for i in range(limits.PARENTS_MAX)],
        entry_count=limits.EVENT_ENTRIES_MAX,
        body_size=limits.EVENT_BYTES_MAX,
        hlc=2**64 - 1,
        depth=2**64 - 1,
        seq=2**64 - 1,
    )
    assert decode_header(encode(most)) == most
    more = msgspec.structs.replace(most, entry_count=limits.EVENT_ENTRIES_MAX + 1)
    with pytest.raises(Refused) as caught:
        decode_header(encode(more))
    assert caught.value.reason is Reason.BAD_BODY


def test_a_body_of_another_event_is_refused(second: SignedEvent) -> None:
    other = SmallLedger(1).write(1, ["b", "a"])
    assert len(other.body) == len(second.body)
    with pytest.raises(Refused) as caught:
        decode_body(second.header, other.body)
    assert caught.value.reason is Reason.BAD_ROOT
