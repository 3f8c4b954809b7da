"""A header as the columns of `events` and the rows of `edges` that it makes.

Decoded with msgpack, so that a dump that the node wrote with another library is read by a second.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgpack

from quipu.dumps.tables import as_long
from quipu.verify.values import tagged

FIELDS = 14
# The columns of `events` that a header alone decides, and where in it they stand.
FROM_HEADER = {
    "author": 2,
    "epoch": 3,
    "journal": 4,
    "seq": 5,
    "prev": 6,
    "hlc": 8,
    "depth": 9,
    "kind": 10,
    "entry_count": 11,
    "body_bytes": 12,
    "entries_root": 13,
}


class DecodedHeader(NamedTuple):
    cluster_id: bytes
    parents: tuple[bytes, ...]
    columns: tuple[Any, ...]  # in the order of FROM_HEADER


def decode(header: bytes) -> DecodedHeader | None:
    """None: not the canonical bytes of a header."""
    try:
        fields = msgpack.unpackb(header, raw=False)
        is_canonical = msgpack.packb(fields) == header
    except (ValueError, TypeError, msgpack.UnpackException):
        return None
    if not is_canonical or type(fields) is not list or len(fields) != FIELDS:
        return None
    named: list[Any] = fields[7] if type(fields[7]) is list else [None]
    if not all(type(parent) is bytes for parent in (fields[6], *named)):
        return None
    columns = tuple(
        as_long(fields[at]) if type(fields[at]) is int else fields[at]
        for at in FROM_HEADER.values()
    )
    return DecodedHeader(fields[1], tuple(named), columns)


def id_of(header: bytes) -> bytes:
    return tagged("event", header)


def edges_of(prev: bytes, seq: int, parents: Sequence[bytes]) -> list[tuple[bytes, int]]:
    """Which events one with this header names, and as what."""
    below = [] if seq == 1 else [(prev, 0)]
    return below + [(parent, at) for at, parent in enumerate(parents, start=1)]
