"""From bytes to values: JSON and TOML, with everything hostile refused early."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

from agenthost_toml.parse import TomlSyntax, parse_toml
from agenthost_toml.problems import dotted

from .findings import CapabilityError, Finding, Json, Path, shorten
from .positions import MAX_DEPTH, duplicate_key

MAX_BYTES = 1024 * 1024
# tomllib is the slower reader by far.
MAX_TOML_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class Document:
    """A file's value, and its text for the lines of errors ("" without a file)."""

    value: Json
    name: str = ""
    text: str = ""

    @property
    def toml(self) -> bool:
        """Whether the file is TOML; anything else is JSON."""
        return self.name.endswith(".toml")


def read_file(path: FilePath) -> Document:
    """Read a capability file; its extension says whether it is TOML or JSON.

    Raises:
        CapabilityError: The file cannot be read or parsed.
    """
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise _refuse(path.name, f"cannot be read: {error.strerror}") from error
    return read_bytes(content, path.name)


def read_bytes(content: bytes, name: str) -> Document:
    """Parse a file's content.

    Raises:
        CapabilityError: It is too large, not UTF-8, malformed, nested too deeply, or
            holds a key twice or a value that JSON has not.
    """
    limit = MAX_TOML_BYTES if name.endswith(".toml") else MAX_BYTES
    if len(content) > limit:
        raise _refuse(name, f"is over {limit} bytes; split the file")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _refuse(name, "is not UTF-8 text", line) from error
    if text.startswith("\ufeff"):
        raise _refuse(name, "starts with a byte order mark; save it without one", 1)
    parse = _parse_toml if name.endswith(".toml") else _parse_json
    value = parse(text, name)
    check_value(value, name)
    return Document(value, name, text)


def check_value(value: Json, name: str = "") -> None:
    """Refuse values that no capability file can hold, however they were parsed.

    Raises:
        CapabilityError: Too deep, not JSON, not finite, or not Unicode.
    """
    if _sound(value):
        return
    path, item, problem = _first_problem(value)
    steps = tuple(
        step if isinstance(step, int) else str(shorten(step)) for step in path
    )
    shown = shorten(item) if isinstance(item, str) else None
    finding = Finding(problem, field=dotted(steps[:8]), value=shown, file=name)
    raise CapabilityError([finding])


_JSON_TYPES = frozenset({dict, list, str, int, float, bool, type(None)})


def _sound(value: Json) -> bool:
    """Check a whole layer at once: files may hold a million values."""
    layer: list[Any] = [value]
    for _ in range(MAX_DEPTH + 1):
        objects = [item for item in layer if type(item) is dict]
        keys = [key for item in objects for key in item]
        texts = [item for item in layer if type(item) is str]
        if not _JSON_TYPES.issuperset(map(type, layer)) or {*map(type, keys)} - {str}:
            return False
        if not _unicode("".join(keys)) or not _unicode("".join(texts)):
            return False
        if not all(_finite(item) for item in layer if type(item) in {int, float}):
            return False
        layer = [inner for item in objects for inner in item.values()] + [
            inner for item in layer if type(item) is list for inner in item
        ]
        if not layer:
            return True
    return False


def _first_problem(value: Json) -> tuple[Path, Json, str]:
    stack: list[tuple[Path, Any]] = [((), value)]
    while stack:
        path, item = stack.pop()
        if len(path) > MAX_DEPTH:
            return path, item, f"is nested deeper than {MAX_DEPTH} levels"
        if problem := _problem(item):
            return path, item, problem
        if isinstance(item, Mapping):
            stack.extend(((*path, key), inner) for key, inner in item.items())
        elif isinstance(item, list):
            stack.extend(((*path, place), inner) for place, inner in enumerate(item))
    return (), value, "cannot be used"


def _problem(item: object) -> str:
    if isinstance(item, Mapping):
        return "" if all(map(_unicode, item)) else "has a key that is not Unicode text"
    if isinstance(item, str):
        return "" if _unicode(item) else "is not Unicode text: it holds half a pair"
    if item is None or isinstance(item, bool | list):
        return ""
    if isinstance(item, int | float):
        return "" if _finite(item) else "is not a finite number"
    return f"is a {type(item).__name__}, which JSON has not; write it as a string"


def _finite(number: float) -> bool:
    try:
        return math.isfinite(float(number))
    except OverflowError:
        return False


def _unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class _Duplicate(ValueError):
    pass


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _Duplicate
    return found


def _constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _parse_json(text: str, name: str) -> Json:
    try:
        value: Json = json.loads(
            text, object_pairs_hook=_unique, parse_constant=_constant
        )
    except RecursionError as error:
        raise _refuse(name, f"is nested deeper than {MAX_DEPTH} levels") from error
    except json.JSONDecodeError as error:
        raise _refuse(name, f"is not JSON: {error.msg}", error.lineno) from error
    except _Duplicate as error:
        key, line = duplicate_key(text)
        problem = f"the key {shorten(key)!r} stands twice in one object"
        raise _refuse(name, problem, line) from error
    except ValueError as error:
        raise _refuse(name, f"cannot be parsed: {shorten(str(error))}") from error
    return value


def _parse_toml(text: str, name: str) -> Json:
    try:
        return parse_toml(text)
    except TomlSyntax as error:
        problem = f"cannot be parsed: {shorten(error.problem)}"
        raise _refuse(name, problem, error.line) from error


def _refuse(name: str, problem: str, line: int | None = None) -> CapabilityError:
    return CapabilityError([Finding(problem, file=name, line=line)])
