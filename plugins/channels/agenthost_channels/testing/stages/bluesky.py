"""A host of Bluesky's with Ada, who writes to us and posts in a thread of ours."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from agenthost.testing.simulators.bluesky import PASSWORD, BlueskySimulator

from ...bluesky.adapter import Bluesky, Settings
from ...contract import Place, Room
from ...facts import facts
from ..stage import Stage

CHAT = "chat.bsky.convo.defs#"
HOSTILE: tuple[Any, ...] = (
    {"$type": f"{CHAT}logCreateMessage", "rev": "2", "convoId": "../x", "message": []},
    {"$type": f"{CHAT}logCreateMessage", "rev": 7, "convoId": {}, "message": {}},
    {"$type": f"{CHAT}logDeleteMessage", "rev": "2", "convoId": "x"},
    {"$type": 7},
    *({}, [], None, 3),
)
NOTICES: tuple[Any, ...] = (
    {"uri": "at://did:plc:eve/app.bsky.feed.like/3k", "reason": "mention"},
    {"uri": "file:///etc/passwd", "reason": "mention", "record": {"text": "x"}},
    {"uri": {}, "cid": [], "reason": "reply", "record": "x", "author": 3},
    {"reason": "mention", "record": {"text": "x", "facets": [{"index": {}}, 3]}},
    *({}, [], None, 3),
)


class BlueskyStage(Stage):
    """A host with Ada, Bob and us."""

    channel = Bluesky
    facts = facts("bluesky")
    keeps = True
    judge = "a simulator written from the lexicons of the AT Protocol"

    def __init__(self, host: BlueskySimulator) -> None:
        self.host = host
        self.us = host.join("helper.test")
        self.person = host.join("ada.test")
        self.bob = host.join("bob.test")
        self.root = host.post(self.us, "ask me anything")
        self._below = host.post(self.bob, "I will", self.root)

    def settings(self) -> Settings:
        return Settings(
            service=self.host.url,
            identifier="helper.test",
            directory=self.host.url,
            poll_seconds=0.05,
        )

    def secrets(self) -> Mapping[str, str]:
        return {"app_password": PASSWORD}

    def wrong_secrets(self) -> Mapping[str, str]:
        return {"app_password": "canary-that-is-wrong"}  # nosec B105 # opens nothing

    def place(self, room: Room) -> Place:
        if room is Room.DIRECT:
            return Place("default", self.person)
        return Place("default", "posts", self.root, Room.PUBLIC)

    def nowhere(self) -> Place:
        return Place("default", "did:plc:nobody")

    async def say(self, text: str, room: Room = Room.DIRECT) -> None:
        if room is Room.DIRECT:
            self._last = self.host.write(self.person, self.us, text)
        elif text.startswith("@helper.test "):
            said = text.removeprefix("@helper.test ")
            self.host.mention(self.person, self.us, said, self._below)
        else:
            self.host.post(self.person, text, self._below)

    async def say_again(self) -> None:
        self.host.chat.log(self.host.chat.convo([self.person, self.us]), self._last)

    def mention(self, text: str) -> str:
        return f"@helper.test {text}"

    async def say_in_thread(self, text: str) -> None:
        self.host.mention(self.person, self.us, text)

    async def answer(self, text: str) -> None:
        self.host.post(self.person, text, self._posts()[-1]["uri"])

    def _posts(self) -> list[dict[str, Any]]:
        posts = self.host.posts.values()
        mine = [each for each in posts if each["author"]["did"] == self.us]
        return [each for each in mine if each["uri"] != self.root]

    def _letters(self) -> list[dict[str, Any]]:
        said = self.host.chat.messages.values()
        every = [each for letters in said for each in letters]
        return [each for each in every if each["sender"]["did"] == self.us]

    async def seen(self, count: int, room: Room = Room.DIRECT) -> list[str]:
        def texts() -> list[str]:
            if room is Room.DIRECT:
                return [str(each["text"]) for each in self._letters()]
            return [str(each["record"]["text"]) for each in self._posts()]

        await self.host.until(lambda: len(texts()) >= count)
        return texts()

    async def threads_seen(self) -> str:
        await self.host.until(self._posts)
        return str(self._posts()[-1]["record"]["reply"]["root"]["uri"])

    async def reacted(self, emoji: str) -> None:
        reaction = (self._last["id"], emoji)
        await self.host.until(lambda: reaction in self.host.chat.reactions)

    async def cut(self) -> None:
        self.host.breaking = 1

    def limit(self, seconds: float) -> None:
        self.host.refusing = 429, seconds

    def lose_answer(self) -> None:
        self.host.losing = True

    async def hostile(self) -> None:
        self.host.chat.odd += HOSTILE
        self.host.odd += NOTICES


@asynccontextmanager
async def opened() -> AsyncIterator[Stage]:
    """Open it."""
    async with BlueskySimulator() as host:
        yield BlueskyStage(host)
