"""The adapter keeps the contract with a real broker."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from agenthost_channels.testing import ChannelContract, Stage
from agenthost_channels.testing.stages.mqtt import mosquitto

pytestmark = pytest.mark.conformance


class TestMqttWithMosquitto(ChannelContract):
    """All of it."""

    @pytest.fixture
    async def stage(self, tmp_path: Path) -> AsyncIterator[Stage]:
        async with mosquitto(tmp_path) as stage:
            yield stage
