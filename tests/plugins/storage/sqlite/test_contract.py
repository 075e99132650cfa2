"""The SQLite store keeps every promise of its port."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from agenthost.testing import OpenStore, StoreContract
from agenthost_storage import open_store


class TestTheSqliteStore(StoreContract):
    """One file."""

    @pytest.fixture
    def opened(self, tmp_path: Path) -> OpenStore:
        return partial(open_store, f"sqlite:///{tmp_path / 'agenthost.db'}")
