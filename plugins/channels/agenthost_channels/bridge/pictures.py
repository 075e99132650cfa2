"""Pictures that a model which sees is shown at once, with the message they came with.

One that a vendor refuses would be refused with every later message of the conversation:
only those are shown that are whole, by their bytes, and of a size that vendors take.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import NamedTuple

from agenthost import File

LARGEST = 2_600_000
"""Bytes of all pictures of a message; what is over that, ``image_analyze`` looks at."""
LONGEST_SIDE = 8_000
MOST_SEGMENTS = 1_000
# Segments of a JPEG that begin with its height and width.
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


class _Form(NamedTuple):
    """How a kind of picture begins and ends, and where its sides are."""

    starts: tuple[bytes, ...]
    end: bytes
    sides: Callable[[bytes], tuple[int, int]]


def seen(name: str, data: bytes, room: int) -> File | None:
    """Give a picture as a model is shown it; None for anything else.

    Args:
        name: For the model.
        data: The file.
        room: The bytes that are left of ``LARGEST``.
    """
    kind = kind_of(data)
    if not kind or len(data) > room:
        return None
    return File(name, kind, base64.b64encode(data).decode("ascii"))


def kind_of(data: bytes) -> str:
    """Tell the media type of a whole picture of a size that models take, else ""."""
    for kind, form in _FORMS.items():
        if data.startswith(form.starts) and data.endswith(form.end):
            sides = form.sides(data)
            return kind if all(0 < side <= LONGEST_SIDE for side in sides) else ""
    return ""


def _of_png(data: bytes) -> tuple[int, int]:
    return _number(data[16:20]), _number(data[20:24])


def _of_gif(data: bytes) -> tuple[int, int]:
    return _number(data[7:5:-1]), _number(data[9:7:-1])


def _of_jpeg(data: bytes) -> tuple[int, int]:
    at = 2
    for _ in range(MOST_SEGMENTS):
        segment = data[at : at + 9]
        if len(segment) < 9 or segment[0] != 0xFF:
            break
        if segment[1] in _FRAMES:
            return _number(segment[7:9]), _number(segment[5:7])
        at += 2 + _number(segment[2:4])
    return 0, 0


def _of_webp(data: bytes) -> tuple[int, int]:
    whole = len(data) == 8 + _number(data[7:3:-1])
    if not whole or data[8:12] != b"WEBP" or len(data) < 30:
        return 0, 0
    if data[12:16] == b"VP8X":
        return _number(data[26:23:-1]) + 1, _number(data[29:26:-1]) + 1
    if data[12:16] == b"VP8L":
        both = _number(data[24:20:-1])
        return (both & 0x3FFF) + 1, (both >> 14 & 0x3FFF) + 1
    return _number(data[27:25:-1]) & 0x3FFF, _number(data[29:27:-1]) & 0x3FFF


def _number(data: bytes) -> int:
    return int.from_bytes(data, "big")


_FORMS: Mapping[str, _Form] = {
    "image/png": _Form((b"\x89PNG\r\n\x1a\n",), b"IEND\xaeB`\x82", _of_png),
    "image/jpeg": _Form((b"\xff\xd8\xff",), b"\xff\xd9", _of_jpeg),
    "image/gif": _Form((b"GIF87a", b"GIF89a"), b";", _of_gif),
    "image/webp": _Form((b"RIFF",), b"", _of_webp),
}
