"""Telegram with Ada, and a group with her in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from agenthost.testing.simulators.telegram import ADA, TOKEN, US, TelegramSimulator

from ...contract import Place, Room
from ...facts import facts
from ...telegram.adapter import Settings, Telegram
from ..stage import Stage

BROKEN: list[dict[str, object]] = [
    {},
    {"message": 3},
    {"message": {"from": [], "chat": {}, "text": "x"}},
]


class TelegramStage(Stage):
    """Ada, and a group with her in it."""

    channel = Telegram
    facts = facts("telegram")
    keeps = True
    judge = "a simulator written from the pages of Telegram's Bot API"
    person = str(ADA["id"])

    def __init__(self, api: TelegramSimulator) -> None:
        self.api = api

    def settings(self) -> Settings:
        return Settings(api_url=self.api.url)

    def secrets(self) -> Mapping[str, str]:
        return {"bot_token": TOKEN}

    def wrong_secrets(self) -> Mapping[str, str]:
        return {"bot_token": "999:canary"}  # nosec B105 # opens nothing

    def place(self, room: Room) -> Place:
        if room is Room.DIRECT:
            return Place("default", "7")
        return Place("default", "-100", room=Room.GROUP)

    async def say(self, text: str, room: Room = Room.DIRECT) -> None:
        self._put(text=text, chat=self.place(room).peer)

    def _put(self, kind: str = "message", **message: object) -> None:
        self.last = self.api.update(kind, **message)
        self.api.put(self.last)

    async def seen(self, count: int, room: Room = Room.DIRECT) -> list[str]:
        peer = self.place(room).peer

        def texts() -> list[str]:
            said = [each for each in self.api.said if each["chat_id"] == peer]
            return [line for each in said for line in each["words"].split("\n")]

        await self.api.until(lambda: len(texts()) >= count)
        return texts()

    async def cut(self) -> None:
        self.api.cutting = True
        self.api.changed()

    def nowhere(self) -> Place:
        return Place("default", "404404")

    def limit(self, seconds: float) -> None:
        parameters = {"retry_after": int(seconds)}
        body = {"ok": False, "description": "Too Many", "parameters": parameters}
        self.api.next_answer = (429, body)

    def lose_answer(self) -> None:
        self.api.losing = True

    async def say_again(self) -> None:
        self.api.put({**self.last, "update_id": self.last["update_id"] + 50})

    async def say_as_bot(self, text: str) -> None:
        bot = {**ADA, "id": 8, "is_bot": True}
        self.api.put(self.api.update("message", **{"text": text, "from": bot}))

    def mention(self, text: str) -> str:
        return f"@{US['username']} {text}"

    async def attach(self, name: str, media_type: str, data: bytes) -> None:
        self.api.uploads["file-1"] = data
        document = {"file_id": "file-1", "file_name": name, "mime_type": media_type}
        self._put(document={**document, "file_size": len(data)})

    async def change(self, text: str) -> None:
        message = {**self.last["message"], "text": text, "chat": 7}
        self._put("edited_message", **message)

    async def say_in_thread(self, text: str) -> None:
        self._put(text=text, chat="-100", message_thread_id=31, is_topic_message=True)

    async def threads_seen(self) -> str:
        await self.api.until(lambda: bool(self.api.said))
        return str(self.api.said[-1].get("message_thread_id", ""))

    async def answer(self, text: str) -> None:
        self._put(
            text=text,
            chat="-100",
            reply_to_message={"message_id": self.api.last_id, "from": US},
        )

    async def hostile(self) -> None:
        first = self.api.update(text="")["update_id"]
        for at, broken in enumerate(BROKEN):
            self.api.put({"update_id": first + at, **broken})

    async def files_seen(self, count: int) -> list[tuple[str, bytes]]:
        await self.api.until(lambda: len(self.api.files) >= count)
        return self.api.files

    async def changed(self, text: str) -> None:
        await self.api.until(lambda: text in self.api.edits)

    async def reacted(self, emoji: str) -> None:
        await self.api.until(lambda: emoji in self.api.reactions)


@asynccontextmanager
async def opened() -> AsyncIterator[Stage]:
    """Open it."""
    async with TelegramSimulator() as api:
        yield TelegramStage(api)
