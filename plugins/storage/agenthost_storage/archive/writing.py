"""Write the copy of a home, also while its daemon works on it."""

from __future__ import annotations

import hashlib
import io
import json
import os
import sqlite3
import tarfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

from agenthost import AgentHostError, Conflict

from ..sqlite.backup import sync
from .layout import CONTENTS, DATABASE, FORMAT, VERSION, Home, home_at, members

BUSY_SECONDS = 30.0
HELD = 16 * 2**20


def write_backup(folder: Path, target: Path, *, keys: bool) -> dict[str, Any]:
    """Copy a home into one file, which appears once it is whole and on disk.

    Args:
        folder: The home.
        target: A file that is not there yet.
        keys: Whether the keys that open the vault and sign the trail come along.

    Returns:
        What it holds: ``files``, each with path, size and SHA-256, and ``keys``.

    Raises:
        Conflict: The file is there already.
        AgentHostError: The home cannot be read, or the file cannot be written.
    """
    home = home_at(folder)
    if target.exists():
        raise Conflict(f"{target.name} is there already; name another file")
    try:
        with (
            _appearing(target) as stream,
            tarfile.open(fileobj=stream, mode="w:gz", compresslevel=3) as tar,
        ):
            return _fill(tar, home, target.parent, keys=keys)
    except (OSError, sqlite3.Error) as error:
        raise AgentHostError(f"the backup could not be written: {error}") from error


def _fill(
    tar: tarfile.TarFile, home: Home, near: Path, *, keys: bool
) -> dict[str, Any]:
    files: list[dict[str, Any]] = []
    named = members(home, keys=keys)
    copied = False
    with TemporaryDirectory(dir=near, prefix=".agenthost-backup-") as scratch:
        for name, path in named:
            if not copied and not _beside(name):
                files += _database(tar, home, Path(scratch))
                copied = True
            files += _add(tar, name, path)
        if not copied:
            files += _database(tar, home, Path(scratch))
    contents = {
        "format": FORMAT,
        "version": VERSION,
        "agenthost": version("agenthost"),
        "made_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "keys": keys,
        "files": files,
    }
    text = json.dumps(contents, indent=1).encode()
    entry = tarfile.TarInfo(CONTENTS)
    entry.size, entry.mode, entry.mtime = len(text), 0o600, int(time.time())
    tar.addfile(entry, io.BytesIO(text))
    return contents


def _beside(name: str) -> bool:
    """Tell whether a file stands right beside the database."""
    return name.startswith("data/") and name.count("/") == 1


def _database(tar: tarfile.TarFile, home: Home, scratch: Path) -> list[dict[str, Any]]:
    """Copy the database as it is at one moment, whoever writes to it meanwhile."""
    if not home.database.exists():
        return []
    copy = scratch / "agenthost.db"
    copy.touch(mode=0o600)
    address = f"{home.database.as_uri()}?mode=ro"
    with (
        closing(sqlite3.connect(address, uri=True, timeout=BUSY_SECONDS)) as source,
        closing(sqlite3.connect(copy, isolation_level=None)) as goal,
    ):
        source.backup(goal)
        # A copy in WAL mode would come with files of its own.
        goal.execute("PRAGMA journal_mode = DELETE")
    return _add(tar, DATABASE, copy)


def _add(tar: tarfile.TarFile, name: str, path: Path) -> list[dict[str, Any]]:
    """Add a file as long as it was when it was opened; none when it is gone."""
    try:
        # A link that took the file's place since it was looked at leads nowhere.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        if path.name == "agenthost.db" or path.exists():
            raise
        return []
    with os.fdopen(descriptor, "rb") as file:
        facts = os.fstat(descriptor)
        entry = tarfile.TarInfo(name)
        # What is at work in a workspace may shorten a file as it is read: a small one
        # is read at once; a large one that shrinks ends the backup.
        held = io.BytesIO(file.read()) if facts.st_size < HELD else None
        size = facts.st_size if held is None else held.getbuffer().nbytes
        entry.size, entry.mtime = size, int(facts.st_mtime)
        entry.mode = 0o600 | (facts.st_mode & 0o100)
        reader = Digesting(file if held is None else held)
        tar.addfile(entry, reader)
    return [{"path": name, "size": entry.size, "sha256": reader.digest}]


class Digesting:
    """Reads a file and names what was read by its SHA-256."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._hash = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        """Read so many bytes, or all."""
        data = self._file.read(size)
        self._hash.update(data)
        return data

    @property
    def digest(self) -> str:
        """Of what was read so far."""
        return self._hash.hexdigest()


@contextmanager
def _appearing(target: Path) -> Iterator[IO[bytes]]:
    """Write a file of the owner's alone that is there whole or not at all."""
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        # Unlike a rename it refuses to take the place of a file that came meanwhile.
        os.link(unfinished, target)
    finally:
        with suppress(FileNotFoundError):
            unfinished.unlink()
    sync(target.parent)
