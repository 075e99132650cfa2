"""A workflow in a TOML document: what is wrong is said with its line."""

from __future__ import annotations

import re
from typing import Any

from agenthost_toml.source import SettingsError, Source
from agenthost_values.value_class import value_class

from .definition import Draft
from .reading import Faulty, known_of, read_workflow

SHOWN = 300
"""Characters of a line that tells of a file: keys may be of any length."""


_PART = re.compile(r"\[(\d+)\]|(\w+)")


class Unfit(Exception):
    """The document is no workflow; each line names place, key and remedy."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


@value_class
class Document:
    """A workflow as a document says it; ``known`` are the keys that say something."""

    draft: Draft
    warnings: tuple[str, ...]
    known: dict[str, Any]
    source: Source

    def located(self, told: str) -> str:
        """Put the line before what is told of a key, ``steps[0].mode: ...``."""
        key, _, _ = told.partition(": ")
        parts = (int(n) if n else word for n, word in _PART.findall(key))
        return f"{self.source.where(tuple(parts)) or self.source.name}: {told}"[:SHOWN]


def read_document(name: str, data: bytes) -> Document:
    """Read a TOML document; where it names no workflow, the file does.

    Args:
        name: The file's name, without its folder.
        data: What it holds.

    Raises:
        Unfit: It is no workflow.
    """
    try:
        source = Source(name, _text(name, data))
        written = source.parse()
        reading = read_workflow(written, name.removesuffix(".toml"))
    except SettingsError as error:
        raise Unfit([str(error)]) from None
    except Faulty as error:
        raise Unfit([source.say(each)[:SHOWN] for each in error.problems]) from None
    told = tuple(source.say(each)[:SHOWN] for each in reading.doubts)
    return Document(reading.draft, told, known_of(written), source)


def _text(name: str, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SettingsError(
            f"{name} line {line}: not UTF-8 text; save the file as UTF-8"
        ) from None
