from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from agenthost_storage.sqlite import SqliteStore
from agenthost_storage.sqlite import store as sqlite_store

from ....prepared import REALLY
from .rows import SCHEMA


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agenthost.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(path, [SCHEMA])
    yield store
    await store.close()


@pytest.fixture(autouse=True)
def no_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every database here made as on a fresh machine."""
    monkeypatch.setattr(sqlite_store, "open_prepared", REALLY)
