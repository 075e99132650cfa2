"""The plain agents keep the promises of the port, and serve a daemon."""

from __future__ import annotations

import pytest
from agenthost import AgentsBackend
from agenthost.testing import AgentsContract, Daemons, PlainAgents, offering


@pytest.mark.conformance
class TestPlainAgents(AgentsContract):
    """Over the rows of the daemon's records."""

    @pytest.fixture
    def backend(self) -> AgentsBackend:
        return AgentsBackend("plain", PlainAgents)


async def test_it_serves_a_daemon(daemons: Daemons) -> None:
    running = await daemons.start(
        config='[backends]\nagents = "plain"\n',
        plugins=[offering(AgentsBackend("plain", PlainAgents))],
    )
    agent = await running.agent(extra='profile = "coding"', tools=[])
    kept = running.daemon.agents.get(agent.id).manifest
    assert isinstance(running.daemon.agents, PlainAgents)
    assert await agent.ask("hello") == "You said: hello"
    assert not any(running.daemon.agents.grants_of(kept)["tool"])
    assert (await running.http.delete(f"/api/agents/{agent.id}")).status_code == 200
    assert (await running.http.get("/api/agents")).json() == []
