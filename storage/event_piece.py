"""Many events read at once, each checked as `event_blob.event_and_entries` checks one.

Column by column: a step over thousands of blobs is one pass of the interpreter's own loops, and
half as dear as a call for each of them. Where anything does not fit, the events are gone through
one by one, so that what is damaged is named.
"""

import struct
from collections.abc import Sequence
from hashlib import sha256
from itertools import chain
from typing import NamedTuple
from zlib import crc32

import msgspec

from quipu.ledger import merkle
from quipu.ledger.canonical import encode
from quipu.ledger.event import Header, event_id
from quipu.ledger.holes import HOLE_HEAD, leaves_of
from quipu.storage import event_blob, keys


class Piece(NamedTuple):
    """Of every column one item for each event."""

    slots: list[tuple[int, int, int, int]]  # author's number, journal, seq, branch
    ids: Sequence[bytes]
    headers: list[Header]
    header_bytes: list[bytes]
    signatures: Sequence[bytes]
    entries: list[list[bytes]]
    leaves: list[tuple[bytes, ...]]


def checked(slot_keys: Sequence[bytes], blobs: Sequence[bytes]) -> Piece:
    """Raises `StoreCorrupt`."""
    try:
        piece = _piece(slot_keys, blobs)
    except (struct.error, msgspec.DecodeError):
        piece = None
    if piece is None:
        for key, blob in zip(slot_keys, blobs, strict=True):
            event_blob.event_and_entries(keys.slot_of(key), memoryview(blob))
        raise AssertionError("a piece is wrong, and each of its events is right")
    return piece


def _piece(slot_keys: Sequence[bytes], blobs: Sequence[bytes]) -> Piece | None:
    begun = list(map(event_blob.BEGINNING.unpack_from, blobs))
    versions, sizes, counts, body_sizes, ids, signatures, sums = zip(*begun, strict=True)
    fixed_end, at = event_blob.FIXED.size, event_blob.BEGINNING.size
    row = event_blob.ROW_BYTES
    header_bytes = [blob[at : at + size] for blob, size in zip(blobs, sizes, strict=True)]
    whole = [
        at + size + row * count + body
        for size, count, body in zip(sizes, counts, body_sizes, strict=True)
    ]
    if (
        set(versions) != {event_blob.BLOB_VERSION}
        or [crc32(blob[:fixed_end]) for blob in blobs] != list(sums)
        or list(map(len, blobs)) != whole
        or list(map(event_id, header_bytes)) != list(ids)
    ):
        return None
    headers = list(map(event_blob.headers.decode, header_bytes))
    slots = keys.numbers_of_slots(slot_keys)
    if [(h.journal, h.seq) for h in headers] != [slot[1:3] for slot in slots]:
        return None
    bodies = [blob[len(blob) - size :] for blob, size in zip(blobs, body_sizes, strict=True)]
    entries = list(map(event_blob.bodies.decode, bodies))
    if list(map(encode, entries)) != bodies:
        return None
    leaves = _leaves(entries)
    for number, body in enumerate(bodies):
        if HOLE_HEAD in body:
            leaves[number] = leaves_of(entries[number])
    roots = [of[0] if len(of) == 1 else merkle.root_of(of) for of in leaves]
    if roots != [header.entries_root for header in headers]:
        return None
    return Piece(slots, ids, headers, header_bytes, signatures, entries, leaves)


def _leaves(entries: list[list[bytes]]) -> list[tuple[bytes, ...]]:
    if set(map(len, entries)) == {1}:
        return [(sha256(b"\0" + entry).digest(),) for entry in chain.from_iterable(entries)]
    return list(map(merkle.leaf_hashes, entries))
