"""A copy of the database beside it, before its tables change."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

KEPT = 3


def back_up(source: sqlite3.Connection, path: Path, version: int) -> Path:
    """Copy the database to ``<path>.bak-<version>`` and keep the newest three.

    Args:
        source: A connection to the database, outside a transaction.
        path: The database file.
        version: The sum of the schema versions that the copy holds; it only grows.

    Returns:
        The copy, complete and on disk.
    """
    copy = path.with_name(f"{path.name}.bak-{version}")
    unfinished = path.with_name(f"{path.name}.bak-unfinished")
    unfinished.unlink(missing_ok=True)
    unfinished.touch(mode=0o600)
    with closing(sqlite3.connect(unfinished, isolation_level=None)) as target:
        source.backup(target)
        # A copy in WAL mode would come with files of its own.
        target.execute("PRAGMA journal_mode = DELETE")
    sync(unfinished)
    unfinished.replace(copy)
    sync(path.parent)
    for old in backups(path)[KEPT:]:
        old.unlink()
    return copy


def backups(path: Path) -> list[Path]:
    """List the copies of a database, newest first."""
    found = [
        copy
        for copy in path.parent.glob(f"{path.name}.bak-*")
        if copy.name.rpartition("-")[2].isdecimal()
    ]
    return sorted(found, key=lambda copy: -int(copy.name.rpartition("-")[2]))


def sync(path: Path) -> None:
    """Put a file or a folder on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
