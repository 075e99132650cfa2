"""Every block of code in the guide for plugin authors does what the guide says."""

from __future__ import annotations

import json
import re
import textwrap
from importlib import import_module
from pathlib import Path

import pytest
from agenthost.testing import Daemons

from .workshop import Workshop

GUIDE = Path(__file__).parents[2] / "docs" / "plugins.md"
BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
HEAD = re.compile(r"# (\w+\.py)\n")


def blocks(language: str) -> list[str]:
    found = BLOCK.findall(GUIDE.read_text(encoding="utf-8"))
    return [textwrap.dedent(text) for _, spoken, text in found if spoken == language]


def modules() -> dict[str, str]:
    """The Python blocks by the name in their first line."""
    named = {}
    for text in blocks("python"):
        head = HEAD.match(text)
        assert head is not None, f"say which file this is: {text[:60]}"
        named[head[1]] = text
    return named


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    made = Workshop.furnished(tmp_path)
    made.configure("")
    return made


def test_every_block_is_of_a_language_that_is_run() -> None:
    found = BLOCK.findall(GUIDE.read_text(encoding="utf-8"))
    assert {language for _, language, _ in found} == {"python", "sh", "toml"}
    assert len(found) * 2 == GUIDE.read_text(encoding="utf-8").count("```")


@pytest.mark.conformance
def test_the_commands_work_as_they_stand(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No registry is asked for the build backend, which is here; 0 is no isolation.
    monkeypatch.setenv("PIP_NO_BUILD_ISOLATION", "0")
    monkeypatch.setenv("PIP_DISABLE_PIP_VERSION_CHECK", "1")
    (commands,) = blocks("sh")
    told = workshop.execute(
        ["bash", "-euo", "pipefail", "-c", commands], workshop.folder
    )
    assert " passed" in told
    assert re.search(r"^tool:roll_dice +enabled", told, re.MULTILINE)
    assert "tool:roll_dice" not in workshop.plugins()


@pytest.mark.conformance
def test_the_examples_of_tests_pass(workshop: Workshop) -> None:
    for name, text in modules().items():
        (workshop.folder / name).write_text(text, encoding="utf-8")
    scope = "asyncio_default_fixture_loop_scope=function"
    mode = ["-o", "asyncio_mode=auto", "-o", scope, "-W", "error"]
    told = workshop.run("-m", "pytest", "-q", "-p", "no:cacheprovider", *mode)
    assert "2 passed" in told


@pytest.mark.parametrize("name", [n for n in modules() if not n.startswith("test_")])
async def test_each_example_of_a_plugin_runs(
    name: str, tmp_path: Path, daemons: Daemons, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = name.removesuffix(".py")
    (tmp_path / name).write_text(modules()[name], encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    running = await daemons.start(plugins=[import_module(module)])
    health = (await running.http.get("/api/health/detail")).json()
    (row,) = [r for r in health["plugins"] if r["key"] == f"plugin:{module}"]
    assert (row["status"], row["reason"]) == ("enabled", None), json.dumps(row)


def test_the_configuration_is_one(workshop: Workshop) -> None:
    for text in blocks("toml"):
        workshop.configure(text)
        told = workshop.agenthost("config", "check")
        assert "unknown key" not in told
