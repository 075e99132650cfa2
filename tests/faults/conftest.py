"""Fixtures of the fault tests."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from .disk import Disk, compiled

FIGURES = "figures"


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled shim."""
    return compiled(tmp_path_factory.mktemp("shim"))


@pytest.fixture
def disk(shim: Path, tmp_path: Path) -> Disk:
    """A disk that remembers and may fail, below the home of a daemon."""
    return Disk(shim, tmp_path, tmp_path / "home")


@pytest.fixture
def figures(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Keeps the figures of a campaign; they are printed when all tests are done."""
    return partial(record_property, FIGURES)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the figures beside their limits."""
    for outcome in ("passed", "failed"):
        for report in terminalreporter.getreports(outcome):
            for name, line in report.user_properties:
                if name == FIGURES:
                    told = report.nodeid.rpartition("::")[2]
                    terminalreporter.line(f"{told}: {line}")
