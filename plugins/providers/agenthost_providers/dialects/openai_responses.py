"""The OpenAI responses dialect, written: requests that keep no state at the vendor.

Source: OpenAI API reference, "Create a model response", and its guide on reasoning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

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

from .answers import body_of, compact
from .conversation import bearer, effort_of, loop_start
from .faults import http_fault
from .quirks import Quirks, read_quirks
from .responses_decoder import NAME, ResponsesDecoder
from .schema import OPENAI, shape_schema


@dataclass(frozen=True, slots=True)
class ResponsesQuirks:
    """How a provider, or a model of it, bends the dialect.

    Args:
        temperature: Whether the model takes one.
        thinking: Whether the model takes a thinking effort.
        effort_off: The effort that means no thinking; empty when there is none.
        encrypted: Whether reasoning is asked for in encrypted form, to be sent back
            inside a tool loop.
        stateless: Whether the vendor is told to keep nothing; some know no such field.
        cost_field: Where usage names the price in US dollars, a path with dots; empty
            for nowhere.
    """

    temperature: bool = False
    thinking: bool = True
    effort_off: str = ""
    encrypted: bool = True
    stateless: bool = True
    cost_field: str = ""


PLAIN = Quirks(ResponsesQuirks())


@dataclass(frozen=True, slots=True)
class OpenAIResponses:
    """Responses, as OpenAI and a few others speak them."""

    quirks: Quirks[ResponsesQuirks] = PLAIN
    name: str = NAME

    @classmethod
    def from_quirks(cls, table: Mapping[str, Any]) -> OpenAIResponses:
        """Make the dialect of a quirks table.

        Raises:
            InvalidInput: A quirk is not known, or its value is of another type.
        """
        return cls(read_quirks(ResponsesQuirks(), table))

    def encode(self, request: ChatRequest, endpoint: Endpoint) -> HttpRequest:
        """Write the request."""
        quirks = self.quirks.of(request.model)
        body: dict[str, Any] = {"model": request.model}
        if request.system:
            body["instructions"] = request.system
        body["input"] = list(_input(request, endpoint.provider))
        if request.tools:
            body["tools"] = [_tool(tool) for tool in request.tools]
        body.update(_options(request, quirks))
        url = endpoint.base_url.rstrip("/") + "/responses"
        return HttpRequest("POST", url, bearer(endpoint), body_of(body))

    def decoder(self, request: ChatRequest, endpoint: Endpoint) -> ResponsesDecoder:
        """Make the decoder of this request's answer."""
        cost_field = self.quirks.of(request.model).cost_field
        return ResponsesDecoder(request, endpoint, cost_field)

    def fault(
        self, endpoint: Endpoint, status: int, headers: Mapping[str, str], body: bytes
    ) -> ProviderError:
        """Name the error of an answer whose status is not 2xx."""
        return http_fault(endpoint, status, headers, body)


def _options(request: ChatRequest, quirks: ResponsesQuirks) -> dict[str, Any]:
    options: dict[str, Any] = {"store": False} if quirks.stateless else {}
    if quirks.encrypted:
        options["include"] = ["reasoning.encrypted_content"]
    if request.max_tokens is not None:
        options["max_output_tokens"] = request.max_tokens
    if request.temperature is not None and quirks.temperature:
        options["temperature"] = request.temperature
    if request.thinking_budget is not None and quirks.thinking:
        options.update(_reasoning(request.thinking_budget, quirks.effort_off))
    if request.stream:
        options["stream"] = True
    return options


def _reasoning(budget: int, off: str) -> dict[str, Any]:
    if budget:
        return {"reasoning": {"effort": effort_of(budget), "summary": "auto"}}
    return {"reasoning": {"effort": off}} if off else {}


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": shape_schema(tool.parameters, OPENAI),
        # Strict schemas must require every property, which tools of others do not.
        "strict": False,
    }


def _input(request: ChatRequest, provider: str) -> Iterator[dict[str, Any]]:
    loop = loop_start(request.messages)
    for index, message in enumerate(request.messages):
        if message.role is Role.USER:
            yield {"role": "user", "content": _user_content(message)}
        else:
            mine = provider if index >= loop else ""
            for part in message.parts:
                yield from _item(part, mine)


def _user_content(message: Message) -> str | list[dict[str, Any]]:
    if not any(isinstance(part, Image) for part in message.parts):
        return message.text
    return [
        _user_part(part) for part in message.parts if isinstance(part, Text | Image)
    ]


def _user_part(part: Text | Image) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "input_text", "text": part.text}
    url = f"data:{part.media_type};base64,{part.data}"
    return {"type": "input_image", "image_url": url, "detail": "auto"}


def _item(part: Part, mine: str) -> Iterator[dict[str, Any]]:
    """Write an item; ids and sealed reasoning go back only to who made them."""
    if isinstance(part, Text):
        if part.text:
            yield {"role": "assistant", "content": part.text}
    elif isinstance(part, Reasoning):
        own = part.opaque.get(NAME, {})
        if mine and own.get("provider") == mine:
            yield dict(own["item"])
    elif isinstance(part, ToolUse):
        yield _call(part, mine)
    elif isinstance(part, ToolOutput):
        yield {"type": "function_call_output", "call_id": part.id, "output": part.text}


def _call(use: ToolUse, mine: str) -> dict[str, Any]:
    call = {
        "type": "function_call",
        "call_id": use.id,
        "name": use.name,
        "arguments": compact(dict(use.arguments)),
    }
    own = use.opaque.get(NAME, {})
    if mine and own.get("provider") == mine:
        call["id"] = own["id"]
    return call
