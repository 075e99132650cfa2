"""A workspace of Slack's with Ada in it, over Socket Mode."""

from __future__ import annotations

import html
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from agenthost.testing.simulators.slack import APP, BOT, US, SlackSimulator

from ...contract import Place, Room
from ...facts import facts
from ...slack.adapter import Settings, Slack
from ..stage import Stage


class SlackStage(Stage):
    """Ada, and a channel with her in it."""

    channel = Slack
    facts = facts("slack")
    keeps = True
    judge = (
        "a simulator written from Slack's pages, in which slack_sdk's client is at home"
    )
    person = "UADA"

    def __init__(self, slack: SlackSimulator) -> None:
        self.slack = slack
        self.last: dict[str, object] = {}

    def settings(self) -> Settings:
        return Settings(api_url=f"{self.slack.url}/api")

    def secrets(self) -> Mapping[str, str]:
        return {"bot_token": BOT, "app_token": APP}

    def wrong_secrets(self) -> Mapping[str, str]:
        wrong = {"bot_token": "xoxb-canary"}  # nosec B105 # opens nothing
        return {**wrong, "app_token": "xapp-canary"}  # nosec B105 # opens nothing

    def place(self, room: Room) -> Place:
        if room is Room.DIRECT:
            return Place("default", "D1")
        return Place("default", "C1", room=Room.GROUP)

    async def say(self, text: str, room: Room = Room.DIRECT) -> None:
        escaped = html.escape(text.replace(f"<@{US}>", "\0"), quote=False)
        await self._put(
            channel=self.place(room).peer, text=escaped.replace("\0", f"<@{US}>")
        )

    async def _put(self, **event: object) -> None:
        stamp = self.slack.stamp()
        base = {"type": "message", "user": self.person, "channel": "D1", "ts": stamp}
        self.last = {**base, **event}
        await self.slack.event(self.last)

    async def seen(self, count: int, room: Room = Room.DIRECT) -> list[str]:
        peer = self.place(room).peer

        def texts() -> list[str]:
            said = [each for each in self.slack.said if each["channel"] == peer]
            return [line for each in said for line in each["text"].split("\n")]

        await self.slack.until(lambda: len(texts()) >= count)
        return texts()

    async def cut(self) -> None:
        await self.slack.cut()

    def nowhere(self) -> Place:
        return Place("default", "C404")

    def limit(self, seconds: float) -> None:
        self.slack.limited = int(seconds)

    def lose_answer(self) -> None:
        self.slack.losing = True

    async def say_again(self) -> None:
        await self.slack.event(self.last)

    async def say_as_bot(self, text: str) -> None:
        await self._put(text=text, bot_id="BOTHER", subtype="bot_message")

    def mention(self, text: str) -> str:
        return f"<@{US}> {text}"

    async def attach(self, name: str, media_type: str, data: bytes) -> None:
        self.slack.stored["F1"] = data
        address = f"{self.slack.url}/files/F1"
        file = {"id": "F1", "name": name, "mimetype": media_type, "size": len(data)}
        await self._put(subtype="file_share", files=[{**file, "url_private": address}])

    async def change(self, text: str) -> None:
        changed = {**self.last, "text": text, "edited": {"user": self.person}}
        event = {"type": "message", "subtype": "message_changed", "channel": "D1"}
        await self.slack.event({**event, "message": changed, "ts": self.slack.stamp()})

    async def say_in_thread(self, text: str) -> None:
        await self._put(text=text, channel="C1", thread_ts="1700000000.000001")

    async def threads_seen(self) -> str:
        await self.slack.until(lambda: bool(self.slack.said))
        return str(self.slack.said[-1].get("thread_ts", ""))

    async def hostile(self) -> None:
        for raw in ("{", "[]", "3", "[" * 50_000, '{"envelope_id": 3}'):
            await self.slack.send_raw(raw)
        message = {"type": "message"}
        broken: list[object] = [None, [], message, {**message, "ts": 3}]
        for event in broken:
            await self.slack.event(event)

    async def files_seen(self, count: int) -> list[tuple[str, bytes]]:
        await self.slack.until(lambda: len(self.slack.files) >= count)
        return self.slack.files

    async def changed(self, text: str) -> None:
        await self.slack.until(lambda: text in self.slack.edits)

    async def reacted(self, emoji: str) -> None:
        assert emoji == "\U0001f44d"
        await self.slack.until(lambda: "+1" in self.slack.reactions)


@asynccontextmanager
async def opened() -> AsyncIterator[Stage]:
    """Open it."""
    async with SlackSimulator() as slack:
        yield SlackStage(slack)
