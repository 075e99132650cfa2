"""Frames of ``application/vnd.amazon.eventstream``, cut from bytes as they arrive.

Source: AWS documentation, "Event stream encoding": a prelude of total length, length
of the headers and their CRC-32, then headers, payload and the CRC-32 of all of it.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .framing import MAX_LINE, malformed

PRELUDE = struct.Struct(">III")
CHECKSUM = struct.Struct(">I")
LEAST = PRELUDE.size + CHECKSUM.size
TEXT = 7
# Sizes of header values by type: true, false, byte, short, integer, long, (bytes,
# text), timestamp, uuid. The two in brackets bring their own length.
SIZES: Mapping[int, int] = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}


@dataclass(frozen=True, slots=True)
class Frame:
    """A message; of its headers only texts are kept."""

    headers: Mapping[str, str]
    payload: bytes


class EventStreamFrames:
    """Whole frames of a body whose chunks break anywhere."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> Iterator[Frame]:
        """Take more bytes; yield the frames that they complete.

        Raises:
            ProviderError: MALFORMED, a checksum is wrong or a length impossible.
        """
        self._rest += chunk
        while len(self._rest) >= PRELUDE.size:
            total = self._total()
            if len(self._rest) < total:
                return
            raw = bytes(self._rest[:total])
            del self._rest[:total]
            yield self._frame(raw)

    def close(self) -> Iterator[Frame]:
        """Yield nothing: a frame that was begun is lost.

        Raises:
            ProviderError: MALFORMED, there is one.
        """
        if self._rest:
            raise malformed(self._provider, "it broke off inside a frame")
        return iter(())

    def _total(self) -> int:
        """Read a frame's length, whose own checksum guards the memory it takes."""
        total, _, checksum = PRELUDE.unpack_from(self._rest)
        if zlib.crc32(self._rest[:8]) != checksum:
            raise malformed(self._provider, "the checksum of a frame's head is wrong")
        if not LEAST <= total <= MAX_LINE:
            raise malformed(self._provider, "a frame has an impossible length")
        return int(total)

    def _frame(self, raw: bytes) -> Frame:
        (checksum,) = CHECKSUM.unpack(raw[-CHECKSUM.size :])
        if zlib.crc32(raw[: -CHECKSUM.size]) != checksum:
            raise malformed(self._provider, "the checksum of a frame is wrong")
        end = PRELUDE.size + PRELUDE.unpack_from(raw)[1]
        if end > len(raw) - CHECKSUM.size:
            raise malformed(self._provider, "a frame's headers are longer than it")
        try:
            headers = dict(_headers(raw[PRELUDE.size : end]))
        except (IndexError, KeyError, struct.error, ValueError) as error:
            raise malformed(self._provider, "a frame's headers are broken") from error
        return Frame(headers, raw[end : -CHECKSUM.size])


def _headers(raw: bytes) -> Iterator[tuple[str, str]]:
    place = 0
    while place < len(raw):
        name_end = place + 1 + raw[place]
        name = raw[place + 1 : name_end].decode()
        kind = raw[name_end]
        place = name_end + 1
        size = SIZES.get(kind)
        if size is None:
            if kind not in {6, TEXT}:
                raise ValueError(kind)
            (size,) = struct.unpack_from(">H", raw, place)
            place += 2
        if kind == TEXT:
            yield name, raw[place : place + size].decode()
        place += size
