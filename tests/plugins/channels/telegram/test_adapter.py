"""What the contract does not ask: markup, the webhook, and two pollers."""

import asyncio
import json
from dataclasses import replace

import pytest
from agenthost import InvalidInput, Unauthenticated, Unavailable
from agenthost.testing.simulators.telegram import TOKEN, TelegramSimulator
from agenthost_channels.contract import Fate, Knock, Outbound, OutFile, Place
from agenthost_channels.telegram.adapter import Settings, Telegram
from agenthost_channels.testing import FakeLine

ADA = Place("default", "7")
SECRETS = {"bot_token": TOKEN, "webhook_secret": "canary-of-telegram"}


def adapter(api: TelegramSimulator, **settings: object) -> tuple[Telegram, FakeLine]:
    line = FakeLine(Settings.model_validate({"api_url": api.url, **settings}), SECRETS)
    return Telegram(line), line


async def test_refused_markup_is_sent_again_as_plain_text() -> None:
    async with TelegramSimulator() as api:
        telegram, line = adapter(api)
        message = Outbound("k", ADA, "<b>broken", plain="not broken")
        sent = await telegram.send(message)
        await line.aclose()
    assert sent.fate is Fate.DELIVERED
    assert [each["words"] for each in api.said] == ["not broken"]
    assert "parse_mode" not in api.said[0]


async def test_no_preview_of_a_link_is_fetched() -> None:
    async with TelegramSimulator() as api:
        telegram, line = adapter(api)
        link = "https://evil.example/?told=secret"
        await telegram.send(Outbound("k", ADA, link, link))
        await telegram.send(Outbound("l", ADA, link, link, edit_of="55"))
        await line.aclose()
    shown = [each["link_preview_options"] for _, each in api.calls]
    assert shown == [{"is_disabled": True}] * 2


async def test_a_file_has_its_text_as_caption_where_it_fits() -> None:
    file = OutFile("a.txt", "text/plain", b"a")
    async with TelegramSimulator() as api:
        telegram, line = adapter(api)
        await telegram.send(Outbound("k", ADA, "short", "short", (file,), reply_to="9"))
        await telegram.send(Outbound("l", ADA, "x" * 1025, "x" * 1025, (file,)))
        await line.aclose()
    assert [each.get("caption") for each in api.said] == ["short", None, None]
    assert api.said[0]["reply_parameters"]["message_id"] == 9
    assert api.files == [("a.txt", b"a")] * 2


async def test_an_edit_that_changes_nothing_is_delivered() -> None:
    async with TelegramSimulator() as api:
        telegram, line = adapter(api)
        reason = "Bad Request: message is not modified: same content"
        api.next_answer = (400, {"ok": False, "description": reason})
        sent = await telegram.send(Outbound("k", ADA, "same", "same", edit_of="55"))
        await line.aclose()
    assert (sent.fate, sent.message_id) == (Fate.DELIVERED, "55")


async def test_telegram_is_told_what_is_on_disk_by_the_next_question() -> None:
    async with TelegramSimulator() as api:
        telegram, line = adapter(api)
        update = api.update(text="hello")
        api.put(update)
        run = asyncio.create_task(telegram.run())
        await line.hear(1)
        await api.until(lambda: not api.updates)
        asked = [what for method, what in api.calls if method == "getUpdates"]
        run.cancel()
        await asyncio.wait([run])
        await line.aclose()
    assert "offset" not in asked[0]
    assert asked[1]["offset"] == update["update_id"] + 1


async def test_a_second_poller_is_told_in_words() -> None:
    async with TelegramSimulator() as api:
        telegram, line = adapter(api)

        api.conflicting = True
        with pytest.raises(Unavailable, match="another program"):
            await telegram.run()
        await line.aclose()


async def test_a_webhook_has_the_secret_we_gave() -> None:
    async with TelegramSimulator() as api:
        telegram, line = adapter(
            api, webhook_url="https://h.example/channels/telegram/webhook"
        )
        run = asyncio.create_task(telegram.run())
        await line.until(lambda: bool(line.connections))
        (given,) = [what for method, what in api.calls if method == "setWebhook"]
        update = api.update(text="hello")
        knock = Knock("POST", "/webhook", {}, {}, json.dumps(update).encode())
        header = {"x-telegram-bot-api-secret-token": given["secret_token"]}
        for wrong in (
            {},
            {"x-telegram-bot-api-secret-token": "canary-of-telegram\udc80"},
        ):
            with pytest.raises(Unauthenticated):
                await telegram.open(replace(knock, headers=wrong))
        for body in (b"{", b"[" * 100_000, b"[]", b'{"update_id": "1"}'):
            with pytest.raises(InvalidInput):
                await telegram.open(replace(knock, headers=header, body=body))
        opened = await telegram.open(replace(knock, headers=header))
        run.cancel()
        await asyncio.wait([run])
        await line.aclose()
    assert [each.text for each in opened.messages] == ["hello"]
    assert opened.replay_key == str(update["update_id"])


@pytest.mark.parametrize("secret", [None, "", "too short", "ä" * 20, "a" * 257])
async def test_a_webhook_secret_that_telegram_would_refuse_is_told(
    secret: str | None,
) -> None:
    async with TelegramSimulator() as api:
        telegram, line = adapter(api, webhook_url="https://h.example/hook")
        given = {} if secret is None else {"webhook_secret": secret}
        line.change_secrets({"bot_token": TOKEN, **given})
        with pytest.raises(Unauthenticated, match="set TELEGRAM_WEBHOOK_SECRET"):
            await telegram.run()
        await line.aclose()
        assert not [method for method, _ in api.calls if method == "setWebhook"]
