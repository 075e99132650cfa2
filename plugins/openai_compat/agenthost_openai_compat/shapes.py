"""What requests bring and answers say, as OpenAI's clients write and read it."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from .native import Bias, Candidates, Nonnegative, Penalty, Word

MOST_MESSAGES = 10_000
MOST_TOOLS = 128
ITSELF = "For a model itself; an agent passes it over"

JsonDict = dict[str, Any]
StopWord = Annotated[str, Field(min_length=1, max_length=100)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=10_000_000)]
MetaKey = Annotated[str, Field(max_length=64)]
MetaValue = Annotated[str, Field(max_length=512)]
Beside = Annotated[int, Field(ge=0, le=20)]


class Body(BaseModel):
    """What a request brings; what it has besides is passed over."""

    model_config = ConfigDict(strict=True, defer_build=True)


class StreamOptions(Body):
    """``stream_options``."""

    include_usage: bool | None = None


class ChatBody(Body):
    """``POST /v1/chat/completions``.

    Messages, tools and the form of the answer are read by functions of their own: a
    model of each part of each message would take several times as long.
    """

    model: str = Field(
        description="`service:<agent>`, an agent's id or name; `<provider>/<model>` is "
        "that model where `[openai] passthrough` says so; else the first agent",
        max_length=1_024,
    )
    messages: list[JsonDict] = Field(
        min_length=1,
        max_length=MOST_MESSAGES,
        description="The whole conversation: system, developer, user, assistant, tool",
    )
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Share | None = None
    max_tokens: Count | None = None
    max_completion_tokens: Count | None = Field(
        None, description="The same as max_tokens, and before it"
    )
    stop: StopWord | Annotated[list[StopWord], Field(max_length=4)] | None = None
    seed: int | None = None
    n: int | None = Field(None, description="1: an agent gives one answer")
    response_format: JsonDict | None = Field(
        None, description="text, json_object or json_schema"
    )
    tools: Annotated[list[JsonDict], Field(max_length=MOST_TOOLS)] | None = Field(
        None, description="Functions of the client, beside the agent's own tools"
    )
    tool_choice: str | JsonDict | None = None
    parallel_tool_calls: bool | None = None
    user: Annotated[str, Field(max_length=512)] | None = None
    logprobs: bool | None = Field(None, description="Tell how likely each token was")
    top_logprobs: Beside | None = Field(
        None, description="And so many others in its place; with logprobs"
    )
    prompt_cache_key: Annotated[str, Field(max_length=512)] | None = Field(
        None, description="Of a model itself; an agent has a key of its own"
    )
    frequency_penalty: Penalty | None = Field(None, description=ITSELF)
    presence_penalty: Penalty | None = Field(None, description=ITSELF)
    repetition_penalty: Nonnegative | None = Field(None, description=ITSELF)
    logit_bias: Bias | None = Field(None, description=ITSELF)
    top_k: Candidates | None = Field(None, description=ITSELF)
    min_p: Share | None = Field(None, description=ITSELF)
    reasoning_effort: Word | None = Field(
        None, description="none, minimal, low, medium, high, xhigh or max"
    )
    verbosity: Word | None = Field(None, description=ITSELF)
    service_tier: Word | None = Field(None, description=ITSELF)
    store: bool | None = Field(None, description=ITSELF)
    metadata: Annotated[dict[MetaKey, MetaValue], Field(max_length=16)] | None = Field(
        None, description=ITSELF
    )
    functions: Any = None
    function_call: Any = None


NATIVE = (
    "frequency_penalty",
    "presence_penalty",
    "repetition_penalty",
    "logit_bias",
    "top_k",
    "min_p",
    "reasoning_effort",
    "verbosity",
    "service_tier",
    "store",
    "metadata",
)
"""What goes on as it is, to a model itself that speaks OpenAI's chat completions."""


class CalledFunction(TypedDict):
    """A function and its arguments, which are JSON in a text."""

    name: str
    arguments: str


class ToolCall(TypedDict):
    """A call that the client is to make; ``index`` stands in streams alone."""

    index: NotRequired[int]
    id: str
    type: Literal["function"]
    function: CalledFunction


class ChatMessage(TypedDict):
    """What the agent says."""

    role: Literal["assistant"]
    content: str | None
    tool_calls: NotRequired[list[ToolCall]]


class Choice(TypedDict):
    """The one answer."""

    index: int
    message: ChatMessage
    logprobs: NotRequired[JsonDict | None]
    finish_reason: str


class Tokens(TypedDict):
    """What the answer took, all calls of models together."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatCompletion(TypedDict):
    """``POST /v1/chat/completions``."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[Choice]
    usage: Tokens
    receipt: NotRequired[dict[str, Any]]


class ChunkChoice(TypedDict):
    """What of the answer comes now."""

    index: int
    delta: JsonDict
    logprobs: NotRequired[JsonDict]
    finish_reason: str | None


class ChatChunk(TypedDict):
    """The data of each event of a stream; the last is ``[DONE]``."""

    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    choices: list[ChunkChoice]
    usage: NotRequired[Tokens | None]


class ChatEvents(TypedDict):
    """The events of a stream; they have no names."""

    message: ChatChunk


class Model(TypedDict):
    """An agent as OpenAI lists a model."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class Models(TypedDict):
    """``GET /v1/models``."""

    object: Literal["list"]
    data: list[Model]


class AnthropicModel(TypedDict):
    """An agent as Anthropic lists a model."""

    type: Literal["model"]
    id: str
    display_name: str
    created_at: str
    lifecycle: Literal["active"]


class AnthropicModels(TypedDict):
    """``GET /v1/models`` with a header ``anthropic-version``; always all of them."""

    data: list[AnthropicModel]
    has_more: bool
    first_id: str | None
    last_id: str | None


class Missing(TypedDict):
    """No such model: as the daemon says it, or with ``anthropic-version`` as theirs."""

    error: str | JsonDict


class EmbeddingsBody(Body):
    """``POST /v1/embeddings``."""

    model: str = Field(
        description="As its provider lists it, or `<provider>/<model>`; `default` is "
        "what `[embeddings] model` names",
        max_length=1_024,
    )
    input: str | Annotated[list[str], Field(min_length=1, max_length=2_048)] = Field(
        description="A text, or several; tokens are not taken"
    )
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: Annotated[int, Field(ge=1, le=100_000)] | None = Field(
        None, description="Fewer numbers: the first ones, as long as one together"
    )
    user: str | None = None


class EmbeddingRow(TypedDict):
    """A vector, as numbers or as base64 of 32-bit floats, little end first."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class EmbeddingTokens(TypedDict):
    """What the texts took."""

    prompt_tokens: int
    total_tokens: int


class Embeddings(TypedDict):
    """``POST /v1/embeddings``."""

    object: Literal["list"]
    data: list[EmbeddingRow]
    model: str
    usage: EmbeddingTokens
