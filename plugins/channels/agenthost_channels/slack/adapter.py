"""A Slack app.

Sources: https://docs.slack.dev/apis/events-api/using-socket-mode,
https://docs.slack.dev/authentication/verifying-requests-from-slack,
https://docs.slack.dev/messaging/working-with-files.

An envelope is acknowledged when its message is on disk: Slack sends it again otherwise,
with the same time stamp, which is the message's id.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from agenthost import InvalidInput, Unauthenticated, Unavailable
from pydantic import BaseModel, Field

from ..contract import (
    Adapter,
    Attachment,
    Fate,
    Knock,
    Line,
    Opened,
    Outbound,
    Sent,
)
from .client import Client
from .mapping import CHANNEL, STAMP, inbound

if TYPE_CHECKING:
    from ..transports.websocket import WebSocket

WINDOW_SECONDS = 300
QUIET_SECONDS = 60.0
HELLO_SECONDS = 30.0
EMOJI = {
    "\U0001f440": "eyes",
    "\U0001f44d": "+1",
    "\U0001f44e": "-1",
    "\u2705": "white_check_mark",
    "\u274c": "x",
    "\u23f3": "hourglass_flowing_sand",
    "\U0001f914": "thinking_face",
    "\u26a0": "warning",
    "\U0001f389": "tada",
    "\u2764": "heart",
}


class Settings(BaseModel, defer_build=True):
    """Settings of ``[channels.slack]``."""

    api_url: str = Field(
        "https://slack.com/api", pattern="^https?://", description="Slack's Web API"
    )
    mode: str = Field(
        "socket",
        pattern="^(socket|events)$",
        description="Whether we connect to Slack, or Slack calls our webhook",
    )


class Slack(Adapter):
    """One app in one workspace."""

    settings = Settings
    secrets: ClassVar[Mapping[str, str]] = {
        "bot_token": "SLACK_BOT_TOKEN",  # nosec B105 # the name of a variable
        "app_token": "SLACK_APP_TOKEN",  # nosec B105 # the name of a variable
        "signing_secret": "SLACK_SIGNING_SECRET",  # nosec B105 # the name of a variable
    }
    needed = frozenset({"bot_token"})

    def __init__(self, line: Line) -> None:
        super().__init__(line)
        self._options: Settings = line.settings
        self._client = Client(line, self._options.api_url)
        self._us = ""

    async def identity(self) -> str:
        """Give the app's user and workspace."""
        found = await self._client.asked("auth.test")
        self._us = str(found.get("user_id", ""))
        if not self._us:
            raise Unavailable("Slack does not say who we are")
        return f"@{found.get('user', '')} in {found.get('team', '')}"

    @property
    def called(self) -> bool:
        """Whether Slack calls us."""
        return bool(self._options.mode != "socket")

    async def run(self) -> None:
        """Stay connected, or wait for Slack's calls."""
        await self.identity()
        if not self.called:
            await self._listen()
            return
        if self.line.secret("signing_secret") is None:
            raise Unauthenticated(
                "Slack needs signing_secret: set SLACK_SIGNING_SECRET"
            )
        self.line.connected()
        await asyncio.Event().wait()

    # Socket Mode.

    async def _listen(self) -> None:
        """Read one connection until Slack wants a new one."""
        from ..transports.websocket import WebSocket

        found = await self._client.asked("apps.connections.open", "app_token")
        socket = await WebSocket.connect(self.line, str(found.get("url", "")))
        try:
            _object(await socket.receive(HELLO_SECONDS))
            self.line.connected()
            while await self._take(socket, await socket.receive(QUIET_SECONDS)):
                pass
        finally:
            socket.close()

    async def _take(self, socket: WebSocket, text: str) -> bool:
        """Take an envelope; tell whether the connection goes on."""
        envelope = _object(text)
        if envelope.get("type") == "disconnect":
            if envelope.get("reason") == "link_disabled":
                raise Unauthenticated(
                    "Socket Mode is off: turn it on in Slack's settings"
                )
            return False
        if envelope.get("type") == "events_api":
            heard = inbound(envelope.get("payload"), self.line.account, self._us)
            if heard is not None:
                await self.line.received(heard)
        if isinstance(name := envelope.get("envelope_id"), str):
            await socket.send(json.dumps({"envelope_id": name}))
        return True

    # The Events API.

    async def open(self, knock: Knock) -> Opened:
        """Take an event that Slack has signed."""
        self._verify(knock)
        if not (payload := _object(knock.body)):
            raise InvalidInput("body", "an event is a JSON object")
        if payload.get("type") == "url_verification":
            return Opened(body=str(payload.get("challenge", "")).encode()[:1000])
        if not self._us:
            raise Unavailable("the app is not connected yet")
        heard = inbound(payload, self.line.account, self._us)
        name = str(payload.get("event_id", ""))
        return Opened(messages=(heard,) if heard else (), replay_key=name)

    def _verify(self, knock: Knock) -> None:
        stamp = knock.headers.get("x-slack-request-timestamp", "")
        if not re.fullmatch(r"\d{1,12}", stamp):
            raise Unauthenticated("Slack's time stamp is missing")
        secret = self.line.secret("signing_secret")
        key = b"" if secret is None else secret.reveal().encode()
        content = f"v0:{stamp}:".encode() + knock.body
        digest = hmac.new(key, content, hashlib.sha256).hexdigest()
        offered = knock.headers.get("x-slack-signature", "")
        right = hmac.compare_digest(
            offered.encode("utf-8", "surrogatepass"), f"v0={digest}".encode()
        )
        # Without a secret nobody is told so: whoever asks here is a stranger.
        if not key or not right:
            raise Unauthenticated("Slack's signature is wrong")
        if abs(self.line.clock.now().timestamp() - int(stamp)) > WINDOW_SECONDS:
            raise Unauthenticated(
                "the event was signed more than five minutes from now"
            )

    async def download(self, attachment: Attachment) -> bytes:
        """Fetch a file of the workspace."""
        return await self._client.file(str(attachment.reference.get("url", "")))

    # Saying.

    async def send(self, message: Outbound) -> Sent:
        """Say something, and tell what became of it."""
        place = message.place
        stamps = [each for each in (place.thread, message.edit_of) if each]
        if not CHANNEL.fullmatch(place.peer) or not all(map(STAMP.fullmatch, stamps)):
            return _never("Slack's places have ids of capital letters and digits")
        if message.typing:
            return _never("Slack shows no typing of apps")
        if message.reaction:
            return await self._react(message)
        if message.files:
            return await self._send_file(message)
        said: dict[str, Any] = {"channel": place.peer, "text": message.text}
        if message.edit_of:
            return await self._client.send(
                "chat.update", {**said, "ts": message.edit_of}
            )
        said |= {"unfurl_links": "false", "unfurl_media": "false"}
        if place.thread:
            said["thread_ts"] = place.thread
        return await self._client.send("chat.postMessage", said)

    async def _react(self, message: Outbound) -> Sent:
        name = EMOJI.get(message.reaction.rstrip("\ufe0f"))
        if name is None:
            return _never("Slack has another name for that emoji")
        where = {"channel": message.place.peer, "timestamp": message.reply_to}
        return await self._client.send("reactions.add", {**where, "name": name})

    async def _send_file(self, message: Outbound) -> Sent:
        file = message.files[0]
        name = await self._client.upload(file)
        if isinstance(name, Sent):
            return name
        said = {
            "files": json.dumps([{"id": name, "title": file.name}]),
            "channel_id": message.place.peer,
        }
        if message.text:
            said["initial_comment"] = message.text
        if message.place.thread:
            said["thread_ts"] = message.place.thread
        sent = await self._client.send("files.completeUploadExternal", said)
        # Slack does not say which message shows the file: the file's id stands for it.
        return replace(sent, message_id=name) if sent.fate is Fate.DELIVERED else sent


def _never(reason: str) -> Sent:
    return Sent(Fate.NOT_SENT, reason=reason, final=True)


def _object(text: str | bytes) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
