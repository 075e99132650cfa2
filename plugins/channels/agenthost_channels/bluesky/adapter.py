"""Bluesky by the AT Protocol: posts in public, and direct messages.

Both are asked for again and again: the notifications, and the log of the messages.
A post is a record whose key is made of the message's: however often it is sent, there
is one. Direct messages have no such key.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import ClassVar

from agenthost import AgentHostError
from pydantic import BaseModel, Field, model_validator

from ..contract import Adapter, Attachment, Fate, Inbound, Line, Outbound, Sent
from ..transports.addresses import EncryptedUrl
from ..transports.calls import as_sent
from .client import Client
from .feed import Feed
from .files import fetched
from .letters import Letters
from .mapping import DID, GROUP, POSTS, Told, Us
from .notices import Notices, newest


class Settings(BaseModel, defer_build=True):
    """Settings of ``[channels.bluesky]``."""

    service: EncryptedUrl = Field(
        "https://bsky.social", description="Where the account logs in"
    )
    identifier: str = Field(
        min_length=3, max_length=2048, description="The account's handle, or its DID"
    )
    posts: bool = Field(
        default=True, description="Hear posts that mention the account or answer it"
    )
    messages: bool = Field(default=True, description="Hear direct messages")
    poll_seconds: float = Field(
        5.0, ge=0.05, le=300, description="Seconds between two looks at what is new"
    )
    directory: EncryptedUrl = Field(
        "https://plc.directory", description="Where it stands on whose host a file is"
    )

    @model_validator(mode="after")
    def _something(self) -> Settings:
        if not (self.posts or self.messages):
            raise ValueError("with neither posts nor messages nothing would be heard")
        return self


class Bluesky(Adapter):
    """One account."""

    settings = Settings
    secrets: ClassVar = {"app_password": "BLUESKY_APP_PASSWORD"}  # nosec B105 # a name
    needed: ClassVar = frozenset({"app_password"})

    def __init__(self, line: Line) -> None:
        super().__init__(line)
        options: Settings = line.settings
        self._options = options
        self._client = Client(line, options.service, options.identifier)
        self._letters = Letters(self._client, line)
        self._feed = Feed(self._client, line)

    async def _us(self) -> Us:
        session = await self._client.session()
        return Us(self.line.account, session.did, session.handle)

    # Hearing.

    async def run(self) -> None:
        """Ask what is new, again and again."""
        us = await self._us()
        told: Told = json.loads(self.line.cursor or "{}")
        if "begun" not in told:
            told["begun"] = await newest(self._client)
        if self._options.messages and "log" not in told:
            told["log"] = await self._letters.newest()
        await self.line.received(cursor=json.dumps(told))
        notices = Notices(self._client, us)
        connected = False
        while True:
            if self._options.posts:
                await self._keep(notices.news(told), told)
            if self._options.messages:
                await self._keep(self._letters.news(us, told), told)
            if not connected:
                connected = True
                self.line.connected()
            await self.line.clock.sleep(self._options.poll_seconds)

    async def _keep(self, news: AsyncIterator[list[Inbound]], told: Told) -> None:
        async for messages in news:
            await self.line.received(*messages, cursor=json.dumps(told))

    async def download(self, attachment: Attachment) -> bytes:
        """Fetch a file from its author's host."""
        return await fetched(self.line, self._options.directory, attachment)

    # Saying.

    async def send(self, message: Outbound) -> Sent:
        """Post an answer, or write to a person."""
        peer = message.place.peer
        if not (peer == POSTS or DID.fullmatch(peer) or GROUP.fullmatch(peer)):
            return _never("name posts, a DID or a conversation")
        if message.typing:
            return _never("Bluesky has no such sign")
        if message.files and peer != POSTS:
            return _never("direct messages of Bluesky carry no files")
        say = self._feed.send if peer == POSTS else self._letters.send
        try:
            return await say(message, await self._us())
        except AgentHostError as error:
            return as_sent(error)

    async def reconcile(self, message: Outbound) -> Sent:
        """Look among our posts, or in the conversation."""
        public = message.place.peer == POSTS
        look = self._feed.reconcile if public else self._letters.reconcile
        try:
            return await look(message, await self._us())
        except AgentHostError as error:
            # That we could not look says nothing of the message.
            return Sent(Fate.UNKNOWN, reason=str(error))

    async def identity(self) -> str:
        """Log in, and tell as whom."""
        us = await self._us()
        return f"@{us.handle} ({us.did})"


def _never(reason: str) -> Sent:
    return Sent(Fate.NOT_SENT, reason=reason, final=True)
