"""The OpenAI chat completions dialect, written: requests.

Source: OpenAI API reference, "Create chat completion".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

from agenthost import (
    ChatRequest,
    Endpoint,
    File,
    HttpRequest,
    Image,
    Message,
    ProviderError,
    Reasoning,
    Role,
    Text,
    ToolDefinition,
    ToolOutput,
    ToolUse,
)

from .answers import compact
from .capabilities import (
    EFFORTS,
    Thinking,
    keeps_an_hour,
    marks_cache,
    places_to_mark,
    samples,
    thinking_of,
)
from .conversation import (
    bearer,
    data_url,
    is_document,
    loop_start,
    own_of,
    told_by_name,
    unread,
    wire_id,
)
from .faults import http_fault
from .forms import NAME as FORM
from .forms import strict_form
from .openai_decoder import OpenAIDecoder
from .outgoing import post
from .quirks import Quirks, read_quirks
from .schema import OPENAI, shape_schema
from .settings import CHOICES, TAKES, Takes, fitted

NAME = "openai-chat"
NINE = re.compile(r"[a-zA-Z0-9]{9}")
SHORT = re.compile(r".{1,40}", re.DOTALL)
"""What OpenAI takes for the id of a call."""
AFTER_TOOL = "(Noted.)"
CACHED = {"type": "ephemeral"}
CACHED_AN_HOUR = {"type": "ephemeral", "ttl": "1h"}


@dataclass(frozen=True, slots=True)
class OpenAIQuirks:
    """How a provider, or a model of it, bends the dialect.

    Args:
        max_tokens_field: Where the limit of the answer is written.
        stream_options: Whether usage has to be asked for when streaming.
        system_role: ``system`` or ``developer``.
        temperature: Whether the model takes one.
        max_tokens: The limit when the request names none; 0 leaves it to the service.
        thinking: How a thinking budget is written: not at all, as
            ``reasoning_effort``, as ``thinking: {type: enabled | disabled}``, as a
            ``reasoning`` object, or as an argument of the chat's template.
        efforts: The words for how much thinking, least first.
        effort_off: The effort that means no thinking, or ``object`` for a ``reasoning``
            object that says so; empty when there is none.
        reasoning_fields: Where reasoning comes in, first match wins.
        reasoning_back: Where it goes back inside a tool loop; empty for nowhere.
        listed_thinking: Whether it goes back as a piece of the content.
        details_field: Where opaque pieces of reasoning come in and go back inside a
            tool loop; empty for nowhere.
        think_tags: Whether answers may open with ``<think>``.
        done_marker: Whether a stream ends with ``[DONE]``; without, the reason to
            stop is taken for the end.
        cost_field: Where usage names the price in US dollars, a path with dots; empty
            for nowhere.
        usage_include: Whether the price has to be asked for.
        call_ids: Whether ids of calls may be any, or are nine letters and digits.
        answer_tools: Whether the user may not speak right after a tool.
        cache: Whether the ends of the system prompt and of the conversation are marked
            for the prompt cache, as a gateway to Claude takes it.
        cache_key: Whether the service finds kept prompts by ``prompt_cache_key``.
        lacks: The settings of a request that the service does not take, and ``name``
            where its messages have none.
        forms: How the form of an answer is asked for, where the model's row does not
            say: by its schema, as any JSON ``object``, or in words alone.
        forms_beside_tools: Whether it is where tools are offered.
        seed_field: Where the seed is written.
        user_field: Where the name of who asks is.
    """

    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    stream_options: bool = True
    system_role: Literal["system", "developer"] = "system"
    temperature: bool = True
    max_tokens: int = 0
    thinking: Literal["none", "effort", "switch", "object", "template"] = "none"
    efforts: tuple[str, ...] = EFFORTS
    effort_off: str = "none"
    reasoning_fields: tuple[str, ...] = ("reasoning_content", "reasoning")
    reasoning_back: str = ""
    listed_thinking: bool = False
    details_field: str = ""
    think_tags: bool = False
    done_marker: bool = True
    cost_field: str = ""
    usage_include: bool = False
    call_ids: Literal["any", "nine"] = "any"
    answer_tools: bool = False
    cache: bool = False
    cache_key: bool = False
    lacks: tuple[str, ...] = ()
    forms: Literal["schema", "object", "words"] = "schema"
    forms_beside_tools: bool = True
    seed_field: Literal["seed", "random_seed"] = "seed"
    user_field: Literal["user", "safety_identifier"] = "user"

    @property
    def takes(self) -> Takes:
        """What of a request's settings is written."""
        return _takes(self.lacks, self.forms, self.forms_beside_tools)


