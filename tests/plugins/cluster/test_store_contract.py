"""The PostgreSQL store keeps every promise of its port."""

from __future__ import annotations

from functools import partial

import pytest
from agenthost.testing import OpenStore, StoreContract
from agenthost_cluster import open_store


class TestThePostgresStore(StoreContract):
    """One database of a server."""

    @pytest.fixture
    def opened(self, database: str) -> OpenStore:
        return partial(open_store, database)
