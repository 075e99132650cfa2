"""Write docs/configuration.md from the models of the configuration.

A key needs a description in its model, and a test marked with its name:
``@pytest.mark.setting("turns.max_seconds")``. ``--check`` writes nothing and fails when
the page is stale; with or without it, a key without either fails.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from agenthost import ConfigSection, Secret, find_plugins
from agenthost.config_model import Config
from agenthost_toml.problems import bare
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "configuration.md"
TESTS = ROOT / "tests"
PREFIX = "AGENTHOST_"
HEAD = """# Configuration

`config.toml` in the home (`AGENTHOST_HOME`, else `~/.agenthost`), and the environment
over it: each key has a variable, tables are joined by `__`. Lists in a variable are
comma separated or JSON, tables JSON; an empty variable counts as not set. A wrong value
stops the start, naming line, key and remedy; an unknown key is a warning.
`AGENTHOST_VAULT_KEY` is the key of the vault, see [running.md](running.md).

    agenthost config show [KEY]      what is in force, and where it comes from
    agenthost config get KEY         one value
    agenthost config set KEY VALUE   into config.toml, if a start would accept it
    agenthost config check           what a start would say; exits 1 if it would refuse

Secrets are masked everywhere; `set api_key -` reads one from standard input. `set`
keeps comments and the file's mode. A section whose plugin is off, or is not there yet,
has no effect, which the start says. Plugins of others bring sections of their own with
the hook [register_config](hooks.md#register_config).

This page is written by `tools/config_docs.py`; each key names a test of its effect.
"""
WORDS = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "`true` or `false`",
    Path: "path",
    Secret: "secret text",
    Any: "anything",
}


@dataclass(frozen=True, slots=True)
class Key:
    """A key as the page shows it."""

    name: str
    type: str
    default: str
    description: str

    @property
    def variable(self) -> str:
        """Its environment form; an element of a list has none."""
        if "[]" in self.name:
            return ""
        return f"`{PREFIX}{self.name.upper().replace('.', '__')}`"


def main() -> int:
    """Write the page, or with ``--check`` compare it."""
    shown = effects(TESTS)
    lacking = list(lacks(shown))
    for lack in lacking:
        print(lack)
    text = page(shown)
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        lacking.append("stale")
        print(f"{PAGE.name} is stale; run: .venv/bin/python tools/config_docs.py")
    return 1 if lacking else 0


def sections() -> Iterator[tuple[str, str, type[BaseModel]]]:
    """The sections: the kernel's own first, then the plugins' by name, with owner."""
    yield "", "agenthost itself", Config
    found: list[tuple[str, str, type[BaseModel]]] = []
    for state in find_plugins():
        plugin = state.entry.load() if state.first_party else None
        offered: Iterable[ConfigSection] = getattr(plugin, "register_config", tuple)()
        found += [(each.name, f"`{state.key}`", each.model) for each in offered]
    yield from sorted(found, key=lambda each: each[0])


def keys_of(model: type[BaseModel], at: str = "") -> Iterator[Key]:
    """List the keys of a model, those of tables below it too."""
    told = docstrings(model)
    for name, field in model.model_fields.items():
        annotation: Any = field.annotation
        place = at if name == "root" else f"{at}.{name}".removeprefix(".")
        table, inside = below(annotation, place)
        plain = isinstance(annotation, type) and issubclass(annotation, BaseModel)
        if table is None or not (plain or name == "root"):
            said = field.description or told.get(name, "")
            yield Key(place, kind(field), default(field), " ".join(said.split()))
        if table is not None:
            yield from keys_of(table, inside)


def below(annotation: Any, place: str) -> tuple[type[BaseModel] | None, str]:
    """Find the model of the tables that a key holds, and where their keys stand."""
    annotation = bare(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, place
    arguments = get_args(annotation)
    if get_origin(annotation) in (Annotated, Union, UnionType):
        return below(arguments[0], place)
    if get_origin(annotation) is dict:
        return below(arguments[1], f"{place}.<name>")
    if get_origin(annotation) in (tuple, list):
        return below(arguments[0], f"{place}[]")
    return None, place


def docstrings(model: type[BaseModel]) -> Mapping[str, str]:
    """Read the docstrings below the fields of a class."""
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    body = node.body if isinstance(node, ast.ClassDef) else []
    found = {}
    for field, after in pairwise(body):
        match field, after:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str() as text)),
            ):
                found[name] = text
    return found


def kind(field: FieldInfo) -> str:
    """Say what a key takes, with its bounds."""
    said = words(field.annotation)
    bounds: dict[str, Any] = {}
    for limit in field.metadata:
        bounds |= {
            n: getattr(limit, n) for n in ("ge", "gt", "le") if hasattr(limit, n)
        }
    if "gt" in bounds:
        said += f" above {bounds['gt']:,}"
    elif "ge" in bounds:
        said += f" from {bounds['ge']:,}"
    if "le" in bounds and bounds["le"] < 2**53:
        said += f" to {bounds['le']:,}"
    return said


def words(annotation: Any) -> str:
    """Say what a type takes."""
    annotation = bare(annotation)
    arguments = [each for each in get_args(annotation) if each not in (NoneType, ...)]
    match get_origin(annotation):
        case origin if origin is Literal:
            return " or ".join(f"`{each}`" for each in arguments)
        case origin if origin in (Union, UnionType, Annotated):
            return words(arguments[0])
        case origin if origin in (tuple, list):
            return f"list of {words(arguments[0])}"
        case origin if origin is dict:
            return f"table of {words(arguments[1])}"
    return WORDS.get(annotation, "table")


def default(field: FieldInfo) -> str:
    """Write a default as TOML has it; nothing where there is none."""
    value = field.get_default(call_default_factory=True, validated_data={})
    if value is PydanticUndefined:
        return "must be given"
    if value in (None, (), {}):
        return ""
    return f"`{json.dumps(value, default=str)}`"


def effects(tests: Path) -> dict[str, str]:
    """Find by key the first test that is marked to show its effect."""
    found: dict[str, str] = {}
    for path in sorted(tests.rglob("test_*.py")):
        source = path.read_text(encoding="utf-8")
        # To parse them all takes a second; most have no mark.
        tree = ast.parse(source if "mark.setting(" in source else "")
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for key in _marked(node):
                    name = f"{path.relative_to(tests)}::{node.name}"
                    found.setdefault(key, f"`{name}`")
    return found


def _marked(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    for decorator in node.decorator_list:
        match decorator:
            case ast.Call(func=ast.Attribute(attr="setting"), args=arguments):
                yield from (ast.literal_eval(argument) for argument in arguments)


def lacks(shown: Mapping[str, str]) -> Iterator[str]:
    """Name the keys without a description or a test, and tests of no key."""
    names = set()
    for name, _, model in sections():
        for key in keys_of(model, name):
            names.add(key.name)
            if not key.description:
                yield f"{key.name}: describe it in its model"
            if key.name not in shown:
                yield f"{key.name}: mark a test of its effect with pytest.mark.setting"
    for name in sorted(shown.keys() - names):
        yield f"{shown[name]}: there is no key {name}"


def page(shown: Mapping[str, str]) -> str:
    """Render the whole page."""
    parts = [HEAD]
    for name, owner, model in sections():
        title = f"[{name}]" if name else "Keys of the kernel"
        about = " ".join((inspect.getdoc(model) or "").replace("``", "`").split())
        rows = [_row(key, shown) for key in keys_of(model, name)]
        parts.append(
            f"## {title}\n\n{about} Read by {owner}.\n\n"
            "| Key | Takes | Default | Variable | What it does | Test of it |\n"
            "|---|---|---|---|---|---|\n" + "\n".join(rows) + "\n"
        )
    return "\n".join(parts)


def _row(key: Key, shown: Mapping[str, str]) -> str:
    said = key.description.replace("``", "`")
    test = shown.get(key.name, "")
    cells = (f"`{key.name}`", key.type, key.default, key.variable, said, test)
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


if __name__ == "__main__":
    sys.exit(main())
