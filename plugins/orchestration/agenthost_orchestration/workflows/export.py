"""Write a workflow as the TOML file that it could be read from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

_DELETE = "\x7f"


def as_toml(workflow: Mapping[str, Any]) -> str:
    """Write what the API shows of a workflow; what says nothing is left out."""
    lines = [*_keys(workflow, ("name", "description", "max_cost_usd"))]
    if not workflow["steps"]:
        lines.append("steps = []")
    for step in workflow["steps"]:
        lines += ["", "[[steps]]", *_keys(step, step)]
    return "\n".join(lines) + "\n"


def _keys(table: Mapping[str, Any], names: Any) -> Iterator[str]:
    return (f"{n} = {_value(table[n])}" for n in names if table[n] is not None)


def _value(value: Any) -> str:
    if not isinstance(value, str):
        # A number or a truth is written as JSON writes it.
        return json.dumps(value)
    if "\n" not in value:
        return f'"{_escaped(value)}"'
    # The line end after the opening quotes is none of the text's.
    return '"""\n' + "\n".join(map(_escaped, value.split("\n"))) + '"""'


def _escaped(text: str) -> str:
    # What JSON escapes TOML does too, and one character more.
    return json.dumps(text, ensure_ascii=False)[1:-1].replace(_DELETE, "\\u007F")
