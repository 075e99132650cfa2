"""Change ``config.toml``: what is not changed stays, its comments and mode included."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from agenthost_toml import writing

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
    with ExitStack() as stack:
        try:
            stack.enter_context(writing.alone(home))
        except OSError as error:
            raise CommandError(f"{home} cannot be used: {error.strerror}") from error
        yield


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
    try:
        writing.replace(home / FILE, text)
    except OSError as error:
        raise CommandError(f"{FILE} cannot be written: {error.strerror}") from error
