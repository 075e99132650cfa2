"""What is said to a model and what comes back, in no vendor's dialect.

A conversation is a tuple of :class:`Message`; a provider answers with a stream of
:data:`Delta` that ends with exactly one :class:`Completion`. A stream that ends
without one has failed, whatever it said before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, field, fields
from enum import StrEnum
from operator import attrgetter
from typing import Any

from agenthost_values.value_class import late_dataclass, value_class

Json = Any  # reason: any JSON value; mypy has no recursive alias that pydantic reads
JsonObject = Mapping[str, Any]


class Role(StrEnum):
    """Who speaks. Tool results are user-side messages of role ``tool``."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@value_class
class Citation:
    """A page that an answer rests on, as its provider names it; http or https."""

    url: str
    title: str = ""


@value_class
class Text:
    """Words, and the pages they rest on, which are never sent back.

    ``logprobs`` say how likely each token was, in OpenAI's words, where that was asked.
    ``opaque`` holds what else its vendor tells of it, by the dialect's name.
    """

    text: str
    citations: tuple[Citation, ...] = ()
    logprobs: tuple[JsonObject, ...] = ()
    opaque: JsonObject = field(default_factory=dict)


@value_class
class Image:
    """A picture by value; ``data`` is base64 without a prefix.

    ``detail`` is how closely it is to be looked at, in OpenAI's words; "" says nothing.
    """

    media_type: str
    data: str
    detail: str = ""


@value_class
class Audio:
    """A sound by value; ``data`` is base64 without a prefix."""

    media_type: str
    data: str


@value_class
class File:
    """A file by value, in base64 without a prefix, or by ``uri``."""

    name: str
    media_type: str
    data: str = ""
    uri: str = ""


Medium = Image | Audio | File


@value_class
class Reasoning:
    """What a model thought.

    ``opaque`` holds the vendor's fields (signatures, encrypted blocks), keyed by the
    dialect's name, which go back unchanged inside a tool loop.
    """

    text: str
    opaque: JsonObject = field(default_factory=dict)


@value_class
class ToolUse:
    """A call that the model wants; ``arguments`` is a JSON object.

    ``malformed`` says what is wrong with a call that cannot be read; it is never made,
    and the model is told instead.
    """

    id: str
    name: str
    arguments: JsonObject
    opaque: JsonObject = field(default_factory=dict)
    malformed: str = ""


@value_class
class ToolOutput:
    """The outcome of the call ``id``.

    ``text`` is all of it in words: it names each of the ``media`` where it stands and
    holds ``structured`` as JSON. Who takes no media leaves them out and loses no word.
    """

    id: str
    name: str
    text: str
    is_error: bool = False
    media: tuple[Medium, ...] = ()
    structured: Json = None

    @property
    def images(self) -> list[Image]:
        """The pictures in it."""
        return [medium for medium in self.media if isinstance(medium, Image)]


Part = Text | Image | File | Reasoning | ToolUse | ToolOutput


@value_class
class Message:
    """One entry of a conversation.

    ``USER`` holds Text, Image and File, ``ASSISTANT`` Text, Reasoning and ToolUse,
    ``TOOL`` only ToolOutput (all results of one step together). ``name`` is that of who
    speaks, for wires that have a place for it.
    """

    role: Role
    parts: tuple[Part, ...]
    name: str = ""

    @property
    def text(self) -> str:
        """The words of all text parts."""
        return "".join([part.text for part in self.parts if isinstance(part, Text)])

    @property
    def citations(self) -> tuple[Citation, ...]:
        """The pages that its words rest on."""
        texts = [part for part in self.parts if isinstance(part, Text)]
        return tuple([page for text in texts for page in text.citations])

    @property
    def tool_uses(self) -> tuple[ToolUse, ...]:
        """The calls it asks for, in order."""
        return tuple([part for part in self.parts if isinstance(part, ToolUse)])


@value_class
class ToolDefinition:
    """A tool as a model sees it; ``parameters`` is a JSON Schema of an object.

    ``strict`` asks that a call fits it to the letter, of vendors that can see to that.
    """

    name: str
    description: str
    parameters: JsonObject
    strict: bool | None = None


