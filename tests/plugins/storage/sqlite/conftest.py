from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from agenthost_storage.sqlite import SqliteStore

from .rows import SCHEMA


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agenthost.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(path, [SCHEMA])
    yield store
    await store.close()
