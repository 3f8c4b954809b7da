from hashlib import sha256

import pytest

from quipu.ledger.merkle import EMPTY_ROOT, leaf_hash, node_hash, path_of, root_from_path, root_of
from quipu.ledger.refusals import Reason, Refused

LEAVES = [leaf_hash(bytes([i])) for i in range(7)]


def test_the_smallest_trees() -> None:
    a, b, c = LEAVES[:3]
    assert root_of([]) == EMPTY_ROOT == sha256(b"").digest()
    assert root_of([a]) == a
    assert root_of([a, b]) == node_hash(a, b)
    assert root_of([a, b, c]) == node_hash(node_hash(a, b), c)


def test_leaves_and_nodes_are_told_apart() -> None:
    a, b = LEAVES[:2]
    assert leaf_hash(a + b) != node_hash(a, b)


@pytest.mark.parametrize("index", range(7))
def test_a_path_leads_to_the_root_from_its_own_leaf_alone(index: int) -> None:
    path, root = path_of(LEAVES, index), root_of(LEAVES)
    assert root_from_path(LEAVES[index], index, 7, path) == root
    other = LEAVES[(index + 1) % 7]
    assert root_from_path(other, index, 7, path) != root


@pytest.mark.parametrize("index", range(7))
def test_the_length_of_a_path_is_given(index: int) -> None:
    path = path_of(LEAVES, index)
    for wrong in (path[:-1], [*path, bytes(32)], []):
        with pytest.raises(Refused) as caught:
            root_from_path(LEAVES[index], index, 7, wrong)
        assert caught.value.reason is Reason.BAD_ROOT


@pytest.mark.parametrize(("index", "size"), [(7, 7), (-1, 7), (0, 0), (2**64 - 1, 7)])
def test_there_is_no_leaf_outside_of_the_tree(index: int, size: int) -> None:
    with pytest.raises(Refused) as caught:
        root_from_path(LEAVES[0], index, size, [])
    assert caught.value.reason is Reason.BAD_ROOT
