"""Which line of a file a value stands on: looked up only when there is an error."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from .findings import Path

# JSON, JSON5, and the arrays and inline tables of TOML.
_TOKEN = re.compile(
    r"""[\[\]{}:,=]|"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'"""
    r"""|//[^\n]*+|\#[^\n]*+|/\*.*?\*/|[^\s\[\]{}:,="'/\#]++""",
    re.DOTALL,
)
_COMMENTS = ("//", "/*", "#")
MAX_DEPTH = 64
_HEADER = re.compile(r"\s*(\[\[?)\s*([^\]\n]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""\s*("[^"\n]*"|'[^'\n]*'|[\w.-]+)\s*=""")


class _Level:
    """An open object or array: the key or index of its present member."""

    __slots__ = ("array", "key")

    def __init__(self, *, array: bool) -> None:
        self.array = array
        self.key: str | int | None = 0 if array else None


def json_positions(text: str, start: int = 0) -> Iterator[tuple[Path, int]]:
    """Yield the path and offset of every value of a valid text, in its order."""
    levels: list[_Level] = []
    for token in _TOKEN.finditer(text, start):
        mark = token.group()
        level = levels[-1] if levels else None
        if mark.startswith(_COMMENTS):
            continue
        if mark in "]}":
            levels.pop()
            if not levels:
                return
        elif mark == ",":
            _next_member(levels[-1])
        elif level is not None and level.key is None:
            level.key = _key(mark)
        elif mark not in ":=":
            yield (
                tuple(open_.key for open_ in levels if open_.key is not None),
                (token.start()),
            )
            if mark in "[{":
                if len(levels) == MAX_DEPTH:
                    return
                levels.append(_Level(array=mark == "["))


def _key(mark: str) -> str:
    if mark.startswith('"'):
        return str(json.loads(mark, strict=False))
    return mark[1:-1] if mark.startswith("'") else mark


def _next_member(level: _Level) -> None:
    level.key = level.key + 1 if isinstance(level.key, int) else None


def duplicate_key(text: str) -> tuple[str, int]:
    """Find the first key that its object already holds, and its line; 0 for none."""
    seen: set[Path] = set()
    for path, offset in json_positions(text):
        if path in seen:
            return str(path[-1]), line_of(text, offset)
        seen.add(path)
    return "", 0


def line_of(text: str, offset: int) -> int:
    """Count the lines down to an offset."""
    return text.count("\n", 0, offset) + 1


def json_lines(text: str, paths: Iterable[Path]) -> dict[Path, int]:
    """Find the lines of these paths; a path that is not there has its parent's."""
    wanted = {path[:depth] for path in paths for depth in range(len(path) + 1)}
    found: dict[Path, int] = {}
    for path, offset in json_positions(text):
        if path in wanted:
            found[path] = line_of(text, offset)
            if len(found) == len(wanted):
                break
    return found


def toml_lines(text: str, paths: Iterable[Path]) -> dict[Path, int]:
    """Find the lines of tables and keys of a TOML text, and of what paths lead to."""
    found: dict[Path, int] = {}
    starts: dict[Path, int] = {}
    table: Path = ()
    counts: dict[Path, int] = {}
    quoted = False
    offset = after = 0
    for number, line in enumerate(text.split("\n"), 1):
        offset, after = after, after + len(line) + 1
        inside = quoted
        quoted ^= (line.count('"""') + line.count("'''")) % 2 == 1
        if inside:
            continue
        header = _HEADER.match(line)
        key = _KEY.match(line)
        if key:
            found.setdefault((*table, *_keys(key.group(1))), number)
            starts.setdefault((*table, *_keys(key.group(1))), offset + key.end())
        elif header:
            table = _table(header, counts)
            found.setdefault(table, number)
    bases = {
        next((path[:n] for n in range(len(path), 0, -1) if path[:n] in starts), ())
        for path in paths
        if path not in found
    }
    for base in bases - {()}:
        for inner, place in json_positions(text, starts[base]):
            found.setdefault((*base, *inner), line_of(text, place))
    return found


def _table(header: re.Match[str], counts: dict[Path, int]) -> Path:
    path: Path = ()
    for key in _keys(header.group(2)):
        path = (*path, key)
        if path in counts:
            path = (*path, counts[path])
    if header.group(1) == "[[":
        base = path[:-1] if path and isinstance(path[-1], int) else path
        counts[base] = counts.get(base, -1) + 1
        return (*base, counts[base])
    return path


def _keys(dotted: str) -> list[str]:
    return [part.strip().strip("\"'") for part in dotted.split(".")]


def nearest_line(lines: dict[Path, int], path: Path) -> int | None:
    """The line of the path, or of the nearest value that encloses it."""
    for depth in range(len(path), -1, -1):
        if path[:depth] in lines:
            return lines[path[:depth]]
    return None
