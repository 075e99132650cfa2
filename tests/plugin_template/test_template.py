"""A plugin of each kind installs, keeps its promises, breaks alone and goes."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import copier
import pytest
from agenthost_cli.new_plugin import KINDS, answers, write_plugin

from .workshop import Workshop

ROOT = Path(__file__).parents[2]
# How plugins come and go does not depend on what they offer: one kind at every change.
one_kind_quickly = pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=() if kind == "tool" else pytest.mark.conformance)
        for kind in KINDS
    ],
    indirect=True,
    scope="module",
)
PARTS = {"dialect": "agenthost_dialects", "channel": "agenthost_channels.contract"}
"""What a kind may import of a plugin."""
IN_TESTS = "test_*.py:S101,test_*.py:D102"
AUTHOR = 'Ada "A." Lovelace \U0001f600'


def render(kind: str, folder: Path) -> Path:
    """Make the plugin as the command line does."""
    return write_plugin(kind, f"My {kind}", folder / kind, AUTHOR)


def distribution(kind: str) -> str:
    return f"agenthost-{kind}-my-{kind}"


def key_of(kind: str) -> str:
    return answers(kind, f"My {kind}", "")["key"]


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop.furnished(tmp_path_factory.mktemp("workshop"))


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def installed(
    kind: str, workshop: Workshop, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    project = render(kind, tmp_path_factory.mktemp("project"))
    workshop.pip("install", "--no-deps", "--no-build-isolation", str(project))
    yield project
    workshop.pip("uninstall", "--yes", distribution(kind))


def test_copier_makes_the_same_plugin(kind: str, tmp_path: Path) -> None:
    data = {"kind": kind, "name": f"My {kind}", "author": AUTHOR}
    copier.run_copy(
        str(ROOT / "plugin_template"),
        tmp_path / "copied",
        data=data,
        defaults=True,
        quiet=True,
    )
    ours = render(kind, tmp_path)
    assert read_all(tmp_path / "copied") == read_all(ours)


def read_all(project: Path) -> dict[str, str]:
    return {
        str(path.relative_to(project)): path.read_text(encoding="utf-8")
        for path in project.rglob("*")
        if path.is_file()
    }


def test_the_rendered_project_names_one_slug_everywhere(
    kind: str, tmp_path: Path
) -> None:
    project = render(kind, tmp_path)
    facts = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))
    module = f"agenthost_{kind}_my_{kind}"
    own = {"tool": "tools", "provider": "providers", "security": "security"}
    own["channel"] = "channels"
    group = f"agenthost.{own.get(kind, 'plugins')}"
    assert facts["project"]["entry-points"] == {group: {f"my_{kind}": module}}
    assert facts["project"]["authors"] == [{"name": AUTHOR}]
    files = {str(path.relative_to(project)) for path in project.rglob("*.py")}
    assert files == {f"{module}.py", f"tests/test_my_{kind}.py"}


def test_nothing_rendered_asks_a_registry_for_agenthost(
    kind: str, tmp_path: Path
) -> None:
    project = render(kind, tmp_path)
    facts = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))
    assert facts["project"]["dependencies"] == []
    assert "optional-dependencies" not in facts["project"]
    readme = (project / "README.md").read_text(encoding="utf-8")
    for line in readme.splitlines():
        assert "pip install" not in line or "agenthost" not in line, line


def test_a_plugin_imports_only_what_is_public(kind: str, tmp_path: Path) -> None:
    allowed = {"agenthost", "pydantic", "sqlalchemy"}
    for path in render(kind, tmp_path).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                top = node.module.partition(".")[0]
                public = node.module in allowed or top in sys.stdlib_module_names
                parts = node.module.startswith(PARTS.get(kind, "agenthost."))
                assert public or parts, node.module


def test_the_rendered_project_passes_our_own_lint(kind: str, tmp_path: Path) -> None:
    project = render(kind, tmp_path)
    ruff = [sys.executable, "-m", "ruff"]
    config = ["--config", str(ROOT / "pyproject.toml"), "--no-cache"]
    lint = ["check", "--ignore", "ARG001", "--per-file-ignores", IN_TESTS]
    files = [str(path) for path in project.rglob("*.py")]
    for command in (["format", "--check"], lint):
        subprocess.run(
            [*ruff, *command, *config, *files], check=True, stdout=subprocess.DEVNULL
        )


@pytest.mark.parametrize(
    "name",
    ["", " ", "_", "9 lives", 'a"b', "a\nb", "a\\b", "../a", "a" * 41, "{{ a }}"],
)
def test_a_name_that_makes_no_slug_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(click.UsageError):
        write_plugin("tool", name, tmp_path / "ours", "")
    data = {"kind": "tool", "name": name, "author": ""}
    with pytest.raises(ValueError, match=r"name|slug|letters"):
        copier.run_copy(
            str(ROOT / "plugin_template"),
            tmp_path / "copied",
            data=data,
            defaults=True,
            quiet=True,
        )
    assert not list(tmp_path.rglob("*.py"))


def test_a_folder_that_is_not_empty_is_left_alone(tmp_path: Path) -> None:
    project = render("tool", tmp_path)
    before = read_all(project)
    with pytest.raises(click.UsageError, match="not empty"):
        write_plugin("tool", "Other", project, "")
    assert read_all(project) == before


@pytest.mark.conformance
@one_kind_quickly
def test_a_rendered_plugin_is_off_until_it_is_listed(
    kind: str, workshop: Workshop, installed: Path
) -> None:
    key = key_of(kind)
    workshop.configure("")
    assert workshop.plugins()[key] == "disabled"
    workshop.agenthost("plugins", "enable", key)
    assert workshop.plugins()[key] == "enabled"
    workshop.agenthost("plugins", "disable", key)
    assert workshop.plugins()[key] == "disabled"


@one_kind_quickly
def test_a_rendered_plugin_keeps_its_promises(
    kind: str, workshop: Workshop, installed: Path
) -> None:
    told = workshop.run("-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=installed)
    assert " passed" in told
    # What a service cannot do is skipped of a channel's contract.
    assert kind == "channel" or "skipped" not in told


@one_kind_quickly
def test_a_broken_plugin_fails_alone(
    kind: str, workshop: Workshop, installed: Path
) -> None:
    key, module = key_of(kind), workshop.site / f"agenthost_{kind}_my_{kind}.py"
    workshop.configure(f'[plugins]\nenable = ["{key}"]\n')
    before = workshop.plugins()
    whole = module.read_bytes()
    module.write_text("raise RuntimeError('worn out')\n", encoding="utf-8")
    try:
        assert workshop.plugins() == {**before, key: "failed"}
        assert "worn out" in workshop.agenthost("plugins", "list")
    finally:
        module.write_bytes(whole)


@pytest.mark.conformance
@one_kind_quickly
def test_an_uninstalled_plugin_is_gone(
    kind: str, workshop: Workshop, installed: Path
) -> None:
    workshop.configure("")
    assert key_of(kind) in workshop.plugins()
    workshop.pip("uninstall", "--yes", distribution(kind))
    assert key_of(kind) not in workshop.plugins()
    workshop.pip("install", "--no-deps", "--no-build-isolation", str(installed))
