import pytest

from quipu.ledger.entry import (
    DEFAULT_STREAM,
    ContentType,
    data_entry,
    decode_entry,
    encode_entry,
    is_stream_name,
)
from quipu.ledger.refusals import Reason, Refused


def test_an_entry_of_data_alone() -> None:
    entry = data_entry(b"hello")
    assert (entry.stream, entry.content_type) == (DEFAULT_STREAM, ContentType.OCTETS)
    assert decode_entry(encode_entry(entry)) == entry


def test_data_is_given_back_byte_for_byte() -> None:
    data = bytes(range(256)) * 17
    assert decode_entry(encode_entry(data_entry(data, content_type="image/png"))).data == data


@pytest.mark.parametrize("stream", ["a", "0", "a.b_c-d", "a" * 128])
def test_names_of_streams(stream: str) -> None:
    assert is_stream_name(stream)


@pytest.mark.parametrize("stream", ["", "A", ".a", "_a", "-a", "a b", "a\n", "é", "a" * 129])
def test_other_names_are_refused(stream: str) -> None:
    assert not is_stream_name(stream)
    with pytest.raises(Refused) as caught:
        decode_entry(encode_entry(data_entry(b"", stream=stream)))
    assert caught.value.reason is Reason.BAD_ENTRY


@pytest.mark.parametrize(
    ("submitter", "key", "fits"),
    [
        ("s" * 128, "k" * 256, True),
        ("é" * 64, "é" * 128, True),
        ("é" * 65, None, False),
        (None, "é" * 129, False),
    ],
)
def test_texts_are_bounded_in_bytes(submitter: str | None, key: str | None, fits: bool) -> None:
    data = encode_entry(data_entry(b"", submitter=submitter, idempotency_key=key))
    if fits:
        decode_entry(data)
        return
    with pytest.raises(Refused) as caught:
        decode_entry(data)
    assert caught.value.reason is Reason.BAD_ENTRY


def test_a_content_type_cannot_bring_a_header_with_it() -> None:
    with pytest.raises(Refused) as caught:
        decode_entry(encode_entry(data_entry(b"", content_type="text/plain\r\nset-cookie: a=b")))
    assert caught.value.reason is Reason.BAD_ENTRY
