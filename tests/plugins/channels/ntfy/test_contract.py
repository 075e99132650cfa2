"""The adapter keeps the contract with a server of our own."""

from collections.abc import AsyncIterator, Mapping

import pytest
from agenthost.testing.simulators.ntfy import PASSWORD, USER, NtfySimulator
from agenthost_channels.ntfy.adapter import Settings
from agenthost_channels.testing import ChannelContract, Stage
from agenthost_channels.testing.stages.ntfy import NtfyStage, opened

pytestmark = pytest.mark.conformance


class TestNtfy(ChannelContract):
    """ntfy keeps every promise of a channel."""

    @pytest.fixture
    async def stage(self) -> AsyncIterator[Stage]:
        async with opened() as stage:
            yield stage


class WithPassword(NtfyStage):
    """The same, with a name and a password."""

    def settings(self) -> Settings:
        return Settings(server=self.ntfy.url, topics=["ada"], user=USER)

    def secrets(self) -> Mapping[str, str]:
        return {"password": PASSWORD}

    def wrong_secrets(self) -> Mapping[str, str]:
        return {"password": "canary-that-is-wrong"}


class TestNtfyWithPassword(TestNtfy):
    """Who we are is told in another way, and nothing else is different."""

    @pytest.fixture
    async def stage(self) -> AsyncIterator[Stage]:
        async with NtfySimulator() as ntfy:
            yield WithPassword(ntfy)
