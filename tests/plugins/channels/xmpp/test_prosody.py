"""The adapter keeps the contract with a real server."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from agenthost_channels.testing import ChannelContract, Stage
from agenthost_channels.testing.stages.xmpp import prosody

pytestmark = pytest.mark.conformance


class TestXmppWithProsody(ChannelContract):
    """All of it."""

    @pytest.fixture
    async def stage(self, tmp_path: Path) -> AsyncIterator[Stage]:
        async with prosody(tmp_path) as stage:
            yield stage
