"""Events as the columns of `events`, `edges` and `entries`, handed to Arrow a piece at a time.

Written flat: with a tuple for each row an event of one entry cost three times as much, and what was
held of a file until it was written ten times its size.
"""

import sys
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from quipu.dumps.limits import EID_BITS
from quipu.dumps.tables import arrow_schema
from quipu.ledger.entry import Entry
from quipu.ledger.event import Header, SignedEvent
from quipu.ledger.history import BranchRecord
from quipu.ledger.signing import HASH_BYTES
from quipu.ledger.words import HLC_SHIFT, BranchKey, Slot
from quipu.storage import limits
from quipu.verify.events import MEDIA_TYPES

READ, UNREAD = "read", "unread"
_WORD_BYTES = 8
_WORDS_OF_ID = HASH_BYTES // _WORD_BYTES
_entries = msgspec.msgpack.Decoder(Entry)


class EventColumns:
    """Of the events added since the last `taken`."""

    def __init__(self, branches: dict[BranchKey, BranchRecord], entries: str) -> None:
        self._receipts: dict[tuple[int, int, int], list[int]] = {
            (key.author_no, key.journal, key.number): sorted(
                seq for no, (seq, _) in record.receipts.items() if no != key.author_no
            )
            for key, record in branches.items()
        }
        self._with_entries = entries != "none"
        self._with_data = entries == "with data"
        self._batches: dict[str, list[pa.RecordBatch]] = {}
        self._clear_piece()
        self._clear_counts()

    def _clear_counts(self) -> None:
        self.event_count = self.entry_count = self.bytes = 0

    def _clear_piece(self) -> None:
        self._slots: list[Slot] = []
        self._events: list[SignedEvent] = []
        self._feed: list[int | None] = []
        self._entries: list[Entry] = []

    def add(
        self, slot: Slot, event: SignedEvent, entries: list[bytes], feed_pos: int | None
    ) -> None:
        """`event` has its leaves, and these are its entries."""
        self._slots.append(slot)
        self._events.append(event)
        self._feed.append(feed_pos)
        self.event_count += 1
        self.bytes += event.size
        if self._with_entries:
            self._entries += map(_entries.decode, entries)
            self.entry_count += len(entries)
        if (
            len(self._events) >= limits.EXPORT_PIECE_EVENTS
            or len(self._entries) >= limits.EXPORT_PIECE_ENTRIES
        ):
            self._end_piece()

    def taken(self) -> dict[str, pa.Table]:
        """The tables that have rows; from here on it is empty."""
        self._end_piece()
        found = {
            table: pa.Table.from_batches(batches, arrow_schema(table))
            for table, batches in self._batches.items()
        }
        self._batches = {}
        self._clear_counts()
        return found

    def _end_piece(self) -> None:
        if not self._events:
            return
        ids = [bytes(event.id) for event in self._events]
        headers = [event.header for event in self._events]
        self._keep("events", self._of_events(ids, headers))
        self._keep("edges", _of_edges(ids, headers))
        if self._with_entries:
            self._keep("entries", self._of_entries(ids))
        self._clear_piece()

    def _keep(self, table: str, columns: list[pa.Array]) -> None:
        if len(columns[0]):
            batch = pa.RecordBatch.from_arrays(columns, schema=arrow_schema(table))
            self._batches.setdefault(table, []).append(batch)

    def _of_events(self, ids: list[bytes], headers: list[Header]) -> list[pa.Array]:
        slots, events, feed = self._slots, self._events, self._feed
        joined = b"".join(ids)
        nothing = pa.nulls(len(ids), pa.int64())

        def of(name: str) -> list[Any]:
            return list(map(attrgetter(name), headers))

        return [
            _ids(joined),
            _eids(joined),
            _ids(b"".join(of("author"))),
            pa.array([slot.author_no for slot in slots], pa.int32()),
            _longs(of("journal")),
            _longs(of("seq")),
            pa.array([slot.number for slot in slots], pa.int32()),
            _longs(of("epoch")),
            _ids(b"".join(of("prev"))),
            _longs(of("hlc")),
            _longs(of("depth")),
            pa.array(of("kind"), pa.int32()),
            pa.array(of("entry_count"), pa.int32()),
            _longs(of("body_size")),
            _ids(b"".join(of("entries_root"))),
            pa.array([event.header_bytes for event in events], pa.binary()),
            pa.array([event.signature for event in events], pa.binary()),
            pa.array([UNREAD if at is None else READ for at in feed], pa.string()),
            pa.array([self._confirms(slot) for slot in slots], pa.int32()),
            pa.array(feed, pa.int64()),
            nothing,
            nothing,
        ]

    def _confirms(self, slot: Slot) -> int:
        signed = self._receipts.get((slot.author_no, slot.journal, slot.number), ())
        return len(signed) - bisect_left(signed, slot.seq)

    def _of_entries(self, ids: list[bytes]) -> list[pa.Array]:
        events, entries = self._events, self._entries
        counts = [len(event.leaves) for event in events]
        named = b"".join([identity * count for identity, count in zip(ids, counts, strict=True)])
        stamped = [
            stamp for e, n in zip(events, counts, strict=True)
            for stamp in (e.header.hlc >> HLC_SHIFT,) * n
        ]  # fmt: skip
        datas = [entry.data for entry in entries]
        return [
            _ids(named),
            _eids(named),
            pa.array([at for count in counts for at in range(count)], pa.int32()),
            pa.array([entry.stream for entry in entries], pa.string()),
            pa.array([entry.client_id for entry in entries], pa.int64()),
            _longs([entry.message_id for entry in entries]),
            _longs(
                [s if e.time is None else e.time for e, s in zip(entries, stamped, strict=True)]
            ),
            pa.array([_media_type(entry.content_type) for entry in entries], pa.string()),
            pa.array(list(map(len, datas)), pa.int64()),
            _ids(b"".join([b"".join(event.leaves) for event in events])),
            pa.array(datas, pa.binary()) if self._with_data else pa.nulls(len(datas), pa.binary()),
        ]


