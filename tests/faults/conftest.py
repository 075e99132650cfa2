"""Fixtures of the fault tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from .disk import Disk, compiled


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled shim."""
    return compiled(tmp_path_factory.mktemp("shim"))


@pytest.fixture
def disk(shim: Path, tmp_path: Path) -> Disk:
    """A disk that remembers and may fail, below the home of a daemon."""
    return Disk(shim, tmp_path, tmp_path / "home")
