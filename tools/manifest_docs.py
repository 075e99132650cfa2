"""Write docs/manifest.md from the models of an agent's manifest.

A key needs a description in its model, and a test marked with its name:
``@pytest.mark.manifest("model.temperature")``. ``--check`` writes nothing and fails
when the page is stale; with or without it, a key without either fails.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from textwrap import dedent
from typing import Any

from agenthost import ManifestTable, Plugins
from agenthost.config_model import Config
from agenthost.manifest_model import FallbackModel, Manifest
from agenthost_agents.facts import UNSERVED
from pydantic import BaseModel

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "manifest.md"
TESTS = ROOT / "tests"
KERNEL = "agenthost"
HEAD = """# The manifest of an agent

What an agent is, in TOML. `POST /api/agents` takes it as `manifest_toml`; the answer's
`warnings` name what is misspelt and what has no effect. A name is all it needs:

```toml
name = "ada"
description = "answers questions about files"
profile = "minimal"

[model]
system_prompt = "Be brief."

[resources]
max_cost_per_day_usd = 0.5
```

Keys of plugins are read while their plugin is on, and kept while it is off. This page
is written by `tools/manifest_docs.py` from the models that read the keys; each key
names the test that shows what it does.
"""
LATER = """## Read by nobody yet

They are kept as they are written and change nothing; where they say something else
than the default, the answer's `warnings` tell. A plugin that comes to read one of them
finds it.

| Key | Takes | Default | What it is for |
| --- | --- | --- | --- |
"""
COLUMNS = """| Key | Takes | Default | Read by | What it does | Test of it |
| --- | --- | --- | --- | --- | --- |"""
WORDS = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "object": "table",
    "null": "",
}


@dataclass(frozen=True)
class Key:
    """A key of the manifest, as the page tells of it."""

    table: str
    name: str
    type: str
    default: str
    reader: str
    about: str

    @property
    def path(self) -> str:
        """The key with its table."""
        return f"{self.table}.{self.name}" if self.table else self.name


def main() -> int:
    """Write the page, or with ``--check`` compare it."""
    try:
        text = page()
    except LookupError as error:
        print(error.args[0])
        return 1
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    print("docs/manifest.md is stale; run: .venv/bin/python tools/manifest_docs.py")
    return 1


def page() -> str:
    """Render the whole page.

    Raises:
        LookupError: A key has no description, or no test.
    """
    tables: dict[str, list[Key]] = {}
    for key in all_keys():
        tables.setdefault(key.table, []).append(key)
    tests = effects(TESTS)
    parts = [HEAD]
    for name, rows in tables.items():
        parts += [_heading(name), COLUMNS, *(_row(key, tests) for key in rows), ""]
    for path in sorted(tests.keys() - {key.path for key in all_keys()}):
        raise LookupError(f"{tests[path]}: there is no key {path}")
    return "\n".join([*parts, LATER.rstrip(), *_later(), ""])


@cache
def all_keys() -> tuple[Key, ...]:
    """Every key that agenthost or one of its plugins reads, by table."""
    found = [*keys_of("", Manifest, KERNEL)]
    own: dict[str, type[BaseModel]] = {**Manifest.own_tables}
    own["fallback_models"] = FallbackModel
    for name, model in own.items():
        found += keys_of(name, model, KERNEL)
    for plugin, table in asyncio.run(_offered()):
        found += keys_of(table.name, table.model, plugin)
    return tuple(key for key in found if key.table or key.name not in own)


async def _offered() -> list[tuple[str, ManifestTable[Any]]]:
    plugins = Plugins()
    await plugins.load(Config(data_dir=Path("data")))
    offered = await plugins.collect("register_manifest")
    if failed := [state for state in plugins.states() if state.reason]:
        raise LookupError(f"{failed[0].key}: {failed[0].reason}")
    return offered


def keys_of(table: str, model: type[BaseModel], reader: str) -> list[Key]:
    """The keys of one model.

    Raises:
        LookupError: One has no description.
    """
    schema, found = model.model_json_schema(), []
    said = _docstrings(model)
    for name, shape in schema["properties"].items():
        about = shape.get("description") or said.get(name, "")
        if not about and "$ref" not in json.dumps(shape):
            raise LookupError(f"manifest key {table}.{name} needs a description")
        default = "" if name in schema.get("required", ()) else _default(shape)
        found.append(Key(table, name, _type(shape), default, reader, about))
    return found


def _docstrings(model: type[BaseModel]) -> Mapping[str, str]:
    """What stands under the fields of a model and of what it is made of."""
    found: dict[str, str] = {}
    for kind in reversed(model.__mro__):
        if issubclass(kind, BaseModel) and kind is not BaseModel:
            (tree,) = ast.parse(dedent(inspect.getsource(kind))).body
            if isinstance(tree, ast.ClassDef):
                found |= _described(tree.body)
    return found


def _described(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for field, below in pairwise(body):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                yield name, inspect.cleandoc(text).replace("\n", " ")


def _type(shape: Mapping[str, Any]) -> str:
    if "anyOf" in shape:
        return " or ".join(filter(None, map(_type, shape["anyOf"])))
    if "enum" in shape:
        return ", ".join(f"`{choice}`" for choice in shape["enum"])
    if shape.get("type") == "array":
        return f"list of {_type(shape['items'])}"
    return WORDS[shape.get("type", "object")] + _range(shape)


def _range(shape: Mapping[str, Any]) -> str:
    least, most = shape.get("minimum"), shape.get("maximum")
    if least is None:
        return ""
    return (
        f", {least} or more" if most is None or most > 2**30 else f", {least} to {most}"
    )


def _default(shape: Mapping[str, Any]) -> str:
    value = shape.get("default", {} if shape.get("type") == "object" else None)
    return "" if value is None else f"`{json.dumps(value)}`"


def _heading(table: str) -> str:
    shown = f"`[[{table}]]`" if table == "fallback_models" else f"`[{table}]`"
    return f"## {shown}\n" if table else "## Keys outside every table\n"


def _row(key: Key, tests: Mapping[str, str]) -> str:
    if key.path not in tests:
        raise LookupError(
            f"{key.path}: mark a test of its effect with pytest.mark.manifest"
        )
    about, test = key.about.replace("``", "`"), f"`{tests[key.path]}`"
    cells = (f"`{key.path}`", key.type, key.default, f"`{key.reader}`", about, test)
    return f"| {' | '.join(cells)} |"


def effects(tests: Path) -> dict[str, str]:
    """Find by key the first test that is marked to show its effect."""
    found: dict[str, str] = {}
    for path in sorted(tests.rglob("test_*.py")):
        source = path.read_text(encoding="utf-8")
        # To parse them all takes a second; most have no mark.
        tree = ast.parse(source if "mark.manifest(" in source else "")
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for key in _marked(node):
                    found.setdefault(key, f"{path.relative_to(tests)}::{node.name}")
    return found


def _marked(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    for decorator in node.decorator_list:
        match decorator:
            case ast.Call(func=ast.Attribute(attr="manifest"), args=arguments):
                yield from (ast.literal_eval(argument) for argument in arguments)


def _later() -> Iterator[str]:
    served = {name for key in all_keys() for name in (key.path, key.table)}
    for path, fact in sorted(UNSERVED.items()):
        if path not in served:
            default = f"`{json.dumps(fact['default'])}`" if "default" in fact else ""
            yield f"| `{path}` | {fact['type']} | {default} | {fact['about']} |"


if __name__ == "__main__":
    sys.exit(main())
