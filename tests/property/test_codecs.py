"""What is encoded decodes to itself; what decodes is the only bytes of its value."""

from collections.abc import Callable

import msgpack
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quipu.ledger.canonical import encode
from quipu.ledger.entry import Entry, decode_entry, encode_entry
from quipu.ledger.epochs import decode_document, decode_genesis
from quipu.ledger.event import Header, decode_header
from quipu.ledger.inv import InvArray, decode_inv
from quipu.ledger.messages import Message, decode_message, encode_message
from quipu.ledger.refusals import Refused
from tests.property import strategies
from tests.vectors.check import DECODERS, Bad

Decoder = Callable[[bytes], object]
DECODER: dict[str, Decoder] = {
    "entry": decode_entry,
    "header": decode_header,
    "inv": lambda data: decode_inv(data).array,
    "message": decode_message,
    "genesis": decode_genesis,
    "document": decode_document,
}


@given(strategies.entries)
def test_entries(entry: Entry) -> None:
    assert decode_entry(encode_entry(entry)) == entry


@given(strategies.headers)
def test_headers(header: Header) -> None:
    assert decode_header(encode(header)) == header


@given(strategies.inv_arrays)
def test_invs(array: InvArray) -> None:
    inv = decode_inv(encode(array))
    assert inv.array == array
    assert inv.data == encode(array)


@given(strategies.messages)
def test_messages(message: Message) -> None:
    assert decode_message(encode_message(message)) == message


@given(st.one_of(strategies.entries, strategies.headers, strategies.inv_arrays))
def test_both_libraries_encode_alike(value: msgspec.Struct) -> None:
    """Canonical is what msgspec and msgpack agree on."""
    data = encode(value)
    assert msgpack.packb(msgpack.unpackb(data)) == data


def is_taken(decoder: Decoder, data: bytes) -> bool:
    try:
        value = decoder(data)
    except Refused:
        return False
    assert encode(value) == data
    return True


def stranger_takes(kind: str, data: bytes) -> bool:
    try:
        DECODERS[kind](data)
    except Bad:
        return False
    return True


@pytest.mark.parametrize("kind", DECODER)
@given(data=st.one_of(strategies.anything.map(encode), st.binary(max_size=200)))
def test_any_bytes_at_all(kind: str, data: bytes) -> None:
    """Taken only where they are canonical, and where a stranger takes them too."""
    assert is_taken(DECODER[kind], data) == stranger_takes(kind, data)


GOOD: dict[str, st.SearchStrategy[bytes]] = {
    "entry": strategies.entries.map(encode),
    "header": strategies.headers.map(encode),
    "inv": strategies.inv_arrays.map(encode),
    "message": strategies.messages.map(encode_message),
}


@pytest.mark.parametrize("kind", GOOD)
@given(data=st.data())
def test_a_field_in_the_place_of_another(kind: str, data: st.DataObject) -> None:
    """One field of a good value replaced by anything: both readers say the same."""
    fields = msgspec.msgpack.decode(data.draw(GOOD[kind]))
    at = data.draw(st.integers(0, len(fields) - 1))
    fields[at] = data.draw(strategies.anything)
    changed = encode(fields)
    assert is_taken(DECODER[kind], changed) == stranger_takes(kind, changed)


@pytest.mark.parametrize("kind", GOOD)
@given(data=st.data())
def test_a_byte_in_the_place_of_another(kind: str, data: st.DataObject) -> None:
    good = data.draw(GOOD[kind])
    at = data.draw(st.integers(0, min(len(good), 300) - 1))
    changed = good[:at] + data.draw(st.binary(max_size=3)) + good[at + 1 :]
    assert is_taken(DECODER[kind], changed) == stranger_takes(kind, changed)
