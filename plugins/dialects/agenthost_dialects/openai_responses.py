"""The OpenAI responses dialect, written: requests that keep no state at the vendor.

Source: OpenAI API reference, "Create a model response", and its guide on reasoning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from agenthost import (
    ChatRequest,
    Endpoint,
    File,
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

from .answers import compact
from .capabilities import Thinking, samples, thinking_of
from .conversation import (
    bearer,
    data_url,
    is_document,
    loop_start,
    own_of,
    unread,
    wire_id,
)
from .faults import http_fault
from .forms import NAME as FORM
from .forms import strict_form
from .outgoing import post
from .quirks import Quirks, read_quirks
from .responses_decoder import CARRIED, NAME, ResponsesDecoder
from .schema import OPENAI, shape_schema
from .settings import CHOICES, TAKES, fitted

SHORT = re.compile(r".{1,64}", re.DOTALL)
"""What the service takes for the id of a call."""


@dataclass(frozen=True, slots=True)
class ResponsesQuirks:
    """How a provider, or a model of it, bends the dialect.

    Args:
        temperature: Whether the model takes one.
        thinking: Whether the model takes a thinking effort.
        effort_off: The effort that means no thinking; empty when there is none.
        encrypted: Whether reasoning is asked for in encrypted form, to be sent back
            inside a tool loop.
        summary: Whether a summary of the reasoning is asked for.
        lean: Whether calls are sent without ids, pictures without a detail, results
            of tools without pictures, and all without a ``prompt_cache_key`` and a
            ``safety_identifier``; nor are there ``logprobs``.
        cost_field: Where usage names the price in US dollars, a path with dots; empty
            for nowhere.
    """

    temperature: bool = False
    thinking: bool = True
    effort_off: str = ""
    encrypted: bool = True
    summary: bool = True
    lean: bool = False
    cost_field: str = ""


PLAIN = Quirks(ResponsesQuirks())
LEAN = replace(TAKES[NAME], settings=TAKES[NAME].settings - {"logprobs"})
LOGPROBS = "message.output_text.logprobs"


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
        sampled = samples(endpoint, usual=quirks.temperature)
        takes = LEAN if quirks.lean else TAKES[NAME]
        request = fitted(request, endpoint, takes, samples=sampled)
        body: dict[str, Any] = {"model": request.model}
        if request.system:
            body["instructions"] = request.system
        body["input"] = list(_Writer(request, quirks, endpoint).items())
        if request.tools:
            body["tools"] = [_tool(tool) for tool in request.tools]
        body.update(_options(request, quirks, endpoint))
        body.update(_settings(request, quirks))
        url = endpoint.base_url.rstrip("/") + "/responses"
        return post(endpoint, url, bearer(endpoint), body)

    def decoder(self, request: ChatRequest, endpoint: Endpoint) -> ResponsesDecoder:
        """Make the decoder of this request's answer."""
        cost_field = self.quirks.of(request.model).cost_field
        return ResponsesDecoder(request, endpoint, cost_field)

    def fault(
        self, endpoint: Endpoint, status: int, headers: Mapping[str, str], body: bytes
    ) -> ProviderError:
        """Name the error of an answer whose status is not 2xx."""
        return http_fault(endpoint, status, headers, body)


def _options(
    request: ChatRequest, quirks: ResponsesQuirks, endpoint: Endpoint
) -> dict[str, Any]:
    options: dict[str, Any] = {"store": False}
    if quirks.encrypted and (
        endpoint.model is None or endpoint.model.supports_thinking
    ):
        options["include"] = ["reasoning.encrypted_content"]
    if request.logprobs is not None:
        options["include"] = [*options.get("include", ()), LOGPROBS]
        options["top_logprobs"] = request.logprobs
    if request.max_tokens is not None:
        options["max_output_tokens"] = request.max_tokens
    if request.temperature is not None and samples(endpoint, usual=quirks.temperature):
        options["temperature"] = request.temperature
    if request.thinking_budget is not None:
        options.update(_reasoning(request.thinking_budget, quirks, endpoint))
    if request.cache_key and not quirks.lean:
        options["prompt_cache_key"] = request.cache_key
    if request.stream:
        options["stream"] = True
    return options


