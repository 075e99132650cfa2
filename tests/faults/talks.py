"""People who talk to a daemon over its channels, whatever becomes of the daemon."""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

import httpx
from agenthost_channels.contract import Room
from agenthost_channels.testing import Stage
from agenthost_channels.testing.stages.matrix import SynapseStage
from agenthost_channels.webhook.signing import signed, verified
from aiohttp import web

from tests.plugins.channels.webhook.program import JSON, PATH, SECRET, Program

AHEAD = 12
"""How many messages somebody says before the first of them is answered."""
SILENCE = 90.0
ANSWER = re.compile(r"(\d+) = (\d+)")


class Talk:
    """One person in one place: says numbers, and hears them again.

    Attributes:
        name: Of the channel.
        numbers: What is said, in this order; no other talk has these.
        again: Whether the service may send a message twice.
    """

    def __init__(
        self,
        stage: Stage,
        numbers: range,
        room: Room = Room.DIRECT,
        *,
        again: bool = False,
    ) -> None:
        self.name = stage.facts.id
        self.numbers = numbers
        self.again = again
        self.stage = stage
        self._room = room
        self._luck = random.Random(numbers.start)
        self._read, self._heard = 0, list[int]()

    async def speak(self, given_up: Callable[[], set[int]]) -> None:
        """Say all, never far ahead of the answers; some twice, some with a break.

        Args:
            given_up: Tells what the daemon says it may not have answered.
        """
        for at, number in enumerate(self.numbers):
            await self.say(f"calculate {number}")
            if self.again and self._luck.random() < 0.05:
                await self.stage.say_again()
            if self._luck.random() < 0.01:
                await self.cut()
            if at >= AHEAD:
                await self.until(at + 1 - AHEAD, given_up)
        await self.until(len(self.numbers), given_up)

    async def until(self, count: int, given_up: Callable[[], set[int]]) -> None:
        """Wait until the first so many are answered, or given up."""
        wanted, heard, silent = set(self.numbers[:count]), set[int](), 0.0
        while left := wanted - set(now := await self.heard()) - given_up():
            silent = silent + 0.05 if heard == {*now} else 0.0
            heard = {*now}
            assert silent < SILENCE, f"{self.name}: never answered: {sorted(left)}"
            await asyncio.sleep(0.05)

    async def say(self, text: str) -> None:
        """Say it, in a group to the agent."""
        if self._room is not Room.DIRECT:
            text = self.stage.mention(text)
        await self.stage.say(text, self._room)

    async def cut(self) -> None:
        """Break the daemon's connections to the service."""
        await self.stage.cut()

    async def texts(self) -> list[str]:
        """Give what the person has heard."""
        return await self.stage.seen(0, self._room)

    async def heard(self) -> list[int]:
        """Give the numbers among the answers, in their order."""
        texts = await self.texts()
        # Read once: a talk looks twenty times a second, and hears thousands. Who
        # began to look earlier may come back later, with fewer.
        found = [ANSWER.search(text) for text in texts[self._read :]]
        self._read = max(self._read, len(texts))
        self._heard += [int(each[1]) for each in found if each and each[1] == each[2]]
        return list(self._heard)


class MatrixTalk(Talk):
    """Reads the room page by page: one page does not hold a long conversation."""

    stage: SynapseStage
    _since = ""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._texts: list[str] = []
        self._one = asyncio.Lock()

    async def texts(self) -> list[str]:
        async with self._one:
            await self._turn_over()
        return self._texts

    async def _turn_over(self) -> None:
        room = self.stage.rooms[self._room]
        query = {"dir": "f", "limit": "500"}
        query |= {"from": self._since} if self._since else {}
        path = f"/_matrix/client/v3/rooms/{quote(room)}/messages"
        page = await self.stage.ada.call("GET", path, params=query)
        self._since = page.get("end", self._since)
        for event in page["chunk"]:
            ours = event["sender"] == self.stage.us.id
            if ours and event["type"] == "m.room.message":
                self._texts.append(event["content"]["body"])


class Service(Program):
    """Takes each answer once, by its id, as its sender may send it again."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: dict[str, dict[str, Any]] = {}

    async def _take(self, request: web.Request) -> web.Response:
        body = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        name = headers["webhook-id"]
        verified(SECRET, headers, body, int(headers["webhook-timestamp"]))
        self.taken.setdefault(name, json.loads(body))
        return web.Response(status=204)


class WebhookTalk(Talk):
    """A program that calls again until it is told that it was heard."""

    def __init__(
        self, service: Service, numbers: range, where: Callable[[], str]
    ) -> None:
        self.name = "webhook"
        self.numbers = numbers
        self.again = False
        self._luck = random.Random(numbers.start)
        self._read, self._heard = 0, []
        self._service = service
        self._where = where
        self._place = f"place-{numbers.start}"

    async def say(self, text: str) -> None:
        body = {"conversation": self._place, "sender": "ada", "text": text}
        for _ in range(1 + (self._luck.random() < 0.1)):
            await self._call(text.replace(" ", "-"), json.dumps(body).encode())

    async def _call(self, name: str, body: bytes) -> None:
        async with httpx.AsyncClient(trust_env=False, verify=False) as http:
            while True:
                # When it is tried again it is signed again.
                headers = {**JSON, **signed(SECRET, name, int(time.time()), body)}
                try:
                    url = self._where() + PATH
                    answer = await http.post(url, content=body, headers=headers)
                except httpx.TransportError:
                    await asyncio.sleep(0.05)
                    continue
                if answer.status_code == 202:
                    return
                assert answer.status_code in {404, 429, 503}, answer.text
                await asyncio.sleep(0.05)

    async def cut(self) -> None:
        pass

    async def texts(self) -> list[str]:
        taken = self._service.taken.values()
        return [each["text"] for each in taken if each["conversation"] == self._place]


def section_of(stage: Stage) -> str:
    """Write ``[channels.<id>]`` for a stage whose person may speak."""
    settings = stage.settings().model_dump(mode="json", exclude_defaults=True)
    settings |= {"agent": "helper", "allow_from": [stage.person]}
    settings |= {"allowed_hosts": ["127.0.0.1"], "typing_indicator": False}
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    return "\n".join([f"[channels.{stage.facts.id}]", *lines, ""])


def environ_of(stage: Stage) -> Mapping[str, str]:
    """Give the variables of the environment that hold a stage's secrets."""
    return {stage.channel.secrets[name]: v for name, v in stage.secrets().items()}
