"""Write docs/hooks.md from the docstrings of the hooks.

``--check`` writes nothing and fails when the page is stale.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from agenthost.plugins.hooks import Hooks

PAGE = Path(__file__).parent.parent / "docs" / "hooks.md"
SECTIONS = ("Args:", "Returns:", "Raises:")
HEAD = """# Hooks

What a plugin may offer. A hook is a function of the plugin's module, marked with
`agenthost.hookimpl`; implement any of these. This page is written by
`tools/hook_docs.py` from the docstrings in `kernel/agenthost/plugins/hooks.py`.
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


def hook_names() -> list[str]:
    """Name every hook, in the order of the source."""
    return [name for name in vars(Hooks) if not name.startswith("_")]


def page() -> str:
    """Render the whole page."""
    parts = [HEAD, *(_section(name, getattr(Hooks, name)) for name in hook_names())]
    return "\n".join(parts)


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
