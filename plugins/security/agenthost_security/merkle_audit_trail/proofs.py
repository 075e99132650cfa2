"""Proofs that an entry is in the signed tree, and that one tree continues another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from agenthost import Conflict, InvalidInput, NotFound, Row, Unavailable

from .heads import Head
from .trail import COLUMNS, Trail
from .tree import TILE, Tree, consistency, inclusion, leaf_hash, ranges, root_from

BY_ID = f"SELECT {COLUMNS} FROM audit_entries WHERE id = :id"  # nosec B608 # noqa: S608 - constant
_LEAVES = (
    "SELECT number, canonical FROM audit_entries WHERE node = :node "
    "AND number > :after AND number <= :until"
)
SECONDS = 30.0


async def proof_of(trail: Trail, entry_id: int) -> dict[str, Any]:
    """Prove that an entry is under the last head.

    Raises:
        NotFound: There is no such entry.
        Conflict: It is another node's, or not what was signed.
    """
    row = await entry_of(trail, entry_id)
    if row["node"] != trail.node:
        told = f"entry {entry_id} was written by node {row['node']!r}; ask there"
        raise Conflict(told)
    index = row["number"] - 1

    def path(size: int, tree: Tree, leaves: Callable[[int], bytes]) -> list[bytes]:
        return inclusion(index, size, ranges(tree.tiles, leaves))

    head, hashes = await _proven(trail, (index,), path)
    leaf = leaf_hash(row["canonical"])
    if root_from(leaf, index, head["size"], hashes).hex() != head["root"]:
        raise Conflict(f"entry {entry_id} is not the one that was signed")
    return {
        "entry": entry_json(row),
        "canonical": row["canonical"].hex(),
        "leaf_hash": leaf.hex(),
        "leaf_index": index,
        "tree_size": head["size"],
        "path": [each.hex() for each in hashes],
        "head": dict(head),
    }


async def consistency_of(trail: Trail, first: int) -> dict[str, Any]:
    """Prove that the tree of an earlier size is the beginning of the last head's.

    Raises:
        InvalidInput: There was no tree of that size.
    """

    def path(size: int, tree: Tree, leaves: Callable[[int], bytes]) -> list[bytes]:
        if first > size:
            raise InvalidInput("first", f"the tree has {size} leaves")
        return consistency(first, size, ranges(tree.tiles, leaves))

    head, hashes = await _proven(trail, (first - 1,), path)
    told = {"first": first, "second": head["size"], "head": dict(head)}
    return {**told, "path": [each.hex() for each in hashes]}


async def entry_of(trail: Trail, entry_id: int) -> Row:
    """Read an entry.

    Raises:
        NotFound: There is none.
    """
    row = await trail.host.store.first(BY_ID, {"id": entry_id})
    if row is None:
        raise NotFound("audit entry", str(entry_id))
    return row


def entry_json(row: Row) -> dict[str, Any]:
    """Show an entry, without the bytes that were hashed."""
    return {name: row[name] for name in row.keys() if name != "canonical"}  # noqa: SIM118 - a row iterates over its values


async def _proven(
    trail: Trail,
    wanted: tuple[int, ...],
    path: Callable[[int, Tree, Callable[[int], bytes]], list[bytes]],
) -> tuple[Head, list[bytes]]:
    """Make a proof under the last head, with the leaves of the tiles it needs."""
    await trail.sign()
    async with asyncio.timeout(SECONDS), trail.signing:
        head, tree = trail.head, trail.tree
        if head is None or tree is None:
            raise Unavailable("nothing has been signed yet; try again soon")
        known = await _leaves(trail, wanted, tree)
        hashes = await asyncio.to_thread(path, tree.size, tree, known.__getitem__)
    return head, hashes


async def _leaves(
    trail: Trail, wanted: tuple[int, ...], tree: Tree
) -> Mapping[int, bytes]:
    known: dict[int, bytes] = {}
    # One that is not there yet is refused by who makes the proof.
    for index in {min(each, tree.size - 1) for each in (*wanted, tree.size)}:
        after = index // TILE * TILE
        between = {"node": trail.node, "after": after, "until": after + TILE}
        for row in await trail.host.store.read(_LEAVES, between):
            known[row["number"] - 1] = leaf_hash(row["canonical"])
    return known
