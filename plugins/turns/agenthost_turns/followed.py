"""A turn that another daemon runs, as it is heard of here."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress

from agenthost import (
    Agent,
    AgentHostError,
    JsonObject,
    Message,
    NotFound,
    Role,
    Signals,
    ToolEnd,
    ToolOutput,
    ToolStart,
    Turn,
    TurnState,
    Unavailable,
)

from .resume import Past

TOPIC = "watched"
LOOK = 1.0
"""Seconds between two askings."""
WORDS = 1_000
"""So many words wait to be told here; what is over is asked for again."""


class Followed:
    """Keeps a turn as its own daemon tells it, as long as somebody watches it here.

    Args:
        past: Reads its rows.
        signals: How its daemon is asked.
        agent: Who answers in it.
        turn: The turn, as far as its rows told.
    """

    def __init__(self, past: Past, signals: Signals, agent: Agent, turn: Turn) -> None:
        self.turn = turn
        self._past = past
        self._signals = signals
        self._agent = agent
        self._heard: asyncio.Queue[JsonObject] = asyncio.Queue(WORDS)
        self.task = asyncio.create_task(self._follow(), name="follow a turn")

    def hear(self, said: JsonObject) -> None:
        """Take what its daemon tells."""
        with suppress(asyncio.QueueFull):
            self._heard.put_nowait(said)

    async def reach(self, offset: int) -> None:
        """Wait a little until as much is known here as somebody has heard elsewhere."""
        if self.turn.offset >= offset:
            return
        watcher = self.turn.watch(0)
        try:
            async with asyncio.timeout(2 * LOOK):
                async for _ in watcher.events():
                    if self.turn.offset >= offset:
                        return
        except TimeoutError:
            return
        finally:
            watcher.leave()

    async def _follow(self) -> None:
        try:
            while self.turn.watched and not await self._ended():
                has = {"turn": self.turn.id, "has": self.turn.offset}
                self._signals.tell(TOPIC, json.dumps(has))
                await self._hear()
        finally:
            gone = "the daemon is shutting down; watch the turn on another"
            self.turn.fail(Unavailable(gone))

    async def _ended(self) -> bool:
        try:
            return await self._caught_up()
        except NotFound as gone:
            self.turn.fail(gone)
            return True
        except AgentHostError:
            # The database may be back at the next look.
            return False

    async def _hear(self) -> None:
        """Tell words as they come, until it is time to look again."""
        until = asyncio.get_running_loop().time() + LOOK
        with suppress(TimeoutError):
            while True:
                async with asyncio.timeout_at(until):
                    said = await self._heard.get()
                if not await self._told(said):
                    return

    async def _told(self, said: JsonObject) -> bool:
        """Tell words behind those known; False when rows are to be looked at."""
        turn = self.turn
        if "text" not in said:
            return False
        known = len(answers_of(turn.spoken))
        if said["behind"] > known and await self._ended():
            return False
        heard = turn.offset - int(said["begin"])
        if heard < 0:
            # What is missing comes before these, and they come once more.
            while not self._heard.empty():
                self._heard.get_nowait()
            return False
        if new := str(said["text"])[heard:]:
            turn.say(new)
        return True

    async def _caught_up(self) -> bool:
        """Take what its rows tell; True when it has ended."""
        record, spoken = await self._past.of(self._agent, self.turn.id)
        for message in spoken[len(self.turn.spoken) :]:
            self._take(message)
        if record.state is TurnState.RUNNING:
            return False
        await self._past.end(self.turn, record)
        return True

    def _take(self, message: Message) -> None:
        turn = self.turn
        if message.role is Role.TOOL:
            asked = {use.id: use.arguments for m in turn.spoken for use in m.tool_uses}
            turn.spoke(message)
            for part in message.parts:
                if isinstance(part, ToolOutput):
                    turn.emit(ToolEnd.of(part, asked.get(part.id, {})))
            return
        if message.role is Role.ASSISTANT:
            unsaid = message.text[len(turn.saying) :]
            if unsaid:
                turn.say(unsaid)
        ahead = turn.saying[len(message.text) :]
        turn.spoke(message)
        turn.saying = ahead
        for use in message.tool_uses:
            turn.emit(ToolStart(use.id, use.name, use.arguments))


def answers_of(spoken: Sequence[Message]) -> Sequence[Message]:
    """Leave out the question, which only a turn that is read back begins with."""
    return [message for message in spoken if message.role is not Role.USER]
