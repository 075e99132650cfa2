"""Cohere's second chat dialect, written: requests.

Source: Cohere API reference, "Chat" (v2), and its guides on tool use and reasoning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

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

from .answers import body_of, compact
from .capabilities import Thinking, thinking_of
from .cohere_decoder import NAME, CohereDecoder
from .conversation import bearer, data_url, loop_start, unread
from .faults import http_fault
from .quirks import Quirks, read_quirks
from .schema import COHERE, shape_schema
from .settings import TAKES, fitted


@dataclass(frozen=True, slots=True)
class CohereQuirks:
    """How a model bends the dialect: whether it takes a thinking budget."""

    thinking: bool = False


PLAIN = Quirks(CohereQuirks())


@dataclass(frozen=True, slots=True)
class Cohere:
    """Chat, version 2, as Cohere speaks it."""

    quirks: Quirks[CohereQuirks] = PLAIN
    name: str = NAME

    @classmethod
    def from_quirks(cls, table: Mapping[str, Any]) -> Cohere:
        """Make the dialect of a quirks table.

        Raises:
            InvalidInput: A quirk is not known, or its value is of another type.
        """
        return cls(read_quirks(CohereQuirks(), table))

    def encode(self, request: ChatRequest, endpoint: Endpoint) -> HttpRequest:
        """Write the request."""
        quirks = self.quirks.of(request.model)
        request = fitted(request, endpoint, TAKES[NAME])
        body: dict[str, Any] = {
            "model": request.model,
            "messages": list(_messages(request)),
        }
        if request.tools:
            body["tools"] = [_tool(tool) for tool in request.tools]
        if request.max_tokens is not None:
            body["max_tokens"] = request.max_tokens
        if request.temperature is not None:
            body["temperature"] = request.temperature
        usual = Thinking("budget" if quirks.thinking else "none")
        thinks = thinking_of(endpoint, usual).kind != "none"
        if request.thinking_budget is not None and thinks:
            body["thinking"] = _thinking(request.thinking_budget)
        body.update(_settings(request))
        body["stream"] = request.stream
        root = endpoint.base_url.rstrip("/").removesuffix("/v2")
        return HttpRequest("POST", root + "/v2/chat", bearer(endpoint), body_of(body))

    def decoder(self, request: ChatRequest, endpoint: Endpoint) -> CohereDecoder:
        """Make the decoder of this request's answer."""
        return CohereDecoder(request, endpoint)

    def fault(
        self, endpoint: Endpoint, status: int, headers: Mapping[str, str], body: bytes
    ) -> ProviderError:
        """Name the error of an answer whose status is not 2xx."""
        return http_fault(endpoint, status, headers, body)


def _settings(request: ChatRequest) -> dict[str, Any]:
    written: dict[str, Any] = {}
    if request.tool_choice:
        written["tool_choice"] = request.tool_choice.upper()
    if request.stop:
        written["stop_sequences"] = list(request.stop)
    if request.top_p is not None:
        written["p"] = request.top_p
    if request.seed is not None:
        written["seed"] = request.seed
    if request.response_format is not None:
        schema = shape_schema(request.response_format, COHERE)
        written["response_format"] = {"type": "json_object", "json_schema": schema}
    return written


def _thinking(budget: int) -> dict[str, Any]:
    if not budget:
        return {"type": "disabled"}
    return {"type": "enabled", "token_budget": budget}


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": shape_schema(tool.parameters, COHERE),
    }
    return {"type": "function", "function": function}


def _messages(request: ChatRequest) -> Iterator[dict[str, Any]]:
    if request.system:
        yield {"role": "system", "content": request.system}
    loop = loop_start(request.messages)
    for index, message in enumerate(request.messages):
        if message.role is Role.USER:
            yield {"role": "user", "content": _user_content(message)}
        elif message.role is Role.ASSISTANT:
            yield _assistant(message, in_loop=index >= loop)
        else:
            yield from _tool_outputs(message)


def _user_content(message: Message) -> str | list[dict[str, Any]]:
    if not any(isinstance(part, Image | File) for part in message.parts):
        return message.text
    told = (p for p in message.parts if isinstance(p, Text | Image | File))
    return [*map(_user_part, told)]


def _user_part(part: Text | Image | File) -> dict[str, Any]:
    if not isinstance(part, Image):
        text = part.text if isinstance(part, Text) else unread(part)
        return {"type": "text", "text": text}
    return {"type": "image_url", "image_url": {"url": data_url(part)}}


def _assistant(message: Message, *, in_loop: bool) -> dict[str, Any]:
    """Write a step; its plan and its thinking go back while its loop lasts."""
    written: dict[str, Any] = {"role": "assistant"}
    thoughts = [part for part in message.parts if isinstance(part, Reasoning)]
    plan = "".join(part.text for part in thoughts if _is(part, "plan"))
    thinking = "".join(part.text for part in thoughts if _is(part, "thinking"))
    if in_loop and thinking:
        text = [{"type": "text", "text": message.text}] if message.text else []
        written["content"] = [{"type": "thinking", "thinking": thinking}, *text]
    elif message.text or not message.tool_uses:
        written["content"] = message.text
    if in_loop and plan and message.tool_uses:
        written["tool_plan"] = plan
    if message.tool_uses:
        written["tool_calls"] = [_call(use) for use in message.tool_uses]
    return written


def _is(part: Reasoning, kind: str) -> bool:
    own = part.opaque.get(NAME, {})
    return bool(own.get("kind") == kind)


def _call(use: ToolUse) -> dict[str, Any]:
    function = {"name": use.name, "arguments": compact(dict(use.arguments))}
    return {"id": use.id, "type": "function", "function": function}


def _tool_outputs(message: Message) -> Iterator[dict[str, Any]]:
    for part in message.parts:
        if isinstance(part, ToolOutput):
            yield {"role": "tool", "tool_call_id": part.id, "content": part.text}
