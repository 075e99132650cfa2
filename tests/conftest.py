"""What all tests share: examples may take their time, on machines that are busy too."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import settings

BREACHES = 5
"""How many of a table of broken things are tried at every change."""

settings.register_profile("unhurried", deadline=None)
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
