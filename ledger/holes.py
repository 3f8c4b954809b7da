"""What stands in a body in the place of an erased entry: its leaf hash, as an array of one.

Header, receipts and tree stay as they were: where the leaf hash of an entry is wanted, the hole
gives it, and the entries root comes out. No entry has such bytes, for an entry is a longer array.
Which events may have holes, `Known.may_be_hollow` says.
"""

from collections.abc import Iterable
from hashlib import sha256

HOLE_HEAD = b"\x91\xc4\x20"  # msgpack: an array of one, which is 32 bytes
_HOLE_BYTES = len(HOLE_HEAD) + 32


def hole_of(leaf: bytes) -> bytes:
    return HOLE_HEAD + leaf


def is_hole(data: bytes) -> bool:
    return len(data) == _HOLE_BYTES and data.startswith(HOLE_HEAD)


def leaf_of(data: bytes) -> bytes:
    """Of an entry, or of a hole."""
    return data[len(HOLE_HEAD) :] if is_hole(data) else sha256(b"\0" + data).digest()


def leaves_of(entries: Iterable[bytes]) -> tuple[bytes, ...]:
    """For bodies that may have holes; of others `merkle.leaf_hashes` is faster."""
    return tuple(map(leaf_of, entries))


def has_holes(body: bytes, entries: Iterable[bytes]) -> bool:
    """The search costs nothing beside the hashing of a body, and nearly always ends it."""
    return HOLE_HEAD in body and any(map(is_hole, entries))
