"""Values of every format, as hypothesis draws them."""

from typing import TypeVar

import msgspec
from hypothesis import strategies as st

from quipu.ledger.entry import ContentType, Entry, EntryKind
from quipu.ledger.event import Header
from quipu.ledger.inv import InvArray, InvRow
from quipu.ledger.messages import (
    Answer,
    CoverWant,
    EventBytes,
    EventMessage,
    EvidenceMessage,
    GetData,
    InvMessage,
    InvWant,
    Message,
    RangeWant,
    ReceiptRow,
    SyncEvent,
    SyncRow,
)

T = TypeVar("T")

edges = st.sampled_from([0, 1, 127, 128, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**64 - 1])
u64 = st.one_of(edges, st.integers(0, 2**64 - 1))
u32 = st.one_of(st.sampled_from([0, 127, 128, 2**32 - 1]), st.integers(0, 2**32 - 1))
node_no = st.integers(1, 2**32 - 1)
ids = st.binary(min_size=32, max_size=32)
prefixes = st.binary(min_size=16, max_size=16)
blobs = st.one_of(st.binary(max_size=40), st.sampled_from([bytes(255), bytes(256), bytes(65536)]))
streams = st.from_regex(r"[a-z0-9][a-z0-9._-]{0,40}", fullmatch=True)
media_types = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=40)


def maybe(values: st.SearchStrategy[T]) -> st.SearchStrategy[T | None]:
    return st.one_of(st.none(), values)


def texts(bytes_max: int) -> st.SearchStrategy[str]:
    some = st.text(min_size=1, max_size=40)
    return some.filter(lambda text: len(text.encode()) <= bytes_max)


entries = st.builds(
    Entry,
    salt=maybe(prefixes),
    kind=st.sampled_from(EntryKind),
    stream=streams,
    submitter=maybe(texts(128)),
    client_id=maybe(u32),
    message_id=maybe(u64),
    idempotency_key=maybe(texts(256)),
    time=maybe(u64),
    content_type=st.one_of(st.sampled_from(ContentType), media_types),
    data=blobs,
    sig_type=st.integers(0, 255),
    signature=maybe(st.binary(max_size=70)),
)
headers = st.builds(
    Header,
    version=st.just(1),
    cluster_id=ids,
    author=ids,
    epoch=u64,
    journal=u64,
    seq=u64.filter(lambda seq: seq > 1),
    prev=ids,
    parents=st.lists(ids, max_size=7, unique=True).map(sorted),
    hlc=u64,
    depth=u64,
    kind=st.just(0),
    entry_count=st.integers(1, 10_000),
    body_size=st.integers(0, 4 << 20),
    entries_root=ids,
).filter(lambda header: header.prev not in header.parents)
inv_rows = st.builds(InvRow, node_no, u64, u64.filter(bool), ids)
inv_arrays = st.builds(
    InvArray,
    version=st.just(1),
    cluster_id=ids,
    signer=ids,
    epoch=u64,
    number=u64,
    close=maybe(ids),
    rows=st.lists(inv_rows, max_size=6, unique_by=lambda row: row.cord).map(
        lambda rows: sorted(rows, key=lambda row: row.cord)
    ),
    signature=st.binary(min_size=64, max_size=64),
)
event_bytes = st.builds(EventBytes, blobs, blobs, blobs)
anchors = st.lists(st.tuples(u64, prefixes), max_size=3)
messages: st.SearchStrategy[Message] = st.one_of(
    st.builds(EventMessage, event_bytes),
    st.builds(InvMessage, blobs),
    st.builds(EvidenceMessage, blobs),
    st.builds(
        GetData,
        u64,
        st.lists(ids, max_size=3),
        st.lists(st.builds(RangeWant, node_no, u64, anchors, u64, prefixes), max_size=3),
        st.lists(st.builds(InvWant, node_no, u64), max_size=3),
        st.lists(st.builds(CoverWant, node_no, u64, u64, prefixes), max_size=3),
        u64,
    ),
    st.builds(
        Answer,
        u64,
        st.lists(blobs, max_size=3),
        st.lists(event_bytes, max_size=3),
        st.lists(ids, max_size=3),
        st.booleans(),
    ),
    st.builds(
        SyncEvent,
        number=u64,
        heard=u64,
        base=u64,
        leaves=st.lists(ids, max_size=3),
        leaf_count=u64,
        rows=st.lists(st.builds(SyncRow, node_no, u64, u64, prefixes, u64), max_size=3),
        receipts=st.lists(st.builds(ReceiptRow, node_no, u64, prefixes), max_size=3),
        epoch=u64,
        digest=ids,
        proofs=prefixes,
        wall_ms=u64,
        recovering=st.booleans(),
    ),
)
# Whatever msgpack can say, well beyond what the formats take.
anything: st.SearchStrategy[object] = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**64 - 1),
        st.floats(),
        st.text(max_size=10),
        st.binary(max_size=40),
        st.builds(msgspec.msgpack.Ext, st.integers(-128, 127), st.binary(max_size=10)),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=15), st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)
