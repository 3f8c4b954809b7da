"""The level-by-level tree against RFC 6962's recursive definition."""

from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from quipu.ledger.merkle import leaf_hash, path_of, root_from_path, root_of
from quipu.ledger.refusals import Refused
from quipu.verify import VerificationFailed
from quipu.verify.events import Event, check_path

sizes = st.integers(1, 300)


def tree_hash(data: list[bytes]) -> bytes:
    """MTH of section 2.1: split at the greatest power of two below the size."""
    if len(data) == 1:
        return sha256(b"\0" + data[0]).digest()
    k = split(len(data))
    return sha256(b"\1" + tree_hash(data[:k]) + tree_hash(data[k:])).digest()


def audit_path(index: int, data: list[bytes]) -> list[bytes]:
    """PATH of section 2.1.1."""
    if len(data) == 1:
        return []
    k = split(len(data))
    if index < k:
        return [*audit_path(index, data[:k]), tree_hash(data[k:])]
    return [*audit_path(index - k, data[k:]), tree_hash(data[:k])]


def split(n: int) -> int:
    k = 1
    while 2 * k < n:
        k *= 2
    return k


def items(size: int) -> list[bytes]:
    return [b"item %d" % i for i in range(size)]


@given(sizes)
def test_the_root_is_that_of_the_rfc(size: int) -> None:
    data = items(size)
    assert root_of([leaf_hash(item) for item in data]) == tree_hash(data)


@given(sizes, st.data())
def test_the_path_is_that_of_the_rfc_and_leads_back(size: int, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, size - 1))
    leaves = [leaf_hash(item) for item in items(size)]
    path = path_of(leaves, index)
    assert path == audit_path(index, items(size))
    assert root_from_path(leaves[index], index, size, path) == root_of(leaves)


@given(sizes, st.data())
def test_a_path_fits_no_other_place(size: int, data: st.DataObject) -> None:
    """Another index, size or step leads elsewhere: an entry cannot be shown at a wrong place."""
    index = data.draw(st.integers(0, size - 1))
    leaves = [leaf_hash(item) for item in items(size)]
    path, root = path_of(leaves, index), root_of(leaves)
    other = (index + data.draw(st.integers(1, size))) % (size + 1)
    assert not leads_to(root, leaves[index], other, size, path)
    if path:
        at = data.draw(st.integers(0, len(path) - 1))
        bent = [*path[:at], bytes(32), *path[at + 1 :]]
        assert not leads_to(root, leaves[index], index, size, bent)


def leads_to(root: bytes, leaf: bytes, index: int, size: int, path: list[bytes]) -> bool:
    try:
        return root_from_path(leaf, index, size, path) == root
    except Refused:
        return False


@given(st.lists(st.binary(min_size=32, max_size=32), min_size=1, max_size=20), st.data())
def test_no_two_lists_of_leaves_have_one_root(leaves: list[bytes], data: st.DataObject) -> None:
    other = data.draw(st.lists(st.sampled_from(leaves), min_size=1, max_size=20))
    assert (root_of(leaves) == root_of(other)) == (leaves == other)


@given(sizes, st.data())
def test_the_offline_verifier_climbs_the_same_tree(size: int, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, size))
    leaves = [leaf_hash(item) for item in items(size)]
    path = path_of(leaves, min(index, size - 1))
    path = data.draw(st.sampled_from([path, path, path[:-1], [*path, bytes(32)], []]))
    entry, root = items(size + 1)[index], root_of(leaves)
    try:
        check_path(entry, index, list(path), event_of(size, root))
    except VerificationFailed:
        assert not leads_to(root, leaf_hash(entry), index, size, path)
    else:
        assert leads_to(root, leaf_hash(entry), index, size, path)


def event_of(count: int, root: bytes) -> Event:
    return Event(b"", b"", b"", 1, 1, 1, b"", 1, count, root)
