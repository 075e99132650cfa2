"""The JSON shapes of the native surface: requests as models, answers as typed dicts."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired
from uuid import UUID

from agenthost import ModelSettings
from pydantic import BaseModel, Field, JsonValue
from typing_extensions import TypedDict

Id = Annotated[str, Field(json_schema_extra={"format": "uuid"})]
Moment = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
State = Literal["Created", "Running", "Suspended", "Crashed", "Terminated"]
Mode = Literal["Stable", "Normal"]
StopWord = Annotated[str, Field(min_length=1, max_length=100)]


class Body(BaseModel, defer_build=True):
    """What a request brings; what checks it is built when the first one comes."""


class UpdateAgent(Body):
    """``PUT /api/agents/{id}/update``; what is left out stays."""

    description: str | None = Field(None, max_length=4_096)
    system_prompt: str | None = None
    tags: list[str] | None = None


class SetMode(Body):
    """``PUT /api/agents/{id}/mode``."""

    mode: Mode


class SetModel(Body):
    """``PUT /api/agents/{id}/model``."""

    model: str = Field(min_length=1)
    provider: str | None = None


class Spend(Body):
    """What a turn may cost."""

    max_cost_usd: float | None = Field(
        None,
        gt=0,
        le=1_000_000,
        allow_inf_nan=False,
        description="US dollars that it, and all turns it starts, may spend together",
    )

    @property
    def max_cost_micro_usd(self) -> int | None:
        """The same in micro-USD, at least one."""
        dollars = self.max_cost_usd
        return None if dollars is None else max(int(dollars * 1_000_000), 1)


FILES = 10
"""Files that one message may name."""


class Attached(Body):
    """What a message names besides its words."""

    files: list[UUID] | None = Field(
        None,
        max_length=FILES,
        description="Uploaded files, by file_id; with them it may have no words",
    )


class Ask(Spend):
    """What a turn may cost, and what is asked; the manifest says what is left out."""

    response_format: dict[str, JsonValue] | None = Field(
        None,
        description="A JSON Schema: the answer is JSON that fits it, and told as a "
        "whole. One that does not fit is asked for again once",
    )
    tool_choice: str | None = Field(
        None,
        min_length=1,
        max_length=64,
        description="auto, none, required, or the tool that is to be called first",
    )
    parallel_tool_calls: bool | None = Field(
        None, description="Whether one step may call several tools"
    )
    stop: list[StopWord] | None = Field(
        None, max_length=4, description="Words before which the answer ends"
    )
    top_p: float | None = Field(
        None, ge=0, le=1, description="The share of likely words to choose from"
    )
    seed: int | None = Field(
        None,
        ge=0,
        lt=2**31,
        description="Makes answers repeatable, where the provider can",
    )

    @property
    def settings(self) -> ModelSettings | None:
        """What is asked of the answers, when it is anything."""
        if not self.model_fields_set & ASKED:
            return None
        told = self.model_dump(include=ASKED, exclude_none=True)
        if "stop" in told:
            told["stop"] = tuple(told["stop"])
        return ModelSettings(**told) if told else None


ASKED = Ask.model_fields.keys() - Spend.model_fields.keys()


class SendMessage(Ask, Attached):
    """``POST /api/agents/{id}/message`` and ``/message/stream``."""

    message: str = Field(
        description="At most 65,536 bytes of UTF-8",
        json_schema_extra={"minLength": 1, "maxLength": 64 * 1024},
    )
    session_id: UUID | None = Field(
        None, description="A session of the agent, instead of its own"
    )


class ThinkingQuery(Body):
    """What of a turn is streamed."""

    thinking: bool | None = Field(
        None,
        description="Stream what the model thinks; by default as its manifest says",
    )


class StreamQuery(ThinkingQuery):
    """``POST /api/agents/{id}/message/stream``."""

    detach: bool = Field(
        default=False, description="Let the turn go on when the reader leaves"
    )


class AttachQuery(ThinkingQuery):
    """``GET /api/agents/{id}/message/stream``."""

    turn: UUID = Field(description="The turn to read")


class StopQuery(Body):
    """``POST /api/agents/{id}/stop``."""

    session: UUID | None = Field(None, description="Instead of the agent's own")
    all: bool = Field(
        default=False, description="Stop every turn of the agent, waiting ones too"
    )


class SetValue(Body):
    """``PUT /api/memory/agents/{id}/kv/{key}``; ``value`` is any JSON value."""

    value: Any


class AgentSummary(TypedDict):
    """An agent in a list."""

    id: Id
    name: str
    state: State
    created_at: Moment
    model_provider: str
    model_name: str
    mode: Mode


class ModelChoice(TypedDict):
    """The model of an agent."""

    provider: str
    model: str


class CapabilityLists(TypedDict):
    """What an agent may use."""

    tools: list[str]
    network: list[str]


class AgentDetail(TypedDict):
    """``GET /api/agents/{id}``; ``parent`` has made it, ``reason`` has it stand."""

    id: Id
    name: str
    state: State
    created_at: Moment
    session_id: Id
    model: ModelChoice
    capabilities: CapabilityLists
    description: str
    tags: list[str]
    mode: Mode
    system_prompt: str
    reason: NotRequired[str]
    parent: NotRequired[Id]


class Created(TypedDict):
    """An agent was created; ``warnings`` tells what in the manifest has no effect."""

    agent_id: Id
    name: str
    warnings: list[str]


class AgentChanged(TypedDict):
    """An agent was changed."""

    status: Literal["updated"]
    agent_id: Id


class AgentKilled(TypedDict):
    """An agent is gone."""

    status: Literal["killed"]
    agent_id: Id


class ModeChanged(AgentChanged):
    """An agent has another mode."""

    mode: Mode


class ModelChanged(TypedDict):
    """An agent has another model; ``message`` tells what to know of it."""

    status: Literal["updated"]
    model: str
    provider: str
    message: NotRequired[str]


class Stopped(TypedDict):
    """What ran was stopped; ``message`` tells how much that was."""

    status: Literal["stopped"]
    message: str


class SessionReset(TypedDict):
    """An agent has an empty session."""

    status: Literal["reset"]
    agent_id: Id
    new_session_id: Id


class Compacted(TypedDict):
    """A summary stands for older messages, or no longer; ``ok``: nothing was to do."""

    status: Literal["compacted", "undone", "ok"]
    message: str


class SessionDeleted(TypedDict):
    """A session is gone."""

    status: Literal["deleted"]
    session_id: Id


class PairChanged(TypedDict):
    """A value was stored or deleted."""

    status: Literal["stored", "deleted"]
    key: str


Finished = Literal["stop", "length", "content_filter", "tool_calls"]
"""Why a model stopped: it had said all, reached its length limit, was blocked, or waits
for the results of calls."""


class Cited(TypedDict):
    """A page that an answer rests on, as its provider names it."""

    url: str
    title: str


class MessageAnswer(TypedDict):
    """The answer of a turn; ``cost_usd`` in US dollars."""

    response: str
    input_tokens: int
    output_tokens: int
    iterations: int
    cost_usd: float
    finish: NotRequired[Finished]
    citations: NotRequired[list[Cited]]
    receipt: NotRequired[dict[str, Any]]


class ThinkingEvent(TypedDict):
    """More of what the model thinks."""

    content: str


class ChunkEvent(TypedDict):
    """More of the answer."""

    content: str
    done: Literal[False]


class ToolUseEvent(TypedDict):
    """A tool call begins."""

    tool: str
    id: str


class ToolProgressEvent(ToolUseEvent):
    """A tool call tells how far it is; of how much, where it knows."""

    done: float
    total: NotRequired[float]
    text: str


class ToolResultEvent(ToolUseEvent):
    """A tool call has its outcome, with its JSON value where it has one."""

    input: dict[str, Any]
    result: str
    is_error: bool
    structured: NotRequired[Any]


class MissedEvent(TypedDict):
    """The reader was too slow: so many events were dropped."""

    events: int


class ErrorEvent(TypedDict):
    """The turn failed; ``done`` follows."""

    error: str
    code: str


class TokenCounts(TypedDict):
    """What model calls took."""

    input_tokens: int
    output_tokens: int


class WaitingEvent(TypedDict):
    """The turn waits for a person, and goes on by itself; ``done`` follows."""

    turn_id: Id
    approval_id: Id
    message: str


class DoneEvent(TypedDict):
    """The last event, with what the turn took."""

    done: Literal[True]
    usage: TokenCounts
    iterations: int
    cost_usd: float
    finish: NotRequired[Finished]
    citations: NotRequired[list[Cited]]


class TurnEvents(TypedDict):
    """The data of a stream's events, by the event's name."""

    thinking: ThinkingEvent
    chunk: ChunkEvent
    tool_use: ToolUseEvent
    tool_progress: ToolProgressEvent
    tool_result: ToolResultEvent
    missed: MissedEvent
    error: ErrorEvent
    waiting: WaitingEvent
    receipt: dict[str, Any]
    done: DoneEvent


class ToolEntry(TypedDict):
    """A tool call in a session's message."""

    name: str
    input: dict[str, Any]
    result: str | None
    is_error: bool


