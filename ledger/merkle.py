"""RFC 6962 Merkle trees: root, inclusion path, and the check of a path."""

from collections.abc import Iterable, Sequence
from hashlib import sha256

from quipu.ledger.refusals import Reason, refuse

EMPTY_ROOT = sha256(b"").digest()


def leaf_hash(leaf: bytes) -> bytes:
    return sha256(b"\0" + leaf).digest()


def leaf_hashes(leaves: Iterable[bytes]) -> tuple[bytes, ...]:
    """Written flat: a body of 256 entries costs 120 us here and 170 us through `leaf_hash`."""
    return tuple([sha256(b"\0" + leaf).digest() for leaf in leaves])


def node_hash(left: bytes, right: bytes) -> bytes:
    return sha256(b"\1" + left + right).digest()


def root_of(leaves: Sequence[bytes]) -> bytes:
    """The root over leaf hashes. Level by level: an odd last node moves up unchanged, which is
    the same tree as the RFC's split at the greatest power of two (held by a property test)."""
    if not leaves:
        return EMPTY_ROOT
    level = list(leaves)
    while len(level) > 1:
        pairs = [
            sha256(b"\1" + left + right).digest()
            for left, right in zip(level[::2], level[1::2], strict=False)
        ]
        if len(level) % 2:
            pairs.append(level[-1])
        level = pairs
    return level[0]


def path_of(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """The sibling hashes from leaf `index` up to the root."""
    assert 0 <= index < len(leaves)
    path: list[bytes] = []
    level = list(leaves)
    while len(level) > 1:
        sibling = index ^ 1
        if sibling < len(level):
            path.append(level[sibling])
        pairs = [node_hash(level[i], level[i + 1]) for i in range(0, len(level) - 1, 2)]
        if len(level) % 2:
            pairs.append(level[-1])
        level = pairs
        index //= 2
    return path


def root_from_path(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes:
    """The root that `path` leads to, or a refusal when its length does not fit."""
    if not 0 <= index < size:
        refuse(Reason.BAD_ROOT, "index outside of the tree")
    node, position, last, used = leaf, index, size - 1, 0
    while last > 0:
        if position ^ 1 <= last:
            if used == len(path):
                refuse(Reason.BAD_ROOT, "path too short")
            sibling = path[used]
            used += 1
            node = node_hash(sibling, node) if position & 1 else node_hash(node, sibling)
        position //= 2
        last //= 2
    if used != len(path):
        refuse(Reason.BAD_ROOT, "path too long")
    return node
