"""The adapter keeps the contract with the simulator, where discord.py is at home."""

from collections.abc import AsyncIterator

import pytest
from agenthost_channels.testing import ChannelContract, Stage
from agenthost_channels.testing.stages.discord import opened

pytestmark = pytest.mark.conformance


class TestDiscord(ChannelContract):
    """Discord keeps every promise of a channel."""

    @pytest.fixture
    async def stage(self) -> AsyncIterator[Stage]:
        async with opened() as stage:
            yield stage
