"""A chat service of the tests' own: what it takes, refuses and forgets is scripted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import ClassVar

from agenthost import ChannelSpec, Unauthenticated, hookimpl
from agenthost_channels.contract import (
    Adapter,
    Facts,
    Fate,
    Inbound,
    Line,
    Outbound,
    Place,
    Room,
    Sender,
    Sent,
)
from pydantic import BaseModel

CONFIG = """
[channels.pager]
agent = "helper"
allow_from = ["ada"]
"""
FACTS = Facts("pager", "Pager", "test", "", per_peer=100)
"""Nobody waits for the pace of a conversation, but where a test is about it."""
THERE = Sent(Fate.DELIVERED, "v1")
LOST = Sent(Fate.UNKNOWN, reason="the line broke")
BUSY = Sent(Fate.NOT_SENT, reason="busy", retry_after=0.01)


class Settings(BaseModel):
    """Settings of the pager."""

    number: int = 1
    called: bool = False


class Pager:
    """A plugin that offers the channel; it outlives daemons, as a service does."""

    __name__ = "pager"

    def __init__(self) -> None:
        self.sent: list[Outbound] = []
        self.looked: list[Outbound] = []
        self.fates: list[Sent] = []
        self.lines: list[Line] = []
        self.changed = asyncio.Event()

    @hookimpl
    def register_channel(self) -> Iterable[ChannelSpec]:
        """Offer the pager."""
        yield ChannelSpec("pager", self.adapter)

    def adapter(self) -> type[Adapter]:
        """Make the adapter's class."""
        service = self

        class Connected(Adapter):
            facts = FACTS
            settings = Settings
            secrets: ClassVar[dict[str, str]] = {"token": "PAGER_TOKEN"}

            @property
            def called(self) -> bool:
                return bool(self.line.settings.called)

            async def run(self) -> None:
                self.line.connected()
                service.lines.append(self.line)
                service.changed.set()
                await asyncio.Event().wait()

            async def send(self, message: Outbound) -> Sent:
                service.sent.append(message)
                service.changed.set()
                return service.fates.pop(0) if service.fates else THERE

            async def identity(self) -> str:
                token = self.line.secret("token")
                if token is None:
                    raise Unauthenticated("the pager wants a token")
                return f"pager with {len(token.reveal())} signs"

            async def reconcile(self, message: Outbound) -> Sent:
                service.looked.append(message)
                service.changed.set()
                return LOST

        return Connected

    async def until(self, so: Callable[[], object]) -> None:
        """Wait until it holds, looking at each thing that happens."""
        async with asyncio.timeout(30):
            while not so():
                self.changed.clear()
                await self.changed.wait()

    async def line(self) -> Line:
        """Wait until it is connected."""
        await self.until(lambda: self.lines)
        return self.lines[-1]


def said(
    text: str,
    number: int = 1,
    sender: str = "ada",
    peer: str = "ada",
    *,
    room: Room = Room.DIRECT,
    mentions_us: bool = False,
) -> Inbound:
    """Make a message."""
    place = Place("default", peer, room=room)
    when = datetime(2026, 1, 1, tzinfo=UTC)
    return Inbound(
        place, f"m{number}", Sender(sender), text, when, mentions_us=mentions_us
    )
