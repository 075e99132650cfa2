"""Look at a picture of the workspace: ``image_analyze``.

The agent's own model looks at it, where it takes pictures; any is told what kind and
size it has. Nothing is decoded here but the few bytes that say so.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable

from agenthost import (
    Effect,
    Image,
    InvalidInput,
    ToolContext,
    ToolResult,
    ToolSpec,
    hookimpl,
)
from pydantic import BaseModel, Field

LARGEST = 2_600_000
"""Bytes; as base64 that is what a result may hold."""

PNG = b"\x89PNG\r\n\x1a\n"
FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""Segments of a JPEG that begin with its height and width."""

MOST_SEGMENTS = 1_000


class ImageAnalyze(BaseModel, extra="forbid", defer_build=True):
    """Arguments of ``image_analyze``."""

    path: str = Field(description="Path of a PNG, JPEG, GIF or WebP in the workspace")
    prompt: str = Field("", description="What to look for in it", max_length=4_000)


async def image_analyze(context: ToolContext, call: ImageAnalyze) -> ToolResult:
    """Return the picture, for a model that takes some, and what it is in words.

    Raises:
        InvalidInput: It is no picture of a kind that models take.
        TooLarge: It is over 2.6 MB.
    """
    if context.agent is None:
        raise InvalidInput("", "only an agent has files; none is calling")
    workspace = context.host.files.workspace(context.agent.id, context)
    workers = context.host.workers
    data = await workers.in_thread(workspace.read, call.path, LARGEST)
    known = kind_of(data)
    if known is None:
        raise InvalidInput(
            "path", f"{call.path} is no PNG, JPEG, GIF or WebP; convert it first"
        )
    media_type, (width, height) = known
    words = f"{media_type}, {width} x {height} pixels, {len(data)} bytes"
    if call.prompt:
        words += f"\nLook for: {call.prompt}"
    encoded = (await workers.in_thread(base64.b64encode, data)).decode("ascii")
    return ToolResult(words, parts=(Image(media_type, encoded),))


def kind_of(data: bytes) -> tuple[str, tuple[int, int]] | None:
    """Tell a picture's media type, its width and its height; None: it is none."""
    if data.startswith(PNG) and len(data) >= 24:
        return "image/png", (_big(data[16:20]), _big(data[20:24]))
    if data[:6] in {b"GIF87a", b"GIF89a"} and len(data) >= 10:
        return "image/gif", (_little(data[6:8]), _little(data[8:10]))
    if data.startswith(b"\xff\xd8\xff") and (size := _of_jpeg(data)):
        return "image/jpeg", size
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP" and (size := _of_webp(data)):
        return "image/webp", size
    return None


def _of_jpeg(data: bytes) -> tuple[int, int] | None:
    at = 2
    for _ in range(MOST_SEGMENTS):
        segment = data[at : at + 9]
        if len(segment) < 9 or segment[0] != 0xFF:
            return None
        if segment[1] in FRAMES:
            return _big(segment[7:9]), _big(segment[5:7])
        at += 2 + _big(segment[2:4])
    return None


def _of_webp(data: bytes) -> tuple[int, int] | None:
    match data[12:16]:
        case b"VP8X" if len(data) >= 30:
            return _little(data[24:27]) + 1, _little(data[27:30]) + 1
        case b"VP8L" if len(data) >= 25:
            both = _little(data[21:25])
            return (both & 0x3FFF) + 1, (both >> 14 & 0x3FFF) + 1
        case b"VP8 " if len(data) >= 30:
            return _little(data[26:28]) & 0x3FFF, _little(data[28:30]) & 0x3FFF
    return None


def _big(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _little(data: bytes) -> int:
    return int.from_bytes(data, "little")


@hookimpl
def register_tool() -> Iterable[ToolSpec]:
    """Offer ``image_analyze``."""
    yield ToolSpec(
        "image_analyze",
        "Look at a picture of your workspace.",
        ImageAnalyze,
        Effect.READ,
        image_analyze,
        idempotent=True,
    )
