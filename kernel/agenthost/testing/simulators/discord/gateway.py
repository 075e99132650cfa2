"""Discord's gateway, as its page on the gateway and its table of codes have it."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Callable
from typing import Any

from aiohttp import WSMsgType, web

from .world import GUILD, TOKEN, US, guild, snowflake

GUILDS, MEMBERS, PRESENCES = 1 << 0, 1 << 1, 1 << 8
GUILD_MESSAGES, DIRECT_MESSAGES, CONTENT = 1 << 9, 1 << 12, 1 << 15
KNOWN_INTENTS = sum(1 << bit for bit in (*range(17), 20, 21, 24, 25))
LARGEST = 4096
INTERVAL_MS = 41_250


class Session:
    """A session: what it wants to hear of, and every event it had."""

    def __init__(self, intents: int) -> None:
        self.id = f"session-{snowflake()}"
        self.intents = intents
        self.log: list[dict[str, Any]] = []
        self.link: Link | None = None

    def wants(self, message: dict[str, Any]) -> bool:
        """Tell whether the session hears of a message at all."""
        needed = GUILD_MESSAGES if "guild_id" in message else DIRECT_MESSAGES
        return bool(self.intents & needed)

    def shown(self, message: dict[str, Any]) -> dict[str, Any]:
        """Take the content out, where the session may not see it."""
        named = any(each["id"] == US["id"] for each in message.get("mentions", ()))
        ours = message["author"]["id"] == US["id"]
        if self.intents & CONTENT or "guild_id" not in message or named or ours:
            return message
        return {**message, "content": "", "attachments": [], "embeds": []}

    async def dispatch(self, name: str, data: Any) -> None:
        """Tell the session of an event; it is kept, to be told again."""
        event = {"op": 0, "t": name, "s": len(self.log) + 1, "d": data}
        self.log.append(event)
        if self.link is not None:
            await self.link.send(event)


class Link:
    """A connection: its socket, compressed as a whole where the client wants it."""

    def __init__(self, socket: web.WebSocketResponse, compress: str) -> None:
        self.socket = socket
        self.closed = False
        self._deflate = zlib.compressobj() if compress == "zlib-stream" else None

    async def close(self, code: int) -> None:
        """Close the connection with a code."""
        self.closed = True
        await self.socket.close(code=code)

    async def send(self, payload: dict[str, Any]) -> None:
        """Send a payload."""
        await self.raw(json.dumps(payload))

    async def raw(self, text: str) -> None:
        """Send a text as it is."""
        try:
            if self._deflate is None:
                await self.socket.send_str(text)
                return
            packed = self._deflate.compress(text.encode())
            await self.socket.send_bytes(
                packed + self._deflate.flush(zlib.Z_SYNC_FLUSH)
            )
        except ConnectionError:
            return


class Refused(Exception):
    """The connection is closed with a code."""

    def __init__(self, code: int) -> None:
        super().__init__(str(code))
        self.code = code


class GatewaySimulator:
    """The gateway, for one bot.

    Attributes:
        sessions: Those that can be resumed, by id.
        heard: What clients sent, as operation and data, in its order.
        interval: Milliseconds between two beats.
        silent: Whether beats are not answered.
        allowed: The intents that the developer portal allows, of the privileged.
        where: The path that each connection came by.
        next_code: The code with which the next connection is closed at once.
        next_invalid: Whether the next session may be resumed later, or None.
        sends_away: Whether every connection is told to be made anew.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self.sessions: dict[str, Session] = {}
        self.links: list[Link] = []
        self.heard: list[tuple[int, Any]] = []
        self.interval = INTERVAL_MS
        self.silent = False
        self.allowed = CONTENT
        self.where: list[str] = []
        self.next_code = 0
        self.sends_away = False
        self.next_invalid: bool | None = None
        self.url = ""
        self._changed = changed

    # What a test does.

    async def say(self, name: str, message: dict[str, Any]) -> None:
        """Tell every session of a message that it wants to hear of."""
        for session in self.sessions.values():
            if session.wants(message):
                await session.dispatch(name, session.shown(message))

    async def raw(self, text: str) -> None:
        """Send a text on every connection as it is."""
        for link in self.links:
            await link.raw(text)

    async def order(self, code: int, data: Any = None) -> None:
        """Send an operation that is no event."""
        for link in list(self.links):
            await link.send({"op": code, "d": data})

    async def close(self, code: int) -> None:
        """Close every connection with a code."""
        for link in list(self.links):
            await link.close(code)

    def cut(self, request_of: dict[Link, web.Request]) -> None:
        """Break every connection, without a word."""
        for link in list(self.links):
            transport = request_of[link].transport
            if transport is not None:
                transport.abort()

    def operations(self) -> list[int]:
        """Give the operations of what was heard, in its order."""
        return [code for code, _ in self.heard]

    # What Discord does.

    async def serve(self, request: web.Request, link: Link) -> None:
        """Speak with a client until it goes."""
        self.where.append(request.path)
        try:
            await self._welcome(request, link)
            await self._converse(link)
        except Refused as refused:
            await link.close(refused.code)
        finally:
            self._forget(link)

    async def _welcome(self, request: web.Request, link: Link) -> None:
        if (request.query.get("v"), request.query.get("encoding")) != ("10", "json"):
            raise Refused(4012)
        await link.send({"op": 10, "d": {"heartbeat_interval": self.interval}})
        if self.next_code:
            code, self.next_code = self.next_code, 0
            raise Refused(code)
        if self.sends_away:
            await link.send({"op": 7, "d": None})
        self.links.append(link)
        self._changed()

    def _forget(self, link: Link) -> None:
        if link in self.links:
            self.links.remove(link)
        self._changed()
        bye = not link.closed and link.socket.close_code in {1000, 1001}
        for session in list(self.sessions.values()):
            if session.link is link:
                session.link = None
                if bye:
                    # Who says good-bye ends the session.
                    del self.sessions[session.id]

    async def _converse(self, link: Link) -> None:
        session: Session | None = None
        async for frame in link.socket:
            if frame.type is not WSMsgType.TEXT or len(frame.data.encode()) > LARGEST:
                raise Refused(4002)
            try:
                said = json.loads(frame.data)
                code, data = said["op"], said["d"]
            except (ValueError, KeyError, TypeError):
                raise Refused(4002) from None
            self.heard.append((code, data))
            match code:
                case 1:
                    if not self.silent:
                        await link.send({"op": 11})
                case 2:
                    session = await self._identify(link, session, data)
                case 6:
                    session = await self._resume(link, data)
                case 3 | 4 | 8:
                    if session is None:
                        raise Refused(4003)
                case _:
                    raise Refused(4001)
            self._changed()

    async def _identify(
        self, link: Link, session: Session | None, data: Any
    ) -> Session | None:
        if session is not None:
            raise Refused(4005)
        if data["token"] != TOKEN:
            raise Refused(4004)
        if set(data["properties"]) < {"os", "browser", "device"}:
            raise Refused(4002)
        intents = data["intents"]
        if not isinstance(intents, int) or intents & ~KNOWN_INTENTS:
            raise Refused(4013)
        if intents & (CONTENT | MEMBERS | PRESENCES) & ~self.allowed:
            raise Refused(4014)
        if await self._invalid(link):
            return None
        session = Session(intents)
        self.sessions[session.id] = session
        session.link = link
        await session.dispatch("READY", self._ready(session))
        if intents & GUILDS:
            await session.dispatch("GUILD_CREATE", guild())
        return session

    def _ready(self, session: Session) -> dict[str, Any]:
        return {
            "v": 10,
            "user": {**US, "verified": True, "mfa_enabled": False, "email": None},
            "guilds": [{"id": GUILD, "unavailable": True}],
            "private_channels": [],
            "session_id": session.id,
            "resume_gateway_url": f"{self.url}/resume",
            "application": {"id": US["id"], "flags": 0},
        }

    async def _resume(self, link: Link, data: Any) -> Session | None:
        if data["token"] != TOKEN:
            raise Refused(4004)
        session = self.sessions.get(data["session_id"])
        if await self._invalid(link):
            return None
        if session is None:
            await link.send({"op": 9, "d": False})
            return None
        if data["seq"] > len(session.log):
            raise Refused(4007)
        session.link = link
        for event in session.log[data["seq"] :]:
            await link.send(event)
        await session.dispatch("RESUMED", {})
        return session

    async def _invalid(self, link: Link) -> bool:
        if self.next_invalid is None:
            return False
        await link.send({"op": 9, "d": self.next_invalid})
        self.next_invalid = None
        return True


async def patiently(happened: Callable[[], bool], changed: asyncio.Event) -> None:
    """Wait for something to have happened, half a minute at most."""
    async with asyncio.timeout(30):
        while not happened():
            changed.clear()
            await changed.wait()
