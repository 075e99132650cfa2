"""The syntax of permission identifiers: ``module:name``, bare for the application."""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_BYTES = 116
RESERVED_PREFIX = "tauri-plugin-"
CORE = "core:"
_ALLOWED = re.compile(r"[A-Za-z0-9:-]*\Z")
_PART = re.compile(r"[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*\Z")


@dataclass(frozen=True, slots=True)
class Identifier:
    """A permission or set: ``module`` is empty for the application's own."""

    module: str
    name: str

    def __str__(self) -> str:
        return qualify(self.module, self.name)


def qualify(module: str, name: str) -> str:
    """Write a name of a module as identifiers and commands write it."""
    return f"{module}:{name}" if module else name


def parse_identifier(text: str) -> Identifier:
    """Split an identifier at its last colon.

    Raises:
        ValueError: The text is no identifier; the message says which rule it breaks.
    """
    problem = _problem(text)
    if problem:
        raise ValueError(problem)
    module, _, name = text.rpartition(":")
    return Identifier(module, name)


def _problem(text: str) -> str:
    if not text:
        return "is empty; write module:permission"
    size = len(text.encode("utf-8", "surrogatepass"))
    rules = (
        (size > MAX_BYTES, f"is longer than {MAX_BYTES} bytes"),
        (
            text.startswith(RESERVED_PREFIX),
            f"starts with {RESERVED_PREFIX}; leave that prefix out",
        ),
        (
            not _ALLOWED.match(text),
            "holds more than ASCII letters, digits, hyphens and colons"
            + (f"; write {text.replace('_', '-')}" if "_" in text else ""),
        ),
        (
            text.count(":") > 1 and not text.startswith(CORE),
            "holds more than one colon, which only core: identifiers may",
        ),
        (
            not all(_PART.match(part) for part in text.split(":")),
            "has an empty part or a misplaced hyphen; write module:allow-command",
        ),
    )
    return next((problem for broken, problem in rules if broken), "")
