"""Parse TOML that may come from a stranger."""

from __future__ import annotations

import re
import tomllib
from typing import Any

KeyPath = tuple[str | int, ...]

DEEPEST = 64
TOO_DEEP = f"nested deeper than {DEEPEST} levels"

# tomllib spends quadratic time on one very long dotted key
_LONG_KEY = re.compile(
    r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){64}"""
)
_PLACE = re.compile(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", re.S)


class TomlSyntax(Exception):
    """The text is no TOML; ``line`` and ``column`` count from 1."""

    def __init__(self, line: int, column: int, problem: str) -> None:
        super().__init__(f"line {line}, column {column}: {problem}")
        self.line = line
        self.column = column
        self.problem = problem


def parse_toml(text: str) -> dict[str, Any]:
    """Parse a document that may come from a stranger.

    Raises:
        TomlSyntax: It is malformed, or nested too deeply.
    """
    if long_key := _LONG_KEY.search(text):
        raise _at(text, long_key.start(), TOO_DEEP)
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _syntax(text, str(error)) from error
    except RecursionError as error:
        raise TomlSyntax(1, 1, TOO_DEEP) from error
    except ValueError as error:
        # Python's own limit; tomllib lets it through without a place.
        raise TomlSyntax(1, 1, "a whole number has too many digits") from error
    if _deeper_than(document, DEEPEST):
        raise TomlSyntax(1, 1, TOO_DEEP)
    return document


def _at(text: str, offset: int, problem: str) -> TomlSyntax:
    start = text.rfind("\n", 0, offset) + 1
    return TomlSyntax(text.count("\n", 0, offset) + 1, offset - start + 1, problem)


def _syntax(text: str, message: str) -> TomlSyntax:
    match = _PLACE.fullmatch(message)
    if match is None:
        return TomlSyntax(1, 1, message)
    if match[2] is None:
        return _at(text, len(text.rstrip()), f"{match[1]}, but the text ends here")
    return TomlSyntax(int(match[2]), int(match[3]), match[1])


def _deeper_than(document: object, levels: int) -> bool:
    layer: list[Any] = [document]
    for _ in range(levels):
        layer = [child for value in layer for child in _children(value)]
        if not layer:
            return False
    return True


def _children(value: object) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
