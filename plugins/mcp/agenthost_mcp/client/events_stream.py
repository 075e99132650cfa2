"""Server-sent events, read from bytes as they come: no event may be endless."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from .wire import FRAME_BYTES, Lost

SHORTEST_PAUSE = 0.1
ID_LENGTH = 1_000


@dataclass
class Cursor:
    """How far a stream was read.

    Attributes:
        last: The id of the last event, which another stream goes on from; or empty.
        pause: Seconds to wait before that, as the server wants it.
    """

    last: str = ""
    pause: float = 1.0

    def reached(self, ident: str) -> None:
        """Take note of an event's id; what no header can carry back is none."""
        plain = ident.isascii() and ident.isprintable() and len(ident) <= ID_LENGTH
        self.last = ident if plain else ""

    def waits(self, milliseconds: str) -> None:
        """Take note of the pause that the server wants."""
        if milliseconds.isascii() and milliseconds.isdigit():
            self.pause = max(int(milliseconds[:9]) / 1_000, SHORTEST_PAUSE)


async def events(
    chunks: AsyncIterator[bytes], cursor: Cursor | None = None
) -> AsyncIterator[tuple[str, str]]:
    """Give the name and the data of each event.

    Args:
        chunks: The stream.
        cursor: Told how far it was read.

    Raises:
        Lost: An event is over 8 MiB.
    """
    cursor = cursor or Cursor()
    name, data, size = "message", list[str](), 0
    ident: str | None = None
    async for line in _lines(chunks):
        if not line:
            # An event that was cut must come again: it counts once it is whole.
            if ident is not None:
                cursor.reached(ident)
            if data:
                yield name, "\n".join(data)
            name, data, size, ident = "message", [], 0, None
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
        elif field == "id":
            ident = value
        elif field == "retry":
            cursor.waits(value)


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
