"""A TOML file of the operator's own: its text, and where its keys stand."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import Any

from .lines import KeyLines
from .parse import KeyPath, TomlSyntax, parse_toml
from .problems import Problem

LARGEST = 1024 * 1024


class SettingsError(Exception):
    """The settings cannot be used; the text names place, key and remedy."""


class Source:
    """The text of a file; ``name`` stands in messages, never its folder.

    ``shared`` says that other users of the machine can read it.
    """

    def __init__(self, name: str, text: str, *, shared: bool = False) -> None:
        self.name = name
        self.text = text
        self.shared = shared

    @cached_property
    def _lines(self) -> KeyLines:
        return KeyLines(self.text)

    def where(self, path: KeyPath) -> str | None:
        """Name the line of a key, or of the nearest table around it."""
        line = self._lines.find(path)
        return f"{self.name} line {line}" if line else None

    def say(self, problem: Problem) -> str:
        """Name the place, the key and what is wrong with it."""
        place = self.where(problem.path) or self.name
        return f"{place}: {problem.key}: {problem.text}"

    def parse(self) -> dict[str, Any]:
        """Parse the text.

        Raises:
            SettingsError: It is no TOML; line, column and the key there are named.
        """
        try:
            return parse_toml(self.text)
        except TomlSyntax as error:
            line = self.text.split("\n")[error.line - 1]
            where = f"{self.name} line {error.line}, column {error.column}"
            raise SettingsError(
                f"{where}: {_key_in(line)}{error.problem}; correct the TOML there"
            ) from error


def read_source(file: Path) -> Source:
    """Read a file of at most 1 MiB; none is the same as an empty one.

    Raises:
        SettingsError: It cannot be read, is too large, or not UTF-8.
    """
    name = file.name
    try:
        with file.open("rb") as stream:
            data = stream.read(LARGEST + 1)
            shared = bool(os.fstat(stream.fileno()).st_mode & 0o044)
    except FileNotFoundError:
        return Source(name, "")
    except OSError as error:
        reason = error.strerror or "input/output error"
        raise SettingsError(
            f"{name} cannot be read: {reason}; check that it is a file you may read"
        ) from error
    if len(data) > LARGEST:
        raise SettingsError(f"{name} is larger than 1 MiB; make it smaller")
    return Source(name, _decode(name, data).replace("\r\n", "\n"), shared=shared)


def _decode(name: str, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SettingsError(
            f"{name} line {line}: not UTF-8 text; save the file as UTF-8"
        ) from error


def _key_in(line: str) -> str:
    key = line.partition("=")[0].strip() if "=" in line else ""
    return f"{key}: " if key.replace("_", "").replace(".", "").isalnum() else ""
