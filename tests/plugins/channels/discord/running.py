"""An adapter at work on the simulator, and what it is to be asked."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from agenthost.testing.simulators.discord import DiscordSimulator
from agenthost.testing.simulators.discord.world import TOKEN
from agenthost_channels.discord.adapter import Discord, Settings
from agenthost_channels.testing import FakeLine

IDENTIFY, RESUME = 2, 6


def line_to(server: DiscordSimulator, **more: Any) -> FakeLine:
    return FakeLine(Settings(api_url=server.api, **more), {"bot_token": TOKEN})


@asynccontextmanager
async def running(
    line: FakeLine, adapter: Discord | None = None
) -> AsyncIterator[asyncio.Task[None]]:
    """Run an adapter, a new one as after a start; go on when it is connected."""
    count = line.connections + 1
    task = asyncio.create_task((adapter or Discord(line)).run())
    waiting = asyncio.create_task(line.until(lambda: line.connections >= count))
    try:
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        yield task
    finally:
        waiting.cancel()
        task.cancel()
        await asyncio.wait([task, waiting])


def beginnings(server: DiscordSimulator) -> list[int]:
    """Tell how each connection began: with a session of its own, or an older one."""
    return [each for each in server.gateway.operations() if each in {IDENTIFY, RESUME}]


def words(line: FakeLine) -> list[str]:
    return [each.text for each in line.heard]
