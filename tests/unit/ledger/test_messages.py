import pytest

from quipu.ledger import limits
from quipu.ledger.messages import (
    EventMessage,
    GetData,
    InvMessage,
    RangeWant,
    bytes_of,
    decode_message,
    encode_message,
)
from quipu.ledger.refusals import Reason, Refused
from tests.small_ledger import SmallLedger


def test_the_first_field_is_the_kind() -> None:
    assert encode_message(InvMessage(b"x")) == b"\x92\x02\xc4\x01x"


def test_an_event_travels_as_its_three_parts() -> None:
    event = SmallLedger(1).write(1)
    message = decode_message(encode_message(EventMessage(bytes_of(event))))
    assert isinstance(message, EventMessage)
    parts = message.event
    assert (parts.header, parts.signature, parts.body) == (
        event.header_bytes,
        event.signature,
        event.body,
    )


def test_an_unknown_kind_is_told_from_a_malformed_message() -> None:
    for data, reason in (
        (b"\x92\x63\xc0", Reason.UNKNOWN_KIND),
        (b"\x92\x02\xc0", Reason.MALFORMED),
        (b"\x91\x02", Reason.MALFORMED),
    ):
        with pytest.raises(Refused) as caught:
            decode_message(data)
        assert caught.value.reason is reason


def test_a_request_is_bounded_as_a_whole() -> None:
    anchors = [(2**64 - 1, bytes(16))] * limits.GET_ANCHORS_MAX
    want = RangeWant(1, 1, anchors, 1, bytes(16))
    for count in (limits.GET_RANGES_MAX, limits.GET_RANGES_MAX // 2):
        request = GetData(1, [bytes(32)] * limits.GET_IDS_MAX, [want] * count, [], [], 1)
        data = encode_message(request)
        if len(data) <= limits.GET_BYTES_MAX:
            assert decode_message(data) == request
            continue
        with pytest.raises(Refused) as caught:
            decode_message(data)
        assert caught.value.reason is Reason.TOO_LARGE