def _settings(request: ChatRequest, quirks: ResponsesQuirks) -> dict[str, Any]:
    written: dict[str, Any] = {}
    if choice := request.tool_choice:
        named = {"type": "function", "name": choice}
        written["tool_choice"] = choice if choice in CHOICES else named
    if request.parallel_tool_calls is not None:
        written["parallel_tool_calls"] = request.parallel_tool_calls
    if request.top_p is not None:
        written["top_p"] = request.top_p
    if request.user and not quirks.lean:
        written["safety_identifier"] = request.user
    if request.response_format is not None:
        schema, strict = strict_form(request.response_format)
        form = {"name": FORM, "schema": schema, "strict": strict}
        written["text"] = {"format": {"type": "json_schema", **form}}
    return written


def _reasoning(
    budget: int, quirks: ResponsesQuirks, endpoint: Endpoint
) -> dict[str, Any]:
    kind = "effort" if quirks.thinking else "none"
    thinking = thinking_of(endpoint, Thinking(kind, off=quirks.effort_off))
    effort = thinking.effort(budget) if budget else thinking.off
    if thinking.kind == "none" or not effort:
        return {}
    summary = {"summary": "auto"} if budget and quirks.summary else {}
    return {"reasoning": {"effort": effort, **summary}}


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": shape_schema(tool.parameters, OPENAI),
        # Strict schemas must require every property, which tools of others do not.
        "strict": bool(tool.strict),
    }


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes the items of one request."""

    request: ChatRequest
    quirks: ResponsesQuirks
    endpoint: Endpoint

    def items(self) -> Iterator[dict[str, Any]]:
        loop = loop_start(self.request.messages)
        for index, message in enumerate(self.request.messages):
            if message.role is Role.USER:
                yield _message("user", self._content(message))
                continue
            for part in message.parts:
                yield from self._item(part, in_loop=index >= loop)

    def _content(self, message: Message) -> str | list[dict[str, Any]]:
        if not any(isinstance(part, Image | File) for part in message.parts):
            return message.text
        parts = (p for p in message.parts if isinstance(p, Text | Image | File))
        return [self._asked(part) for part in parts]

    def _asked(self, part: Text | Image | File) -> dict[str, Any]:
        if isinstance(part, Text):
            return {"type": "input_text", "text": part.text}
        if isinstance(part, File):
            if not is_document(part):
                return {"type": "input_text", "text": unread(part)}
            file = {"filename": part.name, "file_data": data_url(part)}
            return {"type": "input_file", **file}
        picture = {"type": "input_image", "image_url": data_url(part)}
        if self.quirks.lean:
            return picture
        return {**picture, "detail": part.detail or "auto"}

    def _item(self, part: Part, *, in_loop: bool) -> Iterator[dict[str, Any]]:
        if isinstance(part, Text):
            if part.text:
                yield _message("assistant", part.text)
        elif isinstance(part, Reasoning):
            own = self._own(part, in_loop=in_loop)
            if "item" in own:
                yield dict(own["item"])
        elif isinstance(part, ToolUse):
            yield self._call(part, in_loop=in_loop)
        elif isinstance(part, ToolOutput):
            call = wire_id(part.id, SHORT)
            output = {"call_id": call, "output": self._output(part)}
            yield {"type": "function_call_output", **output}

    def _output(self, output: ToolOutput) -> str | list[dict[str, Any]]:
        if self.quirks.lean or not (images := output.images):
            return output.text
        return [self._asked(Text(output.text)), *map(self._asked, images)]

    def _own(self, part: Reasoning | ToolUse, *, in_loop: bool) -> Mapping[str, Any]:
        """Take what goes back only while its loop lasts."""
        return own_of(part, NAME, self.request, self.endpoint) if in_loop else {}

    def _call(self, use: ToolUse, *, in_loop: bool) -> dict[str, Any]:
        call = {
            "type": "function_call",
            "call_id": wire_id(use.id, SHORT),
            "name": use.name,
            "arguments": compact(dict(use.arguments)),
        }
        names = ("thought_signature",) if self.quirks.lean else CARRIED
        own = self._own(use, in_loop=in_loop)
        return {**call, **{name: own[name] for name in names if name in own}}


def _message(role: str, content: str | list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": content}
