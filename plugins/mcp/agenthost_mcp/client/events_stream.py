"""Server-sent events, read from bytes as they come: no event may be endless."""

from __future__ import annotations

from collections.abc import AsyncIterator

from .wire import FRAME_BYTES, Lost


async def events(chunks: AsyncIterator[bytes]) -> AsyncIterator[tuple[str, str]]:
    """Give the name and the data of each event.

    Raises:
        Lost: An event is over 8 MiB.
    """
    name, data, size = "message", list[str](), 0
    async for line in _lines(chunks):
        if not line:
            if data:
                yield name, "\n".join(data)
            name, data, size = "message", [], 0
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        size += len(value)
        if size > FRAME_BYTES:
            raise Lost("it sends an event of over 8 MiB")
        if field == "data":
            data.append(value)
        elif field == "event":
            name = value or "message"


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[str]:
    parts, size, after_return = list[bytes](), 0, False
    async for each in chunks:
        # Half of a line's end may have come with the chunk before.
        chunk = each.removeprefix(b"\n") if after_return else each
        after_return = chunk[-1:] == b"\r"
        *whole, rest = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        for line in whole:
            yield b"".join((*parts, line)).decode("utf-8", "replace")
            parts, size = [], 0
        parts.append(rest)
        size += len(rest)
        if size > FRAME_BYTES:
            raise Lost("it sends an event of over 8 MiB")
