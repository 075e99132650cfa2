"""What all tests share: examples may take their time, on machines that are busy too."""

from __future__ import annotations

import gc
import os
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from .prepared import install

FIGURES = "figures"
BREACHES = 5
"""How many of a table of broken things are tried at every change."""

COLLECT_AFTER = (10_000, 10, 10)
"""A test's daemon alone makes thousands of objects that stay until it ends."""

ONLY_WITHOUT = re.compile(r"not \w+( and not \w+)*")
WITHOUT = re.compile(r"not (\w+)")
MARKS = re.compile(r"^pytestmark = (\[[^]]*\]|.*)", re.MULTILINE)
"""What a file says of all its tests."""
MARK = re.compile(r"pytest\.mark\.(\w+)")

SAME = "AGENTHOST_RANDOM" not in os.environ
"""Whether examples are the same in every run, so that what fails is due to a change.

``make faults`` draws them anew each time.
"""

install()

# What is collected stays: to look at it again and again takes a sixth of the time.
gc.disable()

settings.register_profile("unhurried", deadline=None, derandomize=SAME)
settings.load_profile("unhurried")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Try five of each table of broken things quickly, and all with ``conformance``."""
    tables: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("breaches"):
            tables[item.nodeid.partition("[")[0]].append(item)
    for table in tables.values():
        step = -(-len(table) // BREACHES)
        for number, item in enumerate(table):
            if number % step:
                item.add_marker(pytest.mark.conformance)


def pytest_collection_finish() -> None:
    """Let the collector look no more at ten thousand tests and what they import."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """Let what a command switched off for its own process collect for other tests.

    Else garbage piles up, gigabytes of it, with a thousand tasks to each event loop.
    """
    if not gc.isenabled():
        gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what is not asked for: vendors' clients above all import for long."""
    asked = config.getoption("markexpr")
    if collection_path.name == "judges":
        return True if "not conformance" in asked else None
    if collection_path.suffix != ".py" or not ONLY_WITHOUT.fullmatch(asked):
        return None
    marked = MARKS.search(collection_path.read_text(encoding="utf-8"))
    kinds = set(MARK.findall(marked[0])) if marked else set()
    return True if kinds & set(WITHOUT.findall(asked)) else None


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Keeps what a test has measured; it is printed when all tests are done."""
    return lambda line: request.node.user_properties.append((FIGURES, line))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the figures beside their limits."""
    for outcome in ("passed", "failed"):
        for report in terminalreporter.getreports(outcome):
            for name, line in report.user_properties:
                if name == FIGURES:
                    told = report.nodeid.rpartition("::")[2]
                    terminalreporter.line(f"{told}: {line}")
