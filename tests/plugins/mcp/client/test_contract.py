"""The servers keep what every source of tools promises."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from agenthost import Host, ToolSource
from agenthost.testing import ToolSourceContract
from agenthost.testing.daemons import Daemons
from agenthost_mcp.client.source import McpServers

from .servers import Fake


@pytest.mark.conformance
class TestMcpServers(ToolSourceContract):
    """Over a program that lists other tools when it is told to."""

    fake: Fake

    @pytest.fixture
    async def host(self, daemons: Daemons, tmp_path: Path) -> Host:
        """A daemon whose own source has the same servers."""
        self.fake = Fake(tmp_path, "s", "one", "two")
        daemon = await daemons.start(config=self.fake.config())
        return cast("Host", daemon.daemon)

    def source(self) -> ToolSource:
        """Another source than the daemon's own."""
        return McpServers()

    async def change(self, source: ToolSource) -> None:
        """Have the program list one tool less, and be asked."""
        self.fake.offers("one")
        assert isinstance(source, McpServers)
        source.owner("s").reconnect()
