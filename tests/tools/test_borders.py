"""The contracts of .importlinter bite: each is shown a violation in a made-up tree."""

from __future__ import annotations

import configparser
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / ".importlinter"
LINT = "from importlinter.cli import lint_imports_command as lint; lint()"


def config() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(CONFIG)
    return parser


def root_packages() -> list[str]:
    return config()["importlinter"]["root_packages"].split()


def write(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree of the project's packages that keeps every contract."""
    for package in root_packages():
        write(tmp_path / package / "__init__.py")
    modules = {
        "agenthost": ("authorization", "errors", "testing"),
        "agenthost_providers": ("one", "two", "catalogue"),
        "agenthost_security": ("one", "two"),
        "agenthost_tools": ("one", "two"),
    }
    for package, names in modules.items():
        for name in names:
            write(tmp_path / package / f"{name}.py")
    layers = config()["importlinter:contract:layers"]["layers"].replace("|", " ")
    for module in layers.split():
        path = tmp_path.joinpath(*module.split("."))
        write(path.parent / "__init__.py")
        write(path.with_suffix(".py"))
    return tmp_path


def lint(tree: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", LINT, "--config", str(CONFIG), "--no-cache"],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_tree_that_keeps_the_borders_passes(tree: Path) -> None:
    write(tree / "agenthost/__init__.py", "from .authorization import authorize\n")
    write(tree / "agenthost_cli/__init__.py", "from agenthost import authorize\n")
    write(tree / "agenthost_tools/one.py", "import agenthost\nimport agenthost.testing")
    write(
        tree / "agenthost_providers/one.py",
        "from .catalogue import y\n",
    )
    answer = lint(tree)
    assert answer.returncode == 0, answer.stdout + answer.stderr


@pytest.mark.parametrize(
    ("contract", "module", "line"),
    [
        (
            "The kernel imports no plugin",
            "agenthost/errors.py",
            "import agenthost_tools",
        ),
        (
            "The kernel has an up and a down",
            "agenthost/context.py",
            "from .host import Host",
        ),
        (
            "Plugins import agenthost and agenthost.testing, nothing below",
            "agenthost_cli/__init__.py",
            "from agenthost.errors import NotFound",
        ),
        (
            "Plugins import agenthost and agenthost.testing, nothing below",
            "agenthost_tools/one.py",
            "import agenthost.errors",
        ),
        (
            "Libraries know neither the kernel nor a plugin",
            "agenthost_toml/__init__.py",
            "import agenthost",
        ),
        (
            "Areas never import each other",
            "agenthost_http_api/__init__.py",
            "from agenthost_tools import one",
        ),
        (
            "Providers share the catalogue, and never import each other",
            "agenthost_providers/one.py",
            "from . import two",
        ),
        (
            "Security systems never import each other",
            "agenthost_security/one.py",
            "from .two import guard",
        ),
        (
            "Tools never import each other",
            "agenthost_tools/one.py",
            "from agenthost_tools import two",
        ),
    ],
)
def test_a_violation_breaks_its_contract_and_no_other(
    tree: Path, contract: str, module: str, line: str
) -> None:
    write(tree / module, line + "\n")
    answer = lint(tree)
    broken = [row for row in answer.stdout.splitlines() if row.endswith("BROKEN")]
    assert answer.returncode == 1, answer.stdout + answer.stderr
    assert [row.removesuffix("BROKEN").strip() for row in broken] == [contract]


@pytest.mark.parametrize(
    ("contract", "key", "folders"),
    [
        ("kernel", "forbidden_modules", {"plugins"}),
        ("libraries", "source_modules", {"libraries"}),
        ("libraries", "forbidden_modules", {"kernel", "plugins"}),
        ("front-door", "source_modules", {"plugins"}),
        ("areas", "modules", {"plugins"}),
    ],
)
def test_the_contracts_speak_of_every_package_that_is_shipped(
    contract: str, key: str, folders: set[str]
) -> None:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    paths = pyproject["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    shipped = {Path(path).name: Path(path).parts[0] for path in paths}
    named = config()[f"importlinter:contract:{contract}"][key].split()
    assert set(root_packages()) == set(shipped)
    assert set(named) == {name for name in shipped if shipped[name] in folders}
