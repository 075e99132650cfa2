"""A turn as its callers hold it: watch it, wait for it, stop it."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import replace
from hashlib import sha256
from uuid import NAMESPACE_URL, uuid5

from agenthost_chat.chat import (
    Json,
    Message,
    ModelSettings,
    Role,
    Text,
    ToolDefinition,
)
from agenthost_values.value_class import value_class

from ..context import Context
from ..errors import AgentHostError, InvalidInput, TooLarge
from ..ports.records import TurnResult
from .events import (
    NOTHING,
    Done,
    Failed,
    Missed,
    TextDelta,
    Thought,
    TurnEvent,
    told_again,
)
from .work import Work

WATCHER_EVENTS = 1_000
MESSAGE_BYTES = 64 * 1024
KEY_LENGTH = 255


def user_message(text: str) -> Message:
    """Make a user's message of plain text.

    Raises:
        InvalidInput: It is empty.
        TooLarge: It is over 64 KiB.
    """
    if not text.strip():
        raise InvalidInput("message", "must not be empty")
    if len(text.encode("utf-8", "surrogatepass")) > MESSAGE_BYTES:
        raise TooLarge(f"message: over the limit of {MESSAGE_BYTES} bytes")
    return Message(Role.USER, (Text(text),))


class Watcher:
    """One consumer's bounded queue of a turn's events; ``thoughts`` when it wants."""

    __slots__ = ("_missed", "_ready", "_waiting", "thoughts", "turn")

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.thoughts = False
        self._waiting: deque[TurnEvent] = deque()
        self._ready = asyncio.Event()
        self._missed = 0

    def begin(self, told: Iterable[TurnEvent]) -> None:
        """Tell first what was said and done before it came."""
        # It may be long; only what comes from now on is bounded.
        self._waiting.extend(told)
        self._ready.set()

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

    def leave(self) -> bool:
        """Watch no longer; tell whether the turn goes on with nobody watching."""
        return self.turn.forget(self)

    def _next(self) -> TurnEvent:
        event = self._waiting.popleft()
        if not isinstance(event, TextDelta | Thought):
            return event
        kind, text = type(event), [event.text]
        while self._waiting and isinstance(more := self._waiting[0], kind):
            text.append(more.text)
            event = more
            self._waiting.popleft()
        return event if len(text) == 1 else replace(event, text="".join(text))


@value_class
class TurnOptions:
    """What one turn may set besides its input.

    Args:
        turn_id: Makes the start idempotent: the same id is the same turn, running,
            ended or cut off.
        digest: What the id was given for; the same id with another is refused.
        session_id: The session of the agent it speaks in; its own by default.
        max_tokens: The longest answer, instead of the manifest's.
        temperature: Instead of the manifest's.
        thinking_budget: Instead of the manifest's, and of the session's.
        history: Makes the turn stateless: it is the conversation so far, and may end
            with calls that the message answers. The turn speaks in an ephemeral session
            of its own, whatever ``session_id`` says, which ends with it; with a
            ``turn_id`` it is kept for a day, with calls left to the caller for an hour.
        max_cost_micro_usd: What it, and the turns it starts, may spend together.
        settings: What else is asked of its answers, before what the manifest says.
        instructions: What the model is told behind the agent's own system prompt.
        model: Answers instead of the agent's own, named as people name models; an agent
            that is pinned keeps its own, and what goes on without the caller's options.
        tools: Tools that the caller has, beside the agent's own; with a ``history``
            only. A call of one ends the turn once the agent's own calls of the same
            answer have ended, and is left to the caller: it is in the result's
            ``calls``.
    """

    turn_id: str | None = None
    digest: str | None = None
    session_id: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    thinking_budget: int | None = None
    history: tuple[Message, ...] | None = None
    max_cost_micro_usd: int | None = None
    settings: ModelSettings | None = None
    instructions: str = ""
    model: str = ""
    tools: tuple[ToolDefinition, ...] = ()

    def elsewhere(self, turn_id: str) -> str | None:
        """The session it speaks in when that is not simply the agent's own."""
        return turn_id if self.history is not None else self.session_id

    def beside(self, own: tuple[ToolDefinition, ...]) -> tuple[ToolDefinition, ...]:
        """Put the caller's tools behind the agent's own.

        Raises:
            InvalidInput: Two have the same name.
        """
        names = {tool.name for tool in own}
        for tool in self.tools:
            if tool.name in names:
                problem = f"the name {tool.name!r} is taken; give yours another"
                raise InvalidInput("tools", problem)
            names.add(tool.name)
        return (*own, *self.tools)

    def repeatable(self, key: str | None, place: str, asked: Json) -> TurnOptions:
        """Make a start the same turn whenever it comes with the same key.

        Args:
            key: The ``Idempotency-Key``; without one nothing changes.
            place: Where keys are apart from those of others.
            asked: What the key is bound to; white space and the order of keys in what
                it was read from do not matter.

        Raises:
            InvalidInput: It is empty or too long.
        """
        if key is None:
            return self
        if not 0 < len(key) <= KEY_LENGTH:
            limits = f"must have 1 to {KEY_LENGTH} characters"
            raise InvalidInput("Idempotency-Key", limits)
        turn_id = str(uuid5(NAMESPACE_URL, f"agenthost:{place}:{key}"))
        digest = sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
        return replace(self, turn_id=turn_id, digest=digest)


