"""A bot on Discord.

A session outlives its connection and, for some minutes, this process: its number is the
cursor, and Discord sends again what came after it. Where the session is gone, the
channels that were heard last are read from their last message on.
"""

from __future__ import annotations

import hashlib
import random
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from agenthost import AgentHostError, NotFound, Unavailable
from pydantic import BaseModel, Field

from ..contract import Adapter, Attachment, Fate, Inbound, Line, Outbound, Sent
from ..transports.addresses import EncryptedUrl
from .client import PAGE, Client, reaction_path
from .mapping import (
    SNOWFLAKE,
    Whereabouts,
    inbound,
    is_said,
    told_where,
    whereabouts,
)
from .session import Session

if TYPE_CHECKING:
    from .gateway import Event

GUILD_MESSAGES, DIRECT_MESSAGES, MESSAGE_CONTENT = 1 << 9, 1 << 12, 1 << 15
SUPPRESS_EMBEDS = 1 << 2
MESSAGES = "/channels/{}/messages"
PAGES = 10
REMEMBERED = 1_000
TURNS_WITHOUT_EVENT = 5
PAUSE_SECONDS = (1.0, 5.0)


class Settings(BaseModel, defer_build=True):
    """Settings of ``[channels.discord]``."""

    api_url: EncryptedUrl = Field(
        "https://discord.com/api/v10", description="Discord's API, version 10"
    )
    message_content: bool = Field(
        default=False,
        description="Ask for the content of what is not said to us; the developer "
        "portal has to allow it",
    )


class Discord(Adapter):
    """One bot, in its guilds and in direct messages."""

    settings = Settings
    secrets: ClassVar[Mapping[str, str]] = {
        "bot_token": "DISCORD_BOT_TOKEN"  # nosec B105 # the name of a variable
    }
    needed = frozenset({"bot_token"})

    def __init__(self, line: Line) -> None:
        super().__init__(line)
        self._options: Settings = line.settings
        self._client = Client(line, self._options.api_url)
        self._kept: Session | None = None
        self._us = ""
        self._places: OrderedDict[str, Whereabouts] = OrderedDict()
        # Ours, as Discord tells of them: by nonce.
        self._seen: OrderedDict[str, str] = OrderedDict()
        self._events = 0

    async def identity(self) -> str:
        """Ask Discord who we are."""
        found = await self._client.us()
        self._us = found["id"]
        return f"@{found.get('username', '')} ({self._us})"

    # Hearing.

    async def run(self) -> None:
        """Stay connected; a connection that Discord ends is begun anew."""
        from .gateway import Broken

        await self.identity()
        session = self._session
        idle = 0
        while True:
            before = self._events
            try:
                await self._listen(session)
            except Broken as broken:
                idle = idle + 1 if self._events == before else 0
                if idle >= TURNS_WITHOUT_EVENT:
                    raise Unavailable(str(broken)) from None
                if broken.pause:
                    pause = random.uniform(*PAUSE_SECONDS)  # noqa: S311 # nosec B311
                    await self.line.clock.sleep(pause)

    @property
    def _session(self) -> Session:
        """What is resumed: read once, since memory may be ahead of the cursor."""
        if self._kept is None:
            self._kept = Session(self.line.cursor)
        return self._kept

    async def _listen(self, session: Session) -> None:
        from .gateway import Gateway

        token = self._client.token()
        url = session.url or await self._client.gateway()
        intents = GUILD_MESSAGES | DIRECT_MESSAGES
        if self._options.message_content:
            intents |= MESSAGE_CONTENT
        await Gateway(self.line, session, token, intents).listen(url, self._take)

    async def _take(self, event: Event) -> None:
        match event.name:
            case "READY" if isinstance(event.data, dict):
                await self._begin(self._session, event)
            case "RESUMED":
                self.line.connected()
            case "MESSAGE_CREATE" | "MESSAGE_UPDATE" if is_said(event.data):
                updated = event.name == "MESSAGE_UPDATE"
                await self._hear(self._session, event, updated=updated)
            case _:
                return
        self._events += 1

    async def _begin(self, session: Session, event: Event) -> None:
        """Begin a session, once what was said without one has been read."""
        for channel in list(session.heard):
            await self._catch_up(session, channel)
        session.begin(event.data, event.seq)
        await self.line.received(cursor=session.written())
        self.line.connected()

    async def _catch_up(self, session: Session, channel: str) -> None:
        """Read what was said in a channel while there was no session."""
        last, where = session.heard[channel]
        for _ in range(PAGES):
            try:
                page = await self._client.messages(channel, after=last)
            except NotFound:
                del session.heard[channel]
                return
            batch = [each for each in map(self._read_of(where), page) if each]
            if page:
                await self.line.received(*batch)
                last = page[-1]["id"]
                session.hear(channel, last, where)
            if len(page) < PAGE:
                return

    def _read_of(self, where: Whereabouts) -> Any:
        def read(message: Any) -> Inbound | None:
            if not is_said(message):
                return None
            return inbound(message, where.place(self.line.account), self._us)

        return read

    async def _hear(self, session: Session, event: Event, *, updated: bool) -> None:
        message = event.data
        channel, name = message["channel_id"], message["id"]
        if message["author"]["id"] == self._us:
            self._note(message)
            return
        where = await self._where(message)
        if where is None:
            return
        place = where.place(self.line.account)
        heard = inbound(message, place, self._us, updated=updated)
        if heard is None:
            return
        # What is not on disk is not counted: Discord has to send it again.
        then = Session(session.written())
        then.hear(channel, name, where)
        then.passed(event.seq)
        await self.line.received(heard, cursor=then.written())
        session.hear(channel, name, where)

    async def _where(self, message: dict[str, Any]) -> Whereabouts | None:
        """Tell which channel a message is of; of a thread, which it belongs to."""
        channel = message["channel_id"]
        found = told_where(message) or self._places.get(channel)
        if found is None:
            try:
                found = whereabouts(await self._client.ask("/channels/{}", channel))
            except (NotFound, ValueError):
                return None
            _remember(self._places, channel, found)
        return found

    def _note(self, message: dict[str, Any]) -> None:
        nonce = message.get("nonce")
        if isinstance(nonce, str):
            _remember(self._seen, nonce, message["id"])

    async def download(self, attachment: Attachment) -> bytes:
        """Fetch a file; its address holds for a day, and is asked for anew then."""
        reference = attachment.reference
        try:
            return await self._client.file(str(reference.get("url", "")))
        except NotFound:
            channel, message = str(reference["channel"]), str(reference["message"])
            if not (SNOWFLAKE.fullmatch(channel) and SNOWFLAKE.fullmatch(message)):
                raise
        found = await self._client.ask(f"{MESSAGES}/{message}", channel)
        files = found.get("attachments") if isinstance(found, dict) else None
        for file in files if isinstance(files, list) else ():
            if isinstance(file, dict) and file.get("id") == reference.get("id"):
                return await self._client.file(str(file.get("url", "")))
        raise NotFound("file", attachment.name)

    # Saying.

    async def send(self, message: Outbound) -> Sent:
        """Say something, and tell what became of it."""
        place = message.place
        named = (place.peer, place.thread, message.reply_to, message.edit_of)
        if not all(SNOWFLAKE.fullmatch(each) for each in named if each):
            return _never("Discord's ids are numbers")
        if not (channel := place.thread or place.peer):
            return _never("a message of Discord's goes to a channel")
        if message.files and not message.edit_of:
            return await self._client.upload(channel, _said(message), message.files)
        return await self._client.say(*_call_of(message), channel=channel)

    async def reconcile(self, message: Outbound) -> Sent:
        """Look for a message: among those the gateway told of, then in its channel."""
        nonce = nonce_of(message.key)
        if nonce in self._seen:
            return Sent(Fate.DELIVERED, self._seen[nonce])
        if message.edit_of or message.reaction or message.typing:
            return Sent(Fate.UNKNOWN, reason="Discord does not show what was changed")
        channel = message.place.thread or message.place.peer
        try:
            us = self._us or (await self._client.us())["id"]
            page = await self._client.messages(channel)
        except AgentHostError as error:
            return Sent(Fate.UNKNOWN, reason=f"Discord cannot be asked: {error}")
        return _found(message, nonce, us, page)


