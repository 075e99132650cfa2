"""The Merkle tree of RFC 6962, grown leaf by leaf.

Every 256 leaves are a tile, whose hash is kept: a proof needs the leaves of two tiles
at most, and a start none of those before the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256

TILE = 256
TILE_HEIGHT = 8
EMPTY = sha256(b"").digest()
Range = Callable[[int, int], bytes]
"""The hash of the subtree of some neighbouring leaves."""


def leaf_hash(written: bytes) -> bytes:
    """Hash a leaf."""
    return sha256(b"\x00" + written).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Hash an inner node."""
    return sha256(b"\x01" + left + right).digest()


class Frontier:
    """The full subtrees on the tree's right edge: as much as new leaves need.

    Attributes:
        size: How many leaves there are.
    """

    def __init__(self) -> None:
        self.size = 0
        self._hashes: list[bytes] = []

    def push(self, node: bytes, height: int = 0) -> None:
        """Add a leaf, or a subtree of ``2 ** height`` no larger than any before."""
        # The bits of the size say how high the subtrees are.
        place, hashes = self.size >> height, self._hashes
        self.size += 1 << height
        while place & 1:
            node = sha256(b"\x01" + hashes.pop() + node).digest()
            place >>= 1
        hashes.append(node)

    @property
    def root(self) -> bytes:
        """The hash of the whole tree."""
        if not self._hashes:
            return EMPTY
        *others, root = self._hashes
        return _folded(others, root)

    def root_with(self, rest: bytes) -> bytes:
        """The hash of the whole tree with a smaller subtree behind it."""
        return _folded(self._hashes, rest)


def _folded(hashes: Sequence[bytes], root: bytes) -> bytes:
    for left in reversed(hashes):
        root = node_hash(left, root)
    return root


class Tree:
    """A tree that grows, and knows its tiles.

    Args:
        tiles: The hashes of its full tiles.
        leaves: The hashes of the leaves behind them.
    """

    def __init__(
        self, tiles: Sequence[bytes] = (), leaves: Sequence[bytes] = ()
    ) -> None:
        self.tiles: list[bytes] = []
        self._frontier = Frontier()
        # Of the tile that is not full yet.
        self._last = Frontier()
        for tile in tiles:
            self._close(tile)
        for leaf in leaves:
            self.push(leaf)

    @property
    def size(self) -> int:
        """How many leaves there are."""
        return self._frontier.size + self._last.size

    @property
    def root(self) -> bytes:
        """The hash of the whole tree."""
        if not self._last.size:
            return self._frontier.root
        return self._frontier.root_with(self._last.root)

    def push(self, leaf: bytes) -> None:
        """Add the hash of a leaf."""
        self._last.push(leaf)
        if self._last.size == TILE:
            self._close(self._last.root)
            self._last = Frontier()

    def _close(self, tile: bytes) -> None:
        self.tiles.append(tile)
        self._frontier.push(tile, TILE_HEIGHT)


def ranges(tiles: Sequence[bytes], leaves: Callable[[int], bytes]) -> Range:
    """Hash subtrees: whole tiles are known, other leaves are asked for."""

    def hashed(start: int, end: int) -> bytes:
        count = end - start
        if count == 1:
            return leaves(start)
        if count == TILE and start % TILE == 0:
            return tiles[start // TILE]
        middle = start + _split(count)
        return node_hash(hashed(start, middle), hashed(middle, end))

    return hashed


def inclusion(index: int, size: int, hashed: Range) -> list[bytes]:
    """Give the audit path of a leaf, from the leaf up (RFC 6962, 2.1.1)."""
    path: list[bytes] = []
    start, end = 0, size
    while end - start > 1:
        middle = start + _split(end - start)
        if index < middle:
            path.append(hashed(middle, end))
            end = middle
        else:
            path.append(hashed(start, middle))
            start = middle
    return path[::-1]


def consistency(first: int, second: int, hashed: Range) -> list[bytes]:
    """Prove that the first tree is the beginning of the second (2.1.2)."""
    path: list[bytes] = []
    start, end, whole = 0, second, True
    while first != end:
        middle = start + _split(end - start)
        if first <= middle:
            path.append(hashed(middle, end))
            end = middle
        else:
            path.append(hashed(start, middle))
            start, whole = middle, False
    if not whole:
        path.append(hashed(start, end))
    return path[::-1]


def root_from(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes:
    """Fold an audit path into the root it proves (RFC 9162, 2.1.3.2).

    Raises:
        ValueError: The path does not fit the place.
    """
    if not 0 <= index < size:
        raise ValueError("the leaf lies outside the tree")
    place, last, node = index, size - 1, leaf
    for other in path:
        if last == 0:
            raise ValueError("the path is too long")
        if place & 1 or place == last:
            node = node_hash(other, node)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            node = node_hash(node, other)
        place, last = place >> 1, last >> 1
    if last:
        raise ValueError("the path is too short")
    return node


def _split(count: int) -> int:
    """The largest power of two below a count."""
    return 1 << (count - 1).bit_length() - 1
