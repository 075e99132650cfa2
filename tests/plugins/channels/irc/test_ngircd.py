"""The adapter keeps the contract with a real server."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
from agenthost_channels.irc.adapter import Settings
from agenthost_channels.testing import ChannelContract, Stage
from agenthost_channels.testing.care import CareContract
from agenthost_channels.testing.servers import found, free_port, serving
from agenthost_channels.testing.stages.irc import NgircdStage, configured, ngircd
from agenthost_channels.testing.stages.irc_person import Person

pytestmark = pytest.mark.conformance


class TestIrcWithNgircd(ChannelContract):
    """All of it."""

    @pytest.fixture
    async def stage(self, tmp_path: Path) -> AsyncIterator[Stage]:
        async with ngircd(tmp_path) as stage:
            yield stage


class PasswordStage(NgircdStage):
    """ngircd with a password of its own."""

    def settings(self) -> Settings:
        return super().settings().model_copy(update={"login": "pass"})

    def secrets(self) -> Mapping[str, str]:
        return {"password": "hunter2-canary"}

    def wrong_secrets(self) -> Mapping[str, str]:
        return {"password": "wrong-canary"}


class TestIrcWithAPassword:
    """What the contract says of secrets, with a server that wants one."""

    @pytest.fixture
    async def stage(self, tmp_path: Path) -> AsyncIterator[Stage]:
        port = free_port()
        file = configured(tmp_path, port, "Password = hunter2-canary")
        async with serving(*found("ngircd"), "-n", "-f", str(file), port=port):
            yield PasswordStage(port, Person(port, "Ada"))

    test_right = CareContract.test_it_tells_that_it_is_connected
    test_wrong = CareContract.test_wrong_secrets_are_told_and_not_shown
