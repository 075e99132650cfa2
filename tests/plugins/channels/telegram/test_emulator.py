"""The adapter keeps the contract with an emulator that others have written.

``telegram-test-api`` knows messages, edits and polls. It knows no files, reactions and
limits, checks no token, and hands an update out once, whatever offset is asked for.
"""

from __future__ import annotations

import asyncio
import html
import re
import shutil
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from agenthost_channels.contract import Place, Room
from agenthost_channels.facts import facts
from agenthost_channels.telegram.adapter import Settings, Telegram
from agenthost_channels.testing import ChannelContract, Stage
from agenthost_channels.testing.servers import Cable, free_port, serving

pytestmark = pytest.mark.conformance

NODE = shutil.which("node")
PACKAGE = Path(".cache/programs/telegram/node_modules/telegram-test-api").absolute()
THERE = PACKAGE.exists()
START = """\
const [path, port] = process.argv.slice(1);
const Server = require(path);
new Server({port: Number(port), host: "127.0.0.1"}).start();
"""
TOKEN = "7:canary-of-an-emulator"
US = {"id": 666, "is_bot": True, "first_name": "Test", "username": "TestNameBot"}
ADA = {"id": 7, "is_bot": False, "first_name": "Ada", "username": "ada"}
CHATS = {
    Room.DIRECT: {"id": 7, "type": "private", "first_name": "Ada"},
    Room.GROUP: {"id": -100, "type": "supergroup", "title": "us"},
}
BROKEN: tuple[dict[str, Any], ...] = (
    {"chat": 3},
    {"from": []},
    {"text": {"a": 1}},
    {"date": "x"},
)
TAG = re.compile("<[^>]+>")


class EmulatedStage(Stage):
    """The emulator, with Ada and a group."""

    channel = Telegram
    facts = facts("telegram")
    keeps = True
    judge = "telegram-test-api"
    person = "7"

    def __init__(self, cable: Cable, people: httpx.AsyncClient) -> None:
        self._cable = cable
        self._people = people

    def settings(self) -> Settings:
        return Settings(api_url=f"http://127.0.0.1:{self._cable.port}", poll_seconds=0)

    def secrets(self) -> Mapping[str, str]:
        return {"bot_token": TOKEN}

    def place(self, room: Room) -> Place:
        return Place("default", str(CHATS[room]["id"]), room=room)

    async def _put(self, room: Room, **message: Any) -> None:
        whole = {"from": ADA, "chat": CHATS[room], "date": int(time.time()), **message}
        told = await self._people.post(
            "/sendMessage", json={**whole, "botToken": TOKEN}
        )
        assert told.json()["ok"]

    async def say(self, text: str, room: Room = Room.DIRECT) -> None:
        name = f"@{US['username']}"
        mention = {"type": "mention", "offset": 0, "length": len(name)}
        marks = {"entities": [mention]} if text.startswith(name) else {}
        await self._put(room, text=text, **marks)

    async def say_as_bot(self, text: str) -> None:
        await self._put(Room.DIRECT, text=text, **{"from": {**ADA, "is_bot": True}})

    def mention(self, text: str) -> str:
        return f"@{US['username']} {text}"

    async def say_in_thread(self, text: str) -> None:
        thread = {"message_thread_id": 31, "is_topic_message": True}
        await self._put(Room.GROUP, text=text, **thread)

    async def answer(self, text: str) -> None:
        ours = (await self._ours())[-1]["messageId"]
        replied = {"message_id": ours, "from": US}
        await self._put(Room.GROUP, text=text, reply_to_message=replied)

    async def hostile(self) -> None:
        for message in BROKEN:
            await self._put(Room.DIRECT, **{"text": "", **message})

    async def cut(self) -> None:
        self._cable.pull()

    async def _ours(self) -> list[dict[str, Any]]:
        told = await self._people.post("/getUpdatesHistory", json={"token": TOKEN})
        return [each for each in told.json()["result"] if "chat_id" in each["message"]]

    async def seen(self, count: int, room: Room = Room.DIRECT) -> list[str]:
        peer = self.place(room).peer
        async with asyncio.timeout(20):
            while True:
                ours = [each["message"] for each in await self._ours()]
                there = [m for m in ours if str(m["chat_id"]) == peer]
                texts = [html.unescape(TAG.sub("", m["text"])) for m in there]
                lines = [line for text in texts for line in text.split("\n")]
                if len(lines) >= count:
                    return lines
                await asyncio.sleep(0.02)

    async def threads_seen(self) -> str:
        await self.seen(1, Room.GROUP)
        return str((await self._ours())[-1]["message"].get("message_thread_id", ""))

    async def changed(self, text: str) -> None:
        async with asyncio.timeout(20):
            while True:
                if text in await self.seen(0):
                    return
                await asyncio.sleep(0.02)


class TestEmulated(ChannelContract):
    """Telegram keeps every promise that the emulator can play."""

    @pytest.fixture
    async def stage(self) -> AsyncIterator[Stage]:
        if NODE is None or not THERE:
            pytest.skip("no telegram-test-api here: make channels")
        port = free_port()
        argv = (NODE, "-e", START, str(PACKAGE), str(port))
        async with (
            serving(*argv, port=port),
            Cable(port) as cable,
            httpx.AsyncClient(
                base_url=f"http://127.0.0.1:{port}", trust_env=False
            ) as people,
        ):
            yield EmulatedStage(cable, people)

    async def test_a_sign_of_typing_says_nothing(self, stage: Stage) -> None:
        """It cannot be played here."""
        pytest.skip("the emulator knows no sign of typing")

    async def test_what_was_not_kept_is_heard_again(self, stage: Stage) -> None:
        """It cannot be played here."""
        pytest.skip("the emulator hands an update out once")
