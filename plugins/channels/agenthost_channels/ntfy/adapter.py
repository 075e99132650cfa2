"""ntfy by topics: what is published to one is heard, and answered in it.

ntfy does not say who published something. The conversation, and who speaks in it, is
the topic: the server's access list decides who may write there.

The cursor is the server's time. A connection asks for what was published since a
minute before it, since what is published at once may come in any order; what comes
again is known by its id. Ours is known by its tag.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from contextlib import aclosing
from typing import Any, ClassVar
from urllib.parse import urlsplit

from agenthost import AgentHostError
from pydantic import BaseModel, Field, field_validator

from ..contract import Adapter, Attachment, Fate, Line, Outbound, Room, Sent
from ..transports.addresses import EncryptedUrl
from .client import Client
from .mapping import SEQUENCE, TOPIC, Ours, event_of, inbound

log = logging.getLogger(__name__)
OVERLAP_SECONDS = 60
REMEMBERED = 2_000
LOOK_BACK = "10m"
_TOPIC = r"^[-_A-Za-z0-9]{1,64}$"


class Settings(BaseModel, defer_build=True):
    """Settings of ``[channels.ntfy]``."""

    server: EncryptedUrl = Field("https://ntfy.sh", description="Address of the server")
    topics: list[str] = Field(
        min_length=1, max_length=30, description="Topics that are heard"
    )
    user: str = Field("", description="Name to log in with, where there is no token")
    room: Room = Field(Room.DIRECT, description="Who hears a topic of ours")
    tag: str = Field(
        "agenthost",
        pattern=_TOPIC,
        description="Tag of what we say; what anybody says with it is not heard",
    )
    title: str = Field("", max_length=200, description="Title of what we say")
    markdown: bool = Field(
        default=True, description="Let programs that can show our markup"
    )

    @field_validator("topics")
    @classmethod
    def _topics(cls, value: list[str]) -> list[str]:
        if wrong := [each for each in value if not TOPIC.fullmatch(each)]:
            raise ValueError(f"{wrong[0]!r} is no topic: letters, digits, - and _")
        return list(dict.fromkeys(value))


class Ntfy(Adapter):
    """Some topics of one server."""

    settings = Settings
    secrets: ClassVar = {
        "token": "NTFY_TOKEN",  # nosec B105 # the name of a variable
        "password": "NTFY_PASSWORD",  # nosec B105 # the name of a variable
    }

    def __init__(self, line: Line) -> None:
        super().__init__(line)
        options: Settings = line.settings
        self._options = options
        self._client = Client(line, options.server, options.user, options.topics)
        self._ours = Ours(
            line.account, frozenset(options.topics), options.room, options.tag
        )
        self._taken: OrderedDict[str, None] = OrderedDict()
        # Whether the server knows sequences: not before we have said something.
        self._changes: bool | None = None

    # Hearing.

    async def run(self) -> None:
        """Read what is published, and what was while we were away."""
        since = self.line.cursor
        query = {"since": str(int(since) - OVERLAP_SECONDS)} if since else {}
        path = f"{','.join(self._options.topics)}/json"
        async with aclosing(self._client.lines(path, query)) as lines:
            async for line in lines:
                await self._take(event_of(line))

    async def _take(self, event: dict[str, Any]) -> None:
        if event.get("event") == "open":
            if not self.line.cursor:
                await self.line.received(cursor=self._reached(event))
            self.line.connected()
            return
        message = inbound(event, self._ours)
        if message is None or event["id"] in self._taken:
            return
        await self.line.received(message, cursor=self._reached(event))
        self._taken[event["id"]] = None
        while len(self._taken) > REMEMBERED:
            self._taken.popitem(last=False)

    def _reached(self, event: dict[str, Any]) -> str:
        """Tell how far we are: a time to come would pass over what comes until then."""
        told = min(int(event["time"]), int(self.line.clock.time()))
        return str(max(told, int(self.line.cursor or 0)))

    async def download(self, attachment: Attachment) -> bytes:
        """Fetch a file that the server keeps."""
        return await self._client.file(str(attachment.reference.get("url", "")))

    # Saying.

    async def send(self, message: Outbound) -> Sent:
        """Publish a message, or what replaces one."""
        topic = message.place.peer
        if not TOPIC.fullmatch(topic) or message.place.thread:
            return _never("a topic has letters, digits, - and _, and no threads")
        if message.typing or message.reaction:
            return _never("ntfy has no such thing")
        if message.edit_of and self._changes is False:
            return _never("this ntfy server cannot change a message: 2.16 can")
        if message.edit_of and not SEQUENCE.fullmatch(message.edit_of):
            return _never("that is no id of ours")
        sent, said = await self._client.publish(topic, *self._written(message))
        if sent.fate is Fate.DELIVERED:
            self._changes = "sequence_id" in said
        return sent

    def _written(self, message: Outbound) -> tuple[dict[str, str], bytes]:
        """Write the parameters of a message, and its body."""
        marked = self._options.markdown
        text = message.text if marked else message.plain or message.text
        query = {
            "tags": self._options.tag,
            "sequence-id": message.edit_of or message.key,
        }
        if marked:
            query["markdown"] = "yes"
        if self._options.title:
            query["title"] = self._options.title
        if not message.files:
            return query, text.encode()
        file = message.files[0]
        query["filename"] = file.name
        if text:
            query["message"] = text
        return query, file.data

    async def reconcile(self, message: Outbound) -> Sent:
        """Look among what the server keeps.

        It writes down what it takes a moment later, and may keep nothing: what is not
        there may have arrived all the same.
        """
        path = f"{message.place.peer}/json"
        query = {"poll": "1", "since": LOOK_BACK}
        try:
            async with aclosing(self._client.lines(path, query)) as lines:
                async for line in lines:
                    event = event_of(line)
                    tagged = self._options.tag in (event.get("tags") or ())
                    if tagged and event.get("sequence_id") == message.key:
                        return Sent(Fate.DELIVERED, message.key)
        except (AgentHostError, TypeError) as error:
            return Sent(Fate.UNKNOWN, reason=f"ntfy cannot be asked: {error}")
        return Sent(Fate.UNKNOWN, reason="ntfy does not show whether it arrived")

    async def identity(self) -> str:
        """Ask the server who we are."""
        name = await self._client.account()
        host = urlsplit(self._options.server).hostname
        return f"{name} at {host}" if name else f"nobody in particular, at {host}"


def _never(reason: str) -> Sent:
    return Sent(Fate.NOT_SENT, reason=reason, final=True)
