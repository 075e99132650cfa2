"""Content codings undone in small steps, so that a cap counts decoded bytes."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

STEP = 64 * 1024
ACCEPTED = "gzip, deflate"
_WINDOWS = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": 0}


class UnknownCoding(ValueError):
    """The answer is coded in a way that was not asked for."""


class Decoder:
    """Undo one content coding; ``feed`` yields pieces of at most 64 KiB.

    Args:
        coding: The Content-Encoding; empty or ``identity`` for none.

    Raises:
        UnknownCoding: It is neither gzip nor deflate (brotli, several at once).
    """

    def __init__(self, coding: str) -> None:
        name = coding.strip().lower()
        self.active = name not in ("", "identity")
        if self.active and name not in _WINDOWS:
            raise UnknownCoding(name)
        self._window = _WINDOWS.get(name, 0)
        self._inflate: zlib._Decompress | None = None

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Decode the next bytes of the wire.

        Raises:
            ValueError: They are not what the coding promised.
        """
        if not self.active:
            yield data
            return
        if self._inflate is None:
            self._inflate = zlib.decompressobj(self._window or _window_of(data))
        full = False
        while (data or full) and not self._inflate.eof:
            piece = _step(self._inflate, data)
            data = self._inflate.unconsumed_tail
            full = len(piece) == STEP
            if piece:
                yield piece

    def finish(self) -> None:
        """Check that the coded body was whole.

        Raises:
            ValueError: It ended in the middle.
        """
        if self._inflate is not None and not self._inflate.eof:
            raise ValueError("the compressed body is cut short")


def _step(inflate: zlib._Decompress, data: bytes) -> bytes:
    try:
        return inflate.decompress(data, STEP)
    except zlib.error as error:
        raise ValueError("the compressed body is damaged") from error


def _window_of(data: bytes) -> int:
    """Tell a zlib stream from the raw deflate that some servers send instead."""
    zlib_header = data[0] & 0x0F == 8 and (
        len(data) < 2 or int.from_bytes(data[:2], "big") % 31 == 0
    )
    return zlib.MAX_WBITS if zlib_header else -zlib.MAX_WBITS
