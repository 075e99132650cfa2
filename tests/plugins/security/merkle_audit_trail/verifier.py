"""Checks a receipt as an outsider would: nothing of agenthost is imported here."""

from __future__ import annotations

import hashlib
import json
import struct
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from pymerkle import (  # type: ignore[import-untyped]  # reason: it has no stubs
    InclusionProof,
    InvalidProof,
    verify_inclusion,
)


def refused(receipt: dict[str, Any], public: str) -> str:
    """Say what is wrong with a receipt; nothing when all is well."""
    try:
        _check(receipt, Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)))
    except InvalidSignature:
        return "a signature is wrong"
    except InvalidProof as error:
        return f"the proof is wrong: {error}"
    except (ValueError, KeyError, TypeError, AttributeError, struct.error) as error:
        return f"it is malformed: {error}"
    return ""


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(what)


def _check(receipt: dict[str, Any], key: Ed25519PublicKey) -> None:
    entry, head = receipt["entry"], receipt["head"]
    names = ("timestamp", "event_type", "agent_id", "actor", "details")
    fields = [
        struct.pack(">Q", entry["id"]),
        struct.pack(">Q", entry["number"]),
        entry["node"].encode(),
        *(entry[name].encode() for name in names),
        bytes.fromhex(entry["prev_hash"]),
    ]
    lengths = struct.pack(">9I", *map(len, fields))
    raw = b"agenthost-audit-entry\x01" + lengths + b"".join(fields)
    _require(receipt["version"] == 1, "version")
    _require(entry["event_type"] == "receipt_issued", "event type")
    _require(hashlib.sha256(raw).hexdigest() == entry["hash"], "hash")
    _require(json.loads(entry["details"]) == receipt["statement"], "statement")
    key.verify(
        bytes.fromhex(receipt["signature"]), b"agenthost-audit-receipt\x01" + raw
    )
    told = {name: value for name, value in head.items() if name != "signature"}
    message = json.dumps(told, sort_keys=True, separators=(",", ":")).encode()
    key.verify(bytes.fromhex(head["signature"]), b"agenthost-audit-head\x01" + message)
    index, size = receipt["leaf_index"], receipt["tree_size"]
    _require(index == entry["number"] - 1, "index")
    _require(size == head["size"] and head["node"] == entry["node"], "size")
    leaf = hashlib.sha256(b"\x00" + raw).digest()
    _require(leaf.hex() == receipt["leaf_hash"], "leaf")
    path = [leaf, *map(bytes.fromhex, receipt["path"])]
    proof = InclusionProof("sha256", True, size, index + 1, sides_of(index, size), path)
    verify_inclusion(leaf, bytes.fromhex(head["root"]), proof, index + 1, size)


def sides_of(index: int, size: int) -> list[int]:
    """Say of each node up to the root whether its brother is on the left."""
    sides, start, end = [], 0, size
    while end - start > 1:
        middle = start + (1 << (end - start - 1).bit_length() - 1)
        right = index >= middle
        sides.append(int(right))
        start, end = (middle, end) if right else (start, middle)
    return [*reversed(sides), 0]
