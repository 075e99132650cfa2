"""The tree is the one of RFC 6962, as an independent implementation has it."""

from __future__ import annotations

from hashlib import sha256

import pytest
from agenthost_security.merkle_audit_trail.tree import (
    EMPTY,
    TILE,
    Tree,
    consistency,
    inclusion,
    leaf_hash,
    node_hash,
    ranges,
    root_from,
)
from hypothesis import given, strategies

LEAVES = [leaf_hash(bytes((n % 256, n // 256))) for n in range(3 * TILE + 5)]
KNOWN = Tree((), LEAVES)


def naive(leaves: list[bytes]) -> bytes:
    """RFC 6962, 2.1, word by word."""
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    k = 1
    while 2 * k < len(leaves):
        k *= 2
    return node_hash(naive(leaves[:k]), naive(leaves[k:]))


def tree_of(size: int) -> Tree:
    return Tree((), LEAVES[:size])


def test_the_vectors_of_the_rfc() -> None:
    assert EMPTY.hex() == (
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    )
    assert leaf_hash(b"").hex() == (
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"
    )


@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 8, 255, 256, 257, 511, 512, 773])
def test_its_root_is_that_of_the_definition(size: int) -> None:
    assert tree_of(size).root == naive(LEAVES[:size])


@pytest.mark.parametrize("size", [1, 255, 256, 300, 512, 773])
def test_it_grows_again_from_its_tiles(size: int) -> None:
    tree = tree_of(size)
    again = Tree(tree.tiles, LEAVES[len(tree.tiles) * TILE : size])
    assert (again.root, again.size, again.tiles) == (tree.root, size, tree.tiles)


@given(strategies.data())
def test_a_path_leads_to_the_root_and_nothing_else_does(
    data: strategies.DataObject,
) -> None:
    size = data.draw(strategies.integers(1, len(LEAVES)))
    index = data.draw(strategies.integers(0, size - 1))
    hashed = ranges(KNOWN.tiles, LEAVES.__getitem__)
    path, root = inclusion(index, size, hashed), naive(LEAVES[:size])
    assert root_from(LEAVES[index], index, size, path) == root
    other = data.draw(strategies.integers(0, size - 1))
    if LEAVES[other] != LEAVES[index]:
        assert root_from(LEAVES[other], index, size, path) != root
    with pytest.raises(ValueError, match="path"):
        root_from(LEAVES[index], index, size, [*path, root])
    if path:
        with pytest.raises(ValueError, match="path"):
            root_from(LEAVES[index], index, size, path[:-1])


@given(strategies.data())
def test_a_tree_is_the_beginning_of_a_later_one(data: strategies.DataObject) -> None:
    second = data.draw(strategies.integers(1, len(LEAVES)))
    first = data.draw(strategies.integers(1, second))
    hashed = ranges(KNOWN.tiles, LEAVES.__getitem__)
    path = consistency(first, second, hashed)
    old, new = naive(LEAVES[:first]), naive(LEAVES[:second])
    assert continues(first, second, path, old) == (old, new)


def continues(
    first: int, second: int, path: list[bytes], old: bytes
) -> tuple[bytes, bytes]:
    """RFC 9162, 2.1.4.2: fold the path into the two roots."""
    if first == second:
        return old, old
    if first & (first - 1) == 0:
        path = [old, *path]
    fn, sn = first - 1, second - 1
    while fn & 1:
        fn, sn = fn >> 1, sn >> 1
    fr = sr = path[0]
    for node in path[1:]:
        assert sn
        if fn & 1 or fn == sn:
            fr, sr = node_hash(node, fr), node_hash(node, sr)
            while not fn & 1 and fn:
                fn, sn = fn >> 1, sn >> 1
        else:
            sr = node_hash(sr, node)
        fn, sn = fn >> 1, sn >> 1
    assert sn == 0
    return fr, sr
