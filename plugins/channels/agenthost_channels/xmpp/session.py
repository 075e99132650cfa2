"""One stream, from login to end: what comes in, and what became of what goes out.

A text to a person is delivered when the server acknowledges it (XEP-0198), or answers a
ping sent behind it: it handles a stream in order, and a refusal comes before. In a room
it is delivered when the room shows it to us. When the stream ends before, its fate is
unknown, and the archive is looked into.

The archives are the memory: at a start, what came since the cursor is taken from them,
and only then what has come meanwhile, which is known by the same ids.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from agenthost import AgentHostError, Secret, Unavailable

from ..contract import (
    Fate,
    Inbound,
    Line,
    Outbound,
    Place,
    Room,
    Sender,
    Sent,
)
from .archive import Archives, Kept, Marks
from .client import Client
from .config import Settings
from .corrections import Replaceable
from .files import FOR_GOOD, Uploads, attachment_of
from .mapping import Said, addressed, delayed_by, in_room, is_named, late, said_of
from .rooms import Rooms
from .speaking import Speaker
from .wire import opened

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element  # nosec B405 # a type; nothing is parsed

log = logging.getLogger(__name__)
LOGIN_SECONDS = 60.0
WATCH_SECONDS = 60.0
# What waits for the disk before the server is no longer read; and during the looking
# into archives, when it must be read, what may wait at all.
CROWDED, ROOMY, MOST = 100, 20, 5_000


@dataclass(frozen=True, slots=True)
class Heard:
    """What was said, when if not now, and the address behind a nick at that time."""

    said: Said
    at: datetime | None
    real: str


class Session:
    """One session of one account, in some rooms.

    Args:
        line: What the bridge gives.
        password: Of the account.
        up: Is set when what was missed is taken, and more comes in and goes out.
    """

    def __init__(self, line: Line, password: Secret, up: asyncio.Event) -> None:
        self.line = line
        self._up = up
        self._options: Settings = line.settings
        self._client = Client(self._options, password.reveal())
        self._us = self._options.jid.lower()
        self._archives = Archives(self._client, self._us)
        self._rooms = Rooms(self._options, self._client)
        self._speaker = Speaker(self._client)
        self._uploads = Uploads(self._client, line)
        self._replaceable = Replaceable()
        # The archives there are, by address; ours is one of them.
        self._kept: set[str] = set()
        self._queue: asyncio.Queue[Heard] = asyncio.Queue()

    # Connecting.

    async def run(self) -> None:
        """Log in, join, take what was missed, and listen until the stream ends."""
        client = self._client
        try:
            await self._log_in(client)
            await self._live(client)
        finally:
            # Before whoever waited for an answer looks for it in a stream that is over.
            self._up.clear()
            self._speaker.forget()
            await client.close()

    async def _log_in(self, client: Client) -> None:
        try:
            async with asyncio.timeout(LOGIN_SECONDS):
                await client.log_in(await opened(self.line, self._options))
        except TimeoutError:
            raise Unavailable("the XMPP server does not let us in in time") from None

    async def _live(self, client: Client) -> None:
        """Do all of it at once; the first that ends, ends it."""
        living = [
            asyncio.create_task(self._listen(client)),
            asyncio.create_task(self._watch()),
        ]
        try:
            every: tuple[asyncio.Future[Any], ...] = (client.ended, *living)
            await asyncio.wait(every, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in living:
                task.cancel()
            await asyncio.wait(living)
        for task in living:
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error
        raise client.ended.result()

    async def _listen(self, client: Client) -> None:
        client.hear(self._take)
        if await self._rooms.has_archive(self._us):
            self._kept.add(self._us)
        # What was said to us before we were ever here is not for us: so ask now,
        # before the server thinks that we are there.
        await self._mark(self._us)
        client.send_presence(ppriority=0)
        for room in await self._rooms.join():
            if await self._rooms.has_archive(room):
                self._kept.add(room)
                await self._mark(room)
        for archive in sorted(self._kept):
            await self._fill(archive)
        self._up.set()
        self.line.connected()
        await self._hand_on(client)

    async def _mark(self, archive: str) -> None:
        """Begin an archive that we see for the first time where it ends."""
        marks = Marks.of(self.line.cursor)
        if archive not in self._kept or archive in marks.reached:
            return
        newest = await self._archives.newest(archive)
        id_, at = (newest.id, newest.at) if newest else ("", None)
        await self.line.received(cursor=marks.moved(archive, id_, at))

    async def _fill(self, archive: str) -> None:
        """Take what came since the cursor, and keep each page with its end."""
        mark = Marks.of(self.line.cursor).reached[archive]
        async for page in self._archives.since(archive, mark):
            if not page.kept:
                return
            read = [self._missed(archive, each) for each in page.kept]
            last = page.kept[-1]
            await self.line.received(
                *filter(None, read),
                cursor=Marks.of(self.line.cursor).moved(archive, last.id, last.at),
            )

    def _missed(self, archive: str, kept: Kept) -> Inbound | None:
        said = said_of(kept.message)
        if said is None or (said.kind == "groupchat") != (archive != self._us):
            return None
        # A room's archive holds what was said in that room, and nothing else.
        if archive not in {self._us, said.bare}:
            return None
        return self._inbound(said, kept.id, kept.at, "")

    async def _hand_on(self, client: Client) -> None:
        while True:
            heard = await self._queue.get()
            await self._keep(heard)
            if self._queue.qsize() <= ROOMY and client.transport is not None:
                client.transport.resume_reading()

    async def _keep(self, heard: Heard) -> None:
        """Keep a message under the id that its archive has for it, if there is one."""
        said, cursor = heard.said, None
        archive = said.bare if said.kind == "groupchat" else self._us
        id_ = said.kept_as(archive) if archive in self._kept else ""
        message = self._inbound(said, id_ or said.own_id(), heard.at, heard.real)
        if id_:
            when = heard.at or self.line.clock.now()
            cursor = Marks.of(self.line.cursor).moved(archive, id_, when)
        if message is not None:
            await self.line.received(message, cursor=cursor)

    async def _watch(self) -> None:
        """See that the server is there, and that we are in our rooms."""
        while True:
            await self.line.clock.sleep(WATCH_SECONDS)
            if self._up.is_set() and not self._queue.qsize():
                await self._rooms.look()

    # Hearing.

    def _take(self, xml: Element) -> None:
        if self._archives.take(xml):
            return
        if self._speaker.noted(xml, ours=self._rooms.ours(xml.get("from", ""))):
            return
        if (said := said_of(xml)) is None:
            return
        # A room tells newcomers what was said before: its archive says it better.
        if said.kind == "groupchat" and late(xml) is not None:
            return
        real = self._rooms.address(said.bare, said.nick)
        self._queue.put_nowait(Heard(said, self._when(xml), real))
        waiting, client = self._queue.qsize(), self._client
        if not self._up.is_set() and waiting > MOST:
            client.end(Unavailable("more comes in than can be kept; we look again"))
        elif self._up.is_set() and waiting >= CROWDED and client.transport:
            client.transport.pause_reading()

    def _when(self, xml: Element) -> datetime | None:
        """Tell when our server says it was said; what its sender says is its own."""
        ours = {self._us, self._us.rpartition("@")[2]}
        return late(xml) if delayed_by(xml) in ours else None

    def _inbound(
        self, said: Said, id_: str, at: datetime | None, real: str
    ) -> Inbound | None:
        """Make a message of what was said to us; None for what is not."""
        peer = said.bare.lower()
        if said.encrypted:
            log.warning("a message of %s is encrypted, and not read", peer)
            return None
        if said.kind == "groupchat":
            room = self._rooms.kind(peer)
            if room is None or not said.nick or self._rooms.ours(said.sender):
                return None
            mentions, text = addressed(said.text, self._rooms.nick(peer))
            place, sender = (
                Place(self.line.account, peer, "", room),
                in_room(said, real),
            )
        else:
            # What occupants say behind the room's back is from nobody in particular;
            # what has no name before its domain is a server's.
            if peer == self._us or "@" not in peer or peer in self._rooms.named:
                return None
            mentions, text = True, said.text
            place = Place(self.line.account, peer)
            sender = Sender(peer, peer.partition("@")[0])
        when = at or self.line.clock.now()
        files = tuple(attachment_of(each) for each in said.files)
        message = Inbound(place, id_, sender, text, when, files, mentions_us=mentions)
        return self._replaceable.settled(message, said)

    # Speaking.

    async def send(self, message: Outbound) -> Sent:
        """Say something, and wait until the server or the room has it."""
        in_room = message.place.peer in self._rooms.named
        if (refused := self._speaker.refuses(message)) is not None:
            return refused
        if not self._up.is_set() or self._client.ended.done():
            return Sent(Fate.NOT_SENT, reason="not connected")
        if in_room and self._rooms.kind(message.place.peer) is None:
            return Sent(Fate.NOT_SENT, reason="we are not in that room at present")
        if not in_room and message.place.room is not Room.DIRECT:
            reason = "that is none of the rooms in [channels.xmpp]"
            return Sent(Fate.NOT_SENT, reason=reason, final=True)
        address = ""
        if message.files:
            # It is handed in before anything is said of it: what fails is not sent.
            try:
                address = await self._uploads.put(message.files[0])
            except AgentHostError as error:
                final = isinstance(error, FOR_GOOD)
                return Sent(Fate.NOT_SENT, reason=str(error), final=final)
        return await self._speaker.say(message, address, in_room=in_room)

    async def reconcile(self, message: Outbound) -> Sent:
        """Look in the archive, which has our own messages under our own ids."""
        peer = message.place.peer
        archive = peer if peer in self._rooms.named else self._us
        if archive not in self._kept:
            return Sent(Fate.UNKNOWN, reason="there is no archive to look into")
        try:
            return await self._found(archive, message)
        except AgentHostError as error:
            return Sent(Fate.UNKNOWN, reason=str(error))

    async def _found(self, archive: str, message: Outbound) -> Sent:
        peer, ended = message.place.peer, False
        async for page in self._archives.back(
            archive, peer if archive == self._us else ""
        ):
            for each in page.kept:
                if self._is_ours(each.message) and is_named(each.message, message.key):
                    there = message.edit_of or message.key
                    return Sent(Fate.DELIVERED, message_id=there)
            ended = page.last or not page.kept
        if ended and await self._is_proof(archive, message):
            return Sent(Fate.NOT_SENT, reason="it is not in the archive")
        return Sent(Fate.UNKNOWN, reason="it is not in what the archive shows")

    async def _is_proof(self, archive: str, message: Outbound) -> bool:
        """Tell whether what an archive does not have will never arrive.

        Our server writes down what it takes before it sends it on, if it is to keep
        all. The stream on which it was sent is over: this one has its resource. A room
        may be another server's, to which it may be on its way.
        """
        if archive != self._us:
            return False
        if self._speaker.was_tried_here(message.key):
            return False
        if self._client.boundjid.resource != self._options.resource:
            return False
        return await self._archives.keeps_all(message.place.peer)

    def _is_ours(self, xml: Element) -> bool:
        sender = xml.get("from", "")
        return sender.partition("/")[0].lower() == self._us or self._rooms.ours(sender)

    def identity(self) -> str:
        """Tell the address that the server gave us."""
        return str(self._client.boundjid.full)
