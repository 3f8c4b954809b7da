"""Events as the columns of `events`, `edges` and `entries`, handed to Arrow a piece at a time.

Written flat: with a tuple for each row an event of one entry cost three times as much, and what was
held of a file until it was written ten times its size.
"""

import sys
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from itertools import chain
from operator import attrgetter, mul

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from quipu.dumps.limits import EID_BITS
from quipu.dumps.tables import arrow_schema
from quipu.ledger.entry import Entry
from quipu.ledger.erasures import ERASED
from quipu.ledger.history import BranchRecord
from quipu.ledger.holes import is_hole
from quipu.ledger.signing import HASH_BYTES
from quipu.ledger.words import HLC_SHIFT, BranchKey
from quipu.storage import limits
from quipu.storage.event_piece import Piece, checked
from quipu.verify.events import MEDIA_TYPES

READ, UNREAD = "read", "unread"
NO_NUMBER = 0  # in place of a feed position: it is Read, and its number has been pruned
_WORD_BYTES = 8
_WORDS_OF_ID = HASH_BYTES // _WORD_BYTES
_entries = msgspec.msgpack.Decoder(Entry)
_FIELDS = attrgetter(
    *("author", "epoch", "prev", "hlc", "depth", "kind", "entry_count", "body_size", "entries_root")
)
_ENTRY_FIELDS = attrgetter("stream", "client_id", "message_id", "time", "content_type", "data")


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
        self._event_count = self._bytes = 0
        self.entry_count = 0  # in the pieces that are made

    def _clear_piece(self) -> None:
        self._slot_keys: list[bytes] = []
        self._blobs: list[bytes] = []
        self._feed: list[int | None] = []
        self._piece_bytes = 0

    def add(
        self, slot_keys: Sequence[bytes], blobs: Sequence[bytes], feed: Sequence[int | None]
    ) -> None:
        """`blobs` are what stands there; they are checked with the others of their piece."""
        self._slot_keys += slot_keys
        self._blobs += blobs
        self._feed += feed
        self._piece_bytes += sum(map(len, blobs))
        if (
            len(self._blobs) >= limits.EXPORT_PIECE_EVENTS
            or self._piece_bytes >= limits.EXPORT_PIECE_BYTES
        ):
            self._end_piece()

    @property
    def event_count(self) -> int:
        return self._event_count + len(self._blobs)

    @property
    def bytes(self) -> int:
        return self._bytes + self._piece_bytes

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
        """Raises `StoreCorrupt`."""
        if not self._blobs:
            return
        piece = checked(self._slot_keys, self._blobs)
        self._event_count, self._bytes = self.event_count, self.bytes
        self._keep("events", self._of_events(piece))
        self._keep("edges", _of_edges(piece))
        if self._with_entries:
            self._keep("entries", self._of_entries(piece))
            self.entry_count += sum(map(len, piece.entries))
        self._clear_piece()

    def _keep(self, table: str, columns: list[pa.Array]) -> None:
        if len(columns[0]):
            batch = pa.RecordBatch.from_arrays(columns, schema=arrow_schema(table))
            self._batches.setdefault(table, []).append(batch)

    def _of_events(self, piece: Piece) -> list[pa.Array]:
        joined = b"".join(piece.ids)
        nothing = pa.nulls(len(piece.ids), pa.int64())
        author_no, journal, seq, branch = zip(*piece.slots, strict=True)
        author, epoch, prev, hlc, depth, kind, entry_count, body_size, entries_root = zip(
            *map(_FIELDS, piece.headers), strict=True
        )
        return [
            _ids(joined),
            _eids(joined),
            _ids(b"".join(author)),
            pa.array(author_no, pa.int32()),
            _longs(journal),
            _longs(seq),
            pa.array(branch, pa.int32()),
            _longs(epoch),
            _ids(b"".join(prev)),
            _longs(hlc),
            _longs(depth),
            pa.array(kind, pa.int32()),
            pa.array(entry_count, pa.int32()),
            _longs(body_size),
            _ids(b"".join(entries_root)),
            pa.array(piece.header_bytes, pa.binary()),
            pa.array(piece.signatures, pa.binary()),
            pa.array([UNREAD if at is None else READ for at in self._feed], pa.string()),
            pa.array([self._confirms(slot) for slot in piece.slots], pa.int32()),
            pa.array([at or None for at in self._feed], pa.int64()),
            nothing,
            nothing,
        ]

    def _confirms(self, slot: tuple[int, int, int, int]) -> int:
        author_no, journal, seq, branch = slot
        signed = self._receipts.get((author_no, journal, branch), ())
        return len(signed) - bisect_left(signed, seq)

    def _of_entries(self, piece: Piece) -> list[pa.Array]:
        entries = list(map(_opened, chain.from_iterable(piece.entries)))
        counts = list(map(len, piece.entries))
        named = b"".join(map(mul, piece.ids, counts))
        stamped = chain.from_iterable(
            [
                (header.hlc >> HLC_SHIFT,) * n
                for header, n in zip(piece.headers, counts, strict=True)
            ]
        )
        streams, clients, messages, times, kinds, datas = (
            zip(*map(_ENTRY_FIELDS, entries), strict=True) if entries else ((),) * 6
        )
        return [
            _ids(named),
            _eids(named),
            pa.array(list(chain.from_iterable(map(range, counts))), pa.int32()),
            pa.array(streams, pa.string()),
            pa.array(clients, pa.int64()),
            _longs(messages),
            _longs([s if time is None else time for time, s in zip(times, stamped, strict=True)]),
            pa.array(list(map(_media_type, kinds)), pa.string()),
            pa.array(list(map(len, datas)), pa.int64()),
            _ids(b"".join(chain.from_iterable(piece.leaves))),
            pa.array(datas, pa.binary()) if self._with_data else pa.nulls(len(datas), pa.binary()),
        ]


def _opened(data: bytes) -> Entry:
    return ERASED if is_hole(data) else _entries.decode(data)


def _of_edges(piece: Piece) -> list[pa.Array]:
    """As `dumps.headers.edges_of` says it for one event."""
    children, below, ordinals = list[bytes](), list[bytes](), list[int]()
    for identity, header in zip(piece.ids, piece.headers, strict=True):
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
