"""Turns that another daemon runs, told here as they go on.

Whoever watches one asks for it again and again, and says how much it has. The daemon
that runs it tells the words from there on, and that there may be new rows; those are
read. A word may be lost: each says where it stands, and what is missing is asked for.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from agenthost import (
    Agent,
    JsonObject,
    Message,
    Role,
    Signals,
    TextDelta,
    Thinking,
    ToolProgress,
    Turn,
    TurnState,
    Watcher,
    Work,
)

from .followed import TOPIC, Followed, answers_of
from .parts import Parts
from .resume import Past, recalled

FORGOTTEN = 5.0
"""Seconds after which a turn that nobody has asked for is told no more."""
PACE = 0.05
"""Seconds in which words are gathered before they are told."""
WORD = 600
"""Characters in one: it has 8,000 bytes at most, and one may take twelve."""


class Afar:
    """Tells the others of turns that run here, and hears of those that run there.

    Args:
        parts: What turns work with.
        signals: How the daemons reach each other.
        live: What runs or waits here, by id.
    """

    def __init__(
        self, parts: Parts, signals: Signals, live: Mapping[str, Work]
    ) -> None:
        self._past = Past(parts)
        self._signals = signals
        self._live = live
        self._telling: dict[str, Telling] = {}
        self._followed: dict[str, Followed] = {}
        signals.listen(TOPIC, self._heard)

    async def told(self, agent: Agent, turn_id: str, offset: int) -> Watcher:
        """Watch a turn that has ended, or that another daemon runs.

        Raises:
            NotFound: The agent has no such turn.
        """
        record, spoken = await self._past.of(agent, turn_id)
        if record.state is not TurnState.RUNNING:
            return await self._past.told(agent, turn_id, offset)
        followed = self._followed.get(turn_id)
        if followed is None or followed.turn.ended:
            turn = recalled(agent, turn_id, record, spoken)
            followed = Followed(self._past, self._signals, agent, turn)
            self._followed[turn_id] = followed
            followed.task.add_done_callback(lambda _: self._forget(turn_id))
        await followed.reach(offset)
        return followed.turn.watch(offset)

    async def end(self) -> None:
        """Tell and hear no more: the daemon is draining."""
        tasks = [each.task for each in self._telling.values()]
        tasks += [each.task for each in self._followed.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _forget(self, turn_id: str) -> None:
        if (followed := self._followed.get(turn_id)) and followed.task.done():
            del self._followed[turn_id]

    def _heard(self, word: str) -> None:
        said: JsonObject = json.loads(word) if word else {}
        turn_id = str(said.get("turn"))
        if "has" in said:
            self._asked(turn_id, int(said["has"]))
        elif followed := self._followed.get(turn_id):
            followed.hear(said)

    def _asked(self, turn_id: str, has: int) -> None:
        turn = self._live.get(turn_id)
        if not isinstance(turn, Turn) or turn.ended:
            return
        telling = self._telling.get(turn_id)
        if telling is None or telling.task.done() or has < telling.said:
            if telling is not None:
                telling.task.cancel()
            telling = self._telling[turn_id] = Telling(self._signals, turn, has)
            telling.task.add_done_callback(lambda _: self._told(turn_id))
        telling.until = asyncio.get_running_loop().time() + FORGOTTEN

    def _told(self, turn_id: str) -> None:
        if (telling := self._telling.get(turn_id)) and telling.task.done():
            del self._telling[turn_id]


class Telling:
    """A turn that runs here, as it is told to other daemons.

    Args:
        signals: How they are reached.
        turn: The turn.
        has: How many of its characters who asks for it has.
    """

    def __init__(self, signals: Signals, turn: Turn, has: int) -> None:
        self.said = has
        self.until = 0.0
        self._signals = signals
        self._turn = turn
        self.task = asyncio.create_task(self._tell(turn.watch(has)), name="tell a turn")

    async def _tell(self, watcher: Watcher) -> None:
        try:
            async for event in watcher.events():
                if asyncio.get_running_loop().time() > self.until:
                    return
                if isinstance(event, TextDelta):
                    self._words(event.text, event.offset)
                    await asyncio.sleep(PACE)
                elif not isinstance(event, Thinking | ToolProgress):
                    self._say()
        finally:
            watcher.leave()

    def _words(self, text: str, end: int) -> None:
        begin = end - len(text)
        behind = _behind(self._turn.spoken, begin)
        for start in range(0, len(text), WORD):
            part = text[start : start + WORD]
            self._say(text=part, begin=begin + start, behind=behind)
        self.said = end

    def _say(self, **more: Any) -> None:
        self._signals.tell(TOPIC, json.dumps({"turn": self._turn.id, **more}))


def _behind(spoken: Sequence[Message], begin: int) -> int:
    """Count the answers before the one that has the character at a place."""
    position, behind = 0, 0
    for number, message in enumerate(answers_of(spoken), 1):
        if message.role is Role.ASSISTANT:
            position += len(message.text)
        if position <= begin:
            behind = number
    return behind
