"""What plugins of others use that goes away is told with plugin, file and line."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

import pytest
from agenthost.testing import Daemons
from agenthost_deprecations import scan
from agenthost_deprecations.scan import Deprecated, table, uses

ALIASES = Deprecated("ToolSpec.aliases", "0.2", "0.4", "names")
HOOK = Deprecated("register_service", "0.2", "0.5", "register_worker")
NAME = Deprecated("describe", "0.3", "0.4", "str")
ROWS = (ALIASES, HOOK, NAME)

INIT = '''\
"""A plugin as pip would install it."""

from agenthost import (
    ServiceSpec,
    hookimpl,
)

from .tools import register_tool


@hookimpl
def register_service() -> list[ServiceSpec]:
    """Offer nothing."""
    return []
'''
TOOLS = '''\
"""Its tools."""

import agenthost
from agenthost import Effect, ToolResult, ToolSpec, hookimpl
from pydantic import BaseModel


class Nothing(BaseModel):
    """No arguments."""


async def greet(context: object, call: Nothing) -> ToolResult:
    return ToolResult("hello")


@hookimpl
def register_tool() -> list[ToolSpec]:
    """Offer one."""
    return [
        ToolSpec(
            "greet",
            agenthost.describe(ValueError("Greet.")),
            Nothing,
            Effect.READ,
            greet,
            aliases=("hello",),
        )
    ]
'''


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    folder = tmp_path / "acme_greetings"
    folder.mkdir()
    (folder / "__init__.py").write_text(INIT, encoding="utf-8")
    (folder / "tools.py").write_text(TOOLS, encoding="utf-8")
    (folder / "broken.py").write_text("def (", encoding="utf-8")
    (folder / "bytes.py").write_bytes(b"\xff\xfe\x00")
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("acme_greetings")
    for name in [name for name in sys.modules if name.startswith("acme_greetings")]:
        del sys.modules[name]


def told(monkeypatch: pytest.MonkeyPatch, rows: Sequence[Deprecated]) -> None:
    monkeypatch.setattr(scan, "table", lambda: tuple(rows))


async def test_a_use_is_told_with_plugin_file_and_line(
    daemons: Daemons, acme: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    told(monkeypatch, ROWS)
    running = await daemons.start(plugins=[acme])
    assert running.daemon.plugins.healthy("plugin:acme_greetings")
    hook, name, field = running.daemon.warnings
    assert hook == (
        "plugin:acme_greetings uses register_service (acme_greetings/__init__.py, "
        "line 12), deprecated since 0.2 and removed in 0.5; use register_worker"
    )
    assert "uses describe (acme_greetings/tools.py, line 22)" in name
    assert "uses ToolSpec.aliases (acme_greetings/tools.py, line 26)" in field
    detail = (await running.http.get("/api/health/detail")).json()
    assert detail["config_warnings"] == running.daemon.warnings


async def test_without_rows_no_plugin_is_read(
    daemons: Daemons, acme: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    told(monkeypatch, ())
    monkeypatch.setattr(scan, "warnings_of", None)
    running = await daemons.start(plugins=[acme])
    assert running.daemon.plugins.healthy("plugin:deprecations")
    assert running.daemon.warnings == []


def test_one_plugin_fills_no_log(
    acme: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agenthost import find_plugins
    from agenthost.testing.daemons import provided

    path = Path(str(acme.__file__)).parent / "much.py"
    path.write_text("from agenthost import describe\n" * 100, encoding="utf-8")
    states = find_plugins(provided([acme]))
    assert len(scan.warnings_of(states, ROWS)) == scan.MOST_WARNINGS


@pytest.mark.parametrize(
    "source",
    [
        "from elsewhere import describe",
        "import describe",
        "describe = 1",
        "def register_service(): ...",
        "ToolSpec(name='aliases')",
        "Other(aliases=())",
        "elsewhere.describe()",
        "text = 'from agenthost import describe'",
        "",
    ],
)
def test_what_only_looks_alike_is_no_use(source: str) -> None:
    assert list(uses(source, ROWS)) == []


def test_uses_are_found_however_they_are_written() -> None:
    source = (
        "import agenthost\n"
        "from agenthost import describe as told\n"
        "agenthost.ToolSpec('x', aliases=())\n"
        "@agenthost.hookimpl(optionalhook=True)\n"
        "def register_service(): ...\n"
    )
    found = [(line, row.name) for line, row in uses(source, ROWS)]
    assert found == [(2, "describe"), (3, "ToolSpec.aliases"), (5, "register_service")]


def test_the_table_is_well_formed() -> None:
    for row in table():
        assert all((row.name, row.since, row.removed_in, row.instead))
