"""A program that calls the webhook for Ada, and listens for what she is answered."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Self

from agenthost import AgentHostError
from aiohttp import web

from ...contract import Adapter, Knock, Line, Place, Room
from ...facts import facts
from ...webhook.adapter import Settings, Webhook
from ..stage import Stage

SECRET = "whsec_" + base64.b64encode(b"0123456789abcdef01234567").decode()
ID, STAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
CONVERSATIONS = {Room.DIRECT: "desk", Room.GROUP: "team"}
OTHERS = "@agent "
HOSTILE = (b"", b"{", b"[" * 50_000, b"\xff\xfe", b"null", b"[]", b'"text"', b"NaN")

Sign = Callable[[str, str, int, bytes], Mapping[str, str]]
"""Gives the headers that sign a body: by secret, id and time."""


class Desk:
    """The program: it knows a message by its id, and takes each once.

    Attributes:
        said: The bodies that it has taken, and ``ids`` what they came under.
        limited: Seconds that it asks for before the next message.
        losing: Whether it takes the next one, and breaks off.
    """

    def __init__(self) -> None:
        self.said: list[dict[str, Any]] = []
        self.ids: list[str] = []
        self.limited: int | None = None
        self.losing = False
        self.url = ""
        self._changed = asyncio.Event()

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/answers", self._take)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/answers"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def until(self, happened: Callable[[], object]) -> None:
        """Wait until it holds."""
        async with asyncio.timeout(20):
            while not happened():
                self._changed.clear()
                await self._changed.wait()

    async def _take(self, request: web.Request) -> web.Response:
        if self.limited is not None:
            seconds, self.limited = self.limited, None
            return web.Response(status=429, headers={"retry-after": str(seconds)})
        said = await request.json()
        if said["conversation"] not in CONVERSATIONS.values():
            return web.Response(status=404)
        name = request.headers[ID]
        if name not in self.ids:
            self.ids.append(name)
            self.said.append(said)
            self._changed.set()
        if self.losing:
            self.losing = False
            assert request.transport is not None
            request.transport.abort()
        return web.Response(status=204)


class WebhookStage(Stage):
    """A desk where Ada speaks alone, or in a team.

    Args:
        desk: The program.
        sign: How it signs; as we do where nothing is said.
    """

    facts = facts("webhook")
    judge = "a program that signs as Standard Webhooks says"
    person = "ada"

    def __init__(self, desk: Desk, sign: Sign | None = None) -> None:
        from ...webhook.signing import signed

        self._desk = desk
        self._sign = sign or signed
        self._ids = itertools.count(1)
        self._last: Knock
        self._calls: asyncio.Queue[Knock] = asyncio.Queue()
        self._adapter: Adapter
        stage = self

        class Called(Webhook):
            """Known to whoever calls it: no path leads to it here."""

            def __init__(self, line: Line) -> None:
                super().__init__(line)
                stage._adapter = self

        self.channel = Called  # type: ignore[misc]  # reason: each stage calls its own

    async def __aenter__(self) -> Self:
        self._calling = asyncio.create_task(self._hand_in())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._calling.cancel()
        await asyncio.wait([self._calling])

    async def _hand_in(self) -> None:
        """Do what the bridge does with calls: what is taken is kept, in its order."""
        while True:
            knock = await self._calls.get()
            with suppress(AgentHostError):
                opened = await self._adapter.open(knock)
                await self._adapter.line.received(*opened.messages)

    def settings(self) -> Settings:
        return Settings(url=self._desk.url)

    def secrets(self) -> Mapping[str, str]:
        return {"secret": SECRET}

    def wrong_secrets(self) -> Mapping[str, str]:
        return {"secret": "whsec_canary"}  # nosec B105 # opens nothing

    def place(self, room: Room) -> Place:
        return Place("default", CONVERSATIONS[room], room=room)

    def nowhere(self) -> Place:
        return Place("default", "nowhere")

    def _knock(self, body: bytes) -> Knock:
        name = f"msg_{next(self._ids)}"
        headers = self._sign(SECRET, name, int(time.time()), body)
        return Knock("POST", "/in", {}, headers, body)

    async def _call(self, text: str, room: Room = Room.DIRECT, **more: Any) -> None:
        told: dict[str, Any] = {"conversation": CONVERSATIONS[room]}
        words = text.removeprefix(OTHERS)
        told |= {"sender": self.person, "room": room.value, "text": words}
        told |= {"mentions_us": words != text}
        self._last = self._knock(json.dumps(told | more).encode())
        self._calls.put_nowait(self._last)

    async def say(self, text: str, room: Room = Room.DIRECT) -> None:
        await self._call(text, room)

    async def say_again(self) -> None:
        self._calls.put_nowait(self._last)

    def mention(self, text: str) -> str:
        return OTHERS + text

    async def say_in_thread(self, text: str) -> None:
        await self._call(text, thread="ticket-7")

    async def threads_seen(self) -> str:
        await self._desk.until(lambda: self._desk.said)
        return str(self._desk.said[-1]["thread"])

    async def answer(self, text: str) -> None:
        # A program knows a message by the id that it came with.
        key = self._desk.ids[-1]
        await self._call(text, Room.GROUP, reply_to=key, mentions_us=True)

    async def hostile(self) -> None:
        for body in HOSTILE:
            self._calls.put_nowait(self._knock(body))
            self._calls.put_nowait(Knock("POST", "/in", {}, {}, body))

    async def seen(self, count: int, room: Room = Room.DIRECT) -> list[str]:
        peer = CONVERSATIONS[room]

        def texts() -> list[str]:
            said = [each for each in self._desk.said if each["conversation"] == peer]
            return [line for each in said for line in each["text"].split("\n")]

        await self._desk.until(lambda: len(texts()) >= count)
        return texts()

    def limit(self, seconds: float) -> None:
        self._desk.limited = int(seconds)

    def lose_answer(self) -> None:
        self._desk.losing = True


@asynccontextmanager
async def opened() -> AsyncIterator[Stage]:
    """Open it."""
    async with Desk() as desk, WebhookStage(desk) as stage:
        yield stage
