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
    File,
    HttpRequest,
    Image,
    Part,
    ProviderError,
    Reasoning,
    Role,
    Text,
    ToolDefinition,
    ToolOutput,
    ToolUse,
)

from .anthropic_decoder import AnthropicDecoder
from .capabilities import (
    Thinking,
    answer_limit,
    keeps_an_hour,
    marks_cache,
    places_to_mark,
    samples,
    thinking_of,
)
from .conversation import begun_elsewhere, is_document, own_of, unread, wire_id
from .faults import http_fault
from .forms import closed_form
from .outgoing import keyed, post
from .quirks import Quirks, read_quirks
from .schema import ANTHROPIC, shape_schema
from .settings import CHOICES, TAKES, fitted

NAME = "anthropic-messages"
KEY_HEADER = {"x-api-key": "{key}"}
VERSION = "2026-10-21"
# The newest version has no temperature; older models take one through the last.
SAMPLING_VERSION = "2023-06-01"
SAMPLING = frozenset({"temperature", "top_k", "top_p"})
CACHED = {"type": "ephemeral"}
CACHED_AN_HOUR = {"type": "ephemeral", "ttl": "1h"}
LEAST_THINKING = 1024
# A conversation must open with the user; one cut by compaction may not.
OPENING = "(The conversation goes on.)"


@dataclass(frozen=True, slots=True)
class AnthropicQuirks:
    """How a provider, or a model of it, bends the dialect.

    Args:
        max_tokens: The limit of an answer when neither the request nor the model's row
            names one; the dialect demands one.
        temperature: Whether the model takes one.
        thinking: How a thinking budget is written: not at all, as ``budget_tokens``,
            or as adaptive thinking with an effort.
        can_disable: Whether the model lets thinking be switched off.
        cache: Whether the ends of tools, of the system prompt and of the conversation
            are marked for the prompt cache.
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
        sampled = samples(endpoint, usual=quirks.temperature)
        request = fitted(request, endpoint, TAKES[NAME], samples=sampled)
        limit = request.max_tokens or answer_limit(endpoint, quirks.max_tokens)
        body: dict[str, Any] = {"model": request.model, "max_tokens": limit}
        if request.tools:
            body["tools"] = [_tool(tool) for tool in request.tools]
        if request.system:
            body["system"] = [_text(request.system)]
        body["messages"] = _messages(request, endpoint)
        if marks_cache(endpoint, usual=quirks.cache):
            _mark(body, CACHED_AN_HOUR if keeps_an_hour(endpoint) else CACHED)
        body.update(_sampling(request, quirks, endpoint, limit))
        _set(body, request)
        if request.native:
            body.update(request.native.get(NAME, {}))
            _show(body)
            _cite(body)
        if request.stream:
            body["stream"] = True
        version = VERSION if SAMPLING.isdisjoint(body) else SAMPLING_VERSION
        root = endpoint.base_url.rstrip("/").removesuffix("/v1")
        return post(endpoint, root + "/v1/messages", _headers(endpoint, version), body)

    def decoder(self, request: ChatRequest, endpoint: Endpoint) -> AnthropicDecoder:
        """Make the decoder of this request's answer."""
        return AnthropicDecoder(request, endpoint)

    def fault(
        self, endpoint: Endpoint, status: int, headers: Mapping[str, str], body: bytes
    ) -> ProviderError:
        """Name the error of an answer whose status is not 2xx."""
        return http_fault(endpoint, status, headers, body)


def _headers(endpoint: Endpoint, version: str) -> dict[str, str]:
    headers = {"Content-Type": "application/json", "anthropic-version": version}
    return headers | keyed(endpoint, KEY_HEADER)


def _sampling(
    request: ChatRequest, quirks: AnthropicQuirks, endpoint: Endpoint, limit: int
) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if request.thinking_budget is not None:
        off = "disabled" if quirks.can_disable else ""
        thinking = thinking_of(endpoint, Thinking(quirks.thinking, off=off))
        options = _thinking(request, thinking, endpoint, limit)
    thinks = options.get("thinking", {}).get("type") not in (None, "disabled")
    wanted = request.temperature is not None and not thinks
    if wanted and samples(endpoint, usual=quirks.temperature):
        options["temperature"] = request.temperature
    if request.top_p is not None and not thinks:
        options["top_p"] = request.top_p
    return options