@cache
def _takes(lacks: tuple[str, ...], forms: str, beside_tools: bool) -> Takes:  # noqa: FBT001 - a quirk
    whole = TAKES[NAME]
    return replace(
        whole,
        settings=whole.settings - set(lacks),
        held=forms == "schema",
        held_beside_tools=beside_tools,
    )


PLAIN = Quirks(OpenAIQuirks())


@dataclass(frozen=True, slots=True)
class OpenAIChat:
    """Chat completions, as OpenAI and many others speak them."""

    quirks: Quirks[OpenAIQuirks] = PLAIN
    name: str = NAME

    @classmethod
    def from_quirks(cls, table: Mapping[str, Any]) -> OpenAIChat:
        """Make the dialect of a quirks table.

        Raises:
            InvalidInput: A quirk is not known, or its value is of another type.
        """
        return cls(read_quirks(OpenAIQuirks(), table))

    def encode(self, request: ChatRequest, endpoint: Endpoint) -> HttpRequest:
        """Write the request."""
        quirks = self.quirks.of(request.model)
        settings: dict[str, Any] = {}
        if request.asked:
            request, settings = _settings(request, quirks, endpoint)
        body: dict[str, Any] = {
            "model": request.model,
            "messages": _Writer(request, quirks, endpoint).messages(),
        }
        if request.tools:
            body["tools"] = [_tool(tool) for tool in request.tools]
        if marks_cache(endpoint, usual=quirks.cache):
            _mark(body["messages"], endpoint)
        native = request.native.get(NAME, {}) if request.native else {}
        if "reasoning_effort" in native:
            request = replace(request, thinking_budget=None)
        body.update(_options(request, quirks, endpoint))
        body.update(settings)
        body.update(native)
        url = endpoint.base_url.rstrip("/") + "/chat/completions"
        return post(endpoint, url, bearer(endpoint), body)

    def decoder(self, request: ChatRequest, endpoint: Endpoint) -> OpenAIDecoder:
        """Make the decoder of this request's answer."""
        return OpenAIDecoder(request, endpoint, self.quirks.of(request.model))

    def fault(
        self, endpoint: Endpoint, status: int, headers: Mapping[str, str], body: bytes
    ) -> ProviderError:
        """Name the error of an answer whose status is not 2xx."""
        return http_fault(endpoint, status, headers, body)


def _options(
    request: ChatRequest, quirks: OpenAIQuirks, endpoint: Endpoint
) -> dict[str, Any]:
    options: dict[str, Any] = {}
    limit = request.max_tokens or quirks.max_tokens
    if limit:
        options[quirks.max_tokens_field] = limit
    if request.temperature is not None and samples(endpoint, usual=quirks.temperature):
        options["temperature"] = request.temperature
    if request.thinking_budget is not None:
        usual = Thinking(quirks.thinking, quirks.efforts, quirks.effort_off)
        thinking = thinking_of(endpoint, usual)
        options.update(_thinking(request.thinking_budget, thinking))
    if request.stream:
        options["stream"] = True
        if quirks.stream_options:
            options["stream_options"] = {"include_usage": True}
    if quirks.cache_key and request.cache_key:
        options["prompt_cache_key"] = request.cache_key
    if quirks.usage_include:
        options["usage"] = {"include": True}
    return options


