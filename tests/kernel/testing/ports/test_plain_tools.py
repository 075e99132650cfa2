"""The plain toolbox keeps the promises of the port, and serves a daemon."""

from __future__ import annotations

import pytest
from agenthost import ToolsBackend
from agenthost.testing import Daemons, PlainTools, ToolsContract, offering
from agenthost.testing.ports.workshop import Workshop


@pytest.mark.conformance
class TestPlainTools(ToolsContract):
    """Calls the tools of the plugins, and no service starts it."""

    @pytest.fixture
    def backend(self) -> ToolsBackend:
        return ToolsBackend("plain", PlainTools)


async def test_it_serves_a_daemon(daemons: Daemons) -> None:
    shop = Workshop()
    running = await daemons.start(
        config='[backends]\ntools = "plain"\n',
        plugins=[*shop.plugins(), offering(ToolsBackend("plain", PlainTools))],
    )
    agent = await running.agent(tools=["put"])
    running.model.calls("put", amount=5)
    running.model.says("It is put.")
    events = await agent.events("put five")
    assert isinstance(running.daemon.toolbox, PlainTools)
    assert shop.log == ["put 5"]
    assert "tool_result" in [name for name, _ in events]
    listed = (await running.http.get("/api/tools")).json()
    assert "put" in listed["tools"]
