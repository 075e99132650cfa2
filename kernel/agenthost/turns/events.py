"""What a turn tells those who watch it."""

from __future__ import annotations

from dataclasses import dataclass

from agenthost_chat.chat import JsonObject, Usage

from ..errors import AgentHostError


@dataclass(frozen=True, slots=True)
class TurnResult:
    """How a turn ended: the answer and what it took.

    ``cost_micro_usd`` is in millionths of a US dollar, ``iterations`` the number of
    model calls.
    """

    text: str
    usage: Usage
    iterations: int
    cost_micro_usd: int


NOTHING = TurnResult("", Usage(), 0, 0)


@dataclass(frozen=True, slots=True)
class Thinking:
    """The turn has the session and asks the model."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolStart:
    """A tool call begins."""

    id: str
    tool: str
    input: JsonObject


@dataclass(frozen=True, slots=True)
class ToolEnd:
    """A tool call has its outcome."""

    id: str
    tool: str
    input: JsonObject
    output: str
    is_error: bool


@dataclass(frozen=True, slots=True)
class Missed:
    """The watcher was too slow: so many events were dropped for it."""

    count: int


@dataclass(frozen=True, slots=True)
class Done:
    """The turn ended well; the last event."""

    result: TurnResult


@dataclass(frozen=True, slots=True)
class Failed:
    """The turn failed or was stopped; the last event.

    ``so_far`` holds the words said before, and what they took.
    """

    error: AgentHostError
    so_far: TurnResult = NOTHING


TurnEvent = Thinking | TextDelta | ToolStart | ToolEnd | Missed | Done | Failed
