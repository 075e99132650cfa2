"""The queue keeps every promise of its port on PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

import pytest
from agenthost import Store
from agenthost.testing import JobsContract, ManualClock, OpenJobs
from agenthost_cluster import open_store
from agenthost_jobs import open_jobs, register_schema

pytestmark = pytest.mark.conformance


class TestTheQueue(JobsContract):
    """In a database that other nodes may have open."""

    @pytest.fixture
    async def store(self, database: str) -> AsyncIterator[Store]:
        store = await open_store(database, [register_schema()])
        yield store
        await store.close()

    @pytest.fixture
    def opened(self, store: Store, clock: ManualClock) -> OpenJobs:
        return partial(open_jobs, store, clock)
