"""Checks that need no daemon: a receipt, and the trail in a folder."""

from __future__ import annotations

import json
import sqlite3
import struct
from collections.abc import Mapping
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

from . import heads as signed
from .canonical import canonical
from .checking import Broken, Walk, check_heads, check_mark
from .signing import RECEIPT_TAG, signed_by
from .tree import leaf_hash, root_from

COLUMNS = (
    "id, node, number, timestamp, event_type, agent_id, actor, details, prev_hash, "
    "hash, canonical"
)
_ALL = f"SELECT {COLUMNS} FROM audit_entries ORDER BY id"  # nosec B608 # noqa: S608 - constant
_MARKS = "SELECT heads, digest FROM audit_marks"
PAGE = 1_000
FACTS = ("timestamp", "event_type", "agent_id", "actor", "details")


class Refused(Exception):
    """A receipt proves nothing."""


def check_receipt(receipt: Mapping[str, Any], public: str) -> Mapping[str, Any]:
    """Check a receipt with nothing but the public key; give its statement.

    Raises:
        Refused: It was not given like this by the holder of the key.
    """
    try:
        _check(receipt, public)
    except (KeyError, TypeError, ValueError, AttributeError, struct.error) as error:
        raise Refused(f"it is no receipt: {error}") from error
    statement: Mapping[str, Any] = receipt["statement"]
    return statement


def _check(receipt: Mapping[str, Any], public: str) -> None:
    entry, head = receipt["entry"], receipt["head"]
    facts = tuple(entry[name] for name in FACTS)
    place = (entry["id"], entry["node"], entry["number"])
    raw = canonical(*place, facts, bytes.fromhex(entry["prev_hash"]))
    index, size = receipt["leaf_index"], receipt["tree_size"]
    path = [bytes.fromhex(each) for each in receipt["path"]]
    leaf = leaf_hash(raw)
    wanted = {
        "version": receipt["version"] == 1,
        "event_type": entry["event_type"] == "receipt_issued",
        "entry.hash": sha256(raw).hexdigest() == entry["hash"],
        "leaf_hash": leaf.hex() == receipt["leaf_hash"],
        "statement": json.loads(entry["details"]) == receipt["statement"],
        "signature": signed_by(public, RECEIPT_TAG, raw, receipt["signature"]),
        "leaf_index": index == entry["number"] - 1,
        "tree_size": size == head["size"],
        "head.node": head["node"] == entry["node"],
        "head": signed.is_signed(head, public),
        "path": root_from(leaf, index, size, path).hex() == head["root"],
    }
    for name, holds in wanted.items():
        if not holds:
            raise Refused(f"{name} is not what was signed")


def check_folder(data: Path, public: str | None) -> Walk:
    """Walk the trail in a folder of data: the database and the heads beside it.

    Raises:
        Broken: Something was changed.
        OSError: There is no database.
        sqlite3.Error: It cannot be read.
    """
    database = data / "agenthost.db"
    if not database.is_file():
        raise FileNotFoundError(f"{database} is not there")
    try:
        listed = list(signed.read(data / "audit.heads"))
    except ValueError as error:
        raise Broken(1, str(error)) from error
    if listed:
        check_heads(listed, public or listed[-1]["key"])
    walk = Walk(listed)
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as opened:
        for mark in opened.execute(_MARKS).fetchall():
            check_mark(listed, mark)
        rows = opened.execute(_ALL)
        while page := rows.fetchmany(PAGE):
            walk.feed(page)
    walk.end()
    return walk
