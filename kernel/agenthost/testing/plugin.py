"""The pytest plugin: the fixtures ``daemon``, ``daemons`` and ``context``."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest_asyncio

if TYPE_CHECKING:
    from ..context import Context
    from .daemons import Daemons, RunningDaemon


@pytest_asyncio.fixture
async def daemons(tmp_path: Path) -> AsyncIterator[Daemons]:
    """Start as many daemons as a test needs; they end with it."""
    from .daemons import Daemons

    started = Daemons(tmp_path)
    try:
        yield started
    finally:
        await started.close()


@pytest_asyncio.fixture
async def daemon(daemons: Daemons) -> RunningDaemon:
    """One daemon with every first-party plugin and a scripted model."""
    return await daemons.start()


@pytest_asyncio.fixture
async def context(daemon: RunningDaemon) -> Context:
    """What a turn of an agent with every right hands to its tools."""
    agent = await daemon.agent(tools=["*"])
    return agent.context()
