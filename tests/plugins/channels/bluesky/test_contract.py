"""The adapter keeps the contract with a host of our own."""

from collections.abc import AsyncIterator

import pytest
from agenthost_channels.testing import ChannelContract, Stage
from agenthost_channels.testing.stages.bluesky import opened

pytestmark = pytest.mark.conformance


class TestBluesky(ChannelContract):
    """Bluesky keeps every promise of a channel."""

    @pytest.fixture
    async def stage(self) -> AsyncIterator[Stage]:
        async with opened() as stage:
            yield stage
