"""Mumble over its control channel; what is spoken is not heard.

Source: https://mumble-protocol.readthedocs.io/en/latest/protocol_stack_tcp.html

A server says nothing of a text that it took. So each is followed by a ping: the server
handles messages in order, and what it refused stands before the answer. It says nothing
either of what it drops because we are too fast, so we are never faster than it allows.
Mumble keeps nothing, and its messages have no ids.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import re
import secrets
import ssl
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar

from agenthost import Unauthenticated, Unavailable
from pydantic import BaseModel, Field

from ..contract import Adapter, Fate, Inbound, Line, Outbound, Place, Room, Sent
from ..transports.tls import trusting
from .people import Person
from .texts import plain, printable

if TYPE_CHECKING:
    from .wire import Wire

log = logging.getLogger(__name__)

LOGIN_SECONDS = 60.0
ANSWER_SECONDS = 30.0
PING_SECONDS = 15.0
QUIET_SECONDS = 60.0
CHANNEL = "channel:"
MISSING = "Mumble needs: pip install 'agenthost[mumble]'"
BAD_PASSWORDS = {3, 4}
BAD_NAME, NO_CERTIFICATE = 2, 7
FINGERPRINT = r"^([0-9a-fA-F]{2}(:?[0-9a-fA-F]{2}){31})?$"


class Settings(BaseModel, defer_build=True):
    """Settings of ``[channels.mumble]``."""

    server: str = Field(description="Name of the server")
    port: int = Field(64738, ge=1, le=65535)
    # Counted by its length: as a number in the pattern it takes 12 MB to be compiled.
    username: str = Field(
        "agenthost",
        pattern=r"^[-=\w\[\]{}()@|.]+$",
        max_length=128,
        description="Our name there",
    )
    channel: str = Field(
        "", description="Channel to be in, as a path: Work/Tea; the root where empty"
    )
    ca_file: str = Field("", description="Authority of a server of your own, as PEM")
    fingerprint: str = Field(
        "",
        pattern=FINGERPRINT,
        description="SHA-256 of the one certificate to trust, where nobody vouches",
    )
    burst: int = Field(5, ge=1, description="Messages at once (its messageburst)")
    seconds_per_message: float = Field(
        1.0, ge=0, description="Pace beyond the burst (its messagelimit)"
    )


class Mumble(Adapter):
    """One name on one server."""

    settings = Settings
    secrets: ClassVar = {"password": "MUMBLE_PASSWORD"}  # nosec B105 # a name

    def __init__(self, line: Line) -> None:
        super().__init__(line)
        self._options: Settings = line.settings
        self._wire: Wire | None = None
        self._session = 0
        self._people: dict[int, Person] = {}
        self._channels: dict[int, tuple[int, str]] = {}
        self._sending = asyncio.Lock()
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._refused = ""
        self._tokens = 0
        self._free = 0.0

    async def identity(self) -> str:
        """Give our name on the server."""
        return f"{self._options.username} on {self._options.server}"

    # The connection.

    async def run(self) -> None:
        """Log in, go to the channel, and read until the connection ends."""
        wire = await self._connect()
        pinging = asyncio.create_task(self._ping(wire))
        try:
            async with asyncio.timeout(LOGIN_SECONDS):
                await self._log_in(wire)
            self._wire = wire
            self.line.connected()
            while True:
                async with asyncio.timeout(QUIET_SECONDS):
                    name, message = await wire.read()
                await self._take(name, message)
        except TimeoutError:
            raise Unavailable("the Mumble server has fallen silent") from None
        finally:
            self._wire = None
            for future in self._waiting.values():
                future.cancel()
            self._waiting.clear()
            pinging.cancel()
            wire.close()
            await asyncio.wait([pinging])

    async def _connect(self) -> Wire:
        try:
            from .wire import Wire
        except ModuleNotFoundError:
            raise Unavailable(MISSING) from None
        options = self._options
        wanted = bytes.fromhex(options.fingerprint.replace(":", ""))
        context = _trusting_nobody() if wanted else trusting(options.ca_file)
        try:
            async with asyncio.timeout(LOGIN_SECONDS):
                streams = await self.line.connect(options.server, options.port, context)
        except TimeoutError:
            raise Unavailable("the Mumble server does not answer") from None
        wire = Wire(*streams)
        found = sha256(wire.certificate()).digest()
        if wanted and not hmac.compare_digest(found, wanted):
            wire.close()
            raise Unavailable(
                "the Mumble server has another certificate than fingerprint in"
                f" [channels.mumble] says: {found.hex()}"
            )
        return wire

    async def _ping(self, wire: Wire) -> None:
        while True:
            await asyncio.sleep(PING_SECONDS)
            wire.write("Ping", timestamp=0)

    async def _log_in(self, wire: Wire) -> None:
        from .wire import VERSION

        options, secret = self._options, self.line.secret("password")
        self._people, self._channels, self._session = {}, {}, 0
        wire.write("Version", version=VERSION, release="agenthost")
        password = {"password": secret.reveal()} if secret else {}
        wire.write("Authenticate", username=options.username, opus=True, **password)
        while not self._session:
            name, message = await wire.read()
            if name == "Reject":
                _raise_for(message)
            elif name == "ServerSync":
                self._session = message.session
            else:
                self._note(name, message)
        where = {"channel_id": self._wanted()} if options.channel else {}
        us = {"session": self._session, "self_mute": True, "self_deaf": True}
        wire.write("UserState", **us, **where)
        token = self._token()
        wire.write("Ping", timestamp=token)
        refused = ""
        while (said := await wire.read())[0] != "Ping" or said[1].timestamp != token:
            self._note(*said)
            if said[0] == "PermissionDenied":
                refused = said[1].reason or "no permission"
        if options.channel and self._people[self._session].channel != self._wanted():
            log.warning("we may not enter %s: %s", options.channel, printable(refused))

    def _wanted(self) -> int:
        """Find the channel that the settings name."""
        found = 0
        for part in self._options.channel.strip("/").split("/"):
            here = (found, part)
            children = [n for n, each in self._channels.items() if each == here and n]
            if not children:
                raise Unavailable(
                    f"there is no channel {self._options.channel} on the Mumble"
                    " server; name it in [channels.mumble] as a path from the root"
                )
            found = children[0]
        return found

    def _token(self) -> int:
        self._tokens += 1
        return self._tokens

    # Hearing.

    async def _take(self, name: str, message: Any) -> None:
        if name == "TextMessage":
            await self._said(message)
        elif name == "Ping":
            future = self._waiting.get(message.timestamp)
            if future is not None and not future.done():
                future.set_result(None)
        elif name == "PermissionDenied":
            self._refused = printable(message.reason)[:200] or "no permission"
        elif name == "UserRemove" and message.session == self._session:
            reason = printable(message.reason)[:200]
            raise Unavailable(f"put out of the Mumble server: {reason or 'no reason'}")
        else:
            self._note(name, message)

    def _note(self, name: str, message: Any) -> None:
        """Remember who is there, and where."""
        if name == "UserState":
            known = self._people.get(message.session, Person(message.session))
            self._people[message.session] = known.changed(message)
        elif name == "UserRemove":
            self._people.pop(message.session, None)
        elif name == "ChannelState":
            parent, title = self._channels.get(message.channel_id, (0, ""))
            parent = message.parent if message.HasField("parent") else parent
            title = message.name if message.HasField("name") else title
            self._channels[message.channel_id] = (parent, title)
        elif name == "ChannelRemove":
            self._channels.pop(message.channel_id, None)

    async def _said(self, message: Any) -> None:
        person = self._people.get(message.actor)
        text = plain(message.message)
        if person is None or person.session == self._session or not text:
            return
        direct = self._session in message.session
        if direct:
            place = Place(self.line.account, person.id)
        else:
            # A text to a channel and those below it names the one at their top.
            heard_in = [*message.channel_id, *message.tree_id, 0][0]
            place = Place(self.line.account, f"{CHANNEL}{heard_in}", room=Room.PUBLIC)
        addressed, text = self._addressed(text)
        await self.line.received(
            Inbound(
                place,
                secrets.token_hex(12),
                person.as_sender(),
                text,
                self.line.clock.now(),
                mentions_us=direct or addressed,
            )
        )

    def _addressed(self, text: str) -> tuple[bool, str]:
        name = re.escape(self._options.username)
        start = re.match(rf"@?{name}\s*[:,]?\s+", text, re.IGNORECASE)
        if start:
            return True, text[start.end() :]
        return bool(re.search(rf"(?<!\w){name}(?!\w)", text, re.IGNORECASE)), text

    # Saying.

    async def send(self, message: Outbound) -> Sent:
        """Send a text, and ask whether the server took it."""
        if message.typing or message.reaction:
            return _never("Mumble shows no such thing")
        if not (text := printable(message.text or message.plain).strip()):
            return _never("there is no text in it")
        async with self._sending:
            if (wire := self._wire) is None:
                return Sent(Fate.NOT_SENT, reason="not connected")
            where = self._where(message.place.peer)
            if not where:
                return _never("nobody and nothing of that id is on the Mumble server")
            return await self._send(wire, where, text)

    def _where(self, peer: str) -> dict[str, list[int]]:
        if number := re.fullmatch(rf"{CHANNEL}(\d{{1,9}})", peer):
            there = int(number[1])
            return {"channel_id": [there]} if there in self._channels else {}
        found = [each.session for each in self._people.values() if each.id == peer]
        return {"session": found} if found else {}

    async def _send(self, wire: Wire, where: dict[str, list[int]], text: str) -> Sent:
        await self._wait_for_turn()
        token, self._refused = self._token(), ""
        answered = asyncio.get_running_loop().create_future()
        self._waiting[token] = answered
        try:
            wire.write("TextMessage", message=text, **where)
            wire.write("Ping", timestamp=token)
            # Cancelled when the connection ends, which is no cancel of ours.
            await asyncio.wait([answered], timeout=ANSWER_SECONDS)
        finally:
            self._waiting.pop(token, None)
        if not answered.done() or answered.cancelled():
            reason = "the connection ended, or was silent, before the answer"
            return Sent(Fate.UNKNOWN, reason=reason)
        if self._refused:
            return _never(f"the Mumble server refuses it: {self._refused}")
        return Sent(Fate.DELIVERED, secrets.token_hex(12))

    async def _wait_for_turn(self) -> None:
        options, now = self._options, self.line.clock.monotonic()
        free = max(self._free, now)
        ahead = (options.burst - 1) * options.seconds_per_message
        self._free = free + options.seconds_per_message
        if (pause := free - ahead - now) > 0:
            await self.line.clock.sleep(pause)


def _trusting_nobody() -> ssl.SSLContext:
    """Make a context for a certificate that is compared itself, before we speak."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _raise_for(reject: Any) -> None:
    """Raise what the refusal of our login means."""
    if reject.type in BAD_PASSWORDS:
        raise Unauthenticated(
            "the Mumble server refuses the password; set MUMBLE_PASSWORD, and username"
            " in [channels.mumble], anew"
        )
    if reject.type in {BAD_NAME, NO_CERTIFICATE}:
        raise Unauthenticated(
            "the Mumble server refuses the name, or wants a certificate, which cannot"
            " be given yet; choose another username in [channels.mumble]"
        )
    raise Unavailable(
        f"the Mumble server refuses us: {printable(reject.reason)[:200] or reject.type}"
    )


def _never(reason: str) -> Sent:
    return Sent(Fate.NOT_SENT, reason=reason, final=True)
