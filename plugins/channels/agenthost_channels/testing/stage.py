"""The vendor as the contract needs it: a person there, and what can go wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import ClassVar

import pytest
from pydantic import BaseModel

from ..contract import Adapter, Facts, Outbound, Place, Room
from .line import FakeLine

CANCEL_SECONDS = 5


class Stage:
    """A vendor or its simulator, running, with one person whom nobody knows yet.

    The methods of the first part are needed. Those of the second are overridden where
    the vendor, or its simulator, can do such a thing; the cases that need one which is
    not are skipped, and say so.

    Attributes:
        channel: The adapter's class.
        facts: What is known of the vendor.
        keeps: Whether the vendor keeps what is said while we are away.
        groups: Whether there are rooms of several people.
        lines: Whether one message may have several lines.
        person: The person's vendor id.
        judge: What the vendor is here, for a report: a server with its version, or a
            simulator and what it is true to.
    """

    channel: ClassVar[type[Adapter]]
    facts: ClassVar[Facts]
    keeps: ClassVar[bool] = False
    groups: ClassVar[bool] = True
    lines: ClassVar[bool] = True
    judge: ClassVar[str] = ""
    person: str

    def settings(self) -> BaseModel:
        """Give the settings with which the adapter reaches the vendor."""
        raise NotImplementedError

    def secrets(self) -> Mapping[str, str]:
        """Give the secrets that the vendor takes."""
        return {}

    def place(self, room: Room) -> Place:
        """Name the place where the person hears us."""
        raise NotImplementedError

    async def say(self, text: str, room: Room = Room.DIRECT) -> None:
        """Let the person say something to us, or in the group."""
        raise NotImplementedError

    async def seen(self, count: int, room: Room = Room.DIRECT) -> list[str]:
        """Wait until the person has seen so many texts of ours, and give all.

        A vendor that has one message in several lines gives each as a text.
        """
        raise NotImplementedError

    # What only some can do.

    async def cut(self) -> None:
        """Break every connection that the adapter has."""
        raise NotImplementedError

    def nowhere(self) -> Place:
        """Name a place which the vendor refuses to send to."""
        raise NotImplementedError

    def limit(self, seconds: float) -> None:
        """Refuse the next message and ask for a pause."""
        raise NotImplementedError

    def lose_answer(self) -> None:
        """Take the next message and break the connection instead of answering."""
        raise NotImplementedError

    async def say_again(self) -> None:
        """Send the last message of the person once more, with its id."""
        raise NotImplementedError

    async def say_as_bot(self, text: str) -> None:
        """Let a program speak in the place of the person."""
        raise NotImplementedError

    def mention(self, text: str) -> str:
        """Address a text to us, as people do in a group."""
        raise NotImplementedError

    async def attach(self, name: str, media_type: str, data: bytes) -> None:
        """Let the person send a file."""
        raise NotImplementedError

    async def change(self, text: str) -> None:
        """Let the person replace the last message."""
        raise NotImplementedError

    async def say_in_thread(self, text: str) -> None:
        """Let the person say something in a thread."""
        raise NotImplementedError

    async def answer(self, text: str) -> None:
        """Let the person answer our last message, as the vendor marks answers."""
        raise NotImplementedError

    async def hostile(self) -> None:
        """Send the adapter what no vendor should: it is not to be a message."""
        raise NotImplementedError

    def wrong_secrets(self) -> Mapping[str, str]:
        """Give secrets that the vendor refuses."""
        raise NotImplementedError

    async def files_seen(self, count: int) -> list[tuple[str, bytes]]:
        """Wait until the person has so many files of ours, and give them."""
        raise NotImplementedError

    async def changed(self, text: str) -> None:
        """Wait until the person sees a message of ours replaced by this text."""
        raise NotImplementedError

    async def reacted(self, emoji: str) -> None:
        """Wait until the person sees our reaction."""
        raise NotImplementedError

    async def threads_seen(self) -> str:
        """Wait until the person sees a text of ours in a thread; name the thread."""
        raise NotImplementedError


def needs(stage: Stage, *abilities: str) -> None:
    """Skip the case where the stage cannot play it."""
    for name in abilities:
        if getattr(type(stage), name) is getattr(Stage, name):
            pytest.skip(f"{stage.facts.display_name} cannot play: {name}")


def wants(stage: Stage, holds: object, what: str) -> None:
    """Skip the case where the vendor has no such thing."""
    if not holds:
        pytest.skip(f"{stage.facts.display_name} has no {what}")


class Played:
    """An adapter at work on a stage."""

    def __init__(self, stage: Stage, line: FakeLine) -> None:
        self.stage = stage
        self.line = line
        self.adapter = stage.channel(line)
        self._run: asyncio.Task[None] | None = None
        self._keys = 0

    def start(self) -> None:
        """Let it run, as the bridge does."""
        self._run = asyncio.create_task(self.adapter.run())

    async def connected(self, count: int = 1) -> None:
        """Wait until it has told so often that it is connected.

        Raises:
            Exception: What ended it before.
        """
        await self._while_running(lambda: self.line.connections >= count)

    async def ended(self) -> BaseException | None:
        """Wait until it has ended, and tell what it raised."""
        assert self._run is not None
        await asyncio.wait([self._run], timeout=20)
        assert self._run.done(), "the adapter still runs"
        return self._run.exception()

    async def stop(self) -> None:
        """Cancel it; it has a few seconds."""
        if self._run is None:
            return
        self._run.cancel()
        await asyncio.wait([self._run], timeout=CANCEL_SECONDS)
        assert self._run.done(), "a cancelled adapter still runs"
        with suppress(asyncio.CancelledError, Exception):
            self._run.result()

    async def restart(self) -> None:
        """Let it run once more, as after a break."""
        before = self.line.connections
        await self.stop()
        self.start()
        await self.connected(before + 1)

    def message(self, text: str, room: Room = Room.DIRECT) -> Outbound:
        """Make a message for the person, with a key of its own."""
        self._keys += 1
        key = f"key-{id(self):x}-{self._keys}"
        return Outbound(key, self.stage.place(room), text, plain=text)

    async def _while_running(self, happened: Callable[[], bool]) -> None:
        assert self._run is not None
        waiting = asyncio.create_task(self.line.until(happened))
        await asyncio.wait({waiting, self._run}, return_when=asyncio.FIRST_COMPLETED)
        if not waiting.done():
            waiting.cancel()
            self._run.result()
            raise AssertionError("the adapter ended before it was connected")
        waiting.result()


@asynccontextmanager
async def played(stage: Stage, *, connected: bool = True) -> AsyncIterator[Played]:
    """Run a stage's adapter until the test is through with it."""
    line = FakeLine(stage.settings(), stage.secrets())
    play = Played(stage, line)
    try:
        if connected:
            play.start()
            await play.connected()
        yield play
    finally:
        line.release()
        await play.stop()
        await line.aclose()
