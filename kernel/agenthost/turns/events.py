"""What a turn tells those who watch it, and how it is told again to who comes late."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agenthost_chat.chat import Json, JsonObject, Message, Role, ToolOutput, Usage
from agenthost_values.value_class import value_class

from ..errors import AgentHostError
from ..ports.records import TurnResult

NOTHING = TurnResult("", Usage(), 0, 0)


@value_class
class Thinking:
    """The turn has the session and asks the model."""


@value_class
class TextDelta:
    """More of the answer; ``offset`` counts the turn's characters up to its end."""

    text: str
    offset: int = 0


@value_class
class Thought:
    """More of what the model thinks, for watchers that want it; never told again."""

    text: str


@value_class
class ToolStart:
    """A tool call begins."""

    id: str
    tool: str
    input: JsonObject


@value_class
class ToolProgress:
    """A tool call tells how far it is; of how much, where it knows."""

    id: str
    tool: str
    done: float
    total: float | None
    text: str


@value_class
class ToolEnd:
    """A tool call has its outcome; ``structured`` is its JSON value, where it has."""

    id: str
    tool: str
    input: JsonObject
    output: str
    is_error: bool
    structured: Json = None

    @classmethod
    def of(cls, out: ToolOutput, input: JsonObject) -> ToolEnd:  # noqa: A002
        """Tell of an outcome."""
        return cls(out.id, out.name, input, out.text, out.is_error, out.structured)


@value_class
class Missed:
    """The watcher was too slow: so many events were dropped for it."""

    count: int


@value_class
class Done:
    """The turn ended well; the last event."""

    result: TurnResult


@value_class
class Failed:
    """The turn failed or was stopped; the last event.

    ``so_far`` holds the words said before, and what they took.
    """

    error: AgentHostError
    so_far: TurnResult = NOTHING


_Tools = ToolStart | ToolProgress | ToolEnd
TurnEvent = Thinking | Thought | TextDelta | _Tools | Missed | Done | Failed


def told_again(
    spoken: Iterable[Message], saying: str = "", offset: int = 0
) -> Iterator[TurnEvent]:
    """Tell what a turn has said and done, as it was told the first time.

    Args:
        spoken: The turn's messages so far; its question is passed over.
        saying: The words of the message that is not complete yet.
        offset: The characters that the listener has. A tool call stands at the
            characters said before it; those at the offset are told once more.
    """
    position = 0
    inputs: dict[str, JsonObject] = {}
    for message in spoken:
        if message.role is Role.TOOL:
            if position >= offset:
                yield from _ends(message, inputs)
        elif message.role is Role.ASSISTANT:
            position += len(message.text)
            yield from _words(message.text, position, offset)
            inputs = {use.id: use.arguments for use in message.tool_uses}
            if position >= offset:
                for use in message.tool_uses:
                    yield ToolStart(use.id, use.name, use.arguments)
    yield from _words(saying, position + len(saying), offset)


def _words(text: str, position: int, offset: int) -> Iterator[TextDelta]:
    if position > offset and (unheard := text[offset - position :]):
        yield TextDelta(unheard, position)


def _ends(message: Message, inputs: dict[str, JsonObject]) -> Iterator[ToolEnd]:
    for part in message.parts:
        if isinstance(part, ToolOutput):
            yield ToolEnd.of(part, inputs.get(part.id, {}))
