"""What both parts of the simulator have: errors, times, ids."""

from __future__ import annotations

import base64
import hashlib
import itertools
import time
import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

Object = dict[str, Any]
Handler = Callable[[web.Request, str, Object], Any]
"""What answers a call: the request, who calls, and what the body says."""
JOINER = "\u200d"
SORTED = "234567abcdefghijklmnopqrstuvwxyz"
_numbers = itertools.count()


class Refusal(Exception):
    """An error as XRPC tells it."""

    def __init__(self, name: str, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.name = name
        self.status = status
        self.headers: dict[str, str] = {}


def stamp() -> str:
    """Write the present moment as records do."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def cid_of(data: bytes, codec: int = 0x55) -> str:
    """Name bytes by their digest: a CID of version 1."""
    raw = bytes((1, codec, 0x12, 32)) + hashlib.sha256(data).digest()
    return "b" + base64.b32encode(raw).decode().rstrip("=").lower()


def tid() -> str:
    """Make an id that sorts by the time."""
    number = (int(time.time() * 1e6) << 10) | next(_numbers) & 0x3FF
    return "".join(SORTED[number >> shift & 31] for shift in range(60, -5, -5))


def signs(text: str) -> int:
    """Count what people see as signs, a little too few rather than too many."""
    marks = ("Mn", "Me", "Mc")
    joined = text.count(JOINER)
    alone = [each for each in text if unicodedata.category(each) not in marks]
    return len(alone) - 2 * joined
