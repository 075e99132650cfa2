"""On which line of a TOML document a key stands."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

from .parse import KeyPath

_CLOSERS = ("]", "}", '"""', "'''")


class KeyLines:
    """The lines of a well-formed document's keys, counted from 1."""

    def __init__(self, text: str) -> None:
        self._lines: dict[KeyPath, int] = {}
        self._lists: dict[KeyPath, int] = {}
        prefix: KeyPath = ()
        for line, source, parsed in _statements(text):
            if source.lstrip().startswith("["):
                prefix = self._enter(parsed, is_list=source.lstrip().startswith("[["))
                for end in range(1, len(prefix) + 1):
                    self._lines.setdefault(prefix[:end], line)
            else:
                self._note(prefix, parsed, line)

    def find(self, path: KeyPath) -> int | None:
        """The line of the key, else of the nearest table around it."""
        for end in range(len(path), 0, -1):
            if path[:end] in self._lines:
                return self._lines[path[:end]]
        return None

    def _enter(self, parsed: Any, *, is_list: bool) -> KeyPath:
        path: KeyPath = ()
        while isinstance(parsed, dict) and parsed:
            key, parsed = next(iter(parsed.items()))
            path = (*path, key)
            last = not (isinstance(parsed, dict) and parsed)
            if last and is_list:
                self._lists[path] = self._lists.get(path, -1) + 1
            if path in self._lists:
                path = (*path, self._lists[path])
        return path

    def _note(self, prefix: KeyPath, parsed: Any, line: int) -> None:
        items = parsed.items() if isinstance(parsed, dict) else enumerate(parsed)
        for key, value in items:
            path = (*prefix, key)
            self._lines.setdefault(path, line)
            if isinstance(value, dict | list):
                self._note(path, value, line)


def _statements(text: str) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Yield line, source and content: the shortest runs of lines that parse."""
    start, source = 0, ""
    for number, line in enumerate(text.split("\n"), 1):
        if source:
            source = f"{source}\n{line}"
            if not any(closer in line for closer in _CLOSERS):
                continue
        else:
            start, source = number, line
        try:
            parsed = tomllib.loads(source)
        except tomllib.TOMLDecodeError:
            continue
        if parsed:
            yield start, source, parsed
        source = ""