_QUIET: dict[str, Any] = {
    "allowed_mentions": {"parse": []},
    "flags": SUPPRESS_EMBEDS,
}


def nonce_of(key: str) -> str:
    """Make the nonce of a message: Discord takes 25 characters."""
    return hashlib.sha256(key.encode()).hexdigest()[:24]


def _said(message: Outbound) -> dict[str, Any]:
    said = {"content": message.text, **_QUIET}
    said |= {"nonce": nonce_of(message.key), "enforce_nonce": True}
    if message.reply_to:
        # What it answers may be gone meanwhile: it is said all the same.
        reference = {"message_id": message.reply_to, "fail_if_not_exists": False}
        said["message_reference"] = reference
    return said


def _call_of(message: Outbound) -> tuple[str, str, Any]:
    """Give the method, the path and the body of what a message asks for."""
    if message.typing:
        return "POST", "/channels/{}/typing", None
    if message.reaction:
        path = reaction_path(message.reply_to, message.reaction)
        return "PUT", path, None
    if message.edit_of:
        said = {"content": message.text, **_QUIET}
        return "PATCH", f"{MESSAGES}/{message.edit_of}", said
    return "POST", MESSAGES, _said(message)


def _found(message: Outbound, nonce: str, us: str, page: list[dict[str, Any]]) -> Sent:
    """Tell from the newest messages of its channel what became of a message."""
    for each in page:
        author = each.get("author")
        if not isinstance(author, dict) or author.get("id") != us:
            continue
        if each.get("nonce") == nonce:
            return Sent(Fate.DELIVERED, each["id"])
        if "nonce" not in each and each.get("content") == message.text:
            reason = "the same was said there, and Discord does not show by which try"
            return Sent(Fate.UNKNOWN, reason=reason)
    # Without the right to read what was said before, Discord shows none at all.
    whole = 0 < len(page) < PAGE
    answered = int(message.reply_to or 0)
    if whole or (page and answered and int(page[0]["id"]) <= answered):
        return Sent(Fate.NOT_SENT, reason="Discord has not got it")
    return Sent(Fate.UNKNOWN, reason="Discord does not show whether it arrived")


def _never(reason: str) -> Sent:
    return Sent(Fate.NOT_SENT, reason=reason, final=True)


def _remember(known: OrderedDict[str, Any], key: str, value: Any) -> None:
    known[key] = value
    known.move_to_end(key)
    while len(known) > REMEMBERED:
        known.popitem(last=False)
