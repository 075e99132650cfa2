"""The bytes of an entry that are hashed: tagged, versioned, every length told first.

``TAG``, which ends with the version; the lengths of the nine fields, four bytes each;
the fields: id and number in the node's chain (eight bytes each, big-endian), node,
timestamp, event type, agent, actor, details (UTF-8) and the hash of the entry before it
in the node's chain (32 bytes, zeros before the first). The entry's hash is the SHA-256
of these bytes, the leaf of the tree the SHA-256 of a zero byte and these bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from struct import Struct
from typing import TypeAlias

TAG = b"agenthost-audit-entry\x01"
FIRST = "0" * 64
"""What stands before the first entry of a chain."""
Facts: TypeAlias = tuple[str, str, str, str, str]
"""Timestamp, event type, agent, actor and details."""
Entry: TypeAlias = tuple[int, str, int, str, str, str, str, str, str, str, bytes]
"""A row: id, node, number, the facts, previous hash, hash, canonical bytes."""

_head = Struct(">9I2Q").pack


def canonical(id_: int, node: str, number: int, facts: Facts, before: bytes) -> bytes:
    """Write the bytes that are hashed.

    Raises:
        ValueError: A text holds half a surrogate pair.
        struct.error: A number is none of a chain.
    """
    at, kind, agent, actor, details = facts
    text = f"{node}{at}{kind}{agent}{actor}{details}"
    if text.isascii():
        fields = len(node), len(at), len(kind), len(agent), len(actor), len(details)
    else:
        fields = tuple(len(each.encode()) for each in (node, *facts))  # type: ignore[assignment]  # reason: six of them
    head = _head(8, 8, *fields, len(before), id_, number)
    return b"".join((TAG, head, text.encode(), before))


def entries_after(
    before: tuple[int, int, str], node: str, facts: Iterable[Facts]
) -> list[Entry]:
    """Make the rows that follow.

    Args:
        before: The last id of all, and the last number and hash of the node's chain.
        node: Whose chain it is.
        facts: What each of them tells.
    """
    id_, number, prev = before
    digest, entries = bytes.fromhex(prev), list[Entry]()
    for told in facts:
        id_, number = id_ + 1, number + 1
        written = canonical(id_, node, number, told, digest)
        hashed = sha256(written)
        before_, prev, digest = prev, hashed.hexdigest(), hashed.digest()
        entries.append((id_, node, number, *told, before_, prev, written))
    return entries
