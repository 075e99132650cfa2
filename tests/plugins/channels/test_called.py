"""Every adapter that its vendor calls keeps the contract of such adapters."""

import base64
import hmac
import json
from collections.abc import Mapping

import pytest
from agenthost_channels.contract import Adapter, Knock
from agenthost_channels.slack import adapter as slack
from agenthost_channels.telegram import adapter as telegram
from agenthost_channels.telegram.mapping import Us
from agenthost_channels.testing import CalledContract, Caller
from agenthost_channels.testing.called import NOW
from agenthost_channels.webhook import adapter as webhook
from agenthost_channels.webhook.signing import signed
from pydantic import BaseModel


class OfWebhook(Caller):
    """A program, which signs id, time and body."""

    channel = webhook.Webhook
    signing = frozenset({"webhook-id", "webhook-timestamp", "webhook-signature"})

    def settings(self) -> BaseModel:
        return webhook.Settings(url="http://127.0.0.1:1/")

    def secrets(self) -> Mapping[str, str]:
        return {"secret": "whsec_" + base64.b64encode(b"0" * 24).decode()}

    def others(self) -> Mapping[str, str]:
        return {"secret": "whsec_" + base64.b64encode(b"1" * 24).decode()}

    def body(self, text: str) -> bytes:
        said = {"conversation": "desk", "sender": "ada", "text": text}
        return json.dumps(said).encode()

    def knock(self, body: bytes) -> Knock:
        headers = signed(self.secrets()["secret"], "msg_1", NOW, body)
        return Knock("POST", "/in", {}, headers, body)


class OfSlack(Caller):
    """Slack, which signs time and body."""

    channel = slack.Slack
    signing = frozenset({"x-slack-signature", "x-slack-request-timestamp"})

    def settings(self) -> BaseModel:
        return slack.Settings(mode="events")

    def secrets(self) -> Mapping[str, str]:
        return {"bot_token": "xoxb-1", "signing_secret": "8f742231b10e8888abcd99yyyzzz"}

    def others(self) -> Mapping[str, str]:
        return {"bot_token": "xoxb-1", "signing_secret": "another"}

    def body(self, text: str) -> bytes:
        event = {
            "type": "message",
            "channel_type": "im",
            "channel": "D1",
            "user": "UADA",
            "text": text,
            "ts": "1800000000.000100",
        }
        said = {"type": "event_callback", "event_id": "Ev1", "event": event}
        return json.dumps(said).encode()

    def knock(self, body: bytes) -> Knock:
        # As Slack's page says; its library signs text alone.
        key = self.secrets()["signing_secret"].encode()
        sign = hmac.new(key, f"v0:{NOW}:".encode() + body, "sha256").hexdigest()
        headers = {
            "x-slack-request-timestamp": str(NOW),
            "x-slack-signature": f"v0={sign}",
        }
        return Knock("POST", "/events", {}, headers, body)

    async def ready(self, adapter: Adapter) -> None:
        assert isinstance(adapter, slack.Slack)
        adapter._us = "UBOT"


class OfTelegram(Caller):
    """Telegram, which shows the secret that it was given."""

    channel = telegram.Telegram
    signing = frozenset({"x-telegram-bot-api-secret-token"})
    timed = False
    whole = False

    def settings(self) -> BaseModel:
        url = "https://bots.example/channels/telegram/webhook"
        return telegram.Settings(webhook_url=url)

    def secrets(self) -> Mapping[str, str]:
        return {"bot_token": "1:x", "webhook_secret": "canary-of-telegram"}

    def others(self) -> Mapping[str, str]:
        return {"bot_token": "1:x", "webhook_secret": "another-of-telegram"}

    def body(self, text: str) -> bytes:
        ada = {"id": 7, "is_bot": False, "first_name": "Ada"}
        chat = {"id": 7, "type": "private"}
        said = {"message_id": 5, "from": ada, "chat": chat, "date": NOW, "text": text}
        return json.dumps({"update_id": 100, "message": said}).encode()

    def knock(self, body: bytes) -> Knock:
        headers = {"x-telegram-bot-api-secret-token": "canary-of-telegram"}
        return Knock("POST", "/webhook", {}, headers, body)

    async def ready(self, adapter: Adapter) -> None:
        assert isinstance(adapter, telegram.Telegram)
        adapter._us = Us("12345", "our_bot")


class TestCalled(CalledContract):
    @pytest.fixture(params=[OfWebhook, OfSlack, OfTelegram])
    def caller(self, request: pytest.FixtureRequest) -> Caller:
        made: Caller = request.param()
        return made
