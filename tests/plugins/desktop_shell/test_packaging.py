"""The tool without the daemon: its wheel, its hook and its action."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from .test_project import APPS

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "packaging" / "capability"


@pytest.mark.conformance
def test_the_wheel_checks_an_application_without_the_kernel(tmp_path: Path) -> None:
    build = ["hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(
        [sys.executable, "-m", *build], cwd=FOLDER, check=True, capture_output=True
    )
    (wheel,) = tmp_path.glob("agenthost_capability-*.whl")
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    assert not (site / "agenthost").exists()
    # The site's packages are wanted, the editable kernel beside them is not.
    code = (
        "import sys\n"
        "sys.path = [p for p in sys.path if '/kernel' not in p]\n"
        "sys.meta_path = [f for f in sys.meta_path if 'ditable' not in str(f)]\n"
        "import agenthost_desktop_shell as package\n"
        "[getattr(package, name) for name in package.__all__]\n"
        "assert 'agenthost' not in sys.modules\n"
        "from agenthost_desktop_shell.commands import capability\n"
        "capability(['check', sys.argv[1]])\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(site)}
    command = [sys.executable, "-c", code, str(APPS / "files")]
    subprocess.run(command, check=True, env=environment)


def test_the_hook_runs_for_the_files_it_is_about() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    assert hook["entry"] == "agenthost capability check"
    for name in ("src-tauri/capabilities/x/a.json5", "tauri.linux.conf.json"):
        assert re.search(hook["files"], name)
    assert not re.search(hook["files"], "package.json")


def test_the_action_hands_its_inputs_over_as_variables() -> None:
    action = yaml.safe_load((FOLDER / "action.yml").read_text("utf-8"))
    runs = [step["run"] for step in action["runs"]["steps"] if "run" in step]
    assert "agenthost-capability check --format github" in runs[-1]
    assert not any("${{" in run for run in runs)
