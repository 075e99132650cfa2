"""Bytes in memory of their own: locked, in no dump, and wiped when they are let go."""

from __future__ import annotations

import mmap
import sys
from contextlib import suppress
from typing import NoReturn

# Linux's names for what the module mmap has no names for.
_LINUX = sys.platform == "linux"
_MAP_LOCKED = 0x2000 if _LINUX else 0
_WIPE_ON_FORK = 18


class SecretBytes:
    """A secret that is shown, copied and pickled nowhere.

    Its pages are its own: nothing else is wiped with them, and they are never written
    to swap or into a dump; a forked child finds zeros there. What :meth:`text` gives is
    a string, which Python wipes never: ask for it at the last moment and keep it not.

    Args:
        value: The secret; a ``bytearray`` is wiped once it is taken over.

    Attributes:
        locked: Whether the system let it be locked.
    """

    __slots__ = ("_pages", "_size", "locked")

    def __init__(self, value: bytes | bytearray) -> None:
        self._size = len(value)
        self._pages, self.locked = _own_pages(max(self._size, 1))
        self._pages[: self._size] = value
        if isinstance(value, bytearray):
            value[:] = bytes(len(value))

    def text(self) -> str:
        """Hand it out as text.

        Raises:
            ValueError: It was wiped.
        """
        with memoryview(self._pages) as whole, whole[: self._size] as secret:
            return str(secret, "utf-8", "surrogatepass")

    def data(self) -> bytes:
        """Hand it out as bytes.

        Raises:
            ValueError: It was wiped.
        """
        return self._pages[: self._size]

    def wipe(self) -> None:
        """Overwrite it and give its pages back; twice is fine."""
        if not self._pages.closed:
            self._pages[:] = bytes(len(self._pages))
            self._pages.close()

    def __del__(self) -> None:
        with suppress(AttributeError):
            self.wipe()

    def __repr__(self) -> str:
        return "SecretBytes(***)"

    def __reduce_ex__(self, _: object) -> NoReturn:
        raise TypeError("a secret cannot be copied or pickled")


def _own_pages(size: int) -> tuple[mmap.mmap, bool]:
    """Map pages of nobody else; they are not locked where the limit of that is met."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    try:
        pages, locked = mmap.mmap(-1, size, flags | _MAP_LOCKED), _LINUX
    except OSError:
        pages, locked = mmap.mmap(-1, size, flags), False
    if _LINUX:
        for advice in (mmap.MADV_DONTDUMP, _WIPE_ON_FORK):
            with suppress(OSError):
                pages.madvise(advice)
    return pages, locked
