"""What an application's sources say: its own commands, and labels that they name.

Read as text, tolerantly: no compiler is asked, and what cannot be read is left out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

MAX_FILE = 1024 * 1024
MAX_FILES = 5_000
_CODE = frozenset({".rs", ".ts", ".tsx", ".js", ".jsx", ".mjs", ".vue", ".svelte"})
_SKIPPED = frozenset({"node_modules", "target", "dist", "build", "gen"})
_HANDLER = re.compile(r"\bgenerate_handler!\s*[\[({]([^\])}]*)[\])}]")
_NOISE = re.compile(r"//[^\n]*|/\*.*?\*/|#!?\[[^\]\n]*\]", re.DOTALL)
_LAST = re.compile(r"(\w+)\s*\Z")


class Handler(NamedTuple):
    """A command that the sources register, and where."""

    command: str
    file: Path
    line: int


def handlers(root: Path) -> list[Handler]:
    """List the commands of every ``generate_handler!`` in ``src/``, once each."""
    found: dict[str, Handler] = {}
    for file, text in _texts(root / "src", frozenset({".rs"})):
        for handler in _handlers(file, _NOISE.sub(_blank, text)):
            found.setdefault(handler.command, handler)
    return list(found.values())


def _handlers(file: Path, text: str) -> Iterator[Handler]:
    for macro in _HANDLER.finditer(text):
        offset = macro.start(1)
        for item in macro.group(1).split(","):
            name = _LAST.search(item)
            if name:
                line = text.count("\n", 0, offset + name.start()) + 1
                yield Handler(name.group(1), file, line)
            offset += len(item) + 1


def named(root: Path, labels: set[str]) -> set[str]:
    """Find which texts stand in quotes somewhere in the sources."""
    left = set(labels)
    for folder in (root / "src", root.parent / "src"):
        for _, text in _texts(folder, _CODE):
            left -= {label for label in left if _quoted(label, text)}
            if not left:
                return labels
    return labels - left


def _quoted(label: str, text: str) -> bool:
    return any(f"{quote}{label}" in text for quote in "\"'`")


def _texts(folder: Path, endings: frozenset[str]) -> Iterator[tuple[Path, str]]:
    count = 0
    for place, folders, names in os.walk(folder):
        folders[:] = written(folders)
        for name in sorted(names):
            file = Path(place) / name
            if file.suffix in endings and count < MAX_FILES:
                count += 1
                yield file, _text(file)


def written(folders: Iterable[str]) -> list[str]:
    """Those of a folder's folders that people write, no build nor package manager."""
    return sorted(f for f in folders if f not in _SKIPPED and f[0] != ".")


def _text(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            return stream.read(MAX_FILE).decode("utf-8", "replace")
    except OSError:
        return ""


def _blank(found: re.Match[str]) -> str:
    """Leave the lines where they are."""
    return "\n" * found.group().count("\n")