@value_class
class ModelSettings:
    """What else may be asked of an answer; what is not set is left to the provider.

    ``tool_choice`` is ``auto``, ``none``, ``required`` or the name of a tool that is to
    be called. ``response_format`` is a JSON Schema: the answer is to be JSON that fits
    it. ``stop`` ends the answer before any of these words. ``user`` tells a provider
    whose requests belong together, by no name that means anything elsewhere.
    ``logprobs`` asks how likely each token was, and so many others in its place.
    """

    _: KW_ONLY
    tool_choice: str = ""
    response_format: JsonObject | None = None
    parallel_tool_calls: bool | None = None
    stop: tuple[str, ...] = ()
    top_p: float | None = None
    seed: int | None = None
    user: str = ""
    logprobs: int | None = None

    @property
    def asked(self) -> Mapping[str, Any]:
        """What of these is set, by name."""
        # Every request is looked at, and few ask anything: both in one go.
        values = _VALUES(self)
        if values == _UNSET:
            return _NOTHING
        told = zip(_NAMES, values, _UNSET, strict=True)
        return {name: value for name, value, unset in told if value != unset}


_NAMES = tuple(each.name for each in fields(ModelSettings))
_VALUES = attrgetter(*_NAMES)
_UNSET = tuple(each.default for each in fields(ModelSettings))
_NOTHING: Mapping[str, Any] = {}


@late_dataclass
class ChatRequest(ModelSettings):
    """One call of a model.

    ``model`` is the id on the provider's wire. ``thinking_budget`` is None for the
    model's default, 0 for off, else the tokens a model may think. Requests that begin
    alike have the same ``cache_key``: services that keep prompts find theirs by it.
    ``native`` has, by dialect, what only that dialect's vendors know; others leave it.
    """

    model: str
    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...] = ()
    max_tokens: int | None = None
    temperature: float | None = None
    thinking_budget: int | None = None
    stream: bool = True
    cache_key: str = ""
    native: Mapping[str, JsonObject] | None = None


class Finish(StrEnum):
    """Why a model stopped, in the words that clients know from elsewhere."""

    STOP = "stop"
    TOOL_USE = "tool_calls"
    LENGTH = "length"
    CONTENT_BLOCKED = "content_filter"


@value_class
class Usage:
    """Tokens of one or more calls.

    ``input_tokens`` counts the whole prompt, cached part included; ``cached_tokens``
    is the part of it read from a cache, ``cache_write_tokens`` the part written to
    one. ``output_tokens`` includes ``reasoning_tokens``. ``cost_micro_usd`` is set
    when the provider reports the price itself.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost_micro_usd: int | None = None

    def __add__(self, other: Usage) -> Usage:
        both = self.cost_micro_usd, other.cost_micro_usd
        costs = [cost for cost in both if cost is not None]
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            sum(costs) if costs else None,
        )


@value_class
class TextChunk:
    """More of the answer, with how likely its tokens were where that was asked.

    ``opaque`` is what its vendor tells of words that have ended, by its dialect.
    """

    text: str
    logprobs: tuple[JsonObject, ...] = ()
    opaque: JsonObject = field(default_factory=dict)


@value_class
class ReasoningChunk:
    """More of what the model thinks; for display only.

    ``opaque`` are the vendor's fields of a thought that has ended, by its dialect.
    """

    text: str
    opaque: JsonObject = field(default_factory=dict)


@value_class
class Completion:
    """The whole answer of one call, as it is stored and sent back.

    Tool calls stand in it only when ``finish`` is TOOL_USE: a call that was cut off
    is never parsed, and ``cut_call`` says that there was one. ``id`` is the provider's
    name of it, for whoever asks the provider about it. ``stop`` is which of the words
    to stop before ended it, where the provider tells.
    """

    message: Message
    finish: Finish
    usage: Usage
    cut_call: bool = False
    id: str = field(default="", compare=False)
    stop: str = field(default="", compare=False)


Delta = TextChunk | ReasoningChunk | Completion