def _of_edges(ids: list[bytes], headers: list[Header]) -> list[pa.Array]:
    """As `dumps.headers.edges_of` says it for one event."""
    children, below, ordinals = list[bytes](), list[bytes](), list[int]()
    for identity, header in zip(ids, headers, strict=True):
        named, first = header.parents, 1
        if header.seq != 1:
            named, first = [header.prev, *named], 0
        children.append(identity * len(named))
        below += named
        ordinals += range(first, first + len(named))
    child, parent = b"".join(children), b"".join(below)
    return [_ids(child), _ids(parent), _eids(child), _eids(parent), pa.array(ordinals, pa.int32())]


def _media_type(kind: object) -> str:
    return kind if type(kind) is str else MEDIA_TYPES[int(kind)]  # type: ignore[call-overload]


def _ids(joined: bytes) -> pa.Array:
    count = len(joined) // HASH_BYTES
    return pa.Array.from_buffers(pa.binary(HASH_BYTES), count, [None, pa.py_buffer(joined)])


def _eids(joined: bytes) -> pa.Array:
    """As `eid_of` says it for one id."""
    words = array("Q", joined)[::_WORDS_OF_ID]
    if sys.byteorder == "little":
        words.byteswap()
    first = pa.Array.from_buffers(pa.uint64(), len(words), [None, pa.py_buffer(words)])
    rest = pa.scalar(8 * _WORD_BYTES - EID_BITS, pa.uint64())
    return pc.shift_right(first, rest).view(pa.int64())


def _longs(numbers: Sequence[int | None]) -> pa.Array:
    """The LONGs of the same bits, as `as_long` makes one."""
    return pa.array(numbers, pa.uint64()).view(pa.int64())
