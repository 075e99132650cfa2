"""The embedded queue keeps every promise of its port."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
from agenthost import Store
from agenthost.testing import JobsContract, ManualClock, OpenJobs
from agenthost_jobs import open_jobs, register_schema
from agenthost_storage import open_store


class TestTheEmbeddedQueue(JobsContract):
    """In the store of one process."""

    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[Store]:
        url = f"sqlite:///{tmp_path / 'agenthost.db'}"
        store = await open_store(url, [register_schema()])
        yield store
        await store.close()

    @pytest.fixture
    def opened(self, store: Store, clock: ManualClock) -> OpenJobs:
        return partial(open_jobs, store, clock)
