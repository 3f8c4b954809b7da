"""The cursor: one opaque text for paging, long-poll, NDJSON and SSE.

On the node that gave it, it is a feed number; on any other node of the cluster, the vector of read
seqs, bounded: a cord that fell out of it is given again, never skipped. A page may end inside a
large event, so it also names that event and how many of its entries were given.
"""

import base64
import binascii
from dataclasses import dataclass, field
from typing import TypeVar
from zlib import crc32

import msgspec

from quipu.api import limits
from quipu.api.codes import Code
from quipu.api.problems import at
from quipu.ledger.event import EventMeta
from quipu.ledger.words import Cord, EventId, Journal, NodeId, NodeNo, Seq

T = TypeVar("T")
CURSOR_VERSION = 1
VECTOR_CORDS_MAX = 64  # cords of a cursor's vector: 1.5 KiB of URL
NODE_BYTES = 8
_CHECK_BYTES = 4


class _Cursor(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    version: int
    node: bytes
    number: int
    event: bytes
    given: int
    downwards: bool
    by_vector: bool
    vector: list[tuple[int, int, int]]


_cursors = msgspec.msgpack.Decoder(_Cursor)


@dataclass(slots=True)
class Cursor:
    """Everything up to feed number `number` was given (downwards: from there on), and `given`
    entries of the next, which is `event`."""

    number: int = 0
    event: EventId = EventId(b"")
    given: int = 0
    downwards: bool = False
    by_vector: bool = False  # begun at another node: what the vector covers was given there
    vector: dict[Cord, Seq] = field(default_factory=dict)  # most recently moved last

    def covers(self, meta: EventMeta) -> bool:
        """Whether another node gave it. Not asked on the node that gave the cursor: there the
        number is exact, also where a cord has branches."""
        return self.by_vector and self.vector.get(meta.branch.cord, 0) >= meta.seq

    def pass_over(self, number: int, meta: EventMeta) -> None:
        """All of this event was given, or does not fit the filter."""
        self.number = number
        if self.event == meta.id or not self.by_vector:  # elsewhere it may come later
            self.event, self.given = EventId(b""), 0
        cord = meta.branch.cord
        self.vector[cord] = max(meta.seq, self.vector.pop(cord, Seq(0)))
        while len(self.vector) > VECTOR_CORDS_MAX:
            del self.vector[next(iter(self.vector))]

    def stop_inside(self, number: int, event: EventId, given: int) -> None:
        """`given` entries of the event after `number` were given."""
        self.number, self.event, self.given = number, event, given

    def copy(self) -> "Cursor":
        return Cursor(
            self.number,
            self.event,
            self.given,
            self.downwards,
            self.by_vector,
            dict(self.vector),
        )

    def text(self, node_id: NodeId) -> str:
        rows = [
            (int(cord.author_no), int(cord.journal), int(seq)) for cord, seq in self.vector.items()
        ]
        record = _Cursor(
            CURSOR_VERSION,
            node_id[:NODE_BYTES],
            self.number,
            self.event,
            self.given,
            self.downwards,
            self.by_vector,
            [] if self.downwards else rows,
        )
        return write_opaque(record)


def write_opaque(record: msgspec.Struct) -> str:
    data = msgspec.msgpack.encode(record)
    checked = data + crc32(data).to_bytes(_CHECK_BYTES, "big")
    return base64.urlsafe_b64encode(checked).rstrip(b"=").decode()


def read_opaque(text: str, decoder: "msgspec.msgpack.Decoder[T]", where: str) -> T:
    """What a cursor holds, or a problem that names the parameter or header."""
    if len(text) > limits.CURSOR_BYTES_MAX or not text.isascii():
        raise at(Code.INVALID_CURSOR, where, "is not a cursor")
    try:
        checked = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        data, check = checked[:-_CHECK_BYTES], checked[-_CHECK_BYTES:]
        if crc32(data).to_bytes(_CHECK_BYTES, "big") != check:
            raise at(Code.INVALID_CURSOR, where, "was cut short or changed")
        return decoder.decode(data)
    except (binascii.Error, msgspec.DecodeError) as error:
        raise at(Code.INVALID_CURSOR, where, "is not a cursor of this list") from error


def read_cursor(text: str, node_id: NodeId, where: str) -> Cursor:
    found = read_opaque(text, _cursors, where)
    sizes = min(found.number, found.given) >= 0 and len(found.event) in {0, 32}
    if found.version != CURSOR_VERSION or not sizes:
        raise at(Code.INVALID_CURSOR, where, "is not a cursor that this version reads")
    is_foreign = found.node != node_id[:NODE_BYTES]
    if is_foreign and found.downwards:
        raise at(Code.INVALID_CURSOR, where, "a cursor of order=desc counts on its own node only")
    return Cursor(
        0 if is_foreign else found.number,
        EventId(found.event),
        found.given,
        found.downwards,
        is_foreign or found.by_vector,
        {Cord(NodeNo(a), Journal(j)): Seq(s) for a, j, s in found.vector},
    )