NO_OPTIONS = TurnOptions()


class Turn(Work):
    """One turn: a task of its session's mailbox, not of whoever started it.

    Attributes:
        keeping: Set by who runs it: puts what it noted on its way to disk, and gives
            the commit as long as that is under way.
    """

    keeping: Callable[[], asyncio.Future[None] | None] | None = None

    def __init__(
        self, turn_id: str, context: Context, message: Message, options: TurnOptions
    ) -> None:
        super().__init__(turn_id, context)
        self.message = message
        self.options = options
        self.spoken: list[Message] = []
        self.saying = ""
        self.offset = 0
        self._last: Done | Failed | None = None
        self._watchers: list[Watcher] = []
        self._early: set[Watcher] = set()
        self._heard = False
        self._over = asyncio.Event()

    @property
    def watched(self) -> bool:
        """Whether anyone is told of its events now."""
        return bool(self._watchers)

    @property
    def ended(self) -> bool:
        """Whether it has its result or its error."""
        return self._last is not None

    def watch(self, offset: int | None = None) -> Watcher:
        """Watch; the last event is Done or Failed.

        Args:
            offset: Tell again first what was said and done behind this character; by
                default nothing is told again.
        """
        watcher = Watcher(self)
        self._heard = True
        commit = self.keeping() if self.keeping is not None else None
        if commit is None or commit.done():
            self._admit(watcher, offset)
        else:
            # The words of an answer are told to nobody as long as a crash could still
            # lose its question.
            self._early.add(watcher)
            commit.add_done_callback(lambda _: self._kept(watcher, offset))
        return watcher

    def _kept(self, watcher: Watcher, offset: int | None) -> None:
        if watcher in self._early:
            self._early.remove(watcher)
            self._admit(watcher, offset)

    def _admit(self, watcher: Watcher, offset: int | None) -> None:
        told: list[TurnEvent] = []
        if offset is not None:
            told += told_again(self.spoken, self.saying, offset)
        if self._last is not None:
            told.append(self._last)
        else:
            self._watchers.append(watcher)
        watcher.begin(told)

    def events(self) -> AsyncIterator[TurnEvent]:
        """Watch from now on."""
        return self.watch().events()

    def forget(self, watcher: Watcher) -> bool:
        """Let a watcher go; tell whether the turn goes on with nobody watching."""
        self._early.discard(watcher)
        if watcher in self._watchers:
            self._watchers.remove(watcher)
        return not (self.ended or self._watchers or self._early)

    async def result(self) -> TurnResult:
        """Wait for the end; a caller that goes away does not stop the turn.

        Raises:
            Cancelled: It was stopped.
            Interrupted: The daemon ended before it.
            AgentHostError: What it failed with.
        """
        await self._over.wait()
        result, error = self.ending()
        if result is None:
            raise error or self.stopped()
        return result

    def ending(self) -> tuple[TurnResult | None, AgentHostError | None]:
        """Its result or its error, once it is done."""
        if isinstance(self._last, Done):
            return self._last.result, None
        return None, self._last.error if self._last else None

    def recall(self, spoken: Iterable[Message]) -> None:
        """Take over what it said before it was cut off, or in an earlier process."""
        self.spoken = list(spoken)
        self.offset = sum(len(m.text) for m in self.spoken if m.role is Role.ASSISTANT)
        for event in told_again(self.spoken):
            self.emit(event)

    def say(self, text: str) -> None:
        """Say more of the message that the model is at."""
        self.saying += text
        self.offset += len(text)
        if self._watchers:
            self.emit(TextDelta(text, self.offset))

    def take_back(self) -> bool:
        """Unsay the message that the model is at; False once somebody has watched."""
        if not self._heard:
            self.offset -= len(self.saying)
            self.saying = ""
        return not self._heard

    def think(self, text: str) -> None:
        """Tell more of what the model thinks to those who want it."""
        for watcher in self._watchers:
            if watcher.thoughts:
                watcher.put(Thought(text))

    def spoke(self, message: Message) -> None:
        """A message is complete."""
        self.spoken.append(message)
        self.saying = ""

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

    def _close(self, last: Done | Failed) -> None:
        """Tell everybody; only the first end counts."""
        if self.ended:
            return
        self._last = last
        self.emit(last)
        self._watchers.clear()
        self.keeping = None
        self._over.set()
