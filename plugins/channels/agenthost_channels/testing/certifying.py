"""Runs the contract of channels on a stage, in a process of its own, and reports.

This module is also the plugin by which that process notes what became of each case.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess  # nosec B404 # pytest, in a process of its own
import sys
import tempfile
from contextlib import AbstractAsyncContextManager
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    from .stage import Stage

GROUP = "agenthost.stages"
"""The group of entry points: a channel's id, and what opens its stage."""
STAGE, REPORT = "AGENTHOST_CERTIFIED_STAGE", "AGENTHOST_CERTIFIED_REPORT"
JUDGE = pytest.StashKey[tuple[str, str]]()
CASES = pytest.StashKey[list[dict[str, str]]]()
SECONDS = 1200
OPTIONS = ("-q", "--tb=short", "-p", __name__, "-p", "no:cacheprovider")
RULES = """[pytest]
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
"""


class Report(NamedTuple):
    """What became of a channel's contract.

    ``cases`` have ``name``, ``outcome`` (kept, broken or skipped) and ``reason``;
    ``channel`` and ``judge`` are "" where no case began.
    """

    channel: str
    judge: str
    cases: list[dict[str, str]]
    output: str

    def of(self, outcome: str) -> list[dict[str, str]]:
        """Give the cases with an outcome."""
        return [each for each in self.cases if each["outcome"] == outcome]


def place_of(channel: str) -> str | None:
    """Name the stage that an installed plugin has for a channel; None without one."""
    for found in entry_points(group=GROUP, name=channel):
        return found.value
    return None


def opened(place: str) -> AbstractAsyncContextManager[Stage]:
    """Open a stage.

    Args:
        place: ``module:name`` of what, called, gives an asynchronous context manager
            of a stage.
    """
    module, _, name = place.partition(":")
    stage: AbstractAsyncContextManager[Stage]
    stage = getattr(importlib.import_module(module), name)()
    return stage


def certify(place: str) -> Report:
    """Run every case of the contract on a stage.

    The folder where this is called may have the stage's module.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.json"
        environ = {**os.environ, STAGE: place, REPORT: str(path)}
        tests = str(Path(__file__).with_name("certified.py"))
        rules = Path(folder) / "pytest.ini"
        rules.write_text(RULES)
        argv = [sys.executable, "-m", "pytest", "-c", str(rules), *OPTIONS, tests]
        output = _run(argv, environ)
        told = json.loads(path.read_text()) if path.exists() else {}
    channel, judge = told.get("stage", ("", ""))
    return Report(channel, judge or place, told.get("cases", []), output)


def _run(argv: list[str], environ: dict[str, str]) -> str:
    try:
        done = subprocess.run(  # noqa: S603 # nosec B603 # our own file
            argv,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"it had not ended after {SECONDS} seconds"
    return done.stdout


# What pytest calls in that process.


def pytest_configure(config: pytest.Config) -> None:
    """Begin to note."""
    config.stash[CASES] = []
    config.pluginmanager.register(_Noting(config))


class _Noting:
    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._cases = config.stash[CASES]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a case: what fails before or after it breaks it too."""
        if report.when != "call" and report.passed:
            return
        name = report.nodeid.rpartition("::")[2].removeprefix("test_").replace("_", " ")
        known = [each for each in self._cases if each["name"] == name]
        if known and not report.failed:
            return
        for each in known:
            self._cases.remove(each)
        self._cases.append({"name": name, **_outcome(report)})

    def pytest_sessionfinish(self) -> None:
        """Write the notes."""
        stage = self._config.stash.get(JUDGE, ("", ""))
        told: dict[str, Any] = {"stage": stage, "cases": self._cases}
        Path(os.environ[REPORT]).write_text(json.dumps(told))


def _outcome(report: pytest.TestReport) -> dict[str, str]:
    if report.passed:
        return {"outcome": "kept", "reason": ""}
    if report.skipped:
        longrepr = report.longrepr
        reason = str(longrepr[2] if isinstance(longrepr, tuple) else longrepr)
        return {"outcome": "skipped", "reason": reason.removeprefix("Skipped: ")}
    crash = getattr(report.longrepr, "reprcrash", None)
    reason = str(crash.message if crash is not None else report.longrepr)
    return {"outcome": "broken", "reason": reason.strip().partition("\n")[0]}
