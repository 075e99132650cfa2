"""A plugin made from the template installs, is found, keeps its contract and goes."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import sysconfig
import tomllib
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import agenthost
import copier
import pytest

ROOT = Path(__file__).parents[2]
KINDS = ("provider", "tool")


@dataclass(frozen=True)
class Workshop:
    """A fresh environment on top of the one that runs the tests, and a home."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "venv" / "bin" / "python"

    def run(self, *arguments: str, cwd: Path | None = None) -> str:
        answer = subprocess.run(
            [str(self.python), *arguments],
            cwd=cwd or self.folder,
            env={**os.environ, "AGENTHOST_HOME": str(self.folder / "home")},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert answer.returncode == 0, answer.stdout + answer.stderr
        return answer.stdout

    def pip(self, *arguments: str) -> None:
        self.run("-m", "pip", "-q", "--disable-pip-version-check", *arguments)

    def plugins(self) -> dict[str, str]:
        """Status by key of every plugin, as the command line tells it."""
        rows = json.loads(self.run("-m", "agenthost_cli", "plugins", "list", "--json"))
        return {row["key"]: row["status"] for row in rows}

    def configure(self, text: str) -> None:
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        (home / "config.toml").write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    folder = tmp_path_factory.mktemp("workshop")
    venv.create(folder / "venv")
    paths = sysconfig.get_paths(vars={"base": str(folder / "venv")})
    beneath = sysconfig.get_paths()["purelib"]
    overlay = f"import site; site.addsitedir({beneath!r})\n"
    (Path(paths["purelib"]) / "beneath.pth").write_text(overlay, encoding="utf-8")
    return Workshop(folder)


def render(kind: str, folder: Path) -> Path:
    """Make the plugin as somebody who answers the questions would."""
    answers = {"kind": kind, "name": f"My {kind}", "author": 'Ada "A." Lovelace'}
    copier.run_copy(
        str(ROOT / "plugin_template"),
        folder / kind,
        data=answers,
        defaults=True,
        quiet=True,
    )
    return folder / kind


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def installed(kind: str, workshop: Workshop, tmp_path: Path) -> Iterator[Path]:
    project = render(kind, tmp_path)
    workshop.configure("")
    workshop.pip("install", "--no-deps", "--no-build-isolation", str(project))
    yield project
    workshop.pip("uninstall", "--yes", f"agenthost-{kind}-my-{kind}")


def test_the_rendered_project_names_one_slug_everywhere(
    kind: str, tmp_path: Path
) -> None:
    project = render(kind, tmp_path)
    facts = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))
    module = f"agenthost_{kind}_my_{kind}"
    points = facts["project"]["entry-points"]
    assert points == {f"agenthost.{kind}s": {f"my_{kind}": module}}
    assert facts["project"]["authors"] == [{"name": 'Ada "A." Lovelace'}]
    files = {str(path.relative_to(project)) for path in project.rglob("*.py")}
    assert files == {f"{module}.py", f"tests/test_my_{kind}.py"}


def test_the_rendered_project_passes_our_own_lint(kind: str, tmp_path: Path) -> None:
    project = render(kind, tmp_path)
    for path in project.rglob("*.py"):
        ast.parse(path.read_text(encoding="utf-8"))
    ruff = [sys.executable, "-m", "ruff"]
    config = ["--config", str(ROOT / "pyproject.toml"), "--no-cache"]
    module = [str(path) for path in project.glob("*.py")]
    for command in (["format", "--check"], ["check", "--ignore", "ARG001,ARG002"]):
        subprocess.run(
            [*ruff, *command, *config, *module], check=True, stdout=subprocess.DEVNULL
        )


def test_a_rendered_plugin_is_off_until_it_is_listed(
    kind: str, workshop: Workshop, installed: Path
) -> None:
    key = f"{kind}:my_{kind}"
    assert installed.exists()
    assert workshop.plugins()[key] == "disabled"
    workshop.configure(f'[plugins]\nenable = ["{key}"]\n')
    assert workshop.plugins()[key] == "enabled"


def test_a_rendered_plugin_keeps_its_contract(
    kind: str, workshop: Workshop, installed: Path
) -> None:
    testing = pytest.importorskip("agenthost.testing")
    if not hasattr(testing, f"{kind.capitalize()}Contract"):
        pytest.skip(f"agenthost.testing has no contract of a {kind} yet")
    workshop.run("-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=installed)


def test_an_uninstalled_plugin_is_gone(
    kind: str, workshop: Workshop, tmp_path: Path
) -> None:
    project = render(kind, tmp_path)
    workshop.pip("install", "--no-deps", "--no-build-isolation", str(project))
    assert f"{kind}:my_{kind}" in workshop.plugins()
    workshop.pip("uninstall", "--yes", f"agenthost-{kind}-my-{kind}")
    assert f"{kind}:my_{kind}" not in workshop.plugins()
