"""Summaries of the agents' own models keep every promise of the port."""

from __future__ import annotations

import pytest
from agenthost import CompactionBackend
from agenthost.testing import CompactionContract
from agenthost_compaction import open_compaction


class TestSummary(CompactionContract):
    """It asks the agent's own model."""

    @pytest.fixture
    def backend(self) -> CompactionBackend:
        return CompactionBackend("summary", open_compaction)

    @pytest.fixture
    def config(self) -> str:
        return "[compaction]\nthreshold_messages = 6\nkeep_recent = 2\n"
