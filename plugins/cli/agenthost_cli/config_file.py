"""Change ``config.toml``: what is not changed stays, its comments and mode included."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import CommandError

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

FILE = "config.toml"


@contextmanager
def alone(home: Path) -> Iterator[None]:
    """Keep other changes of this home's file waiting.

    Raises:
        CommandError: The home cannot be used.
    """
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder = os.open(home, os.O_RDONLY)
    except OSError as error:
        raise CommandError(f"{home} cannot be used: {error.strerror}") from error
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def read(home: Path) -> str:
    """The text of the file; nothing when there is none.

    Raises:
        CommandError: It cannot be read.
    """
    try:
        return (home / FILE).read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{FILE} cannot be read: {error}") from error


def edited(text: str, edit: Callable[[TOMLDocument], None]) -> str:
    """Give the text with an edit made in it.

    Raises:
        CommandError: It is no TOML, or written in a way that cannot be followed.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
        edit(document)
        return document.as_string()
    except (TOMLKitError, TypeError, ValueError, AttributeError) as error:
        raise CommandError(
            f"{FILE} cannot be changed here: {error}; correct it, or edit it by hand"
        ) from error


def replace(home: Path, text: str) -> None:
    """Put a text in the place of the file, in one step; its mode stays.

    Raises:
        CommandError: The disk refused; the file is as it was.
    """
    # Where the file is a link, what it leads to is replaced.
    file = (home / FILE).resolve()
    new = file.with_name(f".{FILE}.new")
    try:
        mode = file.stat().st_mode & 0o777 if file.exists() else 0o600
        with suppress(FileNotFoundError):
            new.unlink()
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            os.fchmod(descriptor, mode)
            stream.write(text.encode())
            stream.flush()
            os.fsync(descriptor)
        new.replace(file)
        _sync_folder(file.parent)
    except OSError as error:
        with suppress(OSError):
            new.unlink()
        raise CommandError(f"{FILE} cannot be written: {error.strerror}") from error


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
