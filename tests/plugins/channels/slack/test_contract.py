"""The adapter keeps the contract with the simulator, over Socket Mode."""

from collections.abc import AsyncIterator

import pytest
from agenthost.testing.simulators.slack import BOT, US, SlackSimulator
from agenthost_channels.testing import ChannelContract, Stage
from agenthost_channels.testing.stages.slack import opened

pytestmark = pytest.mark.conformance


class TestSlack(ChannelContract):
    """Slack keeps every promise of a channel."""

    @pytest.fixture
    async def stage(self) -> AsyncIterator[Stage]:
        async with opened() as stage:
            yield stage


async def test_slacks_own_client_speaks_to_the_simulator() -> None:
    sdk = pytest.importorskip("slack_sdk.web.async_client")
    async with SlackSimulator() as slack:
        client = sdk.AsyncWebClient(BOT, base_url=f"{slack.url}/api/")
        assert (await client.auth_test())["user_id"] == US
        said = await client.chat_postMessage(channel="C1", text="hello")
        await client.chat_update(channel="C1", ts=said["ts"], text="hallo")
        with pytest.raises(Exception, match="channel_not_found"):
            await client.chat_postMessage(channel="C404", text="hello")
        await client.files_upload_v2(channel="C1", content="abc", filename="a.txt")
    assert [each["text"] for each in slack.said] == ["hello"]
    assert slack.edits == ["hallo"]
    assert slack.files == [("a.txt", b"abc")]