def _settings(
    request: ChatRequest, quirks: OpenAIQuirks, endpoint: Endpoint
) -> tuple[ChatRequest, dict[str, Any]]:
    """Keep what the model takes of what is asked, and write it."""
    sampled = samples(endpoint, usual=quirks.temperature)
    asked = fitted(request, endpoint, quirks.takes, samples=sampled)
    return asked, _written(asked, quirks) | _form(request, asked, quirks)


def _written(request: ChatRequest, quirks: OpenAIQuirks) -> dict[str, Any]:
    written: dict[str, Any] = {}
    if choice := request.tool_choice:
        named = {"type": "function", "function": {"name": choice}}
        written["tool_choice"] = choice if choice in CHOICES else named
    if request.parallel_tool_calls is not None:
        written["parallel_tool_calls"] = request.parallel_tool_calls
    if request.stop:
        written["stop"] = list(request.stop)
    if request.top_p is not None:
        written["top_p"] = request.top_p
    if request.seed is not None:
        written[quirks.seed_field] = request.seed
    if request.user:
        written[quirks.user_field] = request.user
    if request.logprobs is not None:
        written["logprobs"] = True
        if request.logprobs:
            written["top_logprobs"] = request.logprobs
    return written


def _form(
    request: ChatRequest, asked: ChatRequest, quirks: OpenAIQuirks
) -> dict[str, Any]:
    """Write the form of the answer; what is asked for in words may be JSON at least."""
    if asked.response_format is not None:
        schema, strict = strict_form(asked.response_format)
        form = {"name": FORM, "schema": schema, "strict": strict}
        return {"response_format": {"type": "json_schema", "json_schema": form}}
    wanted = request.response_format or {}
    if quirks.forms == "object" and wanted.get("type") == "object":
        return {"response_format": {"type": "json_object"}}
    return {}


def _mark(messages: Sequence[dict[str, Any]], endpoint: Endpoint) -> None:
    """Mark what is kept: only a part of a content that has words takes a mark."""
    mark = CACHED_AN_HOUR if keeps_an_hour(endpoint) else CACHED
    ends = [messages[place] for place in places_to_mark(messages)]
    for message in (*messages[:1], *ends):
        content = message["content"] or ()
        parts = [_text(content)] if isinstance(content, str) else content
        said = next((part for part in reversed(parts) if part.get("text")), None)
        if said is not None:
            said["cache_control"] = mark
            message["content"] = parts


def _thinking(budget: int, thinking: Thinking) -> dict[str, Any]:
    match thinking.kind:
        case "switch":
            return {"thinking": {"type": "enabled" if budget else "disabled"}}
        case "template":
            return {"chat_template_kwargs": {"enable_thinking": budget > 0}}
        case "object":
            return {"reasoning": _object(budget, thinking)}
        case "effort" if not budget and thinking.off == "object":
            return {"reasoning": {"enabled": False}}
        case "effort":
            effort = thinking.effort(budget) if budget else thinking.off
            return {"reasoning_effort": effort} if effort else {}
    return {}


