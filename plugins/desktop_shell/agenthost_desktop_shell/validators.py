r"""Regular expressions in the syntax of Rust's ``regex``, run in linear time by RE2.

Rust's ``\d``, ``\w`` and ``\s`` know all of Unicode, RE2's know ASCII: they are
translated. What the two engines would read differently is refused rather than guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Protocol

MAX_LENGTH = 1000
MAX_MEMORY = 4 * 1024 * 1024

_SPACE = (
    r"\x09-\x0D\x20\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}"
    r"\x{202F}\x{205F}\x{3000}"
)
_NOT_SPACE = (
    r"\x00-\x08\x0E-\x1F\x21-\x{84}\x{86}-\x{9F}\x{A1}-\x{167F}\x{1681}-\x{1FFF}"
    r"\x{200B}-\x{2027}\x{202A}-\x{202E}\x{2030}-\x{205E}\x{2060}-\x{2FFF}"
    r"\x{3001}-\x{10FFFF}"
)
_WORD = r"\p{L}\p{M}\p{Nl}\p{Nd}\p{Pc}\x{24B6}-\x{24E9}\x{200C}\x{200D}"
_CLASSES = {"d": r"\p{Nd}", "w": _WORD, "s": _SPACE}
_INSIDE = {**_CLASSES, "D": r"\P{Nd}", "S": _NOT_SPACE}
_OUTSIDE = {
    **{name: f"[{body}]" for name, body in _CLASSES.items()},
    **{name.upper(): f"[^{body}]" for name, body in _CLASSES.items()},
}
_ESCAPES = re.compile(
    r"\\(?:[dDwWsSAzbBafnrtv]|[pP](?:[A-Z]|\{\^?[A-Za-z_]+\})"
    r"|x(?:[0-9A-Fa-f]{2}|\{[0-9A-Fa-f]{1,6}\})|[^A-Za-z0-9<>\s])"
)
_GROUP = re.compile(r"\(\?(?:P?<[A-Za-z_]\w*>|[imsU]*(?:-[imsU]+)?[:)])", re.ASCII)
_POSIX = re.compile(r"\[:\^?[a-z]+:\]")


class Pattern(Protocol):
    """A compiled pattern."""

    programsize: int

    def search(self, text: str) -> Any:
        """Find the pattern anywhere; None when it is not there."""
        ...

    def fullmatch(self, text: str) -> Any:
        """Match the whole text; None when it does not."""
        ...


def compile_linear(source: str) -> Pattern:
    """Compile RE2 syntax without logging.

    Raises:
        ValueError: RE2 refuses the pattern.
    """
    import re2  # type: ignore[import-untyped,import-not-found,unused-ignore]  # no stubs

    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_MEMORY
    try:
        pattern: Pattern = re2.compile(source, options)
    except re2.error as error:
        detail = error.args[0] if error.args else "unknown"
        text = (
            detail.decode("utf-8", "replace") if isinstance(detail, bytes) else detail
        )
        raise ValueError(f"invalid regular expression: {text}") from error
    return pattern


@lru_cache(maxsize=2048)
def compile_validator(source: str, *, raw: bool = False) -> Pattern:
    """Compile a validator: anchored on the whole text unless it is ``raw``.

    Raises:
        ValueError: The expression is invalid, too long, or needs backtracking.
    """
    if len(source) > MAX_LENGTH:
        raise ValueError(f"the regular expression is over {MAX_LENGTH} characters")
    translated = "".join(_translate(source))
    # Compiled alone first, so that "a)|(b" cannot close the group of the anchors.
    alone = compile_linear(translated)
    return alone if raw else compile_linear(f"^(?:{translated})$")


def _translate(source: str) -> Iterator[str]:
    position = 0
    while position < len(source):
        if source[position] == "[":
            piece, position = _class(source, position)
        else:
            piece, position = _outside(source, position)
        yield piece


def _outside(source: str, position: int) -> tuple[str, int]:
    if source[position] == "\\":
        return _escape(source, position, _OUTSIDE)
    if source.startswith("(?", position):
        group = _GROUP.match(source, position)
        if not group:
            raise ValueError(
                "look-around and special groups are not supported; "
                "use a plain group (…) or (?:…)"
            )
        return group.group(), group.end()
    return source[position], position + 1


def _escape(source: str, position: int, classes: dict[str, str]) -> tuple[str, int]:
    escape = _ESCAPES.match(source, position)
    if not escape:
        shown = source[position : position + 2]
        hint = "back-references" if shown[1:].isdigit() else "this escape"
        raise ValueError(f"{shown!r}: {hint} cannot be used; write it out")
    name = escape.group()[1:]
    if name == "W" and classes is _INSIDE:
        raise ValueError(r"'\W' inside a class is not supported; list the characters")
    return classes.get(name, escape.group()), escape.end()


def _class(source: str, start: int) -> tuple[str, int]:
    position = start + 2 if source.startswith("[^", start) else start + 1
    pieces = [source[start:position]]
    if source.startswith("]", position):
        pieces.append(r"\]")
        position += 1
    while position < len(source) and source[position] != "]":
        piece, position = _member(source, position)
        pieces.append(piece)
    if position >= len(source):
        raise ValueError("'[' is never closed; write '\\[' for the character itself")
    return "".join(pieces) + "]", position + 1


def _member(source: str, position: int) -> tuple[str, int]:
    if source[position] == "\\":
        return _escape(source, position, _INSIDE)
    if source[position] == "[":
        posix = _POSIX.match(source, position)
        if not posix:
            raise ValueError("classes inside classes are not supported; write '\\['")
        return posix.group(), posix.end()
    if source[position : position + 2] in {"&&", "--", "~~"}:
        raise ValueError("set operations in classes are not supported; escape them")
    return source[position], position + 1
