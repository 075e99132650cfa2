from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from agenthost.store import Store

from .rows import SCHEMA


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agenthost.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[Store]:
    store = await Store.open(path, [SCHEMA])
    yield store
    await store.close()
