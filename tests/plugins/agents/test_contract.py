"""The agents of the plugin keep every promise of their port."""

from __future__ import annotations

import pytest
from agenthost import AgentsBackend
from agenthost.testing import AgentsContract
from agenthost_agents import open_agents


class TestKept(AgentsContract):
    """In memory, over the rows."""

    @pytest.fixture
    def backend(self) -> AgentsBackend:
        return AgentsBackend("kept", open_agents)
