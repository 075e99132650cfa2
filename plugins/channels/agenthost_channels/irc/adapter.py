"""IRC over one connection.

Sources: https://modern.ircdocs.horse, https://ircv3.net/specs/extensions/sasl-3.1,
.../server-time, .../echo-message, .../account-tag, .../bot-mode.

A server says nothing of a message that it took. So each is followed by a PING: the
server handles lines in order, and what it refused stands before the PONG. A server
with ``echo-message`` shows the message itself. When the connection ends before, the
fate is unknown; IRC has no history to look in.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import re
import secrets
from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, ClassVar

from agenthost import Unauthenticated, Unavailable
from pydantic import BaseModel, Field

from ..contract import (
    Adapter,
    Fate,
    Inbound,
    Line,
    Outbound,
    Place,
    Room,
    Sender,
    Sent,
)
from ..transports.tls import trusting
from . import lines
from .wire import Pace, Wire

log = logging.getLogger(__name__)

WANTED = ("message-tags", "server-time", "echo-message", "account-tag")
ANSWER_SECONDS = 30.0
LOGIN_SECONDS = 60.0
QUIET_SECONDS = 120.0
NICKS = 4
CHANNEL_SIGNS = "#&+!"

# ERR_NOSUCHNICK, NOSUCHCHANNEL, CANNOTSENDTOCHAN, TOOMANYTARGETS, NORECIPIENT,
# NOTEXTTOSEND, INPUTTOOLONG, NEEDREGGEDNICK, and of those who take no strangers.
REFUSALS = {"401", "403", "404", "407", "411", "412", "417", "477", "486", "716"}
UNJOINED = {"403", "405", "471", "473", "474", "475", "476", "477"}
BAD_LOGIN = {"464", "902", "904", "905", "906"}


Channel = Annotated[str, Field(pattern=r"^[#&+!][^\s\x00-\x1f,:@!*?]+$", max_length=50)]


class Settings(BaseModel, defer_build=True):
    """Settings of ``[channels.irc]``."""

    server: str = Field(description="Name of the server")
    port: int = Field(6697, ge=1, le=65535)
    tls: bool = Field(default=True, description="Encrypt; the certificate is checked")
    ca_file: str = Field("", description="Authority of a server of your own, as PEM")
    nick: str = Field(
        "agenthost", pattern=r"^[A-Za-z\[\]\\`_^{|}][^\s,:@!*?#&+$]*$", max_length=30
    )
    user: str = Field("", description="Name of the account; the nick where empty")
    channels: list[Channel] = Field([], description="Channels to join")
    login: str = Field(
        "sasl",
        pattern="^(sasl|pass)$",
        description="How the password is given: by SASL, or as the server's password",
    )
    burst: int = Field(5, ge=1, description="Lines that may go out at once")
    seconds_per_line: float = Field(2.0, ge=0, description="Pace beyond the burst")


class Irc(Adapter):
    """One nick on one server."""

    settings = Settings
    secrets: ClassVar = {"password": "IRC_PASSWORD"}  # nosec B105 # a name

    def __init__(self, line: Line) -> None:
        super().__init__(line)
        self._options: Settings = line.settings
        self._wire: Wire | None = None
        self._nick = ""
        self._prefix = 0
        self._welcomed = False
        self._abilities: set[str] = set()
        self._sending = asyncio.Lock()
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self._refused = ""
        self._echoed: list[str] = []
        options = self._options
        self._pace = Pace(line.clock, options.burst, options.seconds_per_line)

    async def run(self) -> None:
        """Log in, join, and read until the connection ends."""
        options = self._options
        tls = trusting(options.ca_file) if options.tls else None
        async with asyncio.timeout(LOGIN_SECONDS):
            streams = await self.line.connect(options.server, options.port, tls)
        wire = Wire(*streams)
        try:
            async with asyncio.timeout(LOGIN_SECONDS):
                await self._log_in(wire)
            self._wire = wire
            for channel in options.channels:
                wire.write(f"JOIN {channel}")
            await self._settled(wire)
            self.line.connected()
            await self._listen(wire)
        finally:
            self._wire = None
            self._forget_waiting()
            wire.close()

    def _forget_waiting(self) -> None:
        for future in self._waiting.values():
            future.cancel()
        self._waiting.clear()

    # Logging in.

    async def _log_in(self, wire: Wire) -> None:
        password = self.line.secret("password")
        account = self._options.user or self._options.nick
        self._nick, self._prefix, self._abilities = self._options.nick, 0, set()
        self._welcomed = False
        by_sasl = password is not None and self._options.login == "sasl"
        wire.write("CAP LS 302")
        if password is not None and not by_sasl:
            wire.write(f"PASS :{_one_line(password.reveal())}")
        wire.write(f"NICK {self._nick}")
        wire.write(f"USER {_word(account)} 0 * :agenthost")
        if await self._offered(wire, {"sasl"} if by_sasl else set()) and by_sasl:
            await self._sasl(wire, account, password.reveal() if password else "")
        wire.write("CAP END")
        while not self._welcomed:
            await self._next(wire)

    async def _offered(self, wire: Wire, needed: set[str]) -> bool:
        """Ask for what the server can do; tell whether it knows of such things."""
        offered: set[str] = set()
        while True:
            said = await self._next(wire)
            if said.command in {"421", "001", "410"}:
                raise_without(needed)
                return False
            if said.command == "CAP" and said.at(1).upper() == "LS":
                words = said.params[-1].split()
                offered |= {word.partition("=")[0] for word in words}
                if said.at(2) != "*":
                    break
        raise_without(needed - offered)
        wanted = needed | (offered & set(WANTED))
        if not wanted:
            return True
        wire.write(f"CAP REQ :{' '.join(sorted(wanted))}")
        while (said := await self._next(wire)).command != "CAP":
            pass
        if said.at(1).upper() == "ACK":
            self._abilities = wanted
        else:
            raise_without(needed)
        return True

    async def _sasl(self, wire: Wire, account: str, password: str) -> None:
        wire.write("AUTHENTICATE PLAIN")
        while (await self._next(wire)).command != "AUTHENTICATE":
            pass
        proof = base64.b64encode(f"\0{account}\0{password}".encode()).decode()
        parts = [proof[at : at + 400] for at in range(0, len(proof) + 1, 400)]
        for part in parts:
            wire.write(f"AUTHENTICATE {part or '+'}")
        while (await self._next(wire)).command != "903":
            pass

    async def _next(self, wire: Wire) -> lines.Line:
        """Read a line of the login; what ends the login is raised."""
        said = await wire.read()
        if said.command == "PING":
            wire.write(f"PONG :{said.at(0)}")
        elif said.command == "001":
            self._welcomed = True
            self._nick = said.at(0) or self._nick
        elif said.command in BAD_LOGIN or _is_bad_password(said):
            raise Unauthenticated(
                "the IRC server refuses the password of this account; set"
                " IRC_PASSWORD, and user in [channels.irc], anew"
            )
        elif said.command == "432":
            raise Unauthenticated("the IRC server refuses the nick; choose another")
        elif said.command == "433":
            self._take_another_nick(wire)
        elif said.command == "ERROR":
            raise Unavailable(f"the IRC server ends the login: {_shown(said.at(0))}")
        return said

    def _take_another_nick(self, wire: Wire) -> None:
        if len(self._nick) >= len(self._options.nick) + NICKS:
            raise Unavailable("the nick is in use, and so are its like")
        self._nick += "_"
        log.warning("the nick is in use; we are %s for now", self._nick)
        wire.write(f"NICK {self._nick}")

    async def _settled(self, wire: Wire) -> None:
        """Wait until the server has handled what was written: we are in our rooms."""
        token = _token()
        wire.write(f"PING :{token}")
        async with asyncio.timeout(LOGIN_SECONDS):
            while (said := await wire.read()).params[-1:] != (token,):
                await self._take(wire, said)

    # Listening.

    async def _listen(self, wire: Wire) -> None:
        quiet = False
        while True:
            try:
                async with asyncio.timeout(QUIET_SECONDS):
                    said = await wire.read()
            except TimeoutError:
                if quiet:
                    raise Unavailable("the IRC server has fallen silent") from None
                quiet = True
                wire.write(f"PING :{_token()}")
                continue
            quiet = False
            await self._take(wire, said)

    async def _take(self, wire: Wire, said: lines.Line) -> None:
        if said.command == "PRIVMSG":
            await self._said(said)
        elif said.command == "PING":
            wire.write(f"PONG :{said.at(0)}")
        elif said.command == "ERROR":
            raise Unavailable(f"the IRC server hangs up: {_shown(said.at(0))}")
        else:
            self._note(said)

    def _note(self, said: lines.Line) -> None:
        """Take what is no message."""
        ours = self._is_us(said.nick)
        if said.command == "PONG":
            future = self._waiting.get(said.params[-1] if said.params else "")
            if future is not None and not future.done():
                future.set_result(None)
        elif said.command in REFUSALS and self._waiting:
            self._refused = _shown(said.params[-1])
        elif said.command in UNJOINED:
            log.warning("cannot join: %s", _shown(" ".join(said.params[1:])))
        elif said.command == "JOIN" and ours:
            self._prefix = len(said.source.encode())
        elif said.command == "NICK" and ours:
            self._nick = said.at(0)
        elif said.command == "KICK" and self._is_us(said.at(1)):
            log.warning("put out of %s", _shown(said.at(0)))

    async def _said(self, said: lines.Line) -> None:
        if self._is_us(said.nick):
            self._echoed.append(said.tags.get("msgid", ""))
            return
        target, text = said.at(0), said.at(1)
        action = re.fullmatch(r"\x01ACTION (.*?)\x01?", text)
        if not said.nick or (text.startswith("\x01") and not action):
            return
        if not (text := lines.plain(action[1] if action else text)):
            return
        direct = not target.startswith(tuple(CHANNEL_SIGNS))
        peer = lines.lowered(said.nick if direct else target)
        addressed, text = self._addressed(text)
        place = Place(
            self.line.account, peer, "", Room.DIRECT if direct else Room.PUBLIC
        )
        await self.line.received(
            Inbound(
                place,
                said.tags.get("msgid") or _token(),
                _sender(said),
                text,
                self._time(said),
                mentions_us=direct or addressed,
            )
        )

    def _addressed(self, text: str) -> tuple[bool, str]:
        """Tell whether a text names us, and take the name from its start."""
        nick = re.escape(self._nick)
        start = re.match(rf"@?{nick}\s*[:,]?\s+", text, re.IGNORECASE)
        if start:
            return True, text[start.end() :]
        return bool(re.search(rf"(?<!\w){nick}(?!\w)", text, re.IGNORECASE)), text

    def _time(self, said: lines.Line) -> datetime:
        with suppress(ValueError):
            return datetime.fromisoformat(said.tags.get("time", "")).astimezone(UTC)
        return self.line.clock.now()

    def _is_us(self, nick: str) -> bool:
        return lines.lowered(nick) == lines.lowered(self._nick)

    # Speaking.

    async def send(self, message: Outbound) -> Sent:
        """Send the lines of a text, and ask whether the server took them."""
        peer = message.place.peer
        if message.typing or message.reaction:
            return Sent(Fate.NOT_SENT, reason="IRC shows no such thing", final=True)
        if not lines.is_target(peer):
            reason = "an IRC message goes to one nick or one channel"
            return Sent(Fate.NOT_SENT, reason=reason, final=True)
        texts = list(lines.pieces(message.text or message.plain, self._room(peer)))
        if not texts:
            return Sent(Fate.NOT_SENT, reason="there is no text in it", final=True)
        async with self._sending:
            return await self._send(message, texts)

    async def _send(self, message: Outbound, texts: list[str]) -> Sent:
        if (wire := self._wire) is None:
            return Sent(Fate.NOT_SENT, reason="not connected")
        self._refused = ""
        self._echoed.clear()
        token = _token()
        answered = asyncio.get_running_loop().create_future()
        self._waiting[token] = answered
        try:
            for text in texts:
                await self._pace.wait()
                wire.write(f"PRIVMSG {message.place.peer} :{text}")
            wire.write(f"PING :{token}")
            async with asyncio.timeout(ANSWER_SECONDS):
                # Cancelled when the connection ends, which is no cancel of ours.
                await asyncio.wait([answered])
        except TimeoutError:
            return Sent(Fate.UNKNOWN, reason="the IRC server did not answer in time")
        finally:
            self._waiting.pop(token, None)
        return self._fate(message, answered, len(texts))

    def _fate(
        self, message: Outbound, answered: asyncio.Future[None], count: int
    ) -> Sent:
        if answered.cancelled():
            return Sent(Fate.UNKNOWN, reason="the connection ended before the answer")
        if self._refused and count == 1:
            return Sent(Fate.NOT_SENT, reason=self._refused, final=True)
        missing = "echo-message" in self._abilities and len(self._echoed) < count
        if self._refused or missing:
            reason = self._refused or "the IRC server did not show the message"
            return Sent(Fate.UNKNOWN, reason=reason)
        echoed = next(filter(None, self._echoed), "")
        return Sent(Fate.DELIVERED, message_id=echoed or message.key)

    def _room(self, peer: str) -> int:
        """Count the bytes that a text to somebody may have."""
        longest = len(self._nick) + 2 + lines.LONGEST_USER + lines.LONGEST_HOST
        prefix = self._prefix or longest
        return lines.LINE_BYTES - len(f":{' '}PRIVMSG {peer} :\r\n".encode()) - prefix

    async def identity(self) -> str:
        """Tell the nick that the server gave us."""
        if self._wire is None:
            raise Unavailable("not connected to the IRC server")
        return f"{self._nick} on {self._options.server}"


def raise_without(missing: set[str]) -> None:
    """Refuse to log in without what the password needs."""
    if missing:
        raise Unauthenticated(
            'the IRC server has no SASL; set login = "pass" in [channels.irc],'
            " or take the password away"
        )


def _is_bad_password(said: lines.Line) -> bool:
    """Tell whether a server ends the login for the password, as some do unnumbered."""
    return said.command == "ERROR" and "password" in said.at(0).lower()


def _sender(said: lines.Line) -> Sender:
    """Name somebody by the account, else by all that the server says of them.

    A nick alone is whoever takes it first.
    """
    account = said.tags.get("account", "")
    nick, _, host = said.source.partition("!")
    mask = f"{lines.lowered(nick)}!{host.lower()}"
    return Sender(
        f"account:{account}" if account else mask, said.nick, "bot" in said.tags
    )


def _token() -> str:
    return secrets.token_hex(8)


def _one_line(text: str) -> str:
    return re.sub(r"[\r\n\0]", "", text)


def _word(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "_", text)[:10] or "agenthost"


def _shown(text: str) -> str:
    return lines.plain(text)[:200]
