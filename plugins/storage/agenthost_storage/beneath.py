"""Open what lies beneath a directory descriptor, and nothing else.

On Linux ``openat2`` with RESOLVE_BENEATH decides inside the kernel, so a link that is
swapped in mid-way gains nothing. Where it is missing every component is opened by
itself and links are not followed at all.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Protocol

_OPENAT2 = 437
_NO_MAGICLINKS = 0x02
_BENEATH = 0x08
_ATTEMPTS = 64


class _How(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


class Opener(Protocol):
    """Opens a relative path beneath a directory descriptor."""

    def __call__(self, root: int, path: PurePosixPath, flags: int) -> int:
        """Return a descriptor, or raise OSError (EXDEV or ELOOP for a way out)."""
        ...


def by_kernel(root: int, path: PurePosixPath, flags: int) -> int:
    """Open with ``openat2``; links that stay beneath the root are followed."""
    how = _How(flags | os.O_CLOEXEC, 0, _BENEATH | _NO_MAGICLINKS)
    name = os.fsencode(path)
    for _ in range(_ATTEMPTS):
        found: int = _libc().syscall(
            _OPENAT2, root, name, ctypes.byref(how), ctypes.sizeof(how)
        )
        if found >= 0:
            return found
        # EAGAIN: something was renamed while the kernel resolved; it is safe to ask
        # again.
        if ctypes.get_errno() != errno.EAGAIN:
            break
    code = ctypes.get_errno()
    raise OSError(code, os.strerror(code))


def by_component(root: int, path: PurePosixPath, flags: int) -> int:
    """Open one component after the other, following no link."""
    if path.is_absolute() or ".." in path.parts:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
    *folders, last = path.parts or (".",)
    held = os.dup(root)
    try:
        for name in folders:
            deeper = _no_link(name, os.O_RDONLY | os.O_DIRECTORY, held)
            os.close(held)
            held = deeper
        return _no_link(last, flags, held)
    finally:
        os.close(held)


def _no_link(name: str, flags: int, folder: int) -> int:
    try:
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except NotADirectoryError:
        # With O_DIRECTORY Linux says this of a link too; say what it is.
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
        raise


@lru_cache(maxsize=1)
def opener() -> Opener:
    """Choose the way that this machine offers; it is tried once."""
    if not sys.platform.startswith("linux"):
        return by_component
    try:
        root = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.close(by_kernel(root, PurePosixPath(), os.O_RDONLY | os.O_DIRECTORY))
        finally:
            os.close(root)
    except OSError:
        return by_component
    return by_kernel


@lru_cache(maxsize=1)
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
