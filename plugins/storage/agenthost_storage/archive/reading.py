"""Read the copy of a home: look whether it is whole, and put it into another place."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import IO, Any

from agenthost import (
    AgentHostError,
    Conflict,
    InvalidInput,
    SchemaSpec,
    StorageFull,
)

from ..sqlite.schema import refuse_newer
from .layout import CONTENTS, DATABASE, FORMAT, VERSION, data_of

PART = 1024 * 1024
LEFT_FREE = 64 * PART
CONTENTS_BYTES = 512 * PART
NAME_LENGTH = 4_096


def check_backup(archive: Path, schemas: Sequence[SchemaSpec]) -> dict[str, Any]:
    """See that a copy is whole, ours and not newer than this installation.

    Returns:
        What it holds.

    Raises:
        InvalidInput: It is damaged, foreign or names a place outside.
        ConfigError: A newer agenthost or plugin has written it.
    """
    with TemporaryDirectory(
        dir=archive.absolute().parent, prefix=".agenthost-check-"
    ) as scratch:
        return _unpacked(archive, Path(scratch), schemas)


def restore_backup(
    archive: Path, home: Path, schemas: Sequence[SchemaSpec], data: Path | None = None
) -> dict[str, Any]:
    """Make a home of a copy; it is there whole and checked, or not at all.

    Args:
        archive: The copy.
        home: A folder that is not there, or is empty.
        schemas: What this installation knows of the database.
        data: Where its data goes, in place of what its configuration says.

    Returns:
        What the copy holds.

    Raises:
        Conflict: There is something already.
        InvalidInput, ConfigError: As :func:`check_backup` tells.
    """
    home = home.absolute()
    _refuse_filled(home)
    home.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=home.parent, prefix=".agenthost-restore-") as scratch:
        folder = Path(scratch)
        contents = _unpacked(archive, folder, schemas)
        (folder / "home").mkdir(mode=0o700, exist_ok=True)
        if data is not None:
            _point(folder / "home" / "config.toml", data)
        goal = data or _goal(folder / "home", home)
        if goal.is_relative_to(home):
            _move(folder / "data", folder / "home" / goal.relative_to(home))
        else:
            _refuse_filled(goal)
            _move(folder / "data", goal)
        _move(folder / "home", home)
    return contents


def _goal(folder: Path, home: Path) -> Path:
    try:
        text = (folder / "config.toml").read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        text = ""
    return data_of(text, home)


def _point(config: Path, data: Path) -> None:
    """Have a configuration name another place for the data, and no other database."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        text = config.read_text(encoding="utf-8-sig") if config.exists() else ""
        said = tomlkit.parse(text)
        said["data_dir"] = str(data)
        said.get("storage", {}).pop("url", None)
        config.write_text(said.as_string(), encoding="utf-8")
    except (TOMLKitError, UnicodeError, TypeError, AttributeError) as error:
        raise InvalidInput("config.toml", "of the backup cannot be read") from error
    config.chmod(0o600)


def _refuse_filled(folder: Path) -> None:
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise Conflict(f"{folder.name} is no folder; name another place")
    if folder.exists() and any(folder.iterdir()):
        raise Conflict(f"{folder.name} holds something already; name an empty place")


def _move(source: Path, goal: Path) -> None:
    if not source.exists():
        return
    goal.parent.mkdir(parents=True, exist_ok=True)
    if goal.exists():
        goal.rmdir()
    shutil.move(source, goal)


