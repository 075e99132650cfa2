"""What pip installs has the template and the docs, so that no checkout is needed."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d"]
    subprocess.run(
        [*build, str(folder)], cwd=ROOT, check=True, capture_output=True, timeout=120
    )
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder / "site")
    return folder / "site"


def test_the_wheel_makes_plugins(unpacked: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "agenthost_cli", "plugins", "new", "routes"]
    environ = {**os.environ, "PYTHONPATH": str(unpacked)}
    subprocess.run(
        [*command, "Road Map"], cwd=tmp_path, env=environ, check=True, timeout=60
    )
    made = tmp_path / "agenthost-routes-road-map" / "agenthost_routes_road_map.py"
    assert 'RouteGroup("road_map")' in made.read_text(encoding="utf-8")


def test_the_template_of_the_wheel_is_that_of_the_repository(unpacked: Path) -> None:
    for folder, packed in (("plugin_template", "template"), ("docs", "docs")):
        ours = {p.relative_to(ROOT / folder) for p in (ROOT / folder).rglob("*.*")}
        place = unpacked / "agenthost_cli" / packed
        assert ours <= {p.relative_to(place) for p in place.rglob("*")}
