"""The guarded toolbox keeps every promise of its port."""

from __future__ import annotations

import pytest
from agenthost import ToolsBackend
from agenthost.testing import ToolsContract
from agenthost_toolbox import open_toolbox


class TestGuarded(ToolsContract):
    """Its service starts it, which the plugin brings."""

    @pytest.fixture
    def backend(self) -> ToolsBackend:
        return ToolsBackend("guarded", open_toolbox)
