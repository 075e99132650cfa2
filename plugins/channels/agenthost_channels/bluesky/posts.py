"""What we say, as records of ``app.bsky.feed.post``."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

POST_TYPE = "app.bsky.feed.post"
MOST_GRAPHEMES, MOST_BYTES = 300, 3_000
_ADDRESS = re.compile(r"https?://[^\s<>\"]+")
_BEHIND = ".,;:!?'*_"
_SORTED = "234567abcdefghijklmnopqrstuvwxyz"
# Microseconds: 2023-01-01, and about two years.
_FROM, _SPAN = 1_672_531_200_000_000, 1 << 46


def record_key(key: str) -> str:
    """Make the record's key of the message's, the same each time it is tried.

    It has the form of a TID (https://atproto.com/specs/tid): 53 bits of microseconds
    and 10 bits. The time is none: nothing shows it, and what it is made of is the key.
    """
    seed = int.from_bytes(hashlib.sha256(key.encode()).digest()[:16], "big")
    number = ((_FROM + seed % _SPAN) << 10) | (seed >> 64) & 0x3FF
    return "".join(_SORTED[number >> shift & 31] for shift in range(60, -5, -5))


def facets(text: str) -> list[dict[str, Any]]:
    """Say where the addresses of a text are, in bytes of UTF-8.

    Names of people are left as text: nobody is called in by what a model writes.
    """
    return [
        {
            "index": {"byteStart": start, "byteEnd": start + len(uri.encode())},
            "features": [{"$type": "app.bsky.richtext.facet#link", "uri": uri}],
        }
        for start, uri in _addresses(text)
    ]


def _addresses(text: str) -> Iterator[tuple[int, str]]:
    for found in _ADDRESS.finditer(text):
        uri = found[0].rstrip(_BEHIND)
        while uri.endswith(")") and uri.count(")") > uri.count("("):
            uri = uri[:-1].rstrip(_BEHIND)
        if uri.partition("://")[2]:
            yield len(text[: found.start()].encode()), uri


def record(
    text: str,
    now: float,
    reply: tuple[dict[str, str], dict[str, str]] | None,
    pictures: list[dict[str, Any]],
) -> dict[str, Any]:
    """Write a post.

    Args:
        text: What it says.
        now: Epoch seconds.
        reply: Root and parent, each with its uri and cid; None begins a thread.
        pictures: The images of the embed.
    """
    at = datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds")
    found: dict[str, Any] = {
        "$type": POST_TYPE,
        "text": text,
        "createdAt": at.replace("+00:00", "Z"),
    }
    if marks := facets(text):
        found["facets"] = marks
    if reply is not None:
        found["reply"] = {"root": reply[0], "parent": reply[1]}
    if pictures:
        found["embed"] = {"$type": "app.bsky.embed.images", "images": pictures}
    return found
