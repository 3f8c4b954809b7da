"""Entries cast flat are byte for byte those that the codec makes."""

from hypothesis import given
from hypothesis import strategies as st

from quipu.ledger.entry import ContentType, data_entry, decode_entry, encode_entry
from quipu.ledger.mold import Mold

STREAMS = st.from_regex(r"[a-z0-9][a-z0-9._-]{0,127}", fullmatch=True)
TYPES = st.one_of(st.sampled_from(ContentType), st.sampled_from(["text/csv", "t/" + "x" * 126]))
SUBMITTERS = st.one_of(st.none(), st.text(min_size=1, max_size=32))
SIZES = st.sampled_from([0, 1, 31, 32, 255, 256, 257, 65_535, 65_536, 70_000])


@given(STREAMS, TYPES, SUBMITTERS, st.one_of(st.binary(max_size=300), SIZES.map(bytes)))
def test_a_mold_casts_canonical_entries(
    stream: str, content_type: ContentType | str, submitter: str | None, data: bytes
) -> None:
    made = Mold(stream, content_type, submitter).cast(data)
    entry = data_entry(data, stream=stream, content_type=content_type, submitter=submitter)
    assert made == encode_entry(entry)
    assert decode_entry(made) == entry
