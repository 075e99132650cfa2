"""Any program, with signed requests both ways.

It calls ``/channels/webhook/...`` with a :class:`Call`; we call its ``url`` with the
same fields. ``webhook-id`` is the id of a message: one that comes twice is one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, ClassVar

import httpx
from agenthost import AgentHostError, InvalidInput, Unauthenticated
from pydantic import BaseModel, Field, StringConstraints, ValidationError

from ..contract import (
    Adapter,
    Fate,
    Inbound,
    Knock,
    Line,
    Opened,
    Outbound,
    Place,
    Room,
    Sender,
    Sent,
)
from ..transports.calls import as_sent, called, object_of
from .signing import TIME, key_of, signed, verified

SECONDS = 15.0
TAKEN, LATER = range(200, 300), {408, 425, 429, 503}
SERVER_ERROR = 500
LONGEST_PAUSE = 3600.0

Id = Annotated[str, StringConstraints(max_length=200)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class Settings(BaseModel, defer_build=True):
    """Settings of ``[channels.webhook]``."""

    url: str = Field(pattern="^https?://", description="Where answers are posted to")


class Call(BaseModel, defer_build=True):
    """A message that a program hands in."""

    conversation: Name
    sender: Name
    sender_name: Id = ""
    text: Annotated[str, StringConstraints(min_length=1, max_length=100_000)]
    thread: Id = ""
    reply_to: Id = ""
    room: Room = Room.DIRECT
    mentions_us: bool = False


class Webhook(Adapter):
    """One program."""

    settings = Settings
    secrets: ClassVar[Mapping[str, str]] = {"secret": "WEBHOOK_SECRET"}  # nosec B105 # the name of a variable
    needed = frozenset({"secret"})

    def __init__(self, line: Line) -> None:
        super().__init__(line)
        self._options: Settings = line.settings

    @property
    def called(self) -> bool:
        """It always is: there is no other way in."""
        return True

    async def run(self) -> None:
        """Say that programs may call, and wait."""
        key_of(self._secret())
        self.line.connected()
        await asyncio.Event().wait()

    async def identity(self) -> str:
        """Name the host that answers go to; its secret is looked at."""
        key_of(self._secret())
        return httpx.URL(self._options.url).host

    def _secret(self) -> str:
        secret = self.line.secret("secret")
        if secret is None:
            raise Unauthenticated("the webhook needs secret: set WEBHOOK_SECRET")
        return secret.reveal()

    async def open(self, knock: Knock) -> Opened:
        """Take a signed message."""
        now = self.line.clock.now().timestamp()
        if (secret := self.line.secret("secret")) is None:
            # Nobody is told so: whoever asks here is a stranger.
            raise Unauthenticated("the webhook's signature is wrong")
        name = verified(secret.reveal(), knock.headers, knock.body, now)
        try:
            call = Call.model_validate_json(knock.body)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            field = ".".join(map(str, first["loc"])) or "body"
            raise InvalidInput(field, first["msg"]) from None
        seconds = int(knock.headers[TIME])
        place = Place(self.line.account, call.conversation, call.thread, call.room)
        heard = Inbound(
            place,
            name,
            Sender(call.sender, call.sender_name),
            call.text,
            datetime.fromtimestamp(seconds, UTC),
            reply_to=call.reply_to,
            mentions_us=call.mentions_us or call.room is Room.DIRECT,
        )
        return Opened(202, messages=(heard,), replay_key=name)

    async def send(self, message: Outbound) -> Sent:
        """Post a message; ``webhook-id`` is its key, the same each time."""
        if message.typing or message.reaction:
            return Sent(Fate.NOT_SENT, reason="a webhook has texts alone", final=True)
        try:
            return _meaning(await self._post(message), message.key)
        except AgentHostError as error:
            return as_sent(error)

    async def _post(self, message: Outbound) -> httpx.Response:
        said = {
            "type": "message",
            "conversation": message.place.peer,
            "thread": message.place.thread,
            "text": message.text,
            "plain": message.plain,
            "reply_to": message.reply_to,
        }
        body = json.dumps(said, ensure_ascii=False).encode("utf-8", "replace")
        seconds = int(self.line.clock.now().timestamp())
        headers = signed(self._secret(), message.key, seconds, body)
        headers["content-type"] = "application/json"
        url, client = self._options.url, self.line.http()
        return await called(
            client, "POST", url, content=body, headers=headers, timeout=SECONDS
        )


def _meaning(response: httpx.Response, key: str) -> Sent:
    status = response.status_code
    if status in TAKEN:
        return Sent(Fate.DELIVERED, str(object_of(response).get("id") or key)[:200])
    reason = f"the webhook answers with status {status}"
    if status in LATER:
        return Sent(Fate.NOT_SENT, reason=reason, retry_after=_pause(response))
    if status >= SERVER_ERROR:
        return Sent(Fate.UNKNOWN, reason=reason)
    return Sent(Fate.NOT_SENT, reason=reason, final=True)


def _pause(response: httpx.Response) -> float | None:
    asked = response.headers.get("retry-after", "")
    return min(float(asked), LONGEST_PAUSE) if asked.isdecimal() else None
