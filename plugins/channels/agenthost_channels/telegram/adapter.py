"""A Telegram bot. Source: https://core.telegram.org/bots/api.

By long poll the cursor is the ``offset``: asking with it tells Telegram that all before
is taken, so it is asked with what is on disk alone. Telegram knows no key of ours, and
lets a bot not look at what it said: a message of unknown fate stays so.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import re
from collections.abc import Mapping
from typing import Any, ClassVar

from agenthost import AgentHostError, InvalidInput, Unauthenticated, Unavailable
from pydantic import BaseModel, Field

from ..contract import (
    Adapter,
    Attachment,
    Fate,
    Inbound,
    Knock,
    Line,
    Opened,
    Outbound,
    OutFile,
    Sent,
)
from ..transports.calls import as_sent
from .client import Client
from .mapping import Us, inbound

HEARD = ["message", "edited_message"]
SIGNATURE = "x-telegram-bot-api-secret-token"
CAPTION = 1024
LONGEST_PAUSE = 300.0
SLACK_SECONDS = 10.0
PEER = re.compile(r"-?\d{1,20}|@\w{1,64}")
NUMBER = re.compile(r"\d{1,18}")
REFUSED_MARKUP = "can't parse entities"
UNCHANGED = "message is not modified"
TOKEN = re.compile(r"[A-Za-z0-9_-]{16,256}")


class Settings(BaseModel, defer_build=True):
    """Settings of ``[channels.telegram]``."""

    api_url: str = Field(
        "https://api.telegram.org",
        pattern="^https?://",
        description="Address of the Bot API, or of a server of your own",
    )
    webhook_url: str = Field(
        "",
        pattern="^(https://.*)?$",
        description="Public address of `/channels/telegram/webhook`; polls where empty",
    )
    poll_seconds: int = Field(30, ge=0, le=50, description="How long a poll waits")


class Telegram(Adapter):
    """One bot."""

    settings = Settings
    secrets: ClassVar[Mapping[str, str]] = {
        "bot_token": "TELEGRAM_BOT_TOKEN",  # nosec B105 # the name of a variable
        "webhook_secret": "TELEGRAM_WEBHOOK_SECRET",  # nosec B105 # the name of a variable
    }
    needed = frozenset({"bot_token"})

    def __init__(self, line: Line) -> None:
        super().__init__(line)
        self._options: Settings = line.settings
        self._client = Client(line, self._options.api_url)
        self._us: Us | None = None

    @property
    def called(self) -> bool:
        """Whether Telegram calls us."""
        return bool(self._options.webhook_url)

    async def run(self) -> None:
        """Poll, or have Telegram call."""
        await self._who_we_are()
        if self.called:
            await self._have_it_call()
        else:
            await self._poll()

    async def identity(self) -> str:
        """Give the bot's name."""
        return f"@{(await self._who_we_are()).name}"

    async def _who_we_are(self) -> Us:
        answer = await self._client.call("getMe", {})
        answer.raise_for_refusal()
        found = answer.result if isinstance(answer.result, dict) else {}
        self._us = Us(str(found.get("id", "")), str(found.get("username", "")))
        if not self._us.id or not self._us.name:
            raise Unavailable("Telegram does not say who we are")
        return self._us

    # Hearing.

    async def _poll(self) -> None:
        (await self._client.call("deleteWebhook", {})).raise_for_refusal()
        self.line.connected()
        while True:
            await self._poll_once(self._options.poll_seconds)

    async def _poll_once(self, seconds: int) -> None:
        question: dict[str, Any] = {"timeout": seconds, "allowed_updates": HEARD}
        if NUMBER.fullmatch(self.line.cursor):
            question["offset"] = int(self.line.cursor)
        wait = seconds + SLACK_SECONDS
        answer = await self._client.call("getUpdates", question, wait)
        if answer.retry_after is not None:
            await asyncio.sleep(min(answer.retry_after, LONGEST_PAUSE))
            return
        answer.raise_for_refusal()
        updates = answer.result if isinstance(answer.result, list) else []
        numbers = [number for each in updates if (number := _number(each)) is not None]
        if numbers:
            heard = filter(None, map(self._heard, updates))
            await self.line.received(*heard, cursor=str(max(numbers) + 1))
        elif updates:
            raise Unavailable("Telegram sent updates without a number")

    def _heard(self, update: Any) -> Inbound | None:
        return inbound(update, self.line.account, self._us) if self._us else None

    async def _have_it_call(self) -> None:
        secret = self.line.secret("webhook_secret")
        if secret is None:
            raise Unauthenticated(
                "Telegram needs webhook_secret for webhook_url:"
                " set TELEGRAM_WEBHOOK_SECRET"
            )
        if not TOKEN.fullmatch(secret.reveal()):
            raise Unauthenticated(
                "Telegram's webhook_secret has 16 to 256 letters, digits, - and _:"
                " set TELEGRAM_WEBHOOK_SECRET anew"
            )
        address = {
            "url": self._options.webhook_url,
            "secret_token": secret.reveal(),
            "allowed_updates": HEARD,
        }
        (await self._client.call("setWebhook", address)).raise_for_refusal()
        self.line.connected()
        await asyncio.Event().wait()

    async def open(self, knock: Knock) -> Opened:
        """Take an update that has the secret we gave to Telegram."""
        secret = self.line.secret("webhook_secret")
        offered = knock.headers.get(SIGNATURE, "").encode("utf-8", "surrogatepass")
        if secret is None or not hmac.compare_digest(offered, secret.reveal().encode()):
            raise Unauthenticated("the secret token of the webhook is wrong")
        if self._us is None:
            raise Unavailable("the bot is not connected yet")
        try:
            update = json.loads(knock.body)
        except (ValueError, RecursionError):
            raise InvalidInput("body", "an update is a JSON object") from None
        if (number := _number(update)) is None:
            raise InvalidInput("update_id", "an update has a number")
        heard = self._heard(update)
        return Opened(messages=(heard,) if heard else (), replay_key=str(number))

    async def download(self, attachment: Attachment) -> bytes:
        """Fetch a file, of 20 MB at most."""
        return await self._client.file(str(attachment.reference.get("file_id", "")))

    # Saying.

    async def send(self, message: Outbound) -> Sent:
        """Say something, and tell what became of it."""
        where = _where(message)
        if where is None:
            reason = "Telegram's places and messages have numbers for ids"
            return Sent(Fate.NOT_SENT, reason=reason, final=True)
        if message.typing:
            action = {**where, "action": "typing"}
            return await self._client.send("sendChatAction", action)
        if message.reaction:
            return await self._react(message)
        if message.files:
            return await self._send_file(message, where, message.files[0])
        return await self._say(message, where)

    async def _react(self, message: Outbound) -> Sent:
        reaction = {
            "chat_id": message.place.peer,
            "message_id": int(message.reply_to or 0),
            "reaction": [{"type": "emoji", "emoji": message.reaction}],
        }
        return await self._client.send("setMessageReaction", reaction)

    async def _say(self, message: Outbound, where: dict[str, Any]) -> Sent:
        said = {**where, "link_preview_options": {"is_disabled": True}}
        method = "sendMessage"
        if message.edit_of:
            said = {
                "chat_id": where["chat_id"],
                "message_id": int(message.edit_of),
                "link_preview_options": {"is_disabled": True},
            }
            method = "editMessageText"
        marked = {**said, "text": message.text, "parse_mode": "HTML"}
        sent = await self._client.send(method, marked)
        if sent.final and REFUSED_MARKUP in sent.reason and message.plain:
            sent = await self._client.send(method, {**said, "text": message.plain})
        there = sent.fate is Fate.DELIVERED or UNCHANGED in sent.reason
        if message.edit_of and there:
            return Sent(Fate.DELIVERED, message.edit_of)
        return sent

    async def _send_file(
        self, message: Outbound, where: dict[str, Any], file: OutFile
    ) -> Sent:
        text = message.plain or message.text
        captioned = len(text.encode("utf-16-le")) <= CAPTION * 2
        if text and not captioned:
            sent = await self._say(message, where)
            if sent.fate is not Fate.DELIVERED:
                return sent
        fields = {name: _field(value) for name, value in where.items()}
        if captioned and text:
            fields["caption"] = text
        part = {"document": (file.name, file.data, file.media_type)}
        try:
            sent = (await self._client.upload("sendDocument", fields, part)).as_sent()
        except AgentHostError as error:
            sent = as_sent(error)
        if captioned or sent.fate is Fate.DELIVERED:
            return sent
        # Tried again, the text would be there twice.
        return Sent(
            Fate.UNKNOWN, reason=f"its text is there; {sent.reason}", final=True
        )


def _field(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _number(update: Any) -> int | None:
    number = update.get("update_id") if isinstance(update, dict) else None
    return number if isinstance(number, int) and number >= 0 else None


def _where(message: Outbound) -> dict[str, Any] | None:
    """Name the place in the Bot API's words; None where an id is none of Telegram's."""
    place = message.place
    ids = [each for each in (place.thread, message.reply_to, message.edit_of) if each]
    if not PEER.fullmatch(place.peer) or not all(map(NUMBER.fullmatch, ids)):
        return None
    where: dict[str, Any] = {"chat_id": place.peer}
    if place.thread:
        where["message_thread_id"] = int(place.thread)
    if message.reply_to:
        answered = {"message_id": int(message.reply_to)}
        where["reply_parameters"] = {**answered, "allow_sending_without_reply": True}
    return where
