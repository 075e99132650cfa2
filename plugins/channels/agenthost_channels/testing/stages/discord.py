"""Discord with Ada, a guild and a thread in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from agenthost.testing.simulators.discord import DiscordSimulator
from agenthost.testing.simulators.discord.world import (
    ADA,
    BOT,
    DIRECT,
    HIDDEN,
    TEXT,
    THREAD,
    TOKEN,
    US,
)

from ...contract import Place, Room
from ...discord.adapter import Discord, Settings
from ...facts import facts
from ..stage import Stage

HOSTILE = (
    "{",
    "[]",
    "3",
    "[" * 50_000,
    '{"op": 0}',
    '{"op": 99, "d": {}}',
    '{"op": 0, "t": "MESSAGE_CREATE", "s": null, "d": null}',
    '{"op": 0, "t": "MESSAGE_CREATE", "s": null, "d": {"id": 3, "author": []}}',
    '{"op": 0, "t": "MESSAGE_UPDATE", "s": "x", "d": {"id": "1", "channel_id": "2"}}',
    '{"op": 0, "t": ["READY"], "s": 1e999, "d": [[]]}',
    '{"op": 0, "t": "READY", "s": -1, "d": "READY"}',
    '{"op": "0", "d": {"op": 9}}',
)


class DiscordStage(Stage):
    """Ada, who writes directly, in a channel of a guild and in its thread."""

    channel = Discord
    facts = facts("discord")
    keeps = True
    judge = "a simulator written from Discord's pages, in which discord.py is at home"
    person = str(ADA["id"])

    def __init__(self, discord: DiscordSimulator) -> None:
        self.discord = discord

    def settings(self) -> Settings:
        return Settings(api_url=self.discord.api, message_content=True)

    def secrets(self) -> Mapping[str, str]:
        return {"bot_token": TOKEN}

    def wrong_secrets(self) -> Mapping[str, str]:
        return {"bot_token": "canary.that.is-wrong"}  # nosec B105 # opens nothing

    def place(self, room: Room) -> Place:
        if room is Room.DIRECT:
            return Place("default", DIRECT)
        return Place("default", TEXT, room=Room.GROUP)

    async def say(self, text: str, room: Room = Room.DIRECT) -> None:
        self.last = await self.discord.put(self.place(room).peer, content=text)

    async def seen(self, count: int, room: Room = Room.DIRECT) -> list[str]:
        peer = self.place(room).peer

        def texts() -> list[str]:
            said = [each for each in self.discord.said if each["channel"] == peer]
            return [line for each in said for line in each["content"].split("\n")]

        await self.discord.until(lambda: len(texts()) >= count)
        return texts()

    async def cut(self) -> None:
        self.discord.cut()

    def nowhere(self) -> Place:
        return Place("default", HIDDEN)

    def limit(self, seconds: float) -> None:
        body = {"message": "You are being rate limited.", "retry_after": seconds}
        headers = {"retry-after": str(int(seconds)), "x-ratelimit-scope": "user"}
        self.discord.next_answer = (429, {**body, "global": False}, headers)

    def lose_answer(self) -> None:
        self.discord.losing = True

    async def say_again(self) -> None:
        await self.discord.gateway.say("MESSAGE_CREATE", self.last)

    async def say_as_bot(self, text: str) -> None:
        await self.discord.put(DIRECT, BOT, content=text)

    def mention(self, text: str) -> str:
        return f"<@{US['id']}> {text}"

    async def attach(self, name: str, media_type: str, data: bytes) -> None:
        file = self.discord.attachment(name, media_type, data)
        await self.discord.put(DIRECT, attachments=[file])

    async def change(self, text: str) -> None:
        await self.discord.change(self.last, content=text)

    async def say_in_thread(self, text: str) -> None:
        await self.discord.put(THREAD, content=text)

    async def threads_seen(self) -> str:
        await self.discord.until(lambda: bool(self.discord.said))
        return str(self.discord.said[-1]["channel"])

    async def answer(self, text: str) -> None:
        answered = self.discord.kept[TEXT][-1]
        reference = {"type": 0, "message_id": answered["id"], "channel_id": TEXT}
        await self.discord.put(
            TEXT,
            content=text,
            type=19,
            message_reference=reference,
            referenced_message=answered,
        )

    async def hostile(self) -> None:
        for text in HOSTILE:
            await self.discord.gateway.raw(text)

    async def files_seen(self, count: int) -> list[tuple[str, bytes]]:
        await self.discord.until(lambda: len(self.discord.files) >= count)
        return self.discord.files

    async def changed(self, text: str) -> None:
        await self.discord.until(lambda: text in self.discord.edits)

    async def reacted(self, emoji: str) -> None:
        await self.discord.until(lambda: emoji in self.discord.reactions)


@asynccontextmanager
async def opened() -> AsyncIterator[Stage]:
    """Open it."""
    async with DiscordSimulator() as discord:
        yield DiscordStage(discord)
