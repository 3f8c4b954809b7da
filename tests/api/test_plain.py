"""Plain entries get the canonical bytes that the long way gives them, and nothing else is plain."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quipu.api.bodies import JSON, Defaults, read_entry
from quipu.api.plain import plain_array, plain_entry, plain_lines
from quipu.api.tokens import ANYBODY, ENTRIES_WRITE, Principal
from quipu.ledger.entry import decode_entry

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)
NAMES = st.from_regex(r"[a-z0-9][a-z0-9._-]{0,127}", fullmatch=True)
SHOP = Principal("shop", frozenset({f"{ENTRIES_WRITE}:orders"}))
NO_DEFAULTS = Defaults()


@given(VALUES, NAMES | st.none(), NAMES | st.none(), st.sampled_from([None, "shop"]))
def test_the_bytes_are_those_of_the_long_way(
    data: object, stream: str | None, asked: str | None, submitter: str | None
) -> None:
    body = json.dumps({"data": data} | ({} if stream is None else {"stream": stream})).encode()
    defaults = Defaults(submitter, asked)
    found = plain_entry(body, defaults, ANYBODY)
    if asked is not None and stream not in {None, asked}:
        assert found is None
        return
    assert found == read_entry(body, JSON, defaults).canonical
    decode_entry(found)
    assert plain_array(b"[" + body + b"," + body + b"]", defaults, ANYBODY) == [found] * 2
    assert plain_lines([body, body], defaults, ANYBODY) == [found] * 2


@pytest.mark.parametrize("size", [0, 200, 255, 256, 65_535, 65_536, 1_000_000])
def test_data_of_any_size(size: int) -> None:
    body = json.dumps({"data": "x" * size}).encode()
    assert plain_entry(body, NO_DEFAULTS, ANYBODY) == read_entry(body, JSON, NO_DEFAULTS).canonical


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"data":1',
        b'{"data":"\xff"}',
        b'{"data":1,"stream":""}',
        b'{"data":1,"stream":"NO"}',
        b'{"data":1,"stream":null}',
        b'{"data":1,"stream":7}',
        b'{"data":1,"idempotency_key":"k"}',
        b'{"data":1,"time":"2026-01-31T12:00:00Z"}',
        b'{"data":1,"content_type":"application/json"}',
        b'{"data_base64":"AA=="}',
        b'{"data":1,"strem":"orders"}',
        b'{"data":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"data":"' + b"x" * (1 << 20) + b'"}',
    ],
    ids=range(16),
)
def test_anything_else_is_left_to_the_long_way(body: bytes) -> None:
    assert plain_entry(body, NO_DEFAULTS, ANYBODY) is None
    good = b'{"data":1}'
    assert plain_array(b"[" + good + b"," + body + b"]", NO_DEFAULTS, ANYBODY) is None
    assert plain_lines([good, body], NO_DEFAULTS, ANYBODY) is None


def test_two_lines_are_two_entries_by_themselves() -> None:
    cut = [b'{"data":[1', b"2]}", b'{"data":1},{"data":2}']
    assert plain_lines(cut, NO_DEFAULTS, ANYBODY) is None
    assert plain_lines([b'{"data":"\xc3', b'\xa9"}'], NO_DEFAULTS, ANYBODY) is None


def test_what_a_caller_may_not_write_is_not_plain() -> None:
    mine, other = b'{"data":1,"stream":"orders"}', b'{"data":1,"stream":"other"}'
    assert plain_entry(mine, Defaults("shop"), SHOP) is not None
    assert plain_entry(other, Defaults("shop"), SHOP) is None
    assert plain_array(b"[" + mine + b"," + other + b"]", Defaults("shop"), SHOP) is None


def test_a_key_and_an_erasable_stream_are_not_plain() -> None:
    body = b'{"data":1,"stream":"orders"}'
    assert plain_entry(body, Defaults(idempotency_key="k"), ANYBODY) is None
    erasable = Defaults(streams_erasable=frozenset({"orders"}))
    assert plain_entry(body, erasable, ANYBODY) is None
    assert plain_entry(b'{"data":1}', erasable, ANYBODY) is not None
