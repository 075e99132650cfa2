"""The contract on the stage that ``agenthost certify`` names: pytest runs this file."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator

import pytest

from .certifying import JUDGE, STAGE, opened
from .contract import ChannelContract
from .stage import Stage


class TestChannel(ChannelContract):
    """A channel keeps every promise."""

    @pytest.fixture
    async def stage(self, request: pytest.FixtureRequest) -> AsyncIterator[Stage]:
        """Open the stage anew for each case."""
        async with opened(os.environ[STAGE]) as stage:
            request.config.stash[JUDGE] = (stage.facts.id, stage.judge)
            yield stage
