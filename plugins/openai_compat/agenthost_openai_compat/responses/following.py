"""A stored response as a stream that can be taken up again, wherever it broke off.

Whenever it is told, its events are the same and have the same numbers: its words come
in pieces that depend on the words alone. So nothing has to be kept of what was sent.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from uuid import UUID

from agenthost import (
    Done,
    Failed,
    Host,
    JsonObject,
    Missed,
    NotFound,
    TextDelta,
    ToolStart,
    TurnEvent,
)

from .draft import Draft, has_form, message
from .rows import Responses, Stored
from .stream import Frames

PIECE = re.compile(r"\s*\S{1,16}|\s+")
FIRST_PAUSE, LONGEST_PAUSE = 0.02, 1.0
"""Seconds between two looks at a response that is not being made here."""


class Told(Draft):
    """A stored response, as what writes its events reads it.

    Args:
        stored: The response.
    """

    def __init__(self, stored: Stored) -> None:
        super().__init__(stored.asked, stored.model, stored.created_at, None)
        self._hex = stored.hex

    @property
    def hex(self) -> str:
        """What its id, and those of its items, are made of."""
        return self._hex


class Pieces:
    """Writes a response in pieces that are the same whenever they are written.

    Args:
        stored: The response.
        after: The number of the last event that its reader has.
    """

    def __init__(self, stored: Stored, after: int) -> None:
        self._draft = Told(stored)
        self._frames = Frames(after)
        # Of what is to have a form only the last is given, when it is whole.
        self._held = has_form(self._draft)
        self._running = False
        self._index = 0
        self._words: list[str] = []
        self._rest = ""

    def begin(self) -> bytes:
        """Write that it is there, and waits."""
        queued = {**self._draft.shown, "status": "queued"}
        return self._frames.queued(queued)

    def runs(self) -> bytes:
        """Write that it is being made; once."""
        if self._running:
            return b""
        self._running = True
        return self._frames.in_progress(self._draft.shown)

    def one(self, event: TurnEvent) -> bytes:
        """Write what an event of its turn says, but for the last."""
        if isinstance(event, ToolStart):
            return self._close(None)
        if not isinstance(event, TextDelta) or self._held:
            return b""
        return self._say(event.text)

    def end(self, stored: Stored) -> bytes:
        """Write how it has ended, and what of it is not written yet."""
        response = stored.shown
        output: Sequence[JsonObject] = response["output"]
        told = [self.runs()]
        if self._words or self._rest:
            told.append(
                self._close(output[self._index] if self._more(output) else None)
            )
        while self._more(output):
            told.append(self._whole(output[self._index]))
        return b"".join((*told, self._frames.last(response)))

    def _more(self, output: Sequence[JsonObject]) -> bool:
        return self._index < len(output)

    def _whole(self, item: JsonObject) -> bytes:
        if item["type"] == "message":
            said = self._say(item["content"][0]["text"])
            return said + self._close(item)
        self._index += 1
        return self._frames.item(self._index - 1, item)

    def _say(self, text: str) -> bytes:
        """Write more words; the last piece waits, as it may grow."""
        pieces = PIECE.findall(self._rest + text)
        self._rest = pieces.pop() if pieces else ""
        return b"".join(map(self._piece, pieces))

    def _piece(self, text: str) -> bytes:
        item = message(self._draft.hex, self._index, "", "completed")
        begun = b"" if self._words else self._frames.open(self._index, item)
        self._words.append(text)
        return begun + self._frames.more(self._index, item, text)

    def _close(self, known: JsonObject | None) -> bytes:
        """End the message at hand, which is the one that is known."""
        rest, self._rest = self._rest, ""
        last = self._piece(rest) if rest else b""
        if not self._words:
            return last
        text, at = "".join(self._words), self._index
        said = message(self._draft.hex, at, text, "completed")
        if known is not None and known["type"] == "message":
            said = {**known, "content": [{**known["content"][0], "text": text}]}
        self._words, self._index = [], at + 1
        return last + self._frames.close(at, said)


class Following:
    """Tells a response of the background from its beginning to its end.

    Args:
        host: The daemon.
        own: Where its owner's are kept.
        stored: The response.
        after: The number of the last event that its reader has.
    """

    def __init__(self, host: Host, own: Responses, stored: Stored, after: int) -> None:
        self._host = host
        self._own = own
        self._stored = stored
        self._pieces = Pieces(stored, after)
        self._said = 0

    async def frames(self) -> AsyncGenerator[bytes, None]:
        """Write it, waiting for what is not there yet."""
        yield self._pieces.begin()
        pause = FIRST_PAUSE
        while self._stored.open:
            heard = self._said
            async with aclosing(self._live()) as frames:
                async for frame in frames:
                    yield frame
            if not await self._look():
                # It was deleted meanwhile.
                return
            if self._stored.open:
                pause = (
                    FIRST_PAUSE if self._said > heard else min(2 * pause, LONGEST_PAUSE)
                )
                await self._host.clock.sleep(pause)
        yield self._pieces.end(self._stored)

    def _new(self, said: TextDelta) -> TextDelta:
        """Leave out what was told: a turn that had waited tells all of it again."""
        new = max(said.offset - self._said, 0)
        self._said += new
        return TextDelta(said.text[-new:] if new else "", said.offset)

    async def _look(self) -> bool:
        found = await self._own.find(self._stored.id)
        if found is not None:
            self._stored = found
        return found is not None

    async def _live(self) -> AsyncGenerator[bytes, None]:
        """Write what its turn says, as long as there is one."""
        try:
            agent = self._host.agents.get(self._stored.agent_id)
            turn_id = str(UUID(self._stored.hex))
            watcher = await self._host.turns.attach(agent, turn_id, self._said)
        except NotFound:
            return
        try:
            yield self._pieces.runs()
            async for event in watcher.events():
                if isinstance(event, Done | Failed | Missed):
                    return
                if isinstance(event, TextDelta):
                    yield self._pieces.one(self._new(event))
                else:
                    yield self._pieces.one(event)
        finally:
            watcher.leave()
