"""The connection: whole lines in, whole lines out, at a pace that servers bear."""

from __future__ import annotations

import asyncio

from agenthost import Clock, Unavailable

from . import lines


class Wire:
    """A connection to an IRC server."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._reader = reader
        self._writer = writer

    def write(self, line: str) -> None:
        """Write a line; a line break in it is a mistake of ours.

        Raises:
            ValueError: It would be two.
        """
        if any(sign in line for sign in "\r\n\0"):
            raise ValueError("a line of IRC has no line break in it")
        if not self._writer.is_closing():
            self._writer.write(f"{line}\r\n".encode())

    async def read(self) -> lines.Line:
        """Read the next line; one beyond all measure is passed over.

        Raises:
            Unavailable: The connection has ended.
        """
        cut = False
        while True:
            try:
                raw = await self._reader.readuntil(b"\n")
            except asyncio.LimitOverrunError as error:
                # What follows is the rest of this line, and no line of its own.
                cut = bool(await self._reader.readexactly(error.consumed))
            except (asyncio.IncompleteReadError, OSError) as error:
                raise Unavailable("the IRC server has hung up") from error
            else:
                line = lines.parse(b"" if cut else raw)
                cut = False
                if line.command:
                    return line

    def close(self) -> None:
        """Say goodbye, where that still goes, and close."""
        self.write("QUIT :agenthost")
        self._writer.close()


class Pace:
    """A few lines at once, then one each time: servers put out who is faster."""

    def __init__(self, clock: Clock, burst: int, seconds: float) -> None:
        self._clock = clock
        self._ahead = burst * seconds
        self._seconds = seconds
        self._next = clock.monotonic() - self._ahead

    async def wait(self) -> None:
        """Wait for one's turn."""
        now = self._clock.monotonic()
        self._next = max(self._next, now - self._ahead) + self._seconds
        if self._next > now:
            await self._clock.sleep(self._next - now)
