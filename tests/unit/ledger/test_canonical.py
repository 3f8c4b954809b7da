import msgspec
import pytest

from quipu.ledger.canonical import Canonical, encode, fits_bytes
from quipu.ledger.refusals import Reason, Refused

NUMBERS = Canonical(list[int], 16)
DEEP = b"\x91" * 100_000 + b"\x90"


class Chain(msgspec.Struct, array_like=True):
    """A form that contains itself: none of the ledger's does, and the codec must bear it."""

    below: "Chain | None"


def reason_of(codec: Canonical[object], data: bytes) -> Reason:
    with pytest.raises(Refused) as caught:
        codec.decode(data)
    return caught.value.reason


def test_takes_what_it_encodes() -> None:
    assert NUMBERS.decode(encode([1, 2, 300])) == [1, 2, 300]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (bytes(17), Reason.TOO_LARGE),
        (b"", Reason.MALFORMED),
        (b"\x92\x01", Reason.MALFORMED),
        (b"\x91\x01\x02", Reason.MALFORMED),
        (b"\x91\xa1a", Reason.MALFORMED),
        (b"\x91\xcc\x01", Reason.NOT_CANONICAL),
        (b"\xdc\x00\x01\x01", Reason.NOT_CANONICAL),
    ],
)
def test_refuses_everything_else(data: bytes, reason: Reason) -> None:
    assert reason_of(NUMBERS, data) is reason  # type: ignore[arg-type]


def test_a_limit_is_inclusive() -> None:
    data = encode(list(range(15)))
    assert len(data) == 16
    assert NUMBERS.decode(data) == list(range(15))


def test_deep_nesting_is_refused_even_where_the_form_allows_it() -> None:
    assert reason_of(Canonical(Chain, 1 << 20), DEEP) is Reason.MALFORMED


def test_text_that_is_not_utf_8_is_refused() -> None:
    assert reason_of(Canonical(str, 16), b"\xa1\xff") is Reason.MALFORMED


@pytest.mark.parametrize(
    ("text", "fits"), [(None, True), ("abcd", True), ("éé", True), ("ééé", False), ("éé.", False)]
)
def test_texts_are_bounded_in_bytes(text: str | None, fits: bool) -> None:
    assert fits_bytes(text, 4) == fits


def test_ascii_is_bounded_by_the_struct_that_holds_it() -> None:
    """`fits_bytes` spares the count of plain ASCII: the struct's own limit is as strict."""
    assert fits_bytes("a" * 100, 4)