class MessageUsage(TypedDict):
    """What the turn of an answer took."""

    input_tokens: int
    output_tokens: int
    cost_usd: float


TurnStatus = Literal[
    "running", "waiting", "complete", "stopped", "interrupted", "failed"
]


class FileInMessage(TypedDict):
    """A file that a message names; it may have been deleted since."""

    file_id: Id
    name: str
    type: str


class SessionMessage(TypedDict):
    """A message as people read it.

    ``status`` of a User message is its turn's, ``error`` why it has no answer; of an
    Assistant message whether it broke off. The last of a turn has what it took.
    """

    role: str
    content: str
    tools: NotRequired[list[ToolEntry]]
    images: NotRequired[int]
    files: NotRequired[list[FileInMessage]]
    citations: NotRequired[list[Cited]]
    id: NotRequired[int]
    pinned: NotRequired[bool]
    turn_id: NotRequired[Id]
    at: NotRequired[Moment]
    status: NotRequired[TurnStatus]
    error: NotRequired[str]
    usage: NotRequired[MessageUsage]
    model: NotRequired[str]
    finish: NotRequired[Finished]


class SessionDetail(TypedDict):
    """``GET /api/agents/{id}/session``."""

    session_id: Id
    agent_id: Id
    message_count: int
    context_window_tokens: int
    messages: list[SessionMessage]


class KVPair(TypedDict):
    """A key and its value."""

    key: str
    value: Any


class KVList(TypedDict):
    """``GET /api/memory/agents/{id}/kv``."""

    kv_pairs: list[KVPair]


class CommandItem(TypedDict):
    """A command of a chat; ``argument`` is what may stand behind its name."""

    name: str
    argument: str
    help: str


class CommandList(TypedDict):
    """``GET /api/commands``."""

    commands: list[CommandItem]
