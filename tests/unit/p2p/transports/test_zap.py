"""Who may connect: anybody with a key."""

import pytest

from quipu.p2p.transports.zap import answer

REQUEST = [b"1.0", b"7", b"quipu", b"127.0.0.1", b""]


def test_a_key_is_let_in_and_noted() -> None:
    key = bytes(range(32))
    assert answer([*REQUEST, b"CURVE", key]) == [
        b"1.0",
        b"7",
        b"200",
        b"OK",
        key.hex().encode(),
        b"",
    ]


@pytest.mark.parametrize(
    "asked", [[b"NULL"], [b"PLAIN", b"user", b"word"], [b"CURVE"], [b"CURVE", b"short"]]
)
def test_without_a_key_nobody_is_let_in(asked: list[bytes]) -> None:
    reply = answer([*REQUEST, *asked])
    assert reply is not None
    assert reply[1:3] == [b"7", b"400"]


@pytest.mark.parametrize("request_parts", [[], REQUEST, [b"2.0", *REQUEST]])
def test_what_is_no_request_has_no_answer(request_parts: list[bytes]) -> None:
    assert answer(request_parts) is None
