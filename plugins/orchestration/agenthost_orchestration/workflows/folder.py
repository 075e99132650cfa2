"""A file of the folder of workflows, read as it lies there and nothing beyond it.

Functions here block: use a thread.
"""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

from agenthost_values.value_class import value_class

LARGEST = 1024 * 1024


@value_class
class Found:
    """A file: its name, and its bytes or why they cannot be had."""

    name: str
    data: bytes = b""
    problem: str = ""

    @property
    def digest(self) -> str:
        """By what a change of it is seen."""
        return hashlib.sha256(self.data).hexdigest()


def read_in(folder: Path, name: str) -> Found:
    """Read a file of a folder, or tell why it cannot be."""
    try:
        return _read(folder, name)
    except OSError as error:
        reason = error.strerror or "input/output error"
        return Found(name, problem=f"cannot be read: {reason}")


def _read(folder: Path, name: str) -> Found:
    # A link within the folder is how some deploy it; where it leads is what is opened,
    # and that is no link any more.
    root = Path(os.path.realpath(folder))
    place = Path(os.path.realpath(root / name))
    if not place.is_relative_to(root):
        return Found(name, problem="leads out of the folder; put the file itself there")
    # Without O_NONBLOCK opening a pipe would wait for its other end.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    held = os.open(place, flags)
    try:
        if not stat.S_ISREG(os.fstat(held).st_mode):
            return Found(name, problem="is no file")
        with os.fdopen(held, "rb", closefd=False) as file:
            data = file.read(LARGEST + 1)
    finally:
        os.close(held)
    if len(data) > LARGEST:
        return Found(name, problem="is larger than 1 MiB; make it smaller")
    return Found(name, data)
