"""The plain router keeps the promises of the port, and serves a daemon."""

from __future__ import annotations

import pytest
from agenthost import ModelsBackend
from agenthost.testing import Daemons, ModelsContract, PlainModels, offering


@pytest.mark.conformance
class TestPlainModels(ModelsContract):
    """Over the providers of plugins."""

    @pytest.fixture
    def backend(self) -> ModelsBackend:
        return ModelsBackend("plain", PlainModels)


async def test_it_serves_a_daemon(daemons: Daemons) -> None:
    running = await daemons.start(
        config='[backends]\nmodels = "plain"\n',
        plugins=[offering(ModelsBackend("plain", PlainModels))],
    )
    agent = await running.agent()
    assert isinstance(running.daemon.models, PlainModels)
    assert await agent.ask("hello") == "You said: hello"
    assert (await running.daemon.usage.of_agent(agent.id)).requests == 1
    assert (await running.http.get("/api/models")).status_code == 200
