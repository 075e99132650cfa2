"""What requests bring and answers say, as Anthropic's clients write and read it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from ..native import Word
from ..shapes import MOST_MESSAGES, MOST_TOOLS, Body, Count, JsonDict, Share, StopWord

DISPLAYS = ("summarized", "omitted")


class Conversation(Body):
    """What is counted, and what is answered.

    Messages, tools and settings of several shapes are read by functions of their own.
    """

    model: str = Field(
        description="`service:<agent>`, an agent's id or name; `<provider>/<model>` is "
        "that model where `[openai] passthrough` says so; else the first agent",
        max_length=1_024,
    )
    messages: list[JsonDict] = Field(
        min_length=1,
        max_length=MOST_MESSAGES,
        description="The whole conversation: user and assistant",
    )
    system: str | list[JsonDict] | None = Field(
        None, description="Stands behind the agent's own system prompt"
    )
    tools: Annotated[list[JsonDict], Field(max_length=MOST_TOOLS)] | None = Field(
        None, description="Tools of the client, beside the agent's own"
    )
    tool_choice: JsonDict | None = Field(None, description="auto, any, tool or none")
    thinking: JsonDict | None = Field(
        None, description="enabled with budget_tokens, adaptive or disabled"
    )
    output_config: JsonDict | None = Field(
        None, description="`format`, a JSON Schema of the answer, and `effort`"
    )
    container: Any = None
    mcp_servers: Any = None
    thread: Any = None


class MessagesBody(Conversation):
    """``POST /v1/messages``."""

    max_tokens: Count
    stream: bool | None = None
    temperature: Share | None = None
    top_p: Share | None = None
    top_k: Annotated[int, Field(ge=0, le=10_000_000)] | None = Field(
        None, description="For a model itself; an agent passes it over"
    )
    service_tier: Word | None = Field(
        None, description="For a model itself; an agent passes it over"
    )
    stop_sequences: Annotated[list[StopWord], Field(max_length=4)] | None = None
    metadata: JsonDict | None = Field(None, description="`user_id`")

    @property
    def display(self) -> str | None:
        """How thoughts are told, where the request says that."""
        told = (self.thinking or {}).get("display")
        return told if told in DISPLAYS else None


class Tokens(TypedDict, total=False):
    """What the answer took, all calls of models together."""

    input_tokens: int
    output_tokens: int
    cache_read_input_tokens: int
    cache_creation_input_tokens: int
    output_tokens_details: JsonDict


class Answered(TypedDict):
    """``POST /v1/messages``."""

    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    model: str
    content: list[JsonDict]
    stop_reason: str | None
    stop_sequence: str | None
    usage: Tokens


class MessageEvents(TypedDict):
    """The events of a stream by name."""

    message_start: JsonDict
    content_block_start: JsonDict
    content_block_delta: JsonDict
    content_block_stop: JsonDict
    message_delta: JsonDict
    message_stop: JsonDict
    ping: JsonDict
    error: JsonDict


class Problem(TypedDict):
    """What is wrong; ``details`` has the daemon's own code for it."""

    type: str
    message: str
    details: JsonDict


class Failure(TypedDict):
    """The body of every error."""

    type: Literal["error"]
    error: Problem
    request_id: str


class Counted(TypedDict):
    """``POST /v1/messages/count_tokens``."""

    input_tokens: int