def _object(budget: int, thinking: Thinking) -> dict[str, Any]:
    if budget:
        return {"max_tokens": budget}
    least = thinking.off if thinking.off in thinking.efforts else ""
    return {"effort": least} if least else {"enabled": False}


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    function: dict[str, Any] = {
        "name": tool.name,
        "description": tool.description,
        "parameters": shape_schema(tool.parameters, OPENAI),
    }
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes the messages of one request."""

    request: ChatRequest
    quirks: OpenAIQuirks
    endpoint: Endpoint

    def messages(self) -> list[dict[str, Any]]:
        written: list[dict[str, Any]] = []
        if self.request.system:
            role = self.quirks.system_role
            written.append({"role": role, "content": self.request.system})
        loop = loop_start(self.request.messages)
        for index, message in enumerate(self.request.messages):
            if message.role is Role.USER:
                if self.quirks.answer_tools and _ends_with_tool(written):
                    written.append({"role": "assistant", "content": AFTER_TOOL})
                written.append(_user(message, self.quirks))
            elif message.role is Role.ASSISTANT:
                written.append(self._assistant(message, in_loop=index >= loop))
            else:
                written.extend(self._tool_outputs(message))
        return written

    def _assistant(self, message: Message, *, in_loop: bool) -> dict[str, Any]:
        words = _words_alone(message)
        if words is not None and not message.name:
            return {"role": "assistant", "content": words}
        calls = [self._call(use) for use in message.tool_uses]
        written: dict[str, Any] = {"role": "assistant"}
        if message.name and "name" not in self.quirks.lacks:
            written["name"] = message.name
        written["content"] = message.text or (None if calls else "")
        if in_loop:
            self._think(message, written)
        if calls:
            written["tool_calls"] = calls
        return written

    def _think(self, message: Message, written: dict[str, Any]) -> None:
        quirks = self.quirks
        thoughts = [part for part in message.parts if isinstance(part, Reasoning)]
        text = "".join(part.text for part in thoughts)
        if quirks.reasoning_back and text:
            written[quirks.reasoning_back] = text
        if quirks.listed_thinking and text:
            written["content"] = [
                {"type": "thinking", "thinking": [_text(text)]},
                *([_text(message.text)] if message.text else ()),
            ]
        details = [d for part in thoughts for d in self._details(part)]
        if quirks.details_field and details:
            written[quirks.details_field] = details

    def _details(self, part: Reasoning) -> Sequence[Any]:
        own = own_of(part, NAME, self.request, self.endpoint)
        details: Sequence[Any] = own.get("details", ())
        return details

    def _call(self, use: ToolUse) -> dict[str, Any]:
        function = {"name": use.name, "arguments": compact(dict(use.arguments))}
        return {"id": self._id(use.id), "type": "function", "function": function}

    def _tool_outputs(self, message: Message) -> Iterator[dict[str, Any]]:
        for part in message.parts:
            if isinstance(part, ToolOutput):
                call = self._id(part.id)
                yield {"role": "tool", "tool_call_id": call, "content": part.text}

    def _id(self, call_id: str) -> str:
        if self.quirks.call_ids == "nine":
            return wire_id(call_id, NINE, 9)
        return wire_id(call_id, SHORT)


def _ends_with_tool(written: Sequence[Mapping[str, Any]]) -> bool:
    return bool(written) and written[-1]["role"] == "tool"


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _words_alone(message: Message) -> str | None:
    """Give what most messages are: one text. A long conversation has many."""
    part = message.parts[0] if len(message.parts) == 1 else None
    return part.text if isinstance(part, Text) else None


def _user(message: Message, quirks: OpenAIQuirks) -> dict[str, Any]:
    name = message.name
    if name and "name" in quirks.lacks:
        message, name = told_by_name(message), ""
    written: dict[str, Any] = {"role": "user", "content": _user_content(message)}
    return {**written, "name": name} if name else written


def _user_content(message: Message) -> str | list[dict[str, Any]]:
    words = _words_alone(message)
    if words is not None:
        return words
    if not any(isinstance(part, Image | File) for part in message.parts):
        return message.text
    told = (p for p in message.parts if isinstance(p, Text | Image | File))
    return [*map(_user_part, told)]


def _user_part(part: Text | Image | File) -> dict[str, Any]:
    if isinstance(part, Text):
        return _text(part.text)
    if isinstance(part, File):
        if not is_document(part):
            return _text(unread(part))
        file = {"filename": part.name, "file_data": data_url(part)}
        return {"type": "file", "file": file}
    detail = {"detail": part.detail} if part.detail else {}
    return {"type": "image_url", "image_url": {"url": data_url(part), **detail}}
