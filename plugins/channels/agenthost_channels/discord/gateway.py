"""A connection to Discord's gateway, version 10.

Sources: https://docs.discord.com/developers/events/gateway and
https://docs.discord.com/developers/topics/opcodes-and-status-codes#gateway.

It is never closed with a code: Discord would end the session, which is to be resumed.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, NamedTuple

import httpx
from agenthost import AgentHostError, Unauthenticated, Unavailable

from ..contract import Line
from ..transports.addresses import LOOPBACK
from ..transports.websocket import Closed, WebSocket
from .session import Session

DISPATCH, BEAT, IDENTIFY, RESUME = 0, 1, 2, 6
RECONNECT, INVALID_SESSION, HELLO, BEAT_TAKEN = 7, 9, 10, 11
QUERY = {"v": "10", "encoding": "json"}
HELLO_SECONDS = 30.0
SHORTEST_BEAT, LONGEST_BEAT = 0.02, 600.0
# Codes after which a session cannot be resumed, and those that no new one mends.
FORGOTTEN = {4003, 4007, 4009}
FINAL = {
    4004: "Discord refuses bot_token: set DISCORD_BOT_TOKEN anew",
    4010: "Discord wants another shard than ours",
    4011: "the bot is in too many guilds for one connection: Discord wants shards",
    4012: "Discord's gateway has version 10 no more",
    4013: "Discord does not know an intent of ours",
    4014: "Discord does not allow an intent of ours: turn on Message Content Intent in "
    "the developer portal, or set message_content = false",
}


class Event(NamedTuple):
    """An event of the session: its name, what it says, and its number."""

    name: str
    data: Any
    seq: Any


class Broken(Unavailable):
    """The connection is to be begun anew; ``pause`` is how long Discord has to rest."""

    def __init__(self, reason: str, *, pause: bool = False) -> None:
        super().__init__(reason)
        self.pause = pause


class Gateway:
    """Connects, identifies or resumes, beats, and hands on events.

    Args:
        line: The account's.
        session: What is resumed.
        token: The bot's.
        intents: What we want to hear of.
    """

    def __init__(self, line: Line, session: Session, token: str, intents: int) -> None:
        self._line = line
        self._session = session
        self._token = token
        self._intents = intents
        self._beat_taken = True
        self._busy = False
        self._beaten_meanwhile = False

    async def listen(self, url: str, take: Callable[[Event], Awaitable[None]]) -> None:
        """Hand on every event of a connection until that ends.

        Raises:
            Broken: Discord wants another connection at once.
            Unauthenticated: Discord does not let us in, however often we try.
            Unavailable: The connection broke.
        """
        socket = await self._connect(url)
        beating: asyncio.Task[None] | None = None
        try:
            interval = _interval(await socket.receive(HELLO_SECONDS))
            beating = asyncio.create_task(self._beat(socket, interval))
            # Where Discord has closed already, its code is read next.
            with suppress(Unavailable):
                await self._greet(socket)
            while True:
                frame = _frame(await socket.receive(LONGEST_BEAT))
                self._busy = True
                await self._handle(socket, frame, take)
                self._busy = False
                # The answer to a beat of meanwhile is not read yet.
                self._beat_taken |= self._beaten_meanwhile
                self._beaten_meanwhile = False
        except Closed as closed:
            self._judge(closed.number)
            raise
        finally:
            socket.close()
            if beating is not None:
                beating.cancel()
                await asyncio.wait([beating])

    async def _connect(self, url: str) -> WebSocket:
        try:
            return await WebSocket.connect(self._line, _address(url))
        except AgentHostError:
            # The next try is not where the session was, but where sessions begin.
            self._session.url = ""
            raise
        except TimeoutError:
            self._session.url = ""
            raise Unavailable("Discord's gateway does not answer") from None

    async def _greet(self, socket: WebSocket) -> None:
        session = self._session
        if session.known:
            told = {"session_id": session.id, "seq": session.seq}
            await _send(socket, RESUME, {"token": self._token, **told})
            return
        properties = {"os": "linux", "browser": "agenthost", "device": "agenthost"}
        identity = {"token": self._token, "intents": self._intents}
        await _send(socket, IDENTIFY, {**identity, "properties": properties})

    async def _handle(
        self,
        socket: WebSocket,
        frame: dict[str, Any],
        take: Callable[[Event], Awaitable[None]],
    ) -> None:
        match frame.get("op"):
            case 0:
                await take(Event(str(frame.get("t")), frame.get("d"), frame.get("s")))
                self._session.passed(frame.get("s"))
            case 1:
                with suppress(Unavailable):
                    await _send(socket, BEAT, self._session.seq)
            case 7:
                raise Broken("Discord wants another connection")
            case 9:
                if frame.get("d") is not True:
                    self._session.drop()
                raise Broken("Discord has ended the session", pause=True)
            case 11:
                self._beat_taken = True

    async def _beat(self, socket: WebSocket, interval: float) -> None:
        """Beat until cancelled; a connection where nobody answers is closed."""
        self._beat_taken = True
        pause = interval * random.random()  # noqa: S311 # nosec B311 # no secret
        while True:
            await self._line.clock.sleep(pause)
            # While an event waits for the disk nothing is read: nobody is silent.
            if not self._beat_taken and not self._busy:
                socket.close()
                return
            self._beat_taken = False
            self._beaten_meanwhile |= self._busy
            try:
                # What is not on disk is not counted: Discord keeps it for us.
                await _send(socket, BEAT, self._session.seq)
            except Unavailable:
                return
            pause = interval

    def _judge(self, code: int) -> None:
        if code in FINAL:
            self._session.drop()
            raise Unauthenticated(FINAL[code])
        if code in FORGOTTEN:
            self._session.drop()


def _address(url: str) -> str:
    """Give the address to connect to; the token goes nowhere in the clear.

    Raises:
        Unavailable: It is none.
    """
    try:
        found = httpx.URL(url)
    except (httpx.InvalidURL, TypeError):
        raise Unavailable("Discord gave an address that is none") from None
    local = found.scheme == "ws" and found.host in LOOPBACK
    if found.scheme != "wss" and not local:
        raise Unavailable("Discord gave an address that is no encrypted WebSocket")
    return str(found.copy_merge_params(QUERY))


def _interval(text: str) -> float:
    hello = _frame(text)
    data = hello.get("d")
    told = data.get("heartbeat_interval") if isinstance(data, dict) else None
    if hello.get("op") != HELLO or not isinstance(told, int):
        raise Unavailable("Discord's gateway does not say hello")
    return min(max(told / 1000, SHORTEST_BEAT), LONGEST_BEAT)


def _frame(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


async def _send(socket: WebSocket, code: int, data: Any) -> None:
    await socket.send(json.dumps({"op": code, "d": data}))
