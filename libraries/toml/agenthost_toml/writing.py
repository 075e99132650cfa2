"""Put a text in the place of a file, whole or not at all."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep other changes of a folder's files waiting; the folder is made.

    Raises:
        OSError: It cannot be made or opened.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def replace(file: Path, text: str) -> None:
    """Put a text in the place of a file; its mode and its line ends stay.

    Raises:
        OSError: The disk refused; the file is as it was.
    """
    # Where the file is a link, what it leads to is replaced.
    file = file.resolve()
    old = file.read_bytes() if file.exists() else b""
    mode = file.stat().st_mode & 0o777 if file.exists() else 0o600
    if b"\r\n" in old:
        text = text.replace("\r\n", "\n").replace("\n", "\r\n")
    new = file.with_name(f".{file.name}.new")
    new.unlink(missing_ok=True)
    # Made anew: what another put there, a link for one, is not written through.
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as stream:
            os.fchmod(descriptor, mode)
            stream.write(text)
            stream.flush()
            os.fsync(descriptor)
        new.replace(file)
    except OSError:
        new.unlink(missing_ok=True)
        raise
    # The name is on the disk only once its folder is.
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
