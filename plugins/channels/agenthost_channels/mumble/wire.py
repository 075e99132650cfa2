"""Frames of the control channel: a kind, a length, and a message."""

from __future__ import annotations

import asyncio
import struct
from typing import Any

from agenthost import Unavailable
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from .messages import CLASSES, KINDS, NAMES

HEAD = struct.Struct(">HI")
LONGEST = 8 << 20
VERSION = 1 << 16 | 3 << 8


class Wire:
    """An open connection; one task reads it, any may write."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._reader, self._writer = reader, writer

    def certificate(self) -> bytes:
        """Give the server's certificate."""
        tls = self._writer.get_extra_info("ssl_object")
        return (tls.getpeercert(binary_form=True) if tls else None) or b""

    def write(self, name: str, **fields: Any) -> None:
        """Send a message; what cannot be sent any more is told by reading."""
        body = CLASSES[name](**fields).SerializeToString()
        self._writer.write(HEAD.pack(KINDS[name].number, len(body)) + body)

    async def read(self) -> tuple[str, Any]:
        """Read the next message that we know: its kind, and itself.

        Raises:
            Unavailable: The connection has ended, or is none of Mumble's.
        """
        while True:
            try:
                number, length = HEAD.unpack(await self._reader.readexactly(HEAD.size))
                if length > LONGEST:
                    raise Unavailable("the Mumble server sent a message over 8 MB")
                body = await self._reader.readexactly(length)
            except (asyncio.IncompleteReadError, OSError) as error:
                raise Unavailable("the Mumble server has hung up") from error
            if name := NAMES.get(number):
                try:
                    return name, CLASSES[name].FromString(body)
                except DecodeError:
                    continue

    def close(self) -> None:
        """Close the connection."""
        self._writer.close()
