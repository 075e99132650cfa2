"""The adapter keeps the contract with a simulator of Telegram's."""

from collections.abc import AsyncIterator

import pytest
from agenthost_channels.testing import ChannelContract, Stage
from agenthost_channels.testing.stages.telegram import opened

pytestmark = pytest.mark.conformance


class TestTelegram(ChannelContract):
    """Telegram keeps every promise of a channel."""

    @pytest.fixture
    async def stage(self) -> AsyncIterator[Stage]:
        async with opened() as stage:
            yield stage
