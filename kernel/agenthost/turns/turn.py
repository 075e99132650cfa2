"""A turn as its callers hold it: watch it, wait for it, stop it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass

from agenthost_chat.chat import Message

from ..context import AgentView, Context
from ..errors import AgentHostError, Cancelled
from .events import (
    NOTHING,
    Done,
    Failed,
    Missed,
    TextDelta,
    TurnEvent,
    TurnResult,
)

WATCHER_EVENTS = 1_000


class Watcher:
    """One consumer's bounded queue of events."""

    __slots__ = ("_missed", "_ready", "_waiting")

    def __init__(self) -> None:
        self._waiting: deque[TurnEvent] = deque()
        self._ready = asyncio.Event()
        self._missed = 0

    def put(self, event: TurnEvent) -> None:
        """Queue the event; when full, forget the oldest and count it."""
        if len(self._waiting) >= WATCHER_EVENTS:
            self._waiting.popleft()
            self._missed += 1
        self._waiting.append(event)
        self._ready.set()

    async def events(self) -> AsyncIterator[TurnEvent]:
        """Yield events until the last; text that is ready together comes as one."""
        while True:
            while not self._waiting:
                self._ready.clear()
                await self._ready.wait()
            if self._missed:
                missed, self._missed = self._missed, 0
                yield Missed(missed)
            event = self._next()
            yield event
            if isinstance(event, Done | Failed):
                return

    def _next(self) -> TurnEvent:
        event = self._waiting.popleft()
        if not isinstance(event, TextDelta):
            return event
        text = [event.text]
        while self._waiting and isinstance(more := self._waiting[0], TextDelta):
            text.append(more.text)
            self._waiting.popleft()
        return TextDelta("".join(text))


@dataclass(frozen=True, slots=True)
class TurnOptions:
    """What one turn may set besides its input.

    Args:
        turn_id: Makes the start idempotent: the same id is the same turn, running,
            ended or interrupted by the daemon's death.
        session_id: The session it speaks in; the agent's own by default.
        max_tokens: The longest answer, instead of the manifest's.
        temperature: Instead of the manifest's.
        history: Makes the turn stateless: it is the conversation so far, and nothing
            is read from the session before it.
        max_cost_micro_usd: What it, and the turns it starts, may spend together.
    """

    turn_id: str | None = None
    session_id: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    history: tuple[Message, ...] | None = None
    max_cost_micro_usd: int | None = None


NO_OPTIONS = TurnOptions()


class Turn:
    """One turn: a task of its session's mailbox, not of whoever started it."""

    def __init__(
        self, turn_id: str, context: Context, message: Message, options: TurnOptions
    ) -> None:
        self.id = turn_id
        self.context = context
        self.message = message
        self.options = options
        self.task: asyncio.Task[None] | None = None
        self.cancelled_for: str | None = None
        self.sealed = False
        self._last: Done | Failed | None = None
        self._watchers: list[Watcher] = []
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def agent(self) -> AgentView:
        """The agent that answers, and the session it speaks in."""
        assert self.context.agent is not None  # noqa: S101 - set by the engine
        return self.context.agent

    @property
    def watched(self) -> bool:
        """Whether anyone is told of its events now."""
        return bool(self._watchers)

    @property
    def ended(self) -> bool:
        """Whether it has its result or its error."""
        return self._last is not None

    def events(self) -> AsyncIterator[TurnEvent]:
        """Watch from now on; the last event is Done or Failed."""
        watcher = Watcher()
        if self._last is None:
            self._watchers.append(watcher)
        else:
            watcher.put(self._last)
        return watcher.events()

    async def result(self) -> TurnResult:
        """Wait for the end; a caller that goes away does not stop the turn.

        Raises:
            Cancelled: It was stopped.
            AgentHostError: What it failed with.
        """
        while self._last is None:
            waiting = asyncio.get_running_loop().create_future()
            self._waiting.append(waiting)
            await waiting
        if isinstance(self._last, Failed):
            raise self._last.error
        return self._last.result

    def ending(self) -> tuple[TurnResult | None, AgentHostError | None]:
        """Its result or its error, once it is done."""
        if isinstance(self._last, Done):
            return self._last.result, None
        return None, self._last.error if self._last else None

    def cancel(self, reason: str) -> bool:
        """Stop it; what was said so far is kept.

        Returns:
            False when it has ended, is being stored as complete, or is being stopped.
        """
        if self.ended or self.sealed or self.cancelled_for is not None:
            return False
        self.cancelled_for = reason
        if self.task is not None:
            self.task.cancel()
        return True

    def seal(self) -> None:
        """Its answer is complete and on its way to disk: it cannot be stopped now."""
        self.sealed = True

    def emit(self, event: TurnEvent) -> None:
        """Tell all watchers."""
        for watcher in self._watchers:
            watcher.put(event)

    def finish(self, result: TurnResult) -> None:
        """End well."""
        self._close(Done(result))

    def fail(self, error: AgentHostError, so_far: TurnResult = NOTHING) -> None:
        """End with an error, after what was said and spent so far."""
        self._close(Failed(error, so_far))

    def stopped(self) -> Cancelled:
        """The error of a turn that was cancelled."""
        return Cancelled(f"the turn was stopped: {self.cancelled_for or 'cancelled'}")

    def _close(self, last: Done | Failed) -> None:
        """Tell everybody; only the first end counts."""
        if self.ended:
            return
        self._last = last
        self.emit(last)
        self._watchers.clear()
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)
        self._waiting.clear()
