"""The plain engine keeps the promises of the port, and serves a daemon."""

from __future__ import annotations

import pytest
from agenthost import TurnsBackend
from agenthost.testing import Daemons, PlainTurns, TurnsContract, offering


@pytest.mark.conformance
class TestPlainTurns(TurnsContract):
    """Each session runs one turn after another."""

    @pytest.fixture
    def backend(self) -> TurnsBackend:
        return TurnsBackend("plain", PlainTurns)


async def test_it_serves_a_daemon(daemons: Daemons) -> None:
    running = await daemons.start(
        config='[backends]\nturns = "plain"\n',
        plugins=[offering(TurnsBackend("plain", PlainTurns))],
    )
    agent = await running.agent()
    running.model.calls("kv_set", key="self.colour", value="red")
    running.model.says("It is red.")
    names = [name for name, _ in await agent.events("remember red")]
    assert isinstance(running.daemon.turns, PlainTurns)
    assert "tool_result" in names
    assert await agent.ask("hello") == "You said: hello"
