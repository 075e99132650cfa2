"""The loopback front keeps the promises of the port, and serves a daemon."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Sequence

import pytest
from agenthost import FrontBackend
from agenthost.testing import Daemons, FrontContract, LoopbackFront, offering
from agenthost.testing.ports.front import ADA, BOB
from agenthost.testing.ports.front_stage import (
    AT,
    KEY,
    UPGRADE,
    Stage,
    connection,
    raw_socket,
)

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
    async with raw_socket(running, f"?ticket={access.ticket(ADA)}") as there:
        access.dismiss(BOB)
        await there.say("one")
        assert await there.hear() == (1, b"ONE")
        access.dismiss(ADA)
        kind, why = await there.hear()
    assert (kind, int.from_bytes(why[:2], "big")) == (8, 1001)
    await stage.played.ended.wait()


async def test_clients_that_go_in_the_middle_are_no_bugs(daemons: Daemons) -> None:
    stage = Stage(daemons, "loopback", [PLUGIN])
    running = await stage.start()
    head = await running.http.head(f"{AT}/streams")
    assert head.headers["content-type"] == "text/event-stream"
    async with connection(running) as (reader, writer):
        writer.write(UPGRADE.format("").encode())
        await reader.readuntil(b"\r\n\r\n")
        reset = struct.pack("ii", 1, 0)
        there = writer.get_extra_info("socket")
        there.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
    async with asyncio.timeout(30):
        await stage.played.ended.wait()
    async with running.http.stream("GET", f"{AT}/streams"):
        await stage.played.begun.wait()
    assert (await running.http.get(f"{AT}/open")).status_code == 200
    assert running.daemon.panics == 0


async def test_it_serves_a_daemon(daemons: Daemons) -> None:
    running = await daemons.start(
        config='[backends]\nfront = "loopback"\n',
        plugins=[PLUGIN],
    )
    agent = await running.agent()
    assert isinstance(running.daemon.front, LoopbackFront)
    assert await agent.ask("hello") == "You said: hello"
    assert [name for name, _ in await agent.events("again")][-1] == "done"
