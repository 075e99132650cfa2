"""The loopback front keeps the promises of the port, and serves a daemon."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from agenthost import FrontBackend
from agenthost.testing import Daemons, FrontContract, LoopbackFront
from agenthost.testing.ports.stage import offering


@pytest.mark.conformance
class TestLoopbackFront(FrontContract):
    """No application stands between a connection and the handlers."""

    front = "loopback"

    @pytest.fixture
    def plugins(self) -> Sequence[object]:
        return [offering(FrontBackend("loopback", LoopbackFront))]


async def test_it_serves_a_daemon(daemons: Daemons) -> None:
    running = await daemons.start(
        config='[backends]\nfront = "loopback"\n',
        plugins=[offering(FrontBackend("loopback", LoopbackFront))],
    )
    agent = await running.agent()
    assert isinstance(running.daemon.front, LoopbackFront)
    assert await agent.ask("hello") == "You said: hello"
    assert [name for name, _ in await agent.events("again")][-1] == "done"
