"""The adapter keeps the contract; the reference library signs for the program."""

from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime

import pytest
from agenthost_channels.testing import ChannelContract, Stage
from agenthost_channels.testing.stages.webhook import Desk, WebhookStage
from standardwebhooks import Webhook

pytestmark = pytest.mark.conformance


def signed(secret: str, name: str, seconds: int, body: bytes) -> Mapping[str, str]:
    now = datetime.fromtimestamp(seconds, UTC)
    # The library takes texts alone.
    signature = Webhook(secret).sign(name, now, body.decode("utf-8", "replace"))
    return {
        "webhook-id": name,
        "webhook-timestamp": str(seconds),
        "webhook-signature": signature,
    }


class TestWebhook(ChannelContract):
    """The webhook keeps every promise of a channel."""

    @pytest.fixture
    async def stage(self) -> AsyncIterator[Stage]:
        async with Desk() as desk, WebhookStage(desk, signed) as stage:
            yield stage
