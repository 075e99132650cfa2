"""The folder of workflows in the home: what lies in it, read and nothing beyond it.

Functions here block: use a thread.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from agenthost_values.value_class import value_class

LARGEST = 1024 * 1024
MOST_FILES = 1_000
SUFFIX = ".toml"


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


def found_in(folder: Path) -> Iterator[Found]:
    """Read every TOML file of a folder.

    Raises:
        OSError: The folder cannot be read.
    """
    names = sorted(name for name in os.listdir(folder) if _is_meant(name))
    for name in names[:MOST_FILES]:
        try:
            yield _read(folder, name)
        except OSError as error:
            reason = error.strerror or "input/output error"
            yield Found(name, problem=f"cannot be read: {reason}")
    for name in names[MOST_FILES:]:
        yield Found(name, problem=f"is not read: {MOST_FILES} files are the most")


def _is_meant(name: str) -> bool:
    # What is hidden is an editor's, what is not text has no place in a row.
    return name.endswith(SUFFIX) and not name.startswith(".") and name.isprintable()


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