def _unpacked(
    archive: Path, folder: Path, schemas: Sequence[SchemaSpec]
) -> dict[str, Any]:
    try:
        with tarfile.open(archive, "r:gz") as tar:
            found, contents = _members(tar, folder)
    except (tarfile.TarError, EOFError, zlib.error, UnicodeError) as error:
        raise InvalidInput(archive.name, "is damaged, or no backup") from error
    except (OSError, RecursionError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise InvalidInput(archive.name, "is damaged, or no backup") from error
    listed = _listed(contents)
    if found != listed:
        off = sorted({*found} ^ {*listed}) or [
            n for n in found if found[n] != listed[n]
        ]
        raise InvalidInput(archive.name, f"is damaged: {off[0]!r} is not as it was")
    if DATABASE in found:
        _check_database(archive, folder / DATABASE, schemas)
    return contents


def _members(
    tar: tarfile.TarFile, folder: Path
) -> tuple[dict[str, tuple[int, str]], dict[str, Any]]:
    """Take out the files of a copy into a folder of ours, and what it says it holds."""
    found: dict[str, tuple[int, str]] = {}
    contents: dict[str, Any] | None = None
    for entry in tar:
        if contents is not None:
            raise InvalidInput(entry.name[:100], "stands behind the end of the backup")
        if entry.name == CONTENTS:
            contents = _read_contents(tar, entry)
            continue
        _check_entry(entry, found, folder)
        source = tar.extractfile(entry)
        if source is None:
            raise InvalidInput(entry.name[:100], "is no file")
        found[entry.name] = _taken(source, entry, folder / entry.name)
    if contents is None:
        raise EOFError
    return found, contents


def _check_entry(
    entry: tarfile.TarInfo, found: dict[str, tuple[int, str]], folder: Path
) -> None:
    name = entry.name
    parts = PurePosixPath(name).parts
    plain = str(PurePosixPath(name)) == name and ".." not in parts and "\0" not in name
    if not plain or len(parts) < 2 or parts[0] not in {"home", "data"}:
        raise InvalidInput(name[:100], "names a place outside of a home")
    if not entry.isreg() or entry.issparse() or len(name) > NAME_LENGTH:
        raise InvalidInput(name[:100], "is no plain file")
    if name in found:
        raise InvalidInput(name[:100], "stands twice in the backup")
    if entry.size > shutil.disk_usage(folder).free - LEFT_FREE:
        raise StorageFull("there is no room for the backup; make room, and try again")


def _taken(source: IO[bytes], entry: tarfile.TarInfo, target: Path) -> tuple[int, str]:
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    digest, mode = hashlib.sha256(), 0o600 | (entry.mode & 0o100)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with os.fdopen(os.open(target, flags, mode), "wb") as file:
        while part := source.read(PART):
            digest.update(part)
            file.write(part)
        file.flush()
        os.fsync(file.fileno())
    return entry.size, digest.hexdigest()


def _read_contents(tar: tarfile.TarFile, entry: tarfile.TarInfo) -> dict[str, Any]:
    source = tar.extractfile(entry) if entry.size <= CONTENTS_BYTES else None
    try:
        read = json.loads(source.read()) if source else None
    except (ValueError, RecursionError):
        read = None
    if not isinstance(read, dict) or read.get("format") != FORMAT:
        raise InvalidInput(CONTENTS, "is not that of a backup of agenthost")
    if read.get("version") != VERSION:
        raise InvalidInput(
            CONTENTS,
            f"is of version {str(read.get('version'))[:20]}, known is {VERSION}; "
            "install the agenthost that wrote it",
        )
    return read


def _listed(contents: dict[str, Any]) -> dict[str, tuple[int, str]]:
    try:
        return {
            str(each["path"]): (int(each["size"]), str(each["sha256"]))
            for each in contents["files"]
        }
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput(CONTENTS, "does not list its files") from error


def _check_database(
    archive: Path, database: Path, schemas: Sequence[SchemaSpec]
) -> None:
    try:
        with closing(
            sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)
        ) as known:
            problems = list(problems_of(known))
            present = dict(known.execute("SELECT name, version FROM schema_versions"))
    except sqlite3.Error as error:
        raise InvalidInput(archive.name, "holds no database of agenthost") from error
    if problems:
        raise InvalidInput(archive.name, f"its database is damaged: {problems[0]}")
    refuse_newer(schemas, present)


def problems_of(connection: sqlite3.Connection) -> Iterator[str]:
    """Look through a database; tell what is wrong with it."""
    for (verdict,) in connection.execute("PRAGMA integrity_check(3)"):
        if verdict != "ok":
            yield str(verdict)
    for table, *_ in connection.execute("PRAGMA foreign_key_check").fetchmany(1):
        yield f"rows of {table} refer to nothing"


def check_home(database: Path) -> list[str]:
    """Look through the database of a home, also while its daemon works on it.

    Raises:
        AgentHostError: It cannot be opened.
    """
    try:
        address = f"{database.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(address, uri=True)) as connection:
            return list(problems_of(connection))
    except sqlite3.DatabaseError as error:
        raise AgentHostError(f"the database cannot be read: {error}") from error
