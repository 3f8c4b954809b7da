"""What is judged by its frame alone is judged as if every byte had been decoded."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from quipu.ledger.entry import Entry, check_entries, data_entry, decode_entry, encode_entry
from quipu.ledger.refusals import Reason, Refused
from quipu.storage.keyed import scope_hash, scopes_of
from tests.property import strategies

PLAIN = encode_entry(data_entry(bytes(40), stream="orders"))


@st.composite
def alike(draw: st.DrawFn) -> list[bytes]:
    """Entries of few kinds and sizes, with bytes changed here and there."""
    kinds = draw(st.lists(strategies.entries, min_size=1, max_size=2))
    sizes = draw(st.lists(st.integers(0, 300), min_size=1, max_size=2))
    made = []
    for _ in range(draw(st.integers(1, 6))):
        kind, size = draw(st.sampled_from(kinds)), draw(st.sampled_from(sizes))
        data = draw(st.binary(min_size=size, max_size=size))
        entry = bytearray(encode_entry(msgspec.structs.replace(kind, data=data)))
        for place in draw(st.lists(st.integers(0, len(entry) - 1), max_size=1)):
            entry[place] = draw(st.integers(0, 255))
        made.append(bytes(entry))
    return made


def verdict(entry: bytes) -> Reason | None:
    try:
        decode_entry(entry)
    except Refused as refusal:
        return refusal.reason
    return None


def checked(entry: bytes) -> Reason | None:
    """The same by its frame, after all those before it."""
    try:
        check_entries([entry])
    except Refused as refusal:
        return refusal.reason
    return None


@given(alike())
def test_the_verdict_is_that_of_decoding(entries: list[bytes]) -> None:
    assert [checked(entry) for entry in entries] == [verdict(entry) for entry in entries]


@given(st.integers(0, len(PLAIN) - 1), st.integers(0, 255))
def test_a_byte_changed_behind_one_that_was_judged(place: int, octet: int) -> None:
    changed = PLAIN[:place] + bytes([octet]) + PLAIN[place + 1 :]
    check_entries([PLAIN])
    assert checked(changed) is verdict(changed)


def test_the_end_of_a_signature_is_not_taken_for_the_end_of_an_entry() -> None:
    """Both end with the same two bytes, and lie around their data elsewhere."""
    signed = msgspec.structs.replace(
        data_entry(bytes(40)), sig_type=0, signature=bytes(38) + b"\0\xc0"
    )
    good = encode_entry(signed)
    check_entries([good])
    cut = good.index(b"\xc4\x28") + 30
    broken = good[:cut] + b"\xc1" * (len(good) - cut - 2) + b"\0\xc0"
    assert checked(broken) is verdict(broken) is Reason.MALFORMED


def slow_scopes(entries: list[bytes]) -> list[tuple[int, bytes]]:
    found = []
    for index, data in enumerate(entries):
        entry = msgspec.msgpack.decode(data, type=Entry)
        if entry.idempotency_key is not None:
            scope = scope_hash(entry.submitter, entry.stream, entry.idempotency_key)
            found.append((index, scope))
    return found


@given(st.lists(strategies.entries, min_size=1, max_size=3), st.lists(st.booleans(), max_size=12))
def test_no_key_is_overlooked(kinds: list[Entry], keyed: list[bool]) -> None:
    made = []
    for number, has_key in enumerate(keyed):
        kind = kinds[number % len(kinds)]
        key = f"k{number}" if has_key else None
        made.append(encode_entry(msgspec.structs.replace(kind, idempotency_key=key)))
    assert list(scopes_of(made)) == slow_scopes(made)


def test_what_is_no_entry_has_no_scope() -> None:
    text = bytes.fromhex("9cc000a2c328c0c0c0a16bc000c40161")
    assert list(scopes_of([b"", b"\xc1", text + b"00c0"])) == []
