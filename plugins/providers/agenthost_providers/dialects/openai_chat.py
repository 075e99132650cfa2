"""The OpenAI chat completions dialect, written: requests.

Source: OpenAI API reference, "Create chat completion".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agenthost import (
    ChatRequest,
    Endpoint,
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

from .answers import body_of, compact
from .conversation import bearer, effort_of, loop_start
from .faults import http_fault
from .openai_decoder import OpenAIDecoder
from .quirks import Quirks, read_quirks
from .schema import SchemaRules, shape_schema

NAME = "openai-chat"


@dataclass(frozen=True, slots=True)
class OpenAIQuirks:
    """How a provider, or a model of it, bends the dialect.

    Args:
        max_tokens_field: Where the limit of the answer is written.
        stream_options: Whether usage has to be asked for when streaming.
        system_role: ``system`` or ``developer``.
        temperature: Whether the model takes one.
        thinking: How a thinking budget is written: not at all, as
            ``reasoning_effort``, or as ``thinking: {type: enabled | disabled}``.
        effort_off: The effort that means no thinking; empty when there is none.
        reasoning_fields: Where reasoning comes in, first match wins.
        reasoning_back: Where it goes back inside a tool loop; empty for nowhere.
        think_tags: Whether answers may open with ``<think>``.
        done_marker: Whether a stream ends with ``[DONE]``; without, the reason to
            stop is taken for the end.
        cost_field: Where usage names the price in US dollars; empty for nowhere.
    """

    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    stream_options: bool = True
    system_role: Literal["system", "developer"] = "system"
    temperature: bool = True
    thinking: Literal["none", "effort", "switch"] = "none"
    effort_off: str = "none"
    reasoning_fields: tuple[str, ...] = ("reasoning_content", "reasoning")
    reasoning_back: str = ""
    think_tags: bool = False
    done_marker: bool = True
    cost_field: str = ""


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
        body: dict[str, Any] = {
            "model": request.model,
            "messages": list(_messages(request, quirks)),
        }
        if request.tools:
            body["tools"] = [_tool(tool) for tool in request.tools]
        body.update(_options(request, quirks))
        url = endpoint.base_url.rstrip("/") + "/chat/completions"
        return HttpRequest("POST", url, bearer(endpoint), body_of(body))

    def decoder(self, request: ChatRequest, endpoint: Endpoint) -> OpenAIDecoder:
        """Make the decoder of this request's answer."""
        return OpenAIDecoder(request, endpoint, self.quirks.of(request.model))

    def fault(
        self, endpoint: Endpoint, status: int, headers: Mapping[str, str], body: bytes
    ) -> ProviderError:
        """Name the error of an answer whose status is not 2xx."""
        return http_fault(endpoint, status, headers, body)


def _options(request: ChatRequest, quirks: OpenAIQuirks) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if request.max_tokens is not None:
        options[quirks.max_tokens_field] = request.max_tokens
    if request.temperature is not None and quirks.temperature:
        options["temperature"] = request.temperature
    if request.thinking_budget is not None:
        options.update(_thinking(request.thinking_budget, quirks))
    if request.stream:
        options["stream"] = True
        if quirks.stream_options:
            options["stream_options"] = {"include_usage": True}
    return options


def _thinking(budget: int, quirks: OpenAIQuirks) -> dict[str, Any]:
    if quirks.thinking == "switch":
        return {"thinking": {"type": "enabled" if budget else "disabled"}}
    effort = effort_of(budget) if budget else quirks.effort_off
    if quirks.thinking == "none" or not effort:
        return {}
    return {"reasoning_effort": effort}


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": shape_schema(tool.parameters, SchemaRules()),
    }
    return {"type": "function", "function": function}


def _messages(request: ChatRequest, quirks: OpenAIQuirks) -> Iterator[dict[str, Any]]:
    if request.system:
        yield {"role": quirks.system_role, "content": request.system}
    loop = loop_start(request.messages)
    for index, message in enumerate(request.messages):
        if message.role is Role.USER:
            yield {"role": "user", "content": _user_content(message)}
        elif message.role is Role.ASSISTANT:
            yield _assistant(message, quirks, in_loop=index >= loop)
        else:
            yield from _tool_outputs(message)


def _user_content(message: Message) -> str | list[dict[str, Any]]:
    if not any(isinstance(part, Image) for part in message.parts):
        return message.text
    return [
        _user_part(part) for part in message.parts if isinstance(part, Text | Image)
    ]


def _user_part(part: Text | Image) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    url = f"data:{part.media_type};base64,{part.data}"
    return {"type": "image_url", "image_url": {"url": url}}


def _assistant(
    message: Message, quirks: OpenAIQuirks, *, in_loop: bool
) -> dict[str, Any]:
    calls = [_call(use) for use in message.tool_uses]
    written: dict[str, Any] = {"role": "assistant"}
    written["content"] = message.text or (None if calls else "")
    thoughts = [part.text for part in message.parts if isinstance(part, Reasoning)]
    if in_loop and quirks.reasoning_back and thoughts:
        written[quirks.reasoning_back] = "".join(thoughts)
    if calls:
        written["tool_calls"] = calls
    return written


def _call(use: ToolUse) -> dict[str, Any]:
    function = {"name": use.name, "arguments": compact(dict(use.arguments))}
    return {"id": use.id, "type": "function", "function": function}


def _tool_outputs(message: Message) -> Iterator[dict[str, Any]]:
    for part in message.parts:
        if isinstance(part, ToolOutput):
            yield {"role": "tool", "tool_call_id": part.id, "content": part.text}
