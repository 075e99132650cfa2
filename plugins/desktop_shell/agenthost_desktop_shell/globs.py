"""Globs of labels: ``*``, ``?``, ``[a-z]``, ``[!x]`` and ``**`` as a whole component.

The dialect of Rust's ``glob`` crate with its default options: the whole label, case
and all; ``*`` and ``?`` also stand for ``/``; braces and backslashes are ordinary.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from .validators import Pattern, compile_linear

SPECIAL = frozenset("*?[")
_SPECIAL = re.compile(r"[*?\[]")


def is_literal(glob: str) -> bool:
    """Tell whether a glob matches exactly itself."""
    return not SPECIAL.intersection(glob)


def literal_prefix(glob: str) -> str:
    """The text that every label the glob matches starts with."""
    return _SPECIAL.split(glob, maxsplit=1)[0]


def check_glob(glob: str) -> None:
    """Parse a glob.

    Raises:
        ValueError: The glob is malformed; the message names the remedy.
    """
    for _ in _tokens(glob):
        pass


@lru_cache(maxsize=4096)
def compile_glob(glob: str) -> Pattern:
    """Compile a glob to a pattern for ``fullmatch``; an empty one matches nothing.

    Raises:
        ValueError: The glob is malformed.
    """
    body = "".join(_tokens(glob))
    return compile_linear(f"(?s){body}" if glob else r"[^\x00-\x{10FFFF}]")


def matches(glob: str, label: str) -> bool:
    """Tell whether the glob matches the whole label."""
    start = literal_prefix(glob)
    if start == glob:
        return bool(glob) and glob == label
    # Few globs get past their first letters: the others are never compiled.
    return label.startswith(start) and compile_glob(glob).fullmatch(label) is not None


def _tokens(glob: str) -> Iterator[str]:
    position = 0
    while position < len(glob):
        character = glob[position]
        if character == "*":
            token, position = _star(glob, position)
        elif character == "[":
            token, position = _class(glob, position)
        else:
            token = "." if character == "?" else _quoted(character)
            position += 1
        yield token


def _star(glob: str, start: int) -> tuple[str, int]:
    end = start
    while end < len(glob) and glob[end] == "*":
        end += 1
    if end - start == 1:
        return ".*", end
    opens = start == 0 or glob[start - 1] == "/"
    closes = end == len(glob) or glob[end] == "/"
    if end - start > 2 or not (opens and closes):
        raise ValueError(
            "'**' must be a whole path component, as in 'x/**'; write '*' instead"
        )
    if end == len(glob):
        return ".*", end
    return "(?:.*/)?", end + 1


def _class(glob: str, start: int) -> tuple[str, int]:
    negated = glob[start + 1 : start + 2] == "!"
    first = start + 2 if negated else start + 1
    # The first character may itself be "]".
    end = glob.find("]", first + 1)
    if end < 0:
        raise ValueError("'[' is never closed; write '[[]' for the character itself")
    body = "".join(_members(glob[first:end]))
    if not body:
        return (".", end + 1) if negated else (r"[^\x00-\x{10FFFF}]", end + 1)
    return f"[{'^' if negated else ''}{body}]", end + 1


def _members(text: str) -> Iterator[str]:
    position = 0
    while position < len(text):
        if text[position + 1 : position + 2] == "-" and position + 2 < len(text):
            low, high = text[position], text[position + 2]
            if low <= high:
                yield f"{_quoted(low)}-{_quoted(high)}"
            position += 3
        else:
            yield _quoted(text[position])
            position += 1


def _quoted(character: str) -> str:
    return f"\\x{{{ord(character):x}}}"
