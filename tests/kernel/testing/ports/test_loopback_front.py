"""The loopback front keeps the promises of the port, and serves a daemon."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from agenthost import FrontBackend
from agenthost.testing import Daemons, FrontContract, LoopbackFront, offering
from agenthost.testing.ports.front import ADA, BOB
from agenthost.testing.ports.front_stage import KEY, Stage, raw_socket

PLUGIN = offering(FrontBackend("loopback", LoopbackFront))


@pytest.mark.conformance
class TestLoopbackFront(FrontContract):
    """No application stands between a connection and the handlers."""

    front = "loopback"

    @pytest.fixture
    def plugins(self) -> Sequence[object]:
        return [PLUGIN]


async def test_who_is_dismissed_is_ended(daemons: Daemons) -> None:
    stage = Stage(daemons, "loopback", [PLUGIN])
    running = await stage.start(config=f'api_key = "{KEY}"\n')
    access = running.daemon.access
    async with raw_socket(running, f"?ticket={access.ticket(ADA)}") as socket:
        access.dismiss(BOB)
        await socket.say("one")
        assert await socket.hear() == (1, b"ONE")
        access.dismiss(ADA)
        kind, why = await socket.hear()
    assert (kind, int.from_bytes(why[:2], "big")) == (8, 1001)
    await stage.played.ended.wait()


async def test_it_serves_a_daemon(daemons: Daemons) -> None:
    running = await daemons.start(
        config='[backends]\nfront = "loopback"\n',
        plugins=[PLUGIN],
    )
    agent = await running.agent()
    assert isinstance(running.daemon.front, LoopbackFront)
    assert await agent.ask("hello") == "You said: hello"
    assert [name for name, _ in await agent.events("again")][-1] == "done"
