"""Every hook is documented from its docstring, and tested under its name."""

from __future__ import annotations

import ast
import sys
from functools import cache
from pathlib import Path

import pytest
from agenthost.plugins.validation import hook_names
from agenthost_deprecations.scan import Deprecated

from tools import hook_docs

TESTS = Path(__file__).parents[1]


@cache
def names_of_tests() -> set[str]:
    """Names of the test functions in files that speak of hooks, without importing."""
    texts = (path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py"))
    return {
        node.name
        for text in texts
        if any(hook in text for hook in hook_names())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
    }


def run(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["hook_docs.py", *arguments])
    return hook_docs.main()


@pytest.mark.parametrize("hook", hook_names())
def test_every_hook_has_a_line_in_the_docs(hook: str) -> None:
    page = hook_docs.PAGE.read_text(encoding="utf-8")
    assert f"## {hook}\n" in page


@pytest.mark.parametrize("hook", hook_names())
def test_every_hook_has_a_test_of_its_name(hook: str) -> None:
    assert any(hook in name for name in names_of_tests()), (
        f"write a test whose name contains {hook}"
    )


def test_every_example_of_the_page_is_python() -> None:
    examples = hook_docs.page().split("**Example:**\n\n```python\n")[1:]
    assert len(examples) == len(hook_names())
    for example in examples:
        ast.parse(example.partition("```")[0])


def test_a_stale_page_fails_the_check_and_is_mended_by_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "hooks.md"
    monkeypatch.setattr(hook_docs, "PAGE", page)
    assert run(["--check"], monkeypatch) == 1
    assert "stale" in capsys.readouterr().out
    assert run([], monkeypatch) == 0
    assert run(["--check"], monkeypatch) == 0
    page.write_text(page.read_text(encoding="utf-8") + "more\n", encoding="utf-8")
    assert run(["--check"], monkeypatch) == 1


def test_the_page_begins_with_the_table_of_the_hooks() -> None:
    page = hook_docs.page()
    overview = page.partition("## register_routes")[0]
    system, ears = (
        "| [security_system](#security_system) |",
        "| [on_event](#on_event) |",
    )
    assert f"{system} `SecuritySystem` | at the boot, before all others |" in overview
    assert f"{ears} nothing; it hears events | at each event |" in overview
    assert 'agenthost_api = "1"' in overview
    for hook in hook_names():
        assert f"| [{hook}](#{hook}) |" in overview


def test_what_goes_away_is_listed() -> None:
    assert list(hook_docs.going(())) == []
    [section] = hook_docs.going([Deprecated("old", "0.2", "0.4", "new")])
    assert section.startswith("## What goes away\n")
    assert section.endswith("| `old` | 0.2 | 0.4 | new |\n")
