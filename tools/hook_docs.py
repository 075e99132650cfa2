"""Write docs/hooks.md: the hooks, their table, and what is going to be removed.

``--check`` writes nothing and fails when the page is stale.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from agenthost.plugins.hooks import Hooks
from agenthost.plugins.marks import API_VERSION
from agenthost.plugins.validation import OFFERS, hook_names
from agenthost_deprecations.scan import Deprecated, table

PAGE = Path(__file__).parent.parent / "docs" / "hooks.md"
SECTIONS = ("Args:", "Returns:", "Raises:")
HEAD = """# Hooks

What a plugin may offer. A hook is a function of the plugin's module, marked with
`agenthost.hookimpl`; implement any of these. This page is written by
`tools/hook_docs.py` from the docstrings in `kernel/agenthost/plugins/hooks.py` and
`surface_hooks.py` beside it.

Plugins are asked one by one, first-party ones first, then by their keys; `tryfirst`,
`trylast` and wrappers are refused. A plugin may name the version of the hooks that it
is made for; where another one is in force it fails, and says what to install:

```python
agenthost_api = "{version}"
```
"""
TABLE = """
| hook | offers | asked |
|---|---|---|
"""
ASKED = {
    "": "at the boot",
    "first": "at the boot, before all others",
    "last": "at the boot, after all others",
    "command line": "by the command line",
}
GOING = """## What goes away

Each is told at the start, with plugin, file and line, as long as a plugin uses it.
"""
GOING_TABLE = """
| name | since | removed in | use |
|---|---|---|---|
"""


def main() -> int:
    """Write the page, or with ``--check`` compare it."""
    text = page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    print("docs/hooks.md is stale; run: .venv/bin/python tools/hook_docs.py")
    return 1


def page() -> str:
    """Render the whole page."""
    sections = (_section(name, getattr(Hooks, name)) for name in hook_names())
    head = HEAD.replace("{version}", API_VERSION)
    return "\n".join([head + _overview(), *sections, *going(table())])


def going(rows: Sequence[Deprecated]) -> Iterator[str]:
    """Render what goes away; nothing where nothing does."""
    if rows:
        lines = (
            f"| `{row.name}` | {row.since} | {row.removed_in} | {row.instead} |\n"
            for row in rows
        )
        yield GOING + GOING_TABLE + "".join(lines)


def _overview() -> str:
    """Render the hook table, in the order of the source."""
    lines = []
    for name in hook_names():
        row = OFFERS.get(name)
        what = f"`{row.type.__name__}`" if row else "nothing; it hears events"
        asked = ASKED[row.asked] if row else "at each event"
        lines.append(f"| [{name}](#{name}) | {what} | {asked} |\n")
    return TABLE + "".join(lines)


def _section(name: str, hook: Callable[..., Any]) -> str:
    signature = inspect.signature(hook)
    parameters = [p for key, p in signature.parameters.items() if key != "self"]
    shown = signature.replace(parameters=parameters)
    heading = f"## {name}\n\n```python\n{name}{_unquoted(shown)}\n```\n"
    return "\n".join([heading, *_body(inspect.getdoc(hook) or ""), ""])


def _unquoted(signature: inspect.Signature) -> str:
    return str(signature).replace("'", "")


def _body(docstring: str) -> Iterator[str]:
    """Turn a google docstring into markdown, its example into a code block."""
    text, mark, example = docstring.partition("Example:\n    ::\n")
    for line in text.rstrip().splitlines():
        yield f"**{line}**\n" if line in SECTIONS else line.strip()
    if mark:
        yield "\n**Example:**\n\n```python"
        yield inspect.cleandoc(example)
        yield "```"


if __name__ == "__main__":
    sys.exit(main())
