"""Telegram calls us: with the secret that we gave it, and it is answered."""

import json
from pathlib import Path

import httpx
import pytest
from agenthost.testing import Daemons, RunningDaemon
from agenthost.testing.simulators.telegram import TOKEN, TelegramSimulator

from ..webhook.program import JSON, KEY, opened

SECRET = "canary-of-telegram"  # of the test
ENVIRON = {"TELEGRAM_BOT_TOKEN": TOKEN, "TELEGRAM_WEBHOOK_SECRET": SECRET}
PATH = "/channels/telegram/webhook"
URL = f"https://bots.example{PATH}"
ROWS = "SELECT sender FROM channel_inbox"


async def started(
    daemons: Daemons, api: TelegramSimulator, more: str = "", home: Path | None = None
) -> RunningDaemon:
    config = (
        f'api_key = "{KEY}"\n[channels.telegram]\nagent = "helper"\n'
        f'allow_from = ["7"]\nallowed_hosts = ["127.0.0.1"]\napi_url = "{api.url}"\n'
    )
    running = await daemons.start(config=config + more, environ=ENVIRON, home=home)
    running.http.headers["authorization"] = f"Bearer {KEY}"
    if not len(running.daemon.agents):
        await running.agent("helper")
    await opened(running, "telegram")
    del running.http.headers["authorization"]
    return running


async def call(
    running: RunningDaemon, update: object, secret: str | None = SECRET
) -> httpx.Response:
    given = {} if secret is None else {"X-Telegram-Bot-Api-Secret-Token": secret}
    body = update if isinstance(update, bytes) else json.dumps(update).encode()
    return await running.http.post(PATH, content=body, headers={**JSON, **given})


async def test_telegram_calls_and_is_answered(daemons: Daemons) -> None:
    async with TelegramSimulator() as api:
        running = await started(daemons, api, f'webhook_url = "{URL}"\n')
        [given] = [what for method, what in api.calls if method == "setWebhook"]
        assert given["url"] == URL
        assert given["secret_token"] == SECRET
        assert given["allowed_updates"] == ["message", "edited_message"]
        running.model.says("hello *Ada*")
        update = api.update(text="hi")
        for wrong in (None, "", SECRET[:-1], SECRET + "x", SECRET.upper()):
            assert (await call(running, update, wrong)).status_code == 401
        # What is not signed is not read.
        assert (await call(running, b"[" * 100_000, "wrong")).status_code == 401
        assert (await call(running, b"[" * 100_000)).status_code == 400
        assert not await running.daemon.store.read(ROWS)
        answers = [await call(running, update) for _ in range(3)]
        assert [(each.status_code, each.content) for each in answers] == [
            (200, b"")
        ] * 3
        await api.until(lambda: api.said)
        rows = await running.daemon.store.read(ROWS)
        assert [tuple(row) for row in rows] == [("7",)]
        [said] = api.said
        assert (said["chat_id"], said["words"]) == ("7", "hello Ada")
        assert not [method for method, _ in api.calls if method == "getUpdates"]


async def test_a_bot_that_polls_is_called_no_more(daemons: Daemons) -> None:
    async with TelegramSimulator() as api:
        first = await started(daemons, api, f'webhook_url = "{URL}"\n')
        await first.daemon.stop()
        again = await started(daemons, api, home=first.daemon.home)
        methods = [method for method, _ in api.calls]
        assert methods.index("setWebhook") < methods.index("deleteWebhook")
        assert (await call(again, api.update(text="hi"))).status_code == 401
        await again.daemon.stop()


@pytest.mark.parametrize("url", ["http://bots.example/hook", "ftp://x", "bots.example"])
async def test_an_address_that_telegram_would_not_call_is_told(
    daemons: Daemons, url: str
) -> None:
    async with TelegramSimulator() as api:
        with pytest.raises(AssertionError, match=r"telegram\.webhook_url"):
            await started(daemons, api, f'webhook_url = "{url}"\n')
