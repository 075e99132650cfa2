"""What requests bring and answers say, as OpenAI's clients write and read it."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from ..native import Word
from ..shapes import (
    MOST_MESSAGES,
    MOST_TOOLS,
    Beside,
    Body,
    Count,
    JsonDict,
    MetaKey,
    MetaValue,
    Share,
)

Name = Annotated[str, Field(max_length=512)]


class ReasoningAsked(Body):
    """``reasoning``; no summary is made."""

    effort: str | None = Field(
        None, description="none, minimal, low, medium, high, xhigh or max"
    )


class ResponseBody(Body):
    """``POST /v1/responses``; items and tools are read by functions of their own."""

    model: str = Field(
        description="`service:<agent>`, an agent's id or name; `<provider>/<model>` is "
        "that model where `[openai] passthrough` says so; else the first agent",
        max_length=1_024,
    )
    input: str | Annotated[list[JsonDict], Field(max_length=MOST_MESSAGES)] = Field(
        description="What the user says, or items: messages, calls and their outputs"
    )
    instructions: str | None = None
    previous_response_id: Name | None = Field(
        None, description="A stored response: the conversation goes on behind it"
    )
    store: bool | None = Field(None, description="Keep it for 30 days; by default")
    background: bool | None = Field(None, description="Answer at once, work on")
    stream: bool | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Share | None = None
    max_output_tokens: Count | None = None
    tools: Annotated[list[JsonDict], Field(max_length=MOST_TOOLS)] | None = Field(
        None, description="Functions of the client, beside the agent's own tools"
    )
    tool_choice: str | JsonDict | None = None
    parallel_tool_calls: bool | None = None
    text: JsonDict | None = Field(None, description="`format` of the answer")
    reasoning: ReasoningAsked | None = None
    metadata: Annotated[dict[MetaKey, MetaValue], Field(max_length=16)] | None = None
    include: Annotated[list[str], Field(max_length=16)] | None = None
    truncation: str | None = None
    user: Name | None = None
    safety_identifier: Name | None = None
    prompt_cache_key: Name | None = None
    conversation: Any = None
    prompt: Any = None
    max_tool_calls: Any = None
    context_management: Any = None
    moderation: Any = None
    access_programs: Any = None
    service_tier: Word | None = Field(
        None, description="For a model itself; an agent passes it over"
    )
    top_logprobs: Beside | None = Field(
        None, description="How many likely tokens are told in the place of each"
    )


class ReadQuery(Body):
    """How a stored response is read."""

    stream: Annotated[bool, Field(strict=False)] = Field(
        default=False, description="As events, also those that are still to come"
    )
    starting_after: Annotated[int, Field(ge=0, strict=False)] | None = Field(
        None, description="The number of the last event that the reader has"
    )


class PageQuery(Body):
    """Which input items are listed."""

    order: Literal["asc", "desc"] = "desc"
    after: Name | None = Field(None, description="The item before the first")
    limit: Annotated[int, Field(ge=1, le=100, strict=False)] = 20


class Item(TypedDict):
    """A message, a call or an output; what else it has depends on its type."""

    id: str
    type: str
    status: NotRequired[str]


class InputDetails(TypedDict):
    """Parts of the input that cost less, or more."""

    cached_tokens: int
    cache_write_tokens: int


class OutputDetails(TypedDict):
    """The part of the output that the model only thought."""

    reasoning_tokens: int


class ResponseTokens(TypedDict):
    """What the response took, all calls of models together."""

    input_tokens: int
    input_tokens_details: InputDetails
    output_tokens: int
    output_tokens_details: OutputDetails
    total_tokens: int


class ResponseFault(TypedDict):
    """Why it failed."""

    code: str
    message: str


class Incomplete(TypedDict):
    """Why it is not whole."""

    reason: Literal["max_output_tokens", "content_filter"]


class ResponseObject(TypedDict):
    """``POST /v1/responses`` and ``GET /v1/responses/{id}``, with what was asked."""

    id: str
    object: Literal["response"]
    created_at: int
    completed_at: int | None
    status: Literal[
        "queued", "in_progress", "completed", "incomplete", "failed", "cancelled"
    ]
    background: bool
    error: ResponseFault | None
    incomplete_details: Incomplete | None
    instructions: str | None
    max_output_tokens: int | None
    metadata: dict[str, str]
    model: str
    output: list[Item]
    parallel_tool_calls: bool
    previous_response_id: str | None
    store: bool
    temperature: float | None
    text: JsonDict
    tool_choice: str | JsonDict
    tools: list[JsonDict]
    top_logprobs: int
    top_p: float | None
    truncation: Literal["disabled"]
    usage: ResponseTokens | None


class ResponseEvents(TypedDict):
    """The events of a stream, named by their ``type``, numbered in order."""

    message: JsonDict


class Deleted(TypedDict):
    """``DELETE /v1/responses/{id}``."""

    id: str
    object: Literal["response"]
    deleted: Literal[True]


class ItemPage(TypedDict):
    """``GET /v1/responses/{id}/input_items``."""

    object: Literal["list"]
    data: list[Item]
    first_id: str | None
    last_id: str | None
    has_more: bool
