"""A shop whose till asks people."""

from __future__ import annotations

import pytest

from .stage import Shop, ask


@pytest.fixture
def shop() -> Shop:
    return Shop(asks={"pay": ask()})