def _show(body: dict[str, Any]) -> None:
    """Say whether thoughts are to be told, where the model thinks."""
    display = body.pop("display", None)
    thinking = body.get("thinking", {})
    if display and thinking.get("type") in ("enabled", "adaptive"):
        thinking["display"] = display


def _cite(body: dict[str, Any]) -> None:
    """Have the answer say where in the documents its words come from."""
    if body.pop("cites", None):
        for message in body["messages"]:
            for block in message["content"]:
                if block["type"] == "document":
                    block["citations"] = {"enabled": True}


def _set(body: dict[str, Any], request: ChatRequest) -> None:
    """Write the settings that are left, the form of the answer beside an effort."""
    if request.stop:
        body["stop_sequences"] = list(request.stop)
    if request.user:
        body["metadata"] = {"user_id": request.user}
    if request.tool_choice or request.parallel_tool_calls is not None:
        body["tool_choice"] = _choice(request)
    if request.response_format is not None:
        schema = closed_form(request.response_format)
        form = {"format": {"type": "json_schema", "schema": schema}}
        body["output_config"] = body.get("output_config", {}) | form


def _choice(request: ChatRequest) -> dict[str, Any]:
    name = request.tool_choice or "auto"
    choice: dict[str, Any] = {"type": "any" if name == "required" else name}
    if name not in CHOICES:
        choice = {"type": "tool", "name": name}
    if request.parallel_tool_calls is not None and name != "none":
        choice["disable_parallel_tool_use"] = not request.parallel_tool_calls
    return choice


def _thinking(
    request: ChatRequest, thinking: Thinking, endpoint: Endpoint, limit: int
) -> dict[str, Any]:
    budget = request.thinking_budget or 0
    if thinking.kind == "none":
        return {}
    if budget == 0:
        return _unthinking(thinking)
    if thinking.kind == "adaptive":
        effort = {"effort": thinking.effort(budget)}
        return {"thinking": {"type": "adaptive"}, "output_config": effort}
    # Thinking is part of the answer's limit and must leave room for words.
    tokens = min(max(budget, LEAST_THINKING), limit - 1)
    if tokens < LEAST_THINKING or begun_elsewhere(NAME, request, endpoint):
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": tokens}}


def _unthinking(thinking: Thinking) -> dict[str, Any]:
    """Ask for no thinking, or for as little as the model can do with."""
    if not thinking.off:
        return {}
    if thinking.off in thinking.efforts:
        return {"output_config": {"effort": thinking.off}}
    return {"thinking": {"type": thinking.off}}


def _mark(body: Mapping[str, Any], mark: Mapping[str, str]) -> None:
    """Mark what is kept: four places, which is all the service takes."""
    for part in ("tools", "system"):
        for block in body.get(part, ())[-1:]:
            block["cache_control"] = mark
    messages = body["messages"]
    for place in places_to_mark(messages):
        messages[place]["content"][-1]["cache_control"] = mark


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": shape_schema(tool.parameters, ANTHROPIC),
    }


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _messages(request: ChatRequest, endpoint: Endpoint) -> list[dict[str, Any]]:
    written: list[dict[str, Any]] = []
    for message in request.messages:
        role = "assistant" if message.role is Role.ASSISTANT else "user"
        blocks = [
            block
            for part in message.parts
            for block in (
                _thought(part, own_of(part, NAME, request, endpoint))
                if isinstance(part, Reasoning)
                else _blocks(part)
            )
        ]
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
        yield _image(part)
    elif isinstance(part, File):
        yield _document(part)
    elif isinstance(part, ToolUse):
        yield _call(part)
    elif isinstance(part, ToolOutput):
        yield _output(part)


def _image(image: Image) -> dict[str, Any]:
    source = {"type": "base64", "media_type": image.media_type, "data": image.data}
    return {"type": "image", "source": source}


def _document(file: File) -> dict[str, Any]:
    if not is_document(file):
        return _text(unread(file))
    source = {"type": "base64", "media_type": file.media_type, "data": file.data}
    return {"type": "document", "source": source, "title": file.name}


def _thought(part: Reasoning, own: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Give back thinking as it came; what another model thought stays away."""
    if "data" in own:
        yield {"type": "redacted_thinking", "data": own["data"]}
    elif "signature" in own:
        signature = own["signature"]
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
        # The API refuses anything but words in an error.
        block["is_error"] = True
    elif images := output.images:
        block["content"] = [_text(output.text), *map(_image, images)]
    return block
