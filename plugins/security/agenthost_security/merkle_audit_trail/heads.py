"""The file of signed heads: a line each, which says all that it takes to check it.

A line is a JSON object. ``signature`` is that of the others as compact JSON with sorted
keys, behind ``agenthost-audit-head`` and a byte 1. ``before`` is the SHA-256 of the
line before it, so that none can be taken out of the middle.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from .canonical import FIRST
from .signing import HEAD_TAG, SigningKey, signed_by, sync_folder

VERSION = 1
LONGEST_LINE = 1024
Head = Mapping[str, Any]
"""``version, number, node, at, size, root, last_id, last_hash, before, key,
signature``."""


def made(key: SigningKey, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Sign a head."""
    told = {"version": VERSION, **facts, "key": key.public}
    return {**told, "signature": key.sign(HEAD_TAG, message_of(told))}


def message_of(head: Head) -> bytes:
    """Give what is signed of a head."""
    told = {name: value for name, value in head.items() if name != "signature"}
    return json.dumps(told, sort_keys=True, separators=(",", ":")).encode()


def is_signed(head: Head, public: str) -> bool:
    """Tell whether a head was signed with a key."""
    signature = head.get("signature")
    named = head.get("key") == public
    return named and signed_by(public, HEAD_TAG, message_of(head), signature)


def line_of(head: Head) -> bytes:
    """Write the line of a head."""
    return json.dumps(head, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def digest_of(head: Head | None) -> str:
    """Give what the next head says of this one."""
    return FIRST if head is None else sha256(line_of(head)).hexdigest()


def append(path: Path, heads: Sequence[Head]) -> None:
    """Put heads behind the others, on disk when this returns."""
    fresh = not path.exists()
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    end, lines = os.fstat(descriptor).st_size, b"".join(map(line_of, heads))
    try:
        _written(descriptor, lines)
    except OSError:
        # Of what is not on disk in full nothing may stand there.
        os.ftruncate(descriptor, end)
        raise
    finally:
        os.close(descriptor)
    if fresh:
        sync_folder(path.parent)


def _written(descriptor: int, lines: bytes) -> None:
    if os.write(descriptor, lines) != len(lines):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.fsync(descriptor)


def last_of(path: Path) -> dict[str, Any] | None:
    """Read the last head alone; None when there is none.

    A line that a crash has cut off is no head: it is taken away, as nothing refers to
    what was not written in full.

    Raises:
        ValueError: What stands there is no head.
    """
    try:
        with path.open("r+b") as file:
            end = file.seek(0, os.SEEK_END)
            start = max(0, end - 2 * LONGEST_LINE)
            file.seek(start)
            kept, _, rest = file.read().rpartition(b"\n")
            if rest:
                file.truncate(end - len(rest))
    except FileNotFoundError:
        return None
    line = kept.rpartition(b"\n")[2]
    return _parsed(line) if line else None


def read(path: Path) -> Iterator[dict[str, Any]]:
    """Read all heads.

    Raises:
        ValueError: A line is no head.
    """
    try:
        with path.open("rb") as file:
            for line in file:
                if line.endswith(b"\n"):
                    yield _parsed(line)
    except FileNotFoundError:
        return


def newest(path: Path, count: int) -> list[dict[str, Any]]:
    """Read the newest heads, newest first."""
    try:
        with path.open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(0, end - (count + 1) * LONGEST_LINE))
            lines = file.read().split(b"\n")
    except FileNotFoundError:
        return []
    # The last is what stands behind the last line end, the first may be cut off.
    return [_parsed(line) for line in lines[-count - 1 : -1][::-1] if line]


def _parsed(line: bytes) -> dict[str, Any]:
    head = json.loads(line)
    texts = ("node", "at", "root", "last_hash", "before", "key", "signature")
    numbers = ("version", "number", "size", "last_id")
    if not (
        isinstance(head, dict)
        and all(isinstance(head.get(name), str) for name in texts)
        and all(type(head.get(name)) is int for name in numbers)
    ):
        raise ValueError("a line of audit.heads is no head")
    return head
