"""The adapter keeps the contract with a real mailbox and a real mail server."""

from collections.abc import AsyncIterator

import pytest
from agenthost_channels.testing import ChannelContract, Stage
from agenthost_channels.testing.stages.email import dovecot

pytestmark = pytest.mark.conformance


class TestEmailWithDovecotAndAiosmtpd(ChannelContract):
    """All of it."""

    @pytest.fixture
    async def stage(self) -> AsyncIterator[Stage]:
        async with dovecot() as stage:
            yield stage
