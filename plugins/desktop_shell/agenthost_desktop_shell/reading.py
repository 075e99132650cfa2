"""From bytes to values: JSON and TOML, with everything hostile refused early."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

from agenthost_toml.parse import TomlSyntax, parse_toml
from agenthost_toml.problems import dotted

from .findings import CapabilityError, Finding, Json, Path, is_unicode, shorten
from .positions import MAX_DEPTH, duplicate_key, line_of

MAX_BYTES = 1024 * 1024
# tomllib is the slower reader by far.
MAX_TOML_BYTES = 256 * 1024
# The tables of a whole application, which its build writes.
MAX_TABLE_BYTES = 8 * 1024 * 1024


_OFFSET = re.compile(r" near (\d+)")


@dataclass(frozen=True, slots=True)
class Document:
    """A file's value, and its text for the lines of errors ("" without a file).

    ``at`` leads to the value where it is only a part of the text.
    """

    value: Json
    name: str = ""
    text: str = ""
    at: Path = ()

    @property
    def toml(self) -> bool:
        """Whether the file is TOML; anything else is JSON."""
        return self.name.endswith(".toml")


def read_file(path: FilePath, limit: int = MAX_BYTES, name: str = "") -> Document:
    """Read a file; its extension says whether it is TOML, JSON5 or JSON.

    ``name`` is what findings call it; the path as it is given when left out.

    Raises:
        CapabilityError: The file cannot be read or parsed.
    """
    name = name or str(path)
    try:
        with path.open("rb") as stream:
            content = stream.read(limit + 1)
    except OSError as error:
        raise _refuse(name, f"cannot be read: {error.strerror}") from error
    return read_bytes(content, name, limit)


def read_bytes(content: bytes, name: str, limit: int = MAX_BYTES) -> Document:
    """Parse a file's content.

    Raises:
        CapabilityError: It is too large, not UTF-8, malformed, nested too deeply, or
            holds a key twice or a value that JSON has not.
    """
    if name.endswith(".toml"):
        limit = MAX_TOML_BYTES
    if len(content) > limit:
        raise _refuse(name, f"is over {limit} bytes; split the file")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _refuse(name, "is not UTF-8 text", line) from error
    if text.startswith("\ufeff"):
        raise _refuse(name, "starts with a byte order mark; save it without one", 1)
    parse = {".toml": _parse_toml, ".json5": _parse_json5}
    value = parse.get(FilePath(name).suffix, _parse_json)(text, name)
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
        if not is_unicode("".join(keys)) or not is_unicode("".join(texts)):
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
        return (
            "" if all(map(is_unicode, item)) else "has a key that is not Unicode text"
        )
    if isinstance(item, str):
        return "" if is_unicode(item) else "is not Unicode text: it holds half a pair"
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
        problem = f"is not JSON: {error.msg}{_json5_hint(text)}"
        raise _refuse(name, problem, error.lineno) from error
    except _Duplicate as error:
        key, line = duplicate_key(text)
        problem = f"the key {shorten(key)!r} stands twice in one object"
        raise _refuse(name, problem, line) from error
    except ValueError as error:
        raise _refuse(name, f"cannot be parsed: {shorten(str(error))}") from error
    return value


def _parse_json5(text: str, name: str) -> Json:
    import pyjson5

    try:
        value: Json = pyjson5.decode(text, maxdepth=MAX_DEPTH)
    except pyjson5.Json5NestingTooDeep as error:
        raise _refuse(name, f"is nested deeper than {MAX_DEPTH} levels") from error
    except (pyjson5.Json5DecoderException, ValueError) as error:
        told = str(error.args[0]) if error.args else "cannot be parsed"
        near = _OFFSET.search(told)
        line = line_of(text, int(near.group(1))) if near else None
        raise _refuse(name, f"is not JSON5: {shorten(told)}", line) from error
    key, line = duplicate_key(text)
    if line:
        problem = f"the key {shorten(key)!r} stands twice in one object"
        raise _refuse(name, problem, line)
    return value


def _json5_hint(text: str) -> str:
    """What to do about comments, trailing commas and the like in a JSON file."""
    try:
        _parse_json5(text, "")
    except CapabilityError:
        return ""
    return "; it is JSON5: name it .json5, or take comments and trailing commas out"


def _parse_toml(text: str, name: str) -> Json:
    try:
        return parse_toml(text)
    except TomlSyntax as error:
        problem = f"cannot be parsed: {shorten(error.problem)}"
        raise _refuse(name, problem, error.line) from error


def _refuse(name: str, problem: str, line: int | None = None) -> CapabilityError:
    return CapabilityError([Finding(problem, file=name, line=line)])
