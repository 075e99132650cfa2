"""The Anthropic messages dialect, written: requests.

Source: Claude API reference, "Create a message", and its guides on tool use,
thinking and prompt caching.
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
    Part,
    ProviderError,
    Reasoning,
    Role,
    Text,
    ToolDefinition,
    ToolOutput,
    ToolUse,
)

from .answers import body_of
from .anthropic_decoder import AnthropicDecoder
from .conversation import effort_of, wire_id
from .faults import http_fault
from .quirks import Quirks, read_quirks
from .schema import ANTHROPIC, shape_schema

NAME = "anthropic-messages"
VERSION = "2023-06-01"
CACHED = {"type": "ephemeral"}
LEAST_THINKING = 1024
# A conversation must open with the user; one cut by compaction may not.
OPENING = "(The conversation goes on.)"


@dataclass(frozen=True, slots=True)
class AnthropicQuirks:
    """How a provider, or a model of it, bends the dialect.

    Args:
        max_tokens: The limit of an answer when the request names none; the dialect
            demands one.
        temperature: Whether the model takes one.
        thinking: How a thinking budget is written: not at all, as ``budget_tokens``,
            or as adaptive thinking with an effort.
        can_disable: Whether the model lets thinking be switched off.
        cache: Whether the end of tools and of the system prompt is marked for the
            prompt cache.
    """

    max_tokens: int = 8192
    temperature: bool = True
    thinking: Literal["none", "budget", "adaptive"] = "budget"
    can_disable: bool = True
    cache: bool = True


PLAIN = Quirks(AnthropicQuirks())


@dataclass(frozen=True, slots=True)
class AnthropicMessages:
    """Messages, as Anthropic and a few others speak them."""

    quirks: Quirks[AnthropicQuirks] = PLAIN
    name: str = NAME

    @classmethod
    def from_quirks(cls, table: Mapping[str, Any]) -> AnthropicMessages:
        """Make the dialect of a quirks table.

        Raises:
            InvalidInput: A quirk is not known, or its value is of another type.
        """
        return cls(read_quirks(AnthropicQuirks(), table))

    def encode(self, request: ChatRequest, endpoint: Endpoint) -> HttpRequest:
        """Write the request: tools and system first, so that they stay cached."""
        quirks = self.quirks.of(request.model)
        limit = request.max_tokens or quirks.max_tokens
        body: dict[str, Any] = {"model": request.model, "max_tokens": limit}
        if request.tools:
            body["tools"] = _cached([_tool(tool) for tool in request.tools], quirks)
        if request.system:
            body["system"] = _cached([_text(request.system)], quirks)
        body["messages"] = _messages(request.messages)
        body.update(_sampling(request, quirks, limit))
        if request.stream:
            body["stream"] = True
        root = endpoint.base_url.rstrip("/").removesuffix("/v1")
        return HttpRequest(
            "POST", root + "/v1/messages", _headers(endpoint), body_of(body)
        )

    def decoder(self, request: ChatRequest, endpoint: Endpoint) -> AnthropicDecoder:
        """Make the decoder of this request's answer."""
        return AnthropicDecoder(request, endpoint)

    def fault(
        self, endpoint: Endpoint, status: int, headers: Mapping[str, str], body: bytes
    ) -> ProviderError:
        """Name the error of an answer whose status is not 2xx."""
        return http_fault(endpoint, status, headers, body)


def _headers(endpoint: Endpoint) -> dict[str, str]:
    headers = {"Content-Type": "application/json", "anthropic-version": VERSION}
    if endpoint.key is not None:
        headers["x-api-key"] = endpoint.key.reveal()
    return headers


def _sampling(
    request: ChatRequest, quirks: AnthropicQuirks, limit: int
) -> dict[str, Any]:
    options = _thinking(request.thinking_budget, quirks, limit)
    thinks = options.get("thinking", {}).get("type") not in (None, "disabled")
    if request.temperature is not None and quirks.temperature and not thinks:
        options["temperature"] = request.temperature
    return options


def _thinking(
    budget: int | None, quirks: AnthropicQuirks, limit: int
) -> dict[str, Any]:
    if budget is None or quirks.thinking == "none":
        return {}
    if budget == 0:
        return {"thinking": {"type": "disabled"}} if quirks.can_disable else {}
    if quirks.thinking == "adaptive":
        effort = {"effort": effort_of(budget)}
        return {"thinking": {"type": "adaptive"}, "output_config": effort}
    # Thinking is part of the answer's limit and must leave room for words.
    tokens = min(max(budget, LEAST_THINKING), limit - 1)
    if tokens < LEAST_THINKING:
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": tokens}}


def _cached(
    blocks: list[dict[str, Any]], quirks: AnthropicQuirks
) -> list[dict[str, Any]]:
    if quirks.cache:
        blocks[-1]["cache_control"] = CACHED
    return blocks


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": shape_schema(tool.parameters, ANTHROPIC),
    }


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _messages(messages: tuple[Message, ...]) -> list[dict[str, Any]]:
    written: list[dict[str, Any]] = []
    for message in messages:
        role = "assistant" if message.role is Role.ASSISTANT else "user"
        blocks = [block for part in message.parts for block in _blocks(part)]
        if not blocks:
            continue
        if written and written[-1]["role"] == role:
            written[-1]["content"].extend(blocks)
        else:
            written.append({"role": role, "content": blocks})
    if written and written[0]["role"] != "user":
        written.insert(0, {"role": "user", "content": [_text(OPENING)]})
    return written


def _blocks(part: Part) -> Iterator[dict[str, Any]]:
    if isinstance(part, Text):
        # The API refuses a text block without words.
        if part.text.strip():
            yield _text(part.text)
    elif isinstance(part, Image):
        yield {
            "type": "image",
            "source": {
                "type": "base64",
                "media_type": part.media_type,
                "data": part.data,
            },
        }
    elif isinstance(part, Reasoning):
        yield from _thought(part)
    else:
        yield _call(part) if isinstance(part, ToolUse) else _output(part)


def _thought(part: Reasoning) -> Iterator[dict[str, Any]]:
    """Give back thinking as it came; what another vendor thought stays away."""
    opaque = part.opaque.get(NAME, {})
    if "data" in opaque:
        yield {"type": "redacted_thinking", "data": opaque["data"]}
    elif "signature" in opaque:
        signature = opaque["signature"]
        yield {"type": "thinking", "thinking": part.text, "signature": signature}


def _call(use: ToolUse) -> dict[str, Any]:
    return {
        "type": "tool_use",
        "id": wire_id(use.id),
        "name": use.name,
        "input": dict(use.arguments),
    }


def _output(output: ToolOutput) -> dict[str, Any]:
    block: dict[str, Any] = {
        "type": "tool_result",
        "tool_use_id": wire_id(output.id),
        "content": output.text,
    }
    if output.is_error:
        block["is_error"] = True
    return block
