"""Find uses of what is deprecated in the source of plugins."""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import islice
from pathlib import Path
from types import ModuleType

from agenthost import PluginState

MOST_FILES = 1_000
MOST_WARNINGS = 20
"""For one plugin: whoever mends these sees the rest at the next start."""


@dataclass(frozen=True, slots=True)
class Deprecated:
    """A row of the table; ``name`` is a hook, ``Spec.field`` or a name of agenthost."""

    name: str
    since: str
    removed_in: str
    instead: str


def table() -> tuple[Deprecated, ...]:
    """Read the table."""
    text = files(__package__).joinpath("deprecated.toml").read_text("utf-8")
    return tuple(Deprecated(**row) for row in tomllib.loads(text)["deprecated"])


def warnings_of(states: Iterable[PluginState], rows: Sequence[Deprecated]) -> list[str]:
    """Tell what each plugin uses; a file that cannot be read is passed over."""
    return [
        warning
        for state in states
        for warning in islice(_of_plugin(state, rows), MOST_WARNINGS)
    ]


def uses(source: str, rows: Sequence[Deprecated]) -> Iterator[tuple[int, Deprecated]]:
    """Find the lines that use something of the table, from top to bottom.

    Raises:
        SyntaxError: It is not Python.
    """
    by_name = {row.name: row for row in rows}
    found = (
        (line, by_name[name])
        for node in ast.walk(ast.parse(source))
        for line, name in _names(node)
        if name in by_name
    )
    yield from sorted(found, key=lambda each: each[0])


def _of_plugin(state: PluginState, rows: Sequence[Deprecated]) -> Iterator[str]:
    for shown, path in islice(_sources(state.entry.load()), MOST_FILES):
        try:
            found = list(uses(path.read_text("utf-8"), rows))
        except (OSError, SyntaxError, ValueError, RecursionError):
            continue
        for line, row in found:
            yield (
                f"{state.key} uses {row.name} ({shown}, line {line}), deprecated since "
                f"{row.since} and removed in {row.removed_in}; use {row.instead}"
            )


def _sources(plugin: object) -> Iterator[tuple[Path, Path]]:
    """Each source file of a plugin: as it is shown, and where it is."""
    module: object = plugin
    if not isinstance(plugin, ModuleType):
        module = sys.modules.get(type(plugin).__module__)
    file = getattr(module, "__file__", None)
    if file is None:
        return
    path = Path(file)
    if not hasattr(module, "__path__"):
        yield Path(path.name), path
        return
    for inner in sorted(path.parent.rglob("*.py")):
        yield inner.relative_to(path.parent.parent), inner


def _names(node: ast.AST) -> Iterator[tuple[int, str]]:
    """What a piece of source uses of agenthost, as far as its text tells."""
    match node:
        case ast.ImportFrom(module="agenthost", names=names, lineno=line):
            yield from ((line, alias.name) for alias in names)
        case ast.Attribute(value=ast.Name(id="agenthost"), attr=name, lineno=line):
            yield line, name
        case ast.FunctionDef(name=name, lineno=line) if _is_hook(node):
            yield line, name
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            for keyword in node.keywords:
                yield keyword.value.lineno, f"{name}.{keyword.arg}"


def _is_hook(function: ast.FunctionDef) -> bool:
    marks = [ast.unparse(mark) for mark in function.decorator_list]
    return any("hookimpl" in mark for mark in marks)
